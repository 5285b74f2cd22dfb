//! The values of the label `phase`.

/// What an operation's time goes into (`nfscope_op_phase_seconds_total`).
pub const OF_OP: [&str; 9] = [
    "cpu", "runqueue", "log", "disk", "throttle", "upcall", "recall", "reclaim", "lock",
];
/// How many these are.
pub const OPS: usize = OF_OP.len();
/// Those of them that have no series before they first occur.
pub const RARE: [&str; 4] = ["throttle", "upcall", "recall", "reclaim"];
/// Where a request is (`nfscope_rpc_phase_seconds_total`).
pub const OF_RPC: [&str; 5] = ["queue", "receive", "upcall", "execute", "reply"];
