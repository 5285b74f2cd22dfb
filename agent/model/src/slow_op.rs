//! Slow operations: single events, unlike all other data of a source.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

/// Selects the operations to report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowFilter {
    /// Duration above which operations are reported.
    pub over: Duration,
    /// Operations to report, by the names of the label `op`; empty for all.
    pub ops: Vec<String>,
    /// Client whose operations are reported; `None` for all.
    pub client: Option<IpAddr>,
    /// Limit of operations a second; operations above it are counted as left out.
    pub per_second: u32,
}

/// An operation that took longer than the filter's duration.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowOp {
    /// Time at which the operation ended.
    pub at: SystemTime,
    /// Client's address without port; `None` if it has no address that nfscope knows (a local socket).
    pub client: Option<IpAddr>,
    /// NFS version, as in the label `version`.
    pub version: String,
    /// Operation, as in the label `op`.
    pub op: String,
    /// Path of the export; `None` without a file handle, and where the handle belongs to no export known now.
    pub export: Option<String>,
    /// Dataset of the export, if the export is on ZFS.
    pub dataset: Option<String>,
    /// Inode number from the file handle, where the type of the handle is known.
    pub inode: Option<u64>,
    /// Path of the file, where the kernel gives it.
    pub path: Option<String>,
    /// Transaction id of its RPC; `None` where the kernel does not tell.
    pub xid: Option<u32>,
    /// Bytes read or written; `None` for other operations.
    pub bytes: Option<u64>,
    /// Stability that a WRITE asked for, as in the label `stability`.
    pub stability: Option<String>,
    /// Status: `ok`, or as in the label `status`.
    pub status: String,
    /// Execution time.
    pub duration: Duration,
    /// Execution time by phase; `None` where this host cannot split it.
    pub phases: Option<OpPhases>,
}

/// The phases of one operation; they add up to its duration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpPhases {
    /// Time on a CPU.
    pub cpu: Duration,
    /// Time in which the thread was runnable and waited for a CPU.
    pub runqueue: Duration,
    /// Sleep until the journal or intent log was durable.
    pub log: Duration,
    /// Sleep for block I/O outside the log.
    pub disk: Duration,
    /// Sleep because too much written data waited to be stored.
    pub throttle: Duration,
    /// Sleep until a daemon answered.
    pub upcall: Duration,
    /// Sleep until a client returned a delegation.
    pub recall: Duration,
    /// Sleep while memory was reclaimed.
    pub reclaim: Duration,
    /// Sleep for any other reason.
    pub lock: Duration,
}

impl OpPhases {
    /// Durations in the order of [`crate::phase::OF_OP`].
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

    /// Sum of the rare phases: throttle, upcall, recall and reclaim.
    pub fn rare(&self) -> Duration {
        self.throttle + self.upcall + self.recall + self.reclaim
    }
}

/// Slow operations since the last reading.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SlowBatch {
    /// Operations; those of one CPU are in the order of their ends.
    pub ops: Vec<SlowOp>,
    /// Operations that match the filter and are missing: the limit was reached, or the agent did not read them for too long.
    pub left_out: u64,
}
