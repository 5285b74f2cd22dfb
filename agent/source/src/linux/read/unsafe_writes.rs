//! WRITEs and COMMITs whose answer the client takes for durable, and the number that may not be.

use crate::linux::host::export_devices::ExportDevices;
use nfscope_model::Snapshot;
use nfscope_model::family as f;
use std::collections::BTreeMap;

/// WRITEs that asked for DATA_SYNC or FILE_SYNC, and COMMITs, that were answered with OK.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Durable {
    /// Number of all.
    pub all: u64,
    /// WRITEs whose thread waited for no log and no disk.
    pub unwaited_writes: u64,
    /// COMMITs whose thread waited for no log and no disk.
    pub unwaited_commits: u64,
}

impl Durable {
    /// Adds the counts of `other`.
    pub fn add(&mut self, other: Durable) {
        self.all += other.all;
        self.unwaited_writes += other.unwaited_writes;
        self.unwaited_commits += other.unwaited_commits;
    }

    /// Counts since `before`.
    pub fn since(self, before: Durable) -> Durable {
        Durable {
            all: self.all.saturating_sub(before.all),
            unwaited_writes: self.unwaited_writes.saturating_sub(before.unwaited_writes),
            unwaited_commits: self
                .unwaited_commits
                .saturating_sub(before.unwaited_commits),
        }
    }
}

/// File systems with a log, whose waits a probe may see.
pub const JOURNALED: [&str; 4] = ["ext4", "xfs", "btrfs", "zfs"];

/// Counters of unsafe writes, by the properties of the exports when their writes were read.
#[derive(Debug, Default)]
pub struct UnsafeWrites {
    durable: u64,
    asynchronous: u64,
    sync_disabled: u64,
    no_wait: u64,
    commit_no_wait: u64,
}

impl UnsafeWrites {
    /// Adds the writes of each export since the last reading, and fills the families. `seen`: file systems, and true if waits for their
    /// logs and disks are measured here.
    pub fn read(
        &mut self,
        writes: BTreeMap<String, Durable>,
        exports: &ExportDevices,
        seen: &[(&str, bool)],
        s: &mut Snapshot,
    ) {
        for (path, d) in writes {
            let Some(export) = exports.durability(&path, s) else {
                continue;
            };
            self.durable += d.all;
            if export.asynchronous {
                self.asynchronous += d.all;
            } else if export.sync_disabled {
                self.sync_disabled += d.all;
            } else if seen.contains(&(&*export.fs, true)) {
                self.no_wait += d.unwaited_writes;
                self.commit_no_wait += d.unwaited_commits;
            }
        }
        s.counter(&f::DURABLE_WRITES, [], self.durable as f64);
        let told = seen.iter().any(|(_, seen)| *seen);
        for (reason, n, known) in [
            ("async", self.asynchronous, true),
            ("sync_disabled", self.sync_disabled, true),
            ("no_wait", self.no_wait, told),
            ("commit_no_wait", self.commit_no_wait, told),
        ] {
            if known {
                s.counter(&f::UNSAFE_WRITES, [reason], n as f64);
            }
        }
    }
}
