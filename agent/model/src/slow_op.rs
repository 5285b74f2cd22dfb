//! Slow operations: single events, unlike all other data of a source.

use serde::{Deserialize, Serialize};
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
    /// Arguments, as far as the probes know them, and the status as a number.
    pub arguments: OpArguments,
}

/// Arguments of an operation that say where in which file it works, and its status as a number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpArguments {
    /// Hash of the file handle: the argument of an NFSv3 procedure, the current file handle when an NFSv4 operation ends.
    #[serde(default, with = "hash", skip_serializing_if = "Option::is_none")]
    pub handle: Option<u64>,
    /// Hash of a second file handle of an NFSv3 procedure: the file that LOOKUP found or that CREATE, MKDIR, SYMLINK or MKNOD made; the
    /// target directory of RENAME and LINK.
    #[serde(default, with = "hash", skip_serializing_if = "Option::is_none")]
    pub other_handle: Option<u64>,
    /// First byte of a READ, WRITE or COMMIT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Bytes that a READ, WRITE or COMMIT asks for. A COMMIT of 0 bytes is for all of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u32>,
    /// Size that a SETATTR, CREATE or OPEN sets, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Number of the status, 0 for success.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub status_code: u32,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl OpArguments {
    /// Returns true if nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == OpArguments::default()
    }
}

/// Hashes in JSON: text with sixteen hexadecimal digits, because programs that read numbers as floating point would round them.
mod hash {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(hash: &Option<u64>, to: S) -> Result<S::Ok, S::Error> {
        match hash {
            Some(hash) => to.collect_str(&format_args!("{hash:016x}")),
            None => to.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
        let Some(text) = Option::<String>::deserialize(from)? else {
            return Ok(None);
        };
        let hexadecimal = text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let hash = u64::from_str_radix(&text, 16).ok().filter(|_| hexadecimal);
        let wrong = || D::Error::custom(format!("`{text}` is no hash: sixteen hexadecimal digits"));
        hash.map(Some).ok_or_else(wrong)
    }
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
