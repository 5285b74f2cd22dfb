//! How much more a server could do, from what it did.
//!
//! Operational laws (P. J. Denning and J. P. Buzen, The operational analysis of queueing network models, ACM Computing Surveys
//! 10, 1978): a resource that was busy for U of the time while X requests a second were served has a demand of U / X a
//! request, and cannot serve more than X / U a second. The smallest of these bounds is the server's.

mod text;

pub use text::render;

use crate::series::Columns;
use nfscope_model::family as f;
use nfscope_model::family::Info;
use nfscope_stats as stats;
use nfscope_stats::CONFIDENCE;
use serde::Serialize;

/// From this part of a resource's bound on, waiting grows faster than load: a queue of one server with random arrivals waits
/// three service times there (M/M/1).
pub const KNEE: f64 = 0.75;
/// Less in use says little of where the end is.
const TOO_LITTLE: f64 = 0.1;
/// A resource that is used less has nothing to do with the load.
const NOTHING: f64 = 0.001;

/// What is read of a recording.
pub const FAMILIES: &[&Info] = &[
    &f::RPC_DURATION.info,
    &f::THREADS.info,
    &f::THREAD_BUSY.info,
    &f::CPUS.info,
    &f::CPU_IDLE.info,
    &f::LOG_COMMIT.info,
    &f::BLOCK_BUSY.info,
];

/// One thing that requests use.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Resource {
    /// threads, processors, log of ext4 vda, disk vda.
    pub name: String,
    /// Part of the time in which it was in use, 0 to 1.
    pub used: f64,
    /// 95 % confidence interval of that; `None` for too few windows.
    pub interval: Option<[f64; 2]>,
    /// In the busiest window.
    pub peak: f64,
    /// Requests a second at which it would be in use all the time.
    pub bound: f64,
    /// What it means to be in use, where that is no hard limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
}

/// What a server could do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Capacity {
    /// Requests a second, as observed.
    pub rate: f64,
    /// Mean residence of a request, in seconds.
    pub residence: f64,
    /// Requests in the server at a time (Little's law: rate times residence).
    pub inside: f64,
    /// nfsd threads.
    pub threads: f64,
    /// Resources, the first to saturate first.
    pub resources: Vec<Resource>,
    /// Why the answer is doubtful.
    pub doubts: Vec<String>,
    /// What it takes for granted.
    pub assumptions: Vec<&'static str>,
}

impl Capacity {
    /// The first resource to saturate, with a hard limit.
    pub fn first(&self) -> Option<&Resource> {
        self.resources.iter().find(|r| r.note.is_none())
    }
}

const ASSUMPTIONS: [&str; 5] = [
    "more load is more of the same: the same mix of operations, the same clients, the same share of cache hits",
    "what other programs use of processors and disks grows with the load, too",
    "a request holds its thread as long as before; it holds it longer when log, disks or processors come near their bounds, \
     and threads then run out sooner than is said here",
    "a log writes one thing at a time (jbd2 does; XFS writes up to eight, ZFS several blocks)",
    "a disk serves one request at a time; SSDs, arrays and pools serve many, and their bound is then higher",
];

const PARALLEL: &str = "may serve several at once: a lower bound";

/// Draws it up; `None` without requests.
pub fn capacity(c: &Columns) -> Option<Capacity> {
    let requests = c.spreads(&f::RPC_DURATION, |_| true)?;
    let residence = requests.mean()?;
    let rate = requests.count() / c.seconds();
    let mut resources = Vec::new();
    let mut add = |name: String, busy: Option<Vec<f64>>, whole: &[f64], note| {
        let Some(busy) = busy else { return };
        let (sum, all) = (busy.iter().sum::<f64>(), whole.iter().sum::<f64>());
        if sum <= 0.0 || all <= 0.0 {
            return;
        }
        // Readings of the two differ by a little.
        let used = (sum / all).min(1.0);
        if used < NOTHING {
            return;
        }
        let interval = stats::ratio(&busy, whole).map(|m| m.interval(CONFIDENCE));
        let parts = busy.iter().zip(whole).filter(|(_, w)| **w > 0.0);
        resources.push(Resource {
            name,
            used,
            interval: interval.map(|i| [i.low.min(1.0), i.high.min(1.0)]),
            peak: parts.map(|(b, w)| (b / w).min(1.0)).fold(0.0, f64::max),
            bound: rate / used,
            note,
        });
    };
    let times = |n: Option<Vec<f64>>| -> Vec<f64> {
        let n = n.unwrap_or_default();
        n.iter().zip(&c.lengths).map(|(n, l)| n * l).collect()
    };
    let threads = c.numbers(&f::THREADS, |_| true);
    let count = threads
        .as_ref()
        .and_then(|t| t.last().copied())
        .unwrap_or(0.0);
    let thread_time = times(threads);
    add(
        "threads".into(),
        c.numbers(&f::THREAD_BUSY, |_| true),
        &thread_time,
        None,
    );
    let processor_time = times(c.numbers(&f::CPUS, |_| true));
    let idle = c.numbers(&f::CPU_IDLE, |_| true);
    let busy = idle.map(|idle| {
        let parts = processor_time.iter().zip(&idle);
        // Idle time is counted in ticks and may be ahead.
        parts.map(|(all, idle)| (all - idle).max(0.0)).collect()
    });
    add("processors".into(), busy, &processor_time, None);
    for [fs, volume] in c.labels(&f::LOG_COMMIT) {
        let writes = c.spreads(&f::LOG_COMMIT, |l| l == [fs, volume]);
        let note = (fs != "ext4").then_some(PARALLEL);
        add(
            format!("log of {fs} {volume}"),
            writes.map(|s| s.sums),
            &c.lengths,
            note,
        );
    }
    for [device] in c.labels(&f::BLOCK_BUSY) {
        let busy = c.numbers(&f::BLOCK_BUSY, |l| l == [device]);
        add(format!("disk {device}"), busy, &c.lengths, Some(PARALLEL));
    }
    resources.sort_by(|a, b| a.bound.total_cmp(&b.bound));
    Some(Capacity {
        rate,
        residence,
        inside: rate * residence,
        threads: count,
        doubts: doubts(&resources, c),
        resources,
        assumptions: ASSUMPTIONS.to_vec(),
    })
}

fn doubts(resources: &[Resource], c: &Columns) -> Vec<String> {
    let mut doubts = Vec::new();
    let most = resources.iter().map(|r| r.used).fold(0.0, f64::max);
    if !resources.is_empty() && most < TOO_LITTLE {
        doubts.push(format!(
            "nothing was in use for more than {:.1} % of the time: record under real load, this is far from any bound",
            most * 100.0
        ));
    }
    let threads = c.numbers(&f::THREADS, |_| true).unwrap_or_default();
    if threads.iter().any(|n| *n != threads[0]) {
        doubts.push("the number of threads changed during the recording".into());
    }
    doubts
}
