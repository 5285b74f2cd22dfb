//! Figures of a server in a window, without a judgement.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context, Result};
use nfscope_model::family as f;
use nfscope_model::family::Info;
use nfscope_model::{Histogram, Sample, Snapshot, Window, phase};
use serde::{Deserialize, Serialize};

use crate::reconcile::{by_last_label, merged};

/// Figures of one scenario.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Figures {
    /// Length of the window.
    pub seconds: f64,
    /// Requests answered in the window.
    pub requests: u64,
    /// Residence of the requests by phase, in seconds: queue, receive, execute, reply.
    pub residence: BTreeMap<String, f64>,
    /// Time of their operations by phase, in seconds: cpu, runqueue, log, disk, lock.
    pub operations: BTreeMap<String, f64>,
    /// Fraction of their time that the nfsd threads had a request in hand.
    pub utilisation: f64,
    /// Fraction of the window during which all threads had a request in hand.
    pub saturated: f64,
    /// Fraction of the CPUs' time that was idle, by the kernel's own figures (/proc/stat).
    pub idle: f64,
    /// Number of waits for the log, and their mean in seconds.
    pub log_waits: (u64, f64),
    /// Number of writes of the log itself, and their mean in seconds.
    pub log_writes: (u64, f64),
    /// Number of requests to each disk in use, and their mean in seconds, with their queue.
    pub disks: BTreeMap<String, (u64, f64)>,
    /// The most frequent operations, with their numbers.
    pub most: Vec<(String, u64)>,
}

impl Figures {
    /// Figures of a window, with the kernel's CPU times at both ends.
    pub fn of(window: &Window, before: &CpuTimes, after: &CpuTimes) -> Figures {
        let seen = &window.delta;
        let seconds = window.length.as_secs_f64();
        let sum = |info: &Info| {
            let series = seen.series(info).iter();
            series
                .map(|s| match s.sample {
                    Sample::Counter(n) | Sample::Gauge(n) => n,
                    Sample::Histogram(_) => 0.0,
                })
                .sum::<f64>()
        };
        let threads = sum(&f::THREADS.info);
        let all = |info: &Info| merged(seen, info, |_| true);
        let counted =
            |h: Option<Histogram>| h.map_or((0, 0.0), |h| (h.count(), h.mean().unwrap_or(0.0)));
        Figures {
            seconds,
            requests: all(&f::RPC_DURATION.info).map_or(0, |h| h.count()),
            residence: by_last_label(seen, &f::RPC_PHASE.info, |_| true),
            operations: by_last_label(seen, &f::OP_PHASE.info, |_| true),
            utilisation: sum(&f::THREAD_BUSY.info) / (threads * seconds),
            saturated: sum(&f::THREADS_SATURATED.info) / seconds,
            idle: after.idle_since(before),
            log_waits: counted(all(&f::LOG_WAIT.info)),
            log_writes: counted(all(&f::LOG_COMMIT.info)),
            disks: disks(seen),
            most: most(seen),
        }
    }

    /// Residence of all requests.
    pub fn total(&self) -> f64 {
        self.residence.values().sum()
    }

    /// Head of the table whose rows are [`Figures::line`].
    pub const HEADINGS: &str = "                             |       |       R   |   mean |  of R: %                 |  of R: %                     |  threads % | proc |  log waits   |  log writes  | disk ms
                             | req/s |     s/s   |     ms | queue recv  exec  reply |  cpu  runq   log  disk  lock | used   all | idle | n/s     ms   | n/s     ms   |";

    /// Row of the table.
    pub fn line(&self, name: &str) -> String {
        let total = self.total();
        let share = |of: &BTreeMap<String, f64>, phase: &str| {
            100.0 * of.get(phase).unwrap_or(&0.0) / total.max(f64::MIN_POSITIVE)
        };
        let mut line = format!(
            "{name:28} | {:5.0} | {:9.3} | {:6.2} |",
            self.requests as f64 / self.seconds,
            total / self.seconds,
            1e3 * total / self.requests.max(1) as f64,
        );
        for phase in phase::OF_RPC {
            let _ = write!(line, " {:5.1}", share(&self.residence, phase));
        }
        line += " |";
        for phase in phase::OF_OP {
            let _ = write!(line, " {:5.1}", share(&self.operations, phase));
        }
        let _ = write!(
            line,
            " | {:4.0}  {:4.0} | {:4.0} |",
            100.0 * self.utilisation,
            100.0 * self.saturated,
            100.0 * self.idle
        );
        for (count, mean) in [self.log_waits, self.log_writes] {
            let rate = count as f64 / self.seconds;
            let _ = write!(line, " {rate:4.0} {:7.2} |", 1e3 * mean);
        }
        for (disk, (requests, mean)) in &self.disks {
            let _ = write!(
                line,
                " {disk} {:.0}/s {:.2}",
                *requests as f64 / self.seconds,
                mean * 1e3
            );
        }
        line
    }
}

fn disks(seen: &Snapshot) -> BTreeMap<String, (u64, f64)> {
    let mut disks = BTreeMap::new();
    for series in seen.series(&f::BLOCK_DEVICE.info) {
        if let (Sample::Histogram(h), [device, op]) = (&series.sample, &series.labels[..])
            && h.count() > 0
        {
            let queued = seen
                .hist(&f::BLOCK_QUEUE, [device.as_str(), op.as_str()])
                .map_or(0.0, |q| q.sum);
            let mean = (h.sum + queued) / h.count() as f64;
            disks.insert(format!("{device} {op}"), (h.count(), mean));
        }
    }
    disks
}

fn most(seen: &Snapshot) -> Vec<(String, u64)> {
    let mut all: Vec<_> = seen
        .series(&f::OP_DURATION.info)
        .iter()
        .filter_map(|s| match &s.sample {
            Sample::Histogram(h) if h.count() > 0 => Some((s.labels.join(" "), h.count())),
            _ => None,
        })
        .collect();
    all.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    all.truncate(5);
    all
}

/// The first line of /proc/stat.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CpuTimes {
    all: u64,
    idle: u64,
}

impl CpuTimes {
    /// Reads a copy of /proc/stat.
    pub fn parse(text: &str) -> Result<CpuTimes> {
        let line = text.lines().next().unwrap_or_default();
        let ticks: Vec<u64> = line
            .split_whitespace()
            .skip(1)
            .map(|n| n.parse().with_context(|| format!("no number: {line:?}")))
            .collect::<Result<_>>()?;
        // The fields are user nice system idle iowait irq softirq steal; the later ones are contained in user and nice.
        let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = ticks[..] else {
            anyhow::bail!("/proc/stat begins with {line:?}, not with all CPUs' times")
        };
        // A CPU that waits for a disk is idle.
        let idle = idle + iowait;
        Ok(CpuTimes {
            all: user + nice + system + idle + irq + softirq + steal,
            idle,
        })
    }

    fn idle_since(&self, before: &CpuTimes) -> f64 {
        let all = self.all.saturating_sub(before.all);
        self.idle.saturating_sub(before.idle) as f64 / all.max(1) as f64
    }
}
