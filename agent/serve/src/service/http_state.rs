//! Facts that the agent knows of the process that serves HTTP, for the thread that makes readings and for the watchdog.

use nfscope_model::{Snapshot, family as f};
use nfscope_source::confinement::Confinement;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// By itself, or by somebody else.
    Ended,
    /// By the agent, which it did not answer.
    NoAnswer,
    /// By the agent, which it asked what no such process asks.
    Misbehaved,
}

/// Values of the label, in the order of [`End`].
const ENDS: [&str; 3] = ["ended", "no_answer", "misbehaved"];

#[derive(Debug, Clone)]
struct State {
    /// Processes that ended, by [`ENDS`].
    ends: [u64; ENDS.len()],
    /// Confinement of the one that runs, as it said before it served anybody: a bit for each part.
    holds: Option<u8>,
    /// When it was last heard, or started; `None` before the first one.
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

/// Notes that the process has answered, or was started.
pub(super) fn heard() {
    state().heard = Some(Instant::now());
}

/// Notes what holds the process.
pub(super) fn holds(bits: u8) {
    state().holds = Some(bits);
}

/// How long ago the process was heard, or started; nothing before the first one.
pub(crate) fn silent_for() -> Duration {
    state().heard.map_or(Duration::ZERO, |at| at.elapsed())
}

/// Adds what holds the process, and how earlier ones ended.
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
