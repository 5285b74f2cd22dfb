//! The maximum request rate of a server, estimated from the utilization of its resources.
//!
//! Operational laws (P. J. Denning and J. P. Buzen, The operational analysis of queueing network models, ACM Computing Surveys
//! 10, 1978): a resource with utilization U at X requests per second has a service demand of U / X per request. It cannot serve
//! more than X / U requests per second. The smallest of these rates limits the server.

use crate::series::SeriesSet;
use nfscope_model::family as f;
use nfscope_model::family::Info;
use nfscope_stats as stats;
use nfscope_stats::CONFIDENCE;
use serde::Serialize;

/// Above this utilization waiting times grow faster than the load: in a queue with one server and random arrivals (M/M/1) a
/// request waits three service times there.
pub const KNEE: f64 = 0.75;
/// With a lower utilization the maximum rate cannot be estimated reliably.
const MIN_RELIABLE_UTILIZATION: f64 = 0.1;
/// A resource with a lower utilization does not limit the load.
const MIN_UTILIZATION: f64 = 0.001;

/// The families that are read from a recording.
pub const FAMILIES: &[&Info] = &[
    &f::RPC_DURATION.info,
    &f::THREADS.info,
    &f::THREAD_BUSY.info,
    &f::CPUS.info,
    &f::CPU_IDLE.info,
    &f::LOG_COMMIT.info,
    &f::BLOCK_BUSY.info,
];

/// A resource that requests use.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Resource {
    /// For example threads, CPUs, log of ext4 vda, block device vda.
    pub name: String,
    /// Share of the time in which it was busy, 0 to 1.
    pub utilization: f64,
    /// 95 % confidence interval of the utilization; `None` for too few windows.
    pub interval: Option<[f64; 2]>,
    /// Utilization in the busiest window.
    pub peak: f64,
    /// Requests per second at a utilization of 1.
    pub max_rate: f64,
    /// Why the maximum rate is no hard limit, if it is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
}

/// The capacity of a server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Capacity {
    /// Observed requests per second.
    pub rate: f64,
    /// Mean residence time of a request, in seconds.
    pub residence: f64,
    /// Mean number of requests in the server (Little's law: rate times residence).
    pub concurrency: f64,
    /// nfsd threads.
    pub threads: f64,
    /// Resources, in the order in which they saturate.
    pub resources: Vec<Resource>,
    /// Why the result may be wrong.
    pub caveats: Vec<String>,
    /// What the result assumes.
    pub assumptions: Vec<&'static str>,
}

impl Capacity {
    /// The first resource with a hard limit to saturate.
    pub fn first(&self) -> Option<&Resource> {
        self.resources.iter().find(|r| r.note.is_none())
    }
}

const ASSUMPTIONS: [&str; 5] = [
    "additional load has the same mix of operations, the same clients and the same share of cache hits",
    "the CPU and disk usage of other programs grows with the load, too",
    "a request holds its thread as long as before; when the intent log, block devices or CPUs come near saturation, it holds \
     the thread longer, and threads run out sooner than estimated here",
    "a log writes one record at a time (true of jbd2; XFS writes up to eight, ZFS several blocks)",
    "a block device serves one request at a time; SSDs, arrays and pools serve many, and their maximum rate is higher",
];

const PARALLEL: &str = "may serve several requests at once: the maximum rate may be higher";

/// Estimates the capacity; `None` without requests.
pub fn capacity(c: &SeriesSet) -> Option<Capacity> {
    let requests = c.histograms(&f::RPC_DURATION, |_| true)?;
    let residence = requests.mean()?;
    let rate = requests.count() / c.seconds();
    let mut resources = Vec::new();
    let mut add = |name: String, busy: Option<Vec<f64>>, whole: &[f64], note| {
        let Some(busy) = busy else { return };
        let (sum, all) = (busy.iter().sum::<f64>(), whole.iter().sum::<f64>());
        if sum <= 0.0 || all <= 0.0 {
            return;
        }
        // The two are read at slightly different times.
        let utilization = (sum / all).min(1.0);
        if utilization < MIN_UTILIZATION {
            return;
        }
        let interval = stats::ratio(&busy, whole).map(|m| m.interval(CONFIDENCE));
        let parts = busy.iter().zip(whole).filter(|(_, w)| **w > 0.0);
        resources.push(Resource {
            name,
            utilization,
            interval: interval.map(|i| [i.low.min(1.0), i.high.min(1.0)]),
            peak: parts.map(|(b, w)| (b / w).min(1.0)).fold(0.0, f64::max),
            max_rate: rate / utilization,
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
    let cpu_time = times(c.numbers(&f::CPUS, |_| true));
    let idle = c.numbers(&f::CPU_IDLE, |_| true);
    let busy = idle.map(|idle| {
        let parts = cpu_time.iter().zip(&idle);
        // Idle time is counted in clock ticks and may exceed the window.
        parts.map(|(all, idle)| (all - idle).max(0.0)).collect()
    });
    add("CPUs".into(), busy, &cpu_time, None);
    for [fs, volume] in c.labels(&f::LOG_COMMIT) {
        let writes = c.histograms(&f::LOG_COMMIT, |l| l == [fs, volume]);
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
        add(
            format!("block device {device}"),
            busy,
            &c.lengths,
            Some(PARALLEL),
        );
    }
    resources.sort_by(|a, b| a.max_rate.total_cmp(&b.max_rate));
    Some(Capacity {
        rate,
        residence,
        concurrency: rate * residence,
        threads: count,
        caveats: caveats(&resources, c),
        resources,
        assumptions: ASSUMPTIONS.to_vec(),
    })
}

fn caveats(resources: &[Resource], c: &SeriesSet) -> Vec<String> {
    let mut caveats = Vec::new();
    let most = resources.iter().map(|r| r.utilization).fold(0.0, f64::max);
    if !resources.is_empty() && most < MIN_RELIABLE_UTILIZATION {
        caveats.push(format!(
            "no resource was busy for more than {:.1} % of the time: record under real load; far from saturation the estimate is uncertain",
            most * 100.0
        ));
    }
    let threads = c.numbers(&f::THREADS, |_| true).unwrap_or_default();
    if threads.iter().any(|n| *n != threads[0]) {
        caveats.push("the number of threads changed during the recording".into());
    }
    caveats
}
