//! WRITEs and COMMITs of which the client takes the answer for durable, and how many of them may not be.

use crate::linux::host::export_devices::ExportDevices;
use nfscope_model::Snapshot;
use nfscope_model::family as f;
use std::collections::BTreeMap;

/// WRITEs that asked for DATA_SYNC or FILE_SYNC and COMMITs, those that were answered with OK.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Durable {
    /// All of them.
    pub all: u64,
    /// WRITEs whose thread waited for no log and no disk.
    pub unwaited_writes: u64,
    /// The same of COMMITs.
    pub unwaited_commits: u64,
}

impl Durable {
    /// Adds others.
    pub fn add(&mut self, other: Durable) {
        self.all += other.all;
        self.unwaited_writes += other.unwaited_writes;
        self.unwaited_commits += other.unwaited_commits;
    }

    /// What came since `before`.
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

/// The counters, by what the exports were when their writes were read.
#[derive(Debug, Default)]
pub struct UnsafeWrites {
    durable: u64,
    asynchronous: u64,
    sync_disabled: u64,
    no_wait: u64,
    commit_no_wait: u64,
}

impl UnsafeWrites {
    /// Adds what each export has had since the last reading, and fills the families. `seen`: file systems, and
    /// whether waits for their logs and disks are seen here.
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
