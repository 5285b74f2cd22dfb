//! Slow operations: single events, unlike everything else that a source tells.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

/// Which operations to report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowFilter {
    /// Only those that took longer.
    pub over: Duration,
    /// Only these, by the names of the label `op`; empty for all.
    pub ops: Vec<String>,
    /// Only this client's.
    pub client: Option<IpAddr>,
    /// At most so many a second; the rest is counted as left out.
    pub per_second: u32,
}

/// One operation that took longer than asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowOp {
    /// When it ended.
    pub at: SystemTime,
    /// Address without port; `None` where it has none that is known here (a local socket).
    pub client: Option<IpAddr>,
    /// As in the label `version`.
    pub version: String,
    /// As in the label `op`.
    pub op: String,
    /// Path of the export; `None` without a file handle, and where the handle belongs to no export known now.
    pub export: Option<String>,
    /// Dataset that the export is on, where that is ZFS.
    pub dataset: Option<String>,
    /// Inode number from the file handle, where its type is known.
    pub inode: Option<u64>,
    /// Path of its file, where the kernel tells it.
    pub path: Option<String>,
    /// Transaction id of its RPC; `None` where the kernel does not tell.
    pub xid: Option<u32>,
    /// Bytes read or written; `None` for other operations.
    pub bytes: Option<u64>,
    /// What a WRITE asked for, as in the label `stability`.
    pub stability: Option<String>,
    /// `ok`, or as in the label `status`.
    pub status: String,
    /// Execution time.
    pub duration: Duration,
    /// The same time by where it went; `None` where this host cannot tell.
    pub phases: Option<OpPhases>,
}

/// The phases of one operation; they add up to its duration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpPhases {
    /// On a CPU.
    pub cpu: Duration,
    /// Runnable, waiting for a CPU.
    pub runqueue: Duration,
    /// Asleep until the journal or intent log was durable.
    pub log: Duration,
    /// Asleep for block I/O outside the log.
    pub disk: Duration,
    /// Asleep because too much written data waited to be stored.
    pub throttle: Duration,
    /// Asleep until a daemon answered.
    pub upcall: Duration,
    /// Asleep until a client returned a delegation.
    pub recall: Duration,
    /// Asleep while memory was reclaimed.
    pub reclaim: Duration,
    /// Any other sleep.
    pub lock: Duration,
}

impl OpPhases {
    /// In the order of [`crate::phase::OF_OP`].
    pub fn all(&self) -> [Duration; crate::phase::OPS] {
        [
            self.cpu,
            self.runqueue,
            self.log,
            self.disk,
            self.throttle,
            self.upcall,
            self.recall,
            self.reclaim,
            self.lock,
        ]
    }

    /// The rare ones together: throttle, upcall, recall and reclaim.
    pub fn rare(&self) -> Duration {
        self.throttle + self.upcall + self.recall + self.reclaim
    }
}

/// What was reported since the last look.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SlowBatch {
    /// In the order in which they ended on each CPU.
    pub ops: Vec<SlowOp>,
    /// Operations that the filter describes and that are missing: the limit was reached, or nobody read for too long.
    pub left_out: u64,
}
