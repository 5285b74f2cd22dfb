//! The configuration of a server, as a recording has measured it.

use crate::series::SeriesSet;
use nfscope_model::family as f;
use std::collections::BTreeSet;

/// Facts that show whether two recordings of one host are of the same server. A fact that only one of them has makes them differ, because
/// the variance of recordings of another server does not apply to this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    host: String,
    kernel: Option<String>,
    /// Threads of nfsd, all pools.
    threads: Option<u64>,
    /// Exports and their devices.
    exports: BTreeSet<[String; 2]>,
    /// Exports that acknowledge writes too early, and the reasons.
    not_durable: BTreeSet<[String; 2]>,
    /// Logs on a device of their own: file system and volume.
    separate_logs: BTreeSet<[String; 2]>,
    /// Logs on the same device as their data.
    other_logs: BTreeSet<[String; 2]>,
}

impl Configuration {
    /// The configuration during a recording.
    pub fn of(c: &SeriesSet) -> Configuration {
        let threads = c.numbers(&f::THREADS, |_| true).map(|n| {
            let mean = n.iter().sum::<f64>() / n.len().max(1) as f64;
            mean.round() as u64
        });
        let logs = c.sums(&f::LOG_SEPARATE);
        Configuration {
            host: c.metadata.host.clone(),
            kernel: c.metadata.kernel.clone(),
            threads,
            exports: named(&c.sums(&f::EXPORT_DEVICE), true),
            not_durable: named(&c.sums(&f::NOT_DURABLE), true),
            separate_logs: named(&logs, true),
            other_logs: named(&logs, false),
        }
    }
}

/// Labels of the gauges that were set in any window, or in none.
fn named(all: &[([&str; 2], f64)], set: bool) -> BTreeSet<[String; 2]> {
    let wanted = all.iter().filter(|(_, n)| (*n > 0.0) == set);
    wanted
        .map(|(labels, _)| labels.map(str::to_owned))
        .collect()
}
