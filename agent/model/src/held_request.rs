//! Requests that an nfsd thread has in hand. A histogram counts a request only after its end.

use serde::{Deserialize, Serialize};

/// Age from which a request in hand is stuck.
pub const STUCK_SECONDS: f64 = 1.0;

/// Causes for which a request in hand can wait: label `wait`.
pub const WAITS: [&str; 10] = [
    "cpu", "log", "disk", "throttle", "upcall", "recall", "reclaim", "lock", "reply", "unknown",
];

/// A request that an nfsd thread has had in hand for a long time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeldRequest {
    /// Id of the thread.
    pub thread: u32,
    /// Seconds since the thread took the request.
    pub seconds: f64,
    /// NFS version, as in the label `version`; empty while it is not known.
    pub version: String,
    /// Operation, as in the label `op`; `compound` where the operation is not known, empty before the call is read.
    pub op: String,
    /// Cause of the wait, one of [`WAITS`].
    pub wait: String,
    /// Client's address without port; `None` if the connection has no address that nfscope knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Path of the export, where the file handle names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub export: Option<String>,
    /// Inode number from the file handle, where the type of the handle is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inode: Option<u64>,
    /// Transaction id of its RPC; `None` where the kernel does not tell.
    #[serde(with = "crate::xid", skip_serializing_if = "Option::is_none")]
    pub xid: Option<u32>,
    /// Functions on the thread's stack, the innermost first; empty without the right to read them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<String>,
}
