//! Time that clients lose by a cause. A share of residence does not show that: half of the time of an idle server is little time.

use crate::attribution::{cpus_are_busy, disk_weight, log_weight, longest_wait, slow_intent_log};
use crate::breakdown::{Breakdown, Phases, mean, part};
use crate::long_waits::{mean_weight, weight};
use crate::rules::context::Context;
use crate::thresholds::{CRITICAL_LOST, CRITICAL_SHARE, END_LOST, LONG_WAIT_SECONDS, MIN_LOST};
use nfscope_model::Histogram;
use nfscope_model::finding::Kind;

/// Time that clients lose by one cause.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Impact {
    /// Weight of the cause's share, 0 to 1: shorter waits count less.
    pub weight_of_share: f64,
    /// True if clients lose enough for a finding.
    pub is_lost: bool,
    /// True if they lose enough for a critical one. Where the server's usual times are known, only what is more than usual counts.
    pub is_critical: bool,
    /// True if a single request or wait is long enough to be felt, so that it decides alone.
    pub felt: bool,
}

impl Impact {
    /// The impact of a cause with this share of residence.
    pub fn of(kind: Kind, share: f64, context: &Context) -> Impact {
        let b = context.breakdown;
        // Seconds that clients lose per second. By Little's law this is the mean number of requests that wait for the cause.
        let lost = part(share * b.residence, b.length);
        let felt =
            b.felt > 0.0 || (kind == Kind::SlowUpcall && context.attribution.upcalls_are_felt);
        let least = match context.active.contains(&kind) {
            true => END_LOST,
            false => MIN_LOST,
        };
        let weight = match felt {
            true => 1.0,
            false => weight_of(kind, b),
        };
        let late = (context.observed.normal.as_ref()).and_then(|n| n.beyond_usual(kind, b));
        let is_storage = matches!(kind, Kind::SlowDisk | Kind::SlowIntentLog);
        let weight_of_share = if is_storage { weight } else { 1.0 };
        Impact {
            weight_of_share,
            is_lost: felt || lost * weight_of_share >= least,
            is_critical: felt
                || match late {
                    Some(late) => lost * late >= CRITICAL_LOST && share * late >= CRITICAL_SHARE,
                    None => lost >= CRITICAL_LOST && share * weight >= CRITICAL_SHARE,
                },
            felt,
        }
    }
}

/// Weight of the waits for a cause by their length, 0 to 1.
fn weight_of(kind: Kind, b: &Breakdown) -> f64 {
    let long = |seconds: f64| weight(seconds, LONG_WAIT_SECONDS);
    let of_phase = |phase: fn(&Phases) -> f64| {
        let longest = longest_wait(b, phase);
        long(longest.map_or(0.0, |(_, each)| each))
    };
    match kind {
        Kind::SlowIntentLog => slow_intent_log(b).map_or(0.0, log_weight),
        Kind::SlowDisk => disk_weight(b),
        Kind::WriteThrottle => of_phase(|p| p.throttle),
        Kind::DelegationRecalls => of_phase(|p| p.recall),
        Kind::MemoryReclaim => of_phase(|p| p.reclaim),
        Kind::LockContention | Kind::UnknownWaits => of_phase(|p| p.lock),
        Kind::SlowUpcall => Histogram::merged(b.upcalls.iter().map(|u| &u.waits))
            .map_or(0.0, |waits| mean_weight(&waits, LONG_WAIT_SECONDS, 1)),
        Kind::ThreadStarvation => long(mean(b.queue, b.queued)),
        Kind::SlowReply => long(mean(b.reply, b.requests)),
        // Without an idle CPU the server is at its limit, however short each wait is.
        Kind::CpuSaturation if !cpus_are_busy(b) => long(mean(b.residence, b.requests)),
        _ => 1.0,
    }
}
