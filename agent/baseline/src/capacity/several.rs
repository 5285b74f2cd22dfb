//! The capacity of a server from recordings of it under several loads: two laws side by side.
//!
//! The law of the bottleneck uses the resources that are measured, and misses others, such as locks. The Universal Scalability Law uses no
//! resources, and follows everything that slowed the server down. Each may miss a limit, so the smaller one is reported. The first law has
//! a range if a recording does not show how many requests a commit of a log can serve; then both ends are compared.

use crate::capacity::utilization::{Capacity, capacity};
use crate::recording::Metadata;
use crate::series::SeriesSet;
use nfscope_stats::{Load, MIN_LOADS, Scalability, scalability};
use serde::Serialize;

/// Factor to the highest observed rate from which on a limit is a guess.
const FAR: f64 = 2.0;
/// Rows of predictions beyond the data.
const BEYOND: usize = 3;

/// A recording.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// Name of the recording.
    pub name: String,
    /// Load of the recording.
    #[serde(flatten)]
    pub load: Load,
    /// Mean time of a request in the server, in seconds.
    pub residence: f64,
}

/// Law that has the smaller limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Law {
    /// Law of the bottleneck: a resource that saturates.
    Bottleneck,
    /// The Universal Scalability Law.
    Scalability,
}

/// The smaller limit of both laws in requests per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Limit {
    /// Limit if no commit of a log can serve more requests than now; equal to `most` if that makes no difference.
    pub least: f64,
    /// Limit if commits serve all that wait.
    pub most: f64,
    /// The law that has `most`. A lower `least` is always by the law of the bottleneck.
    pub law: Law,
}

impl Limit {
    /// Smaller one of the limit by measured resources and that by the Universal Scalability Law; `None` if neither has one.
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

    /// Returns true if the limit is one number, and not a range.
    pub fn is_known(&self) -> bool {
        self.least == self.most
    }
}

/// The capacity from several recordings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Loads {
    /// The recordings, the smallest load first.
    pub points: Vec<Point>,
    /// Resources in the recording with the highest rate.
    pub bottleneck: Capacity,
    /// The Universal Scalability Law; `None` for fewer than three loads, or loads that are too similar.
    pub scalability: Option<Scalability>,
    /// Lowest and highest limit by that law when any one recording is left out; `None` for fewer than four.
    pub without_one: Option<[f64; 2]>,
    /// Smaller limit; `None` if neither law has one.
    pub limit: Option<Limit>,
    /// Reasons for doubt about the result.
    pub caveats: Vec<String>,
}

impl Loads {
    /// Rate with `in_server` requests in the server by the law of the bottleneck: if commits serve no more than now, and if they serve all
    /// that wait. A request takes as long as under the smallest load, as long as no resource is saturated.
    pub fn by_bottleneck(&self, in_server: f64) -> [f64; 2] {
        let least = self.points.iter().map(|p| p.residence);
        let free = in_server / least.fold(f64::INFINITY, f64::min);
        let limits = self.bottleneck.limits();
        limits.map_or([free; 2], |limits| limits.map(|limit| free.min(limit)))
    }

    /// Numbers of requests in the server beyond the data, for which both laws give predictions.
    pub fn beyond(&self) -> impl Iterator<Item = f64> {
        let last = self.points.last().map_or(1.0, |p| p.load.in_server);
        (1..=BEYOND as i32).map(move |i| last * 2f64.powi(i))
    }
}

/// Capacity from these recordings; `None` if there is none, or if one has no requests.
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
    // Utilization determines a limit best where it is highest.
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
    // A load without a limit makes the range endless, so it is left out of the result.
    let limits = limits.collect::<Option<Vec<f64>>>()?;
    Some([
        limits.iter().copied().fold(f64::INFINITY, f64::min),
        limits.iter().copied().fold(0.0, f64::max),
    ])
}

/// Caveats about recordings of different servers, which are not loads of one server.
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
