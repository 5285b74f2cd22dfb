//! State of the process that serves HTTP, for the thread that makes readings and for the watchdog.

use nfscope_model::{Snapshot, family as f};
use nfscope_source::confinement::Confinement;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Cause of a process's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The process ended by itself, or another process ended it.
    Ended,
    /// The agent ended the process, because it did not answer.
    NoAnswer,
    /// The agent ended the process, because it broke the protocol.
    Misbehaved,
}

/// Values of the label, in the order of [`End`].
const ENDS: [&str; 3] = ["ended", "no_answer", "misbehaved"];

#[derive(Debug, Clone)]
struct State {
    /// Number of processes that ended, by [`ENDS`].
    ends: [u64; ENDS.len()],
    /// Confinement of the running process, as it reported before it served any peer: a bit for each part.
    holds: Option<u8>,
    /// Time of its last sign of life, or of its start; `None` before the first process.
    heard: Option<Instant>,
}

static STATE: Mutex<State> = Mutex::new(State {
    ends: [0; ENDS.len()],
    holds: None,
    heard: None,
});

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts a process that has ended.
pub(super) fn ended(how: End) {
    state().ends[how as usize] += 1;
}

/// Notes a sign of life or the start of the process.
pub(super) fn heard() {
    state().heard = Some(Instant::now());
}

/// Notes the confinement of the process.
pub(super) fn holds(bits: u8) {
    state().holds = Some(bits);
}

/// Time since the last sign of life or the start of the process; zero before the first one.
pub(crate) fn silent_for() -> Duration {
    state().heard.map_or(Duration::ZERO, |at| at.elapsed())
}

/// Adds the confinement of the process, and the causes of earlier ends.
pub(crate) fn describe(s: &mut Snapshot) {
    let state = state().clone();
    let Some(holds) = state.holds else {
        return;
    };
    for (reason, n) in ENDS.iter().zip(state.ends) {
        s.counter(&f::HTTP_ENDS, [*reason], n as f64);
    }
    for (n, part) in Confinement::PARTS.iter().enumerate() {
        s.gauge(&f::HTTP_SANDBOX, [*part], f64::from(holds >> n & 1));
    }
}
