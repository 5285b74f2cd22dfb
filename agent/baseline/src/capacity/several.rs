//! The capacity of a server from recordings of it under several loads: two laws side by side.
//!
//! The law of the bottleneck knows the resources that are measured, and nothing of others, such as locks. The Universal Scalability Law
//! knows nothing of resources, and follows whatever slowed the server down. Each may miss a limit, so that the smaller one is told. Where
//! the first law has a range, because a recording does not tell what the commits of a log can serve, both ends are compared.

use crate::capacity::utilization::{Capacity, capacity};
use crate::recording::Metadata;
use crate::series::SeriesSet;
use nfscope_stats::{Load, MIN_LOADS, Scalability, scalability};
use serde::Serialize;

/// A limit that is further than this from the highest rate that was seen is a guess.
const FAR: f64 = 2.0;
/// So many rows of predictions beyond the data.
const BEYOND: usize = 3;

/// One recording.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// Name of the recording.
    pub name: String,
    /// Its load.
    #[serde(flatten)]
    pub load: Load,
    /// Mean time of a request in the server, in seconds.
    pub residence: f64,
}

/// Which law tells the smaller limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Law {
    /// A resource that saturates.
    Bottleneck,
    /// The Universal Scalability Law.
    Scalability,
}

/// The smaller limit of both laws in requests per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Limit {
    /// If no commit of a log can serve more requests than now; equal to `most` where that makes no difference.
    pub least: f64,
    /// If commits serve all who wait.
    pub most: f64,
    /// The law that has `most`. A lower `least` is always by the law of the bottleneck.
    pub law: Law,
}

impl Limit {
    /// The smaller one of the limit by measured resources and that by the Universal Scalability Law; `None` where neither has one.
    pub fn smaller(bottleneck: &Capacity, scalability: Option<f64>) -> Option<Limit> {
        let by_resource = bottleneck.limits().map(|[least, most]| Limit {
            least,
            most,
            law: Law::Bottleneck,
        });
        let by_law = scalability.map(|max| Limit {
            least: max,
            most: max,
            law: Law::Scalability,
        });
        let (Some(a), Some(b)) = (by_resource, by_law) else {
            return by_resource.or(by_law);
        };
        let upper = if a.most <= b.most { a } else { b };
        Some(Limit {
            least: a.least.min(b.least),
            ..upper
        })
    }

    /// True if it is one number, and no range.
    pub fn is_known(&self) -> bool {
        self.least == self.most
    }
}

/// The capacity from several recordings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Loads {
    /// The recordings, the smallest load first.
    pub points: Vec<Point>,
    /// What the recording with the highest rate says of its resources.
    pub bottleneck: Capacity,
    /// The Universal Scalability Law; `None` for fewer than three loads, or loads that are too similar.
    pub scalability: Option<Scalability>,
    /// The lowest and the highest limit by that law when any one recording is left out; `None` for fewer than four.
    pub without_one: Option<[f64; 2]>,
    /// The smaller limit; `None` where neither law has one.
    pub limit: Option<Limit>,
    /// What makes the result less certain.
    pub caveats: Vec<String>,
}

impl Loads {
    /// The rate with so many requests in the server by the law of the bottleneck, if commits serve no more than now, and if they serve
    /// all who wait: what it was under the smallest load, as long as no resource is saturated.
    pub fn by_bottleneck(&self, in_server: f64) -> [f64; 2] {
        let least = self.points.iter().map(|p| p.residence);
        let free = in_server / least.fold(f64::INFINITY, f64::min);
        let limits = self.bottleneck.limits();
        limits.map_or([free; 2], |limits| limits.map(|limit| free.min(limit)))
    }

    /// Numbers of requests in the server beyond the data, at which both laws are told.
    pub fn beyond(&self) -> impl Iterator<Item = f64> {
        let last = self.points.last().map_or(1.0, |p| p.load.in_server);
        (1..=BEYOND as i32).map(move |i| last * 2f64.powi(i))
    }
}

/// The capacity from these recordings; `None` if one has no requests, or there is none.
pub fn several(all: &[SeriesSet]) -> Option<Loads> {
    let mut each = all
        .iter()
        .map(|c| Some((c, capacity(c)?)))
        .collect::<Option<Vec<_>>>()?;
    each.sort_by(|a, b| a.1.concurrency.total_cmp(&b.1.concurrency));
    let points: Vec<Point> = each
        .iter()
        .map(|(c, of)| Point {
            name: c.metadata.name.clone(),
            load: Load {
                in_server: of.concurrency,
                rate: of.rate,
            },
            residence: of.residence,
        })
        .collect();
    // Utilization tells most of a limit where it is highest.
    let (_, bottleneck) = each.iter().max_by(|a, b| a.1.rate.total_cmp(&b.1.rate))?;
    let loads: Vec<Load> = points.iter().map(|p| p.load).collect();
    let highest = bottleneck.rate;
    // A limit is not below what was measured.
    let law = scalability(&loads).map(|s| Scalability {
        max_rate: s.max_rate.map(|max| max.max(highest)),
        ..s
    });
    let limit = Limit::smaller(bottleneck, law.and_then(|s| s.max_rate));
    let metadata: Vec<&Metadata> = all.iter().map(|c| &c.metadata).collect();
    let threads: Vec<f64> = each.iter().map(|(_, of)| of.threads).collect();
    let mut caveats = bottleneck.caveats.clone();
    caveats.extend(differences(&metadata, &threads));
    if law.is_none() {
        caveats.push(format!(
            "the Universal Scalability Law needs {MIN_LOADS} recordings under loads that differ by half or more"
        ));
    }
    if let Some(l) = limit.filter(|l| l.most > FAR * highest) {
        let what = match l.least > FAR * highest {
            true => "the limit",
            false => "the upper end of the limit",
        };
        caveats.push(format!(
            "{what} is more than {FAR:.0} times the highest rate that was recorded: record under more load"
        ));
    }
    Some(Loads {
        without_one: without_one(&loads),
        bottleneck: bottleneck.clone(),
        scalability: law,
        limit,
        points,
        caveats,
    })
}

/// The range of limits by the Universal Scalability Law with each load left out in turn.
fn without_one(loads: &[Load]) -> Option<[f64; 2]> {
    if loads.len() <= MIN_LOADS {
        return None;
    }
    let limits = (0..loads.len()).map(|out| {
        let rest: Vec<Load> = (0..loads.len())
            .filter(|i| *i != out)
            .map(|i| loads[i])
            .collect();
        scalability(&rest).and_then(|s| s.max_rate)
    });
    // One that shows no limit makes the range endless, and it is not told.
    let limits = limits.collect::<Option<Vec<f64>>>()?;
    Some([
        limits.iter().copied().fold(f64::INFINITY, f64::min),
        limits.iter().copied().fold(0.0, f64::max),
    ])
}

/// Recordings of different servers are no loads of one.
fn differences(all: &[&Metadata], threads: &[f64]) -> Vec<String> {
    let first = all[0];
    [
        ("host", all.iter().any(|m| m.host != first.host)),
        ("kernel", all.iter().any(|m| m.kernel != first.kernel)),
        (
            "number of threads",
            threads.iter().any(|n| *n != threads[0]),
        ),
    ]
    .into_iter()
    .filter(|(_, differs)| *differs)
    .map(|(what, _)| {
        format!("the {what} differs between the recordings: they are not loads of one server")
    })
    .collect()
}
