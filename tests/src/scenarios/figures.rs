//! What a server did in a window, in plain figures: nobody's judgement.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context, Result};
use nfscope_model::family as f;
use nfscope_model::family::Info;
use nfscope_model::{Histogram, Sample, Snapshot, Window, phase};
use serde::{Deserialize, Serialize};

use crate::reconcile::{by_last_label, merged};

/// The raw accounting of one scenario.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Figures {
    /// Length of the window.
    pub seconds: f64,
    /// Requests answered in it.
    pub requests: u64,
    /// Their residence, all together: queue, receive, execute, reply, in seconds.
    pub residence: BTreeMap<String, f64>,
    /// The time of their operations: cpu, runqueue, log, disk, lock, in seconds.
    pub operations: BTreeMap<String, f64>,
    /// How much of their time the nfsd threads had a request in hand.
    pub utilisation: f64,
    /// The part of the window during which all of them had.
    pub saturated: f64,
    /// The part of the CPUs' time that nobody wanted, by the kernel's account (/proc/stat).
    pub idle: f64,
    /// Waits for the log, and their mean in seconds.
    pub log_waits: (u64, f64),
    /// Writes of the log itself, and their mean in seconds.
    pub log_writes: (u64, f64),
    /// Requests to disks that were read from, or written to, and their mean in seconds, with their queue.
    pub disks: BTreeMap<String, (u64, f64)>,
    /// The most frequent operations, with how often.
    pub most: Vec<(String, u64)>,
}

impl Figures {
    /// Those of a window, with what the kernel said of its CPUs at both ends.
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

    /// Under [`Figures::line`].
    pub const HEADINGS: &str = "                             |       |       R   |   mean |  of R: %                 |  of R: %                     |  threads % | proc |  log waits   |  log writes  | disk ms
                             | req/s |     s/s   |     ms | queue recv  exec  reply |  cpu  runq   log  disk  lock | used   all | idle | n/s     ms   | n/s     ms   |";

    /// One line of a table.
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
        // user nice system idle iowait irq softirq steal; what follows is in user and nice already.
        let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = ticks[..] else {
            anyhow::bail!("/proc/stat begins with {line:?}, not with all CPUs' times")
        };
        // Waiting for a disk, a CPU is as idle as it can be.
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
