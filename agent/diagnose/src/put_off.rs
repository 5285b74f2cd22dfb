//! Operations that clients are told to try again later.

use nfscope_model::window_parts::numbers;
use nfscope_model::{Window, family as f};

/// Answers to one operation that tell the client to try again later (NFS4ERR_DELAY, NFS3ERR_JUKEBOX).
#[derive(Debug, Clone)]
pub struct PutOff {
    /// Label `version`.
    pub version: String,
    /// Label `op`.
    pub op: String,
    /// Such answers.
    pub count: f64,
    /// All answers to the operation.
    pub of: f64,
}

impl PutOff {
    /// By version and operation.
    pub fn all(w: &Window) -> Vec<PutOff> {
        numbers(w, &f::OP_ERRORS)
            .filter(|([_, _, status], n)| matches!(*status, "delay" | "jukebox") && *n > 0.0)
            .map(|([version, op, _], count)| PutOff {
                version: version.to_owned(),
                op: op.to_owned(),
                count,
                of: (w.delta.hist(&f::OP_DURATION, [version, op]))
                    .map_or(0.0, |h| h.count() as f64),
            })
            .collect()
    }
}
