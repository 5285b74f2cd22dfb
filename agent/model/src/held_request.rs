//! Requests that an nfsd thread has in hand: what a histogram only counts once they have ended.

use crate::Unacknowledged;
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
    /// Functions that the thread is in, the innermost first; empty without the right to read them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<String>,
}

/// All requests that threads have had in hand for longer than asked for: what the agent answers at `/stuck`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeldRequests {
    /// Name of the host that it is of.
    pub host: String,
    /// They have been in hand for longer than this; more than was asked for where younger ones are not told here.
    pub over_seconds: f64,
    /// Why nobody knows; `None` where it is known.
    pub unknown: Option<String>,
    /// The requests, the oldest first.
    pub requests: Vec<HeldRequest>,
    /// So many more there may be, all of them younger than these.
    pub left_out: u64,
    /// What ends the leases of silent clients, and takes back delegations; `None` where nothing is known of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub laundromat: Option<Laundromat>,
    /// Clients that acknowledge no replies, the longest time first; `None` where this host does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unacknowledged: Option<Vec<Unacknowledged>>,
}

/// When the laundromat of NFSv4 state ran (fs/nfsd/nfs4state.c, `laundromat_main`). The kernel runs it once in a lease at the
/// latest. One that hangs leaves recalls and silent clients as they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Laundromat {
    /// Since it ended last; `None` where it has not since the agent began to look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<f64>,
    /// Since it began, where it has not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running_seconds: Option<f64>,
}
