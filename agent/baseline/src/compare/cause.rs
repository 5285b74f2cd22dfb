//! The phases of an operation that a change of its mean consists of.

use crate::compare::quantities::phases;
use crate::series::SeriesSet;
use nfscope_model::{family as f, phase};

/// Share of each phase in the change of the mean; empty if phases or operations were not measured on both sides.
pub(super) fn shares(
    before: &SeriesSet,
    after: &SeriesSet,
    version: &str,
    op: &str,
) -> Vec<(&'static str, f64)> {
    let mean = |c: &SeriesSet| {
        c.histograms(&f::OP_DURATION, |l| l == [version, op])?
            .mean()
    };
    let phases = |c| phases(c, version, op);
    let (Some(b), Some(a)) = (mean(before), mean(after)) else {
        return Vec::new();
    };
    let (Some(before), Some(after)) = (phases(before), phases(after)) else {
        return Vec::new();
    };
    let sides = before.iter().zip(&after);
    let changes = sides.map(|(b, a)| a.unwrap_or(0.0) - b.unwrap_or(0.0));
    let each = phase::OF_OP.into_iter().zip(changes);
    each.map(|(phase, change)| (phase, change / (a - b)))
        .filter(|(_, share)| share.is_finite())
        .collect()
}

/// The name of a phase in a sentence.
pub(super) fn name(phase: &str) -> &'static str {
    match phase {
        "cpu" => "CPU time",
        "runqueue" => "waiting for a CPU",
        "log" => "log wait",
        "disk" => "disk wait",
        "throttle" => "waiting until written data is stored",
        "upcall" => "waiting for rpc.mountd or another daemon",
        "recall" => "waiting for clients to return delegations",
        "reclaim" => "waiting for free memory",
        _ => "other waits (locks, other threads, anything that is not named)",
    }
}
