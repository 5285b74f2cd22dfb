//! The values of the label `phase`.

/// Phases of an operation's time (`nfscope_op_phase_seconds_total`).
pub const OF_OP: [&str; 9] = [
    "cpu", "runqueue", "log", "disk", "throttle", "upcall", "recall", "reclaim", "lock",
];
/// Number of phases of an operation.
pub const OPS: usize = OF_OP.len();
/// Phases of an operation that have no series before they first occur.
pub const RARE: [&str; 4] = ["throttle", "upcall", "recall", "reclaim"];
/// Phases of a request (`nfscope_rpc_phase_seconds_total`).
pub const OF_RPC: [&str; 5] = ["queue", "receive", "upcall", "execute", "reply"];
