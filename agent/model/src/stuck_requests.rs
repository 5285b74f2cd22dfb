//! Answer of `/stuck`: requests that threads have had for a long time, and clients that acknowledge no replies.

use crate::{HeldRequest, Unacknowledged};
use serde::{Deserialize, Serialize};

/// All requests that threads have had in hand for longer than asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeldRequests {
    /// Name of the host.
    pub host: String,
    /// Seconds for which each request has been in hand at least. The number is higher than asked for if younger requests are left out.
    pub over_seconds: f64,
    /// Reason why the requests are not known; `None` if they are.
    pub unknown: Option<String>,
    /// The requests, the oldest first.
    pub requests: Vec<HeldRequest>,
    /// Number of requests that may be left out, all of them younger than those of `requests`.
    pub left_out: u64,
    /// The laundromat, which ends the leases of silent clients and takes back delegations; `None` if its runs are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub laundromat: Option<Laundromat>,
    /// Clients that acknowledge no replies, the longest time first; `None` where this host does not measure it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unacknowledged: Option<Vec<Unacknowledged>>,
}

/// Runs of the laundromat of NFSv4 state (fs/nfsd/nfs4state.c, `laundromat_main`). The kernel runs it at least once in each lease. A
/// laundromat that hangs leaves recalls and silent clients as they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Laundromat {
    /// Seconds since it ended last; `None` if it has not ended since the agent began to observe it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<f64>,
    /// Seconds since it began, if it has not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running_seconds: Option<f64>,
}
