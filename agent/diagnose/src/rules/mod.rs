//! Rules, a file for each kind of finding with the kind's name. A rule returns the share that its cause explains, whether that is a
//! finding, and the sentences about it.

mod bad_rpcs;
mod chatty_client;
mod connection_limit;
pub mod context;
mod cpu_saturation;
mod delegation_recalls;
pub mod evidence;
mod known_wait;
mod lock_contention;
mod memory_reclaim;
mod other_waits;
mod pnfs_fallback;
mod recall_evidence;
mod retry_later;
mod slot_starvation;
mod slow_disk;
mod slow_intent_log;
mod slow_mount;
mod slow_reply;
mod slow_upcall;
mod small_sync_writes;
mod state_recovery_storm;
pub mod stuck_requests;
mod thread_starvation;
mod unacknowledged_replies;
mod unknown_waits;
mod unsafe_writes;
mod write_throttle;

use crate::breakdown::Breakdown;
use crate::unacknowledged;
use context::{Context, RuleResult};
use nfscope_model::finding::Kind;
use nfscope_text::units::seconds;

/// Applies the rule of a kind.
pub fn apply(kind: Kind, context: &Context) -> RuleResult {
    let rule = match kind {
        Kind::StuckRequests => stuck_requests::rule,
        Kind::RetryLater => retry_later::rule,
        Kind::UnacknowledgedReplies => unacknowledged_replies::rule,
        Kind::UnsafeWrites => unsafe_writes::rule,
        Kind::SlotStarvation => slot_starvation::rule,
        Kind::StateRecoveryStorm => state_recovery_storm::rule,
        Kind::PnfsFallback => pnfs_fallback::rule,
        Kind::ConnectionLimit => connection_limit::rule,
        Kind::BadRpcs => bad_rpcs::rule,
        Kind::ThreadStarvation => thread_starvation::rule,
        Kind::SlowIntentLog => slow_intent_log::rule,
        Kind::SlowDisk => slow_disk::rule,
        Kind::WriteThrottle => write_throttle::rule,
        Kind::SlowUpcall => slow_upcall::rule,
        Kind::DelegationRecalls => delegation_recalls::rule,
        Kind::MemoryReclaim => memory_reclaim::rule,
        Kind::CpuSaturation => cpu_saturation::rule,
        Kind::LockContention => lock_contention::rule,
        Kind::UnknownWaits => unknown_waits::rule,
        Kind::SlowReply => slow_reply::rule,
        Kind::ChattyClient => chatty_client::rule,
        Kind::SmallSyncWrites => small_sync_writes::rule,
        Kind::SlowMount => slow_mount::rule,
    };
    rule(context)
}

/// Sentences about waits of clients outside the server when the window ends: a server with any such wait is not called healthy.
pub fn outstanding(b: &Breakdown) -> Vec<String> {
    let clients = b.unacknowledged.iter().flatten();
    let late = clients.filter(|c| unacknowledged::is_late(c));
    late.map(unacknowledged::described)
        .chain(retry_later::outstanding(b))
        .chain(server_state(b))
        .collect()
}

/// Time from which on a start, a stop or another number of threads is reported.
const LONG_CHANGE_SECONDS: f64 = 1.0;

/// Sentences on the server's own state that clients wait for.
pub fn server_state(b: &Breakdown) -> Vec<String> {
    let grace = (b.in_grace == Some(true)).then(|| IN_GRACE.to_owned());
    let change = b.server_change.filter(|s| *s >= LONG_CHANGE_SECONDS);
    let change = change.map(|s| {
        // Threads end between two requests. The kernel does not show whether the change waits for them.
        let held = match b.held.is_empty() {
            true => "",
            false => "; threads have requests in hand (nfscope stuck), and a thread ends after its request",
        };
        format!(
            "the server has been starting, stopping or changing its threads for {}{held}",
            seconds(s)
        )
    });
    grace.into_iter().chain(change).collect()
}

/// The server's grace period in words.
pub const IN_GRACE: &str = "the server is in its grace period: opens of NFSv4 and requests for locks are told to come again";

#[cfg(test)]
mod advice_tests;
#[cfg(test)]
mod bad_rpcs_tests;
#[cfg(test)]
mod by_client_tests;
#[cfg(test)]
mod connection_tests;
#[cfg(test)]
mod impact_tests;
#[cfg(test)]
mod normal_tests;
#[cfg(test)]
mod other_wait_tests;
#[cfg(test)]
mod outstanding_tests;
#[cfg(test)]
mod rare_wait_tests;
#[cfg(test)]
mod recall_tests;
#[cfg(test)]
mod sentence_tests;
#[cfg(test)]
mod session_tests;
#[cfg(test)]
mod storage_tests;
#[cfg(test)]
pub(crate) mod test_server;
#[cfg(test)]
mod unseen_arrival_tests;
