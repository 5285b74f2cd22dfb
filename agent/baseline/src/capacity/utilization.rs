//! The maximum request rate of a server, estimated from the utilization of its resources.
//!
//! Operational laws (P. J. Denning and J. P. Buzen, The operational analysis of queueing network models, ACM Computing Surveys
//! 10, 1978): a resource with utilization U at X requests per second has a service demand of U / X per request. It cannot serve
//! more than X / U requests per second. The smallest of these rates limits the server.

use crate::capacity::group_commit::{Commits, Room};
use crate::series::SeriesSet;
use nfscope_model::family as f;
use nfscope_model::family::Info;
use nfscope_stats as stats;
use nfscope_stats::{CONFIDENCE, MIN_WINDOWS};
use nfscope_text::units::{many, rate as rate_text};
use serde::Serialize;

/// Least utilization for a reliable estimate of the maximum rate.
const MIN_RELIABLE_UTILIZATION: f64 = 0.1;
/// Factor to the observed rate beyond which a limit is extrapolated.
pub(super) const FAR: f64 = 3.0;

/// Returns true if a limit is more than [`FAR`] times the observed rate.
pub(super) fn is_far(limit: f64, observed: f64) -> bool {
    limit > FAR * observed
}

/// Note on such a limit in a sentence; empty for others.
pub(super) fn far(limit: f64, observed: f64) -> &'static str {
    match is_far(limit, observed) {
        true => " (extrapolated)",
        false => "",
    }
}

/// Least part of the time in use from which on a resource may be the limit, even if it may serve several requests at once.
const BUSY: f64 = 0.9;
/// Least utilization of a resource that can limit the load.
const MIN_UTILIZATION: f64 = 0.001;

/// Families of a recording that the estimate reads.
pub const FAMILIES: &[&Info] = &[
    &f::RPC_DURATION.info,
    &f::RPC_QUEUE.info,
    &f::THREADS.info,
    &f::THREAD_BUSY.info,
    &f::CPUS.info,
    &f::CPU_IDLE.info,
    &f::LOG_WAIT.info,
    &f::LOG_COMMIT.info,
    &f::BLOCK_BUSY.info,
];

/// A resource that requests use.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Resource {
    /// Name, for example threads, CPUs, log of ext4 vda, block device vda.
    pub name: String,
    /// Share of the time in which it was busy, 0 to 1.
    pub utilization: f64,
    /// 95 % confidence interval of the utilization; `None` for too few windows.
    pub interval: Option<[f64; 2]>,
    /// Utilization in the busiest window.
    pub peak: f64,
    /// Requests per second at a utilization of 1. For a log this counts as many requests per commit as threads allow, unless the recording
    /// shows commits of one.
    pub max_rate: f64,
    /// Requests per second at a utilization of 1, if the commits of this log serve no more requests than now; `None` if the recording shows
    /// how commits work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rate_at_least: Option<f64>,
    /// Mean number of requests that each commit served, for a log that requests waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_commit: Option<f64>,
    /// Servers that work side by side: threads, CPUs.
    pub servers: f64,
    /// Requests per second from which on waits grow faster than the load: three service times (M/M/c).
    pub knee_rate: f64,
    /// 95 % confidence interval of `knee_rate`, from that of the utilization.
    pub knee_interval: Option<[f64; 2]>,
    /// Reason why the maximum rate is not a hard limit, if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
    /// True if the limit is more than three times the observed rate, or if no request waited for the resource: the recording does not show
    /// the server there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub extrapolated: bool,
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
    /// Resources: those with a hard limit in the order in which they saturate, then those that may serve more.
    pub resources: Vec<Resource>,
    /// Reasons for doubt about the result.
    pub caveats: Vec<String>,
    /// Assumptions of the result.
    pub assumptions: Vec<&'static str>,
}

impl Capacity {
    /// Resource with a hard limit that saturates first.
    pub fn first(&self) -> Option<&Resource> {
        self.resources.iter().find(|r| r.note.is_none())
    }

    /// Resource with the lowest lower end among those with a hard limit.
    pub fn least(&self) -> Option<&Resource> {
        let hard = self.resources.iter().filter(|r| r.note.is_none());
        hard.min_by(|a, b| a.least().total_cmp(&b.least()))
    }

    /// Lowest hard limits in requests per second: if commits serve no more than now, and if they serve all that wait.
    pub fn limits(&self) -> Option<[f64; 2]> {
        Some([self.least()?.least(), self.first()?.max_rate])
    }

    /// Other resources with a hard limit that saturate earlier if their commits serve no more requests than now.
    pub fn maybe_earlier(&self) -> impl Iterator<Item = &Resource> {
        let first = self.first();
        let earlier = move |r: &&Resource| {
            let before = |first: &Resource| r.name != first.name && r.least() < first.least();
            r.note.is_none() && first.is_some_and(before)
        };
        self.resources.iter().filter(earlier)
    }
}

impl Resource {
    /// Lower end of the limit: the limit itself if it is known.
    pub fn least(&self) -> f64 {
        self.max_rate_at_least.unwrap_or(self.max_rate)
    }

    /// Requests that a commit serves now, as the end of a sentence: `one request`, `1.30 requests`.
    pub fn commits_serve(&self) -> String {
        let n = self.requests_per_commit.unwrap_or(0.0);
        match (0.995..1.005).contains(&n) {
            true => "one request".to_owned(),
            false => format!("{n:.2} requests"),
        }
    }
}

const ASSUMPTIONS: [&str; 6] = [
    "additional load has the same mix of operations, the same clients and the same share of cache hits",
    "the CPU and disk usage of other programs grows with the load, too",
    "a request holds its thread as long as before; when the intent log, block devices or CPUs come near saturation, it holds \
     the thread longer, and threads run out sooner than estimated here",
    "a log writes one record at a time (true of jbd2; XFS writes up to eight, ZFS several blocks)",
    "a commit of a log takes as long with more requests in it; where commits serve all who wait, half of the threads are in each at the \
     limit, because the other half came while it was written",
    "a block device serves one request at a time; SSDs, arrays and pools serve many, and their maximum rate is higher",
];

const PARALLEL: &str = "may serve several requests at once: the maximum rate may be higher";

/// Part of the time from which on a log counts as making several writes at once: its writes take more time than there is.
const IN_TURN: f64 = 1.05;

/// Estimates the capacity; `None` without requests.
pub fn capacity(c: &SeriesSet) -> Option<Capacity> {
    let requests = c.histograms(&f::RPC_DURATION, |_| true)?;
    let residence = requests.mean()?;
    let rate = requests.count() / c.seconds();
    let mut resources = Vec::new();
    let mut add =
        |name: String, busy: Option<Vec<f64>>, whole: &[f64], room: Room, servers: f64, note| {
            let Some(busy) = busy else { return };
            let (sum, all) = (busy.iter().sum::<f64>(), whole.iter().sum::<f64>());
            if sum <= 0.0 || all <= 0.0 {
                return;
            }
            // The two counters are read at slightly different times.
            let utilization = (sum / all).min(1.0);
            if utilization < MIN_UTILIZATION {
                return;
            }
            let interval = stats::ratio(&busy, whole).map(|m| m.interval(CONFIDENCE));
            let max_rate = rate / utilization * room.most;
            let least = rate / utilization * room.least;
            let knee_rate = knee(servers) * max_rate;
            let parts = busy.iter().zip(whole).filter(|(_, w)| **w > 0.0);
            resources.push(Resource {
                name,
                utilization,
                interval: interval.map(|i| [i.low.min(1.0), i.high.min(1.0)]),
                peak: parts.map(|(b, w)| (b / w).min(1.0)).fold(0.0, f64::max),
                max_rate,
                max_rate_at_least: (!room.is_known()).then_some(least),
                requests_per_commit: room.now,
                servers,
                knee_rate,
                knee_interval: interval
                    .map(|i| [i.high, i.low].map(|u| knee_rate * utilization / u)),
                note,
                extrapolated: false,
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
        Room::NONE,
        count,
        None,
    );
    let cpus = c.numbers(&f::CPUS, |_| true);
    let cpu_count = cpus.as_ref().and_then(|n| n.last().copied());
    let cpu_time = times(cpus);
    let idle = c.numbers(&f::CPU_IDLE, |_| true);
    let busy = idle.map(|idle| {
        let parts = cpu_time.iter().zip(&idle);
        // Idle time is counted in clock ticks and may exceed the window.
        parts.map(|(all, idle)| (all - idle).max(0.0)).collect()
    });
    add(
        "CPUs".into(),
        busy,
        &cpu_time,
        Room::NONE,
        cpu_count.unwrap_or(1.0),
        None,
    );
    for [fs, volume] in c.labels(&f::LOG_COMMIT) {
        let writes = c.histograms(&f::LOG_COMMIT, |l| l == [fs, volume]);
        let waits = c.histograms(&f::LOG_WAIT, |l| l == [fs, volume]);
        let room = match (&waits, &writes) {
            (Some(waits), Some(writes)) => Commits {
                waits: waits.total(),
                commits: writes.total(),
                seconds: c.seconds(),
                threads: count,
            }
            .room(),
            _ => Room::NONE,
        };
        // A log that requests queue for is a limit, unless it wrote several blocks at once: then its writes take more time than there is.
        let overlap = writes
            .as_ref()
            .is_some_and(|w| w.sums.iter().sum::<f64>() > IN_TURN * c.lengths.iter().sum::<f64>());
        let note = (fs != "ext4" && (overlap || !room.is_queued)).then_some(PARALLEL);
        add(
            format!("log of {fs} {volume}"),
            writes.map(|s| s.sums),
            &c.lengths,
            room,
            1.0,
            note,
        );
    }
    for [device] in c.labels(&f::BLOCK_BUSY) {
        let busy = c.numbers(&f::BLOCK_BUSY, |l| l == [device]);
        add(
            format!("block device {device}"),
            busy,
            &c.lengths,
            Room::NONE,
            1.0,
            Some(PARALLEL),
        );
    }
    let unwaited = no_thread_was_waited_for(c, residence);
    for r in &mut resources {
        r.extrapolated = is_far(r.max_rate, rate)
            || r.max_rate_at_least.is_some()
            || r.name == "threads" && unwaited;
    }
    // Hard limits come first, before resources that may serve many times as much.
    resources.sort_by(|a, b| {
        let soft = a.note.is_some().cmp(&b.note.is_some());
        soft.then(a.max_rate.total_cmp(&b.max_rate))
    });
    Some(Capacity {
        rate,
        residence,
        concurrency: rate * residence,
        threads: count,
        caveats: caveats(&resources, c, unwaited),
        resources,
        assumptions: ASSUMPTIONS.to_vec(),
    })
}

/// Share of the time in the server below which a wait for a thread counts as none.
const NOBODY: f64 = 0.02;

/// Returns true if hardly a request waited for a thread.
fn no_thread_was_waited_for(c: &SeriesSet, residence: f64) -> bool {
    let waits = c.histograms(&f::RPC_QUEUE, |_| true);
    waits
        .and_then(|w| w.mean())
        .is_some_and(|mean| mean < NOBODY * residence)
}

/// Utilization at which a request waits three service times in a queue with this number of servers and random arrivals (M/M/c): 0.75 with
/// one, closer to 1 with more.
pub fn knee(servers: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        match stats::waiting(servers, middle) < 3.0 {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

fn caveats(resources: &[Resource], c: &SeriesSet, unwaited: bool) -> Vec<String> {
    let mut caveats = Vec::new();
    if c.windows < MIN_WINDOWS {
        caveats.push(format!(
            "the recording has {}, and nobody can tell from fewer than {MIN_WINDOWS} how far these limits may be off: record longer",
            many(c.windows as f64, "window")
        ));
    }
    let most = resources.iter().map(|r| r.utilization).fold(0.0, f64::max);
    if !resources.is_empty() && most < MIN_RELIABLE_UTILIZATION {
        caveats.push(format!(
            "no resource was busy for more than {:.1} % of the time: record under real load; far from saturation the estimate is uncertain",
            most * 100.0
        ));
    }
    let first = resources.iter().find(|r| r.note.is_none());
    for r in (resources.iter()).filter(|r| r.note.is_some() && r.utilization > BUSY) {
        caveats.push(format!(
            "the {} was busy for {:.0} % of the time: if it serves one request at a time, it limits the server to {} requests per second",
            r.name,
            r.utilization * 100.0,
            rate_text(r.max_rate)
        ));
    }
    if unwaited && first.is_some_and(|r| r.name == "threads") {
        caveats.push(
            "hardly a request waited for a thread: what happens when all are busy is not in the recording, and the limit of the threads \
             is extrapolated"
                .into(),
        );
    }
    let until = first.map_or(f64::INFINITY, |r| r.max_rate);
    for r in resources.iter().filter(|r| r.note.is_none()) {
        // A resource that saturates late in either case is left out.
        let Some(least) = r.max_rate_at_least.filter(|least| *least <= until) else {
            continue;
        };
        caveats.push(format!(
            "a commit of the {} served {} on average, and hardly a request waited for longer than two commits: whether a commit can serve \
             more, up to all who wait, is not in the recording. The limit of {} per second holds if it cannot, that of {} if it can, and \
             both are extrapolated. A recording of more than two busy clients tells",
            r.name,
            r.commits_serve(),
            rate_text(least),
            rate_text(r.max_rate)
        ));
    }
    let threads = c.numbers(&f::THREADS, |_| true).unwrap_or_default();
    if threads.iter().any(|n| *n != threads[0]) {
        caveats.push("the number of threads changed during the recording".into());
    }
    caveats
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_knee_follows_the_number_of_servers() {
        assert!((knee(1.0) - 0.75).abs() < 1e-9);
        // M/M/2 waits u² / (1 - u²) service times: three where u is the root of 3/4.
        assert!((knee(2.0) - 0.75f64.sqrt()).abs() < 1e-9);
        assert!(knee(8.0) > 0.94 && knee(64.0) > knee(8.0) && knee(64.0) < 1.0);
    }
}
