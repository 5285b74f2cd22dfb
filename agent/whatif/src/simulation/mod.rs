//! A discrete-event simulation of a server.
//!
//! The method is that of A. M. Law, Simulation Modeling and Analysis, chapters 1 and 9: a list of events in order of time, a warm-up that
//! is not counted, and batch means for the error of the result. The result of a run depends on the server and the seed only.

mod event;
mod log;
mod log_state;
mod requests;
mod rests;
mod run;
mod scheduler;
mod stream;

pub use rests::rest;

use crate::outcome::{BATCHES, Outcome, Tally};
use crate::server::Server;
use rests::rest_if_due;
use run::Run;

/// Most events of a run per request: no request needs more.
const MAX_EVENTS_PER_REQUEST: usize = 60;
/// Events between two checks of [`rests::rest_if_due`], some 10 us.
const EVENTS_BETWEEN_RESTS: usize = 16;

/// Length of a run.
#[derive(Debug, Clone, Copy)]
pub struct Length {
    /// Requests that are counted.
    pub requests: usize,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// Simulates the server.
pub fn simulate(server: &Server, length: Length) -> Outcome {
    let mut run = Run::new(server, length.seed);
    let warm_up = (length.requests / 5).max(4 * run.streams.len());
    let all = warm_up + length.requests;
    let batch = (length.requests / BATCHES).max(1);
    let mut counting = false;
    for event in 0..all * MAX_EVENTS_PER_REQUEST {
        let before = run.tally.done;
        if !run.step() {
            break;
        }
        if event % EVENTS_BETWEEN_RESTS == 0 {
            rest_if_due();
        }
        if run.tally.done == before {
            continue;
        }
        if !counting && run.tally.done >= warm_up {
            counting = true;
            run.tally = Tally {
                since: run.now,
                log_since: run.now,
                classes: vec![Vec::new(); server.classes.len()],
                ..Tally::default()
            };
        } else if counting && run.tally.done.is_multiple_of(batch) {
            run.tally.batch_ends.push(run.now);
            if run.tally.batch_ends.len() == BATCHES {
                break;
            }
        }
    }
    run.tally.outcome(run.now, server)
}
