//! The maximum request rate of a server, estimated from the utilization of its resources.
//!
//! Operational laws (P. J. Denning and J. P. Buzen, The operational analysis of queueing network models, ACM Computing Surveys
//! 10, 1978): a resource with utilization U at X requests per second has a service demand of U / X per request. It cannot serve
//! more than X / U requests per second. The smallest of these rates limits the server.

use crate::series::SeriesSet;
use nfscope_model::family as f;
use nfscope_model::family::Info;
use nfscope_stats as stats;
use nfscope_stats::{CONFIDENCE, MIN_WINDOWS};
use nfscope_text::units::many;
use serde::Serialize;

/// From this many more requests in a commit on, it shows whether commits take all who wait.
const VISIBLE: f64 = 0.02;
/// With a lower utilization the maximum rate cannot be estimated reliably.
const MIN_RELIABLE_UTILIZATION: f64 = 0.1;
/// A resource with a lower utilization does not limit the load.
const MIN_UTILIZATION: f64 = 0.001;

/// The families that are read from a recording.
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
    /// For example threads, CPUs, log of ext4 vda, block device vda.
    pub name: String,
    /// Share of the time in which it was busy, 0 to 1.
    pub utilization: f64,
    /// 95 % confidence interval of the utilization; `None` for too few windows.
    pub interval: Option<[f64; 2]>,
    /// Utilization in the busiest window.
    pub peak: f64,
    /// Requests per second at a utilization of 1; of a log with as many requests in a commit as threads allow.
    pub max_rate: f64,
    /// Servers that work side by side: threads, CPUs.
    pub servers: f64,
    /// Requests per second from which on waits grow faster than the load: three service times (M/M/c).
    pub knee_rate: f64,
    /// Its 95 % confidence interval, from that of the utilization.
    pub knee_interval: Option<[f64; 2]>,
    /// Why the maximum rate is no hard limit, if it is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
    /// Nobody waited for it: what happens where requests do is not in the recording.
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

const ASSUMPTIONS: [&str; 6] = [
    "additional load has the same mix of operations, the same clients and the same share of cache hits",
    "the CPU and disk usage of other programs grows with the load, too",
    "a request holds its thread as long as before; when the intent log, block devices or CPUs come near saturation, it holds \
     the thread longer, and threads run out sooner than estimated here",
    "a log writes one record at a time (true of jbd2; XFS writes up to eight, ZFS several blocks)",
    "a commit of a log takes as long with more requests in it; at the limit half of the threads are in each, because the other half \
     came while it was written",
    "a block device serves one request at a time; SSDs, arrays and pools serve many, and their maximum rate is higher",
];

const PARALLEL: &str = "may serve several requests at once: the maximum rate may be higher";

/// Estimates the capacity; `None` without requests.
pub fn capacity(c: &SeriesSet) -> Option<Capacity> {
    let requests = c.histograms(&f::RPC_DURATION, |_| true)?;
    let residence = requests.mean()?;
    let rate = requests.count() / c.seconds();
    let mut resources = Vec::new();
    let mut add =
        |name: String, busy: Option<Vec<f64>>, whole: &[f64], room: f64, servers: f64, note| {
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
            let max_rate = rate / utilization * room;
            let knee_rate = knee(servers) * max_rate;
            let parts = busy.iter().zip(whole).filter(|(_, w)| **w > 0.0);
            resources.push(Resource {
                name,
                utilization,
                interval: interval.map(|i| [i.low.min(1.0), i.high.min(1.0)]),
                peak: parts.map(|(b, w)| (b / w).min(1.0)).fold(0.0, f64::max),
                max_rate,
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
        1.0,
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
        1.0,
        cpu_count.unwrap_or(1.0),
        None,
    );
    for [fs, volume] in c.labels(&f::LOG_COMMIT) {
        let writes = c.histograms(&f::LOG_COMMIT, |l| l == [fs, volume]);
        let note = (fs != "ext4").then_some(PARALLEL);
        let waits = c.histograms(&f::LOG_WAIT, |l| l == [fs, volume]);
        let room = match (&waits, &writes) {
            (Some(waits), Some(writes)) => group_commit(&Commits {
                waits: waits.count(),
                commits: writes.count(),
                meanwhile: waits.count() / c.seconds() * writes.mean().unwrap_or(0.0),
                queued: waits.mean().unwrap_or(0.0) / writes.mean().unwrap_or(f64::INFINITY) - 1.0,
                threads: count,
            }),
            _ => 1.0,
        };
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
            1.0,
            1.0,
            Some(PARALLEL),
        );
    }
    for r in &mut resources {
        r.extrapolated = nobody_waited(c, &r.name, residence);
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

/// A log of which fewer requests than this share found another one before them, or a wait for a thread of less than this share of the
/// time in the server: nobody waited.
const NOBODY: f64 = 0.02;

fn nobody_waited(c: &SeriesSet, resource: &str, residence: f64) -> bool {
    if resource == "threads" {
        let waits = c.histograms(&f::RPC_QUEUE, |_| true);
        return waits
            .and_then(|w| w.mean())
            .is_some_and(|mean| mean < NOBODY * residence);
    }
    let logs = c.labels(&f::LOG_COMMIT);
    let of = logs
        .into_iter()
        .find(|[fs, volume]| resource == format!("log of {fs} {volume}"));
    let count = |family| Some(c.histograms(family, |l| Some(l) == of)?.count());
    let both = count(&f::LOG_WAIT).zip(count(&f::LOG_COMMIT));
    both.is_some_and(|(waits, commits)| commits > 0.0 && waits / commits < 1.0 + NOBODY)
}

/// What a recording tells of the commits of a log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Commits {
    /// Requests that waited for the log.
    pub waits: f64,
    /// Its commits.
    pub commits: f64,
    /// Requests that come while a commit is written.
    pub meanwhile: f64,
    /// How much longer a request waits than a commit takes, in commits.
    pub queued: f64,
    /// Threads of the server.
    pub threads: f64,
}

/// How many times more requests a commit of a log can serve than it does now.
///
/// Requests that come while a commit is written wait for it and for the next. With all threads waiting there are two groups that take
/// turns, so that each commit serves half of the threads, and never fewer than it serves now.
///
/// With random arrivals a commit that takes all who wait serves more than one. A log that does not has a queue, in which requests wait
/// longer than a commit takes. Without that queue nobody came meanwhile, as from one client that waits for each reply, and nobody can
/// tell.
pub fn group_commit(of: &Commits) -> f64 {
    if of.waits <= 0.0 || of.commits <= 0.0 {
        return 1.0;
    }
    let now = (of.waits / of.commits).max(1.0);
    // All who came, or one who comes later.
    let more = of.meanwhile + (-of.meanwhile).exp() - 1.0;
    // With random arrivals and one at a time, half of those who come meanwhile is the least that a request finds before itself.
    if more > VISIBLE && now - 1.0 < more / 4.0 && of.queued > of.meanwhile / 4.0 {
        return 1.0;
    }
    (of.threads / 2.0).max(now) / now
}

/// The utilization at which a request waits three service times in a queue with so many servers and random arrivals (M/M/c): 0.75
/// with one, closer to 1 with more.
pub fn knee(servers: f64) -> f64 {
    let c = servers.round().clamp(1.0, 4096.0);
    let wait = |utilization: f64| {
        // Erlang's B by its recursion, then C.
        let offered = c * utilization;
        let mut b = 1.0;
        for n in 1..=c as u32 {
            b = offered * b / (f64::from(n) + offered * b);
        }
        let waits = b / (1.0 - utilization * (1.0 - b));
        waits / (c * (1.0 - utilization))
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        match wait(middle) < 3.0 {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

fn caveats(resources: &[Resource], c: &SeriesSet) -> Vec<String> {
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
    if let Some(first) = resources
        .iter()
        .find(|r| r.note.is_none())
        .filter(|r| r.extrapolated)
    {
        caveats.push(match first.name.as_str() {
            "threads" => "hardly a request waited for a thread: what happens when all are busy is not in the recording, and the limit of the \
                          threads is extrapolated"
                .to_owned(),
            log => format!(
                "each commit of the {log} served one request, because nobody else waited: that a commit serves all who wait is assumed, \
                 and the limit is extrapolated. Record more clients to see it"
            ),
        });
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
    use rand::SeedableRng;
    use rand::rngs::SmallRng;
    use rand_distr::{Distribution, Exp};

    #[test]
    fn the_knee_follows_the_number_of_servers() {
        assert!((knee(1.0) - 0.75).abs() < 1e-9);
        // M/M/2 waits u² / (1 - u²) service times: three where u is the root of 3/4.
        assert!((knee(2.0) - 0.75f64.sqrt()).abs() < 1e-9);
        assert!(knee(8.0) > 0.94 && knee(64.0) > knee(8.0) && knee(64.0) < 1.0);
    }

    /// A closed network: clients that think for a random time and then wait for the log, which takes all who wait when it begins a
    /// commit (or one at a time). Its rate under full load is what a recording of little load predicts: of one client that waits for
    /// each reply, or of several.
    #[test]
    fn the_limit_of_a_log_is_predicted_from_little_load() {
        for group in [true, false] {
            for clients in [1u32, 2, 4, 8, 32] {
                let (full, _) = network(clients, group, 0.05e-3);
                for (few, think) in [(1, 20e-3), (4, 60e-3)] {
                    if few == 1 && !group && clients > 1 {
                        // One client never waits for another: nobody can tell, and commits are taken to serve all who wait.
                        continue;
                    }
                    let (rate, of) = network(few, group, think);
                    let of = Commits {
                        threads: f64::from(clients),
                        ..of
                    };
                    let utilization = rate * of.commits / of.waits * COMMIT;
                    let predicted = rate / utilization * group_commit(&of);
                    println!(
                        "{clients} clients, group {group}, recorded with {few}: {full:.0} per second, predicted {predicted:.0}"
                    );
                    assert!(
                        (predicted / full - 1.0).abs() < 0.1,
                        "{clients} {group} {few} {of:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn commits_that_take_one_at_a_time_have_no_room() {
        let of = |waits, meanwhile, queued| {
            group_commit(&Commits {
                waits,
                commits: 1000.0,
                meanwhile,
                queued,
                threads: 8.0,
            })
        };
        // Half of the time a commit is written, and nobody who came meanwhile is in the next.
        assert_eq!(of(1000.0, 0.5, 0.5), 1.0);
        assert_eq!(of(1100.0, 0.5, 0.5), 4.0 / 1.1);
        // Nobody came meanwhile: one client, which waits for each reply.
        assert_eq!(of(1000.0, 0.5, 0.01), 4.0);
        // Under little load nobody can tell.
        assert_eq!(of(1000.0, 0.1, 0.1), 4.0);
    }

    const COMMIT: f64 = 8e-3;

    /// Requests per second of a log with this many clients, and its commits.
    fn network(clients: u32, group: bool, think: f64) -> (f64, Commits) {
        let mut random = SmallRng::seed_from_u64(u64::from(clients));
        let thinks = Exp::new(1.0 / think).unwrap();
        let mut pause = || thinks.sample(&mut random);
        // When each client asks next.
        let mut asks: Vec<f64> = (0..clients).map(|_| pause()).collect();
        let (mut now, mut waits, mut commits, mut waited) = (0.0f64, 0u32, 0u32, 0.0);
        while commits < 5000 {
            let first = asks.iter().copied().fold(f64::INFINITY, f64::min);
            now = now.max(first);
            let mut waiting: Vec<usize> = (0..asks.len()).filter(|i| asks[*i] <= now).collect();
            waiting.sort_by(|a, b| asks[*a].total_cmp(&asks[*b]));
            if !group {
                waiting.truncate(1);
            }
            now += COMMIT;
            commits += 1;
            for i in waiting {
                waited += now - asks[i];
                asks[i] = now + pause();
                waits += 1;
            }
        }
        let rate = f64::from(waits) / now;
        let of = Commits {
            waits: waits.into(),
            commits: commits.into(),
            meanwhile: rate * COMMIT,
            queued: waited / f64::from(waits) / COMMIT - 1.0,
            threads: clients.into(),
        };
        (rate, of)
    }
}
