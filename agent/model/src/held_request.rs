//! Requests that an nfsd thread has in hand: what a histogram only counts once they have ended.

use serde::{Deserialize, Serialize};

/// A request in hand for so long is stuck.
pub const STUCK_SECONDS: f64 = 1.0;

/// What a request in hand can wait for: label `wait`.
pub const WAITS: [&str; 10] = [
    "cpu", "log", "disk", "throttle", "upcall", "recall", "reclaim", "lock", "reply", "unknown",
];

/// A request that an nfsd thread has had in hand for long.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeldRequest {
    /// Id of the thread.
    pub thread: u32,
    /// Since the thread took it.
    pub seconds: f64,
    /// As in the label `version`; empty where it is not known yet.
    pub version: String,
    /// As in the label `op`; `compound` where the operation is not known, empty before the call is read.
    pub op: String,
    /// One of [`WAITS`].
    pub wait: String,
    /// Address without port; `None` where it has none that is known here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Path of the export, where the file handle names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub export: Option<String>,
    /// Inode number from the file handle, where its type is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inode: Option<u64>,
    /// Transaction id of its RPC; `None` where the kernel does not tell.
    #[serde(with = "crate::xid", skip_serializing_if = "Option::is_none")]
    pub xid: Option<u32>,
    /// Functions that the thread is in, the innermost first; empty without the right to read them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<String>,
}
