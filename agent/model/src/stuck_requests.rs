//! The answer of `/stuck`: requests that threads have had for long, and clients that acknowledge no replies.

use crate::{HeldRequest, Unacknowledged};
use serde::{Deserialize, Serialize};

/// All requests that threads have had in hand for longer than asked for: what the agent answers at `/stuck`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeldRequests {
    /// Name of the host that it is of.
    pub host: String,
    /// Seconds: each request has been in hand for longer. The number is higher than asked for if younger requests are left out.
    pub over_seconds: f64,
    /// Why nobody knows; `None` where it is known.
    pub unknown: Option<String>,
    /// The requests, the oldest first.
    pub requests: Vec<HeldRequest>,
    /// Number of requests that may be left out, all of them younger than these.
    pub left_out: u64,
    /// The laundromat, which ends the leases of silent clients and takes back delegations; `None` if nothing is known of it.
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
