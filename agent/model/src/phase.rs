//! The values of the label `phase`.

/// What an operation's time goes into (`nfscope_op_phase_seconds_total`).
pub const OF_OP: [&str; 5] = ["cpu", "runqueue", "log", "disk", "lock"];
/// Where a request is (`nfscope_rpc_phase_seconds_total`).
pub const OF_RPC: [&str; 4] = ["queue", "receive", "execute", "reply"];
