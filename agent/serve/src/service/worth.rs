//! Predicted gains of changes of the server, while there are findings: computed from a window of the findings by the model of `nfscope
//! what-if`, on a thread of its own.

use nfscope_api::worth::{actions, cures, label};
use nfscope_diagnose::tracker::{FindingTracker, Report};
use nfscope_model::finding::Kind;
use nfscope_model::window_parts::numbers;
use nfscope_model::{Snapshot, Window, family as f};
use nfscope_whatif::{MIN_GAIN, Plausible, Refusal, plausible};
use serde::Serialize;
use std::sync::mpsc::{self, TryRecvError};
use std::time::{Duration, Instant, SystemTime};

/// Age at which an answer is computed again. Computing takes some tenths of a second of CPU time, and a tenth of a CPU at most.
const KEEP: Duration = Duration::from_secs(600);
/// Least time between two computations, whatever findings come and go; also the interval while the model refuses.
const PAUSE: Duration = Duration::from_secs(60);

type Answer = Result<Vec<Plausible>, Refusal>;

/// Properties that an admin may change meanwhile: threads and CPUs.
type Server = [f64; 2];

fn server(w: &Window) -> Server {
    [
        numbers(w, &f::THREADS).map(|(_, n)| n).sum(),
        w.delta.value(&f::CPUS, []).unwrap_or(0.0),
    ]
}

/// An answer, and the server that it is about.
#[derive(Debug)]
struct Known {
    answer: Answer,
    /// Time of the answer, in seconds since 1970.
    at: f64,
    /// Time of the answer, by a clock that is never set.
    came: Instant,
    server: Server,
}

/// The last answer, and the one that is being computed.
#[derive(Debug, Default)]
pub struct Worth {
    computing: Option<(mpsc::Receiver<Answer>, Server)>,
    begun: Option<Instant>,
    /// Active findings that have the answer's actions.
    kinds: Vec<Kind>,
    known: Option<Known>,
}

/// The body of `/findings`.
#[derive(Serialize)]
struct Body<'a> {
    #[serde(flatten)]
    report: Report<'a>,
    /// Predicted changes, the most valuable one first.
    #[serde(skip_serializing_if = "Option::is_none")]
    worth: Option<&'a [Plausible]>,
    /// Reason why there is no prediction.
    #[serde(skip_serializing_if = "Option::is_none")]
    worth_unknown: Option<String>,
    /// Time of the prediction or the refusal, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    worth_at: Option<f64>,
}

impl Worth {
    /// Takes an answer that has come, and starts computing one if it is due.
    pub fn step(&mut self, findings: &mut FindingTracker, now: SystemTime) {
        let active: Vec<_> = findings
            .active()
            .filter(|kind| !cures(*kind).is_empty())
            .collect();
        self.kinds.retain(|kind| active.contains(kind));
        let came = self.take(now);
        if active.is_empty() {
            self.known = None;
            return;
        }
        let now = findings.window().map(server);
        // An answer about a server with other threads or CPUs is dropped.
        let changed = |known: &mut Known| now.is_some_and(|server| server != known.server);
        let forgotten = self.known.take_if(changed).is_some();
        if came || forgotten || active.iter().any(|kind| !self.kinds.contains(kind)) {
            let changes = match &self.known {
                Some(known) => known.answer.as_deref().unwrap_or_default(),
                None => &[],
            };
            findings.set_worth(|kind| actions(kind, changes));
            self.kinds = active;
        }
        if let Some(window) = findings.window().filter(|_| self.is_due()) {
            self.compute(window.clone());
        }
    }

    /// Takes an answer; returns true if there is a new one. A refusal leaves an earlier answer in place until that is old.
    fn take(&mut self, now: SystemTime) -> bool {
        let Some((computing, server)) = &self.computing else {
            return false;
        };
        let answer = match computing.try_recv() {
            Err(TryRecvError::Empty) => return false,
            Err(TryRecvError::Disconnected) => None,
            Ok(answer) => Some(answer),
        };
        let server = *server;
        self.computing = None;
        let Some(answer) = answer else { return false };
        let at = now
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0.0, |d| d.as_secs_f64());
        let stays = |known: &Known| known.answer.is_ok() && known.came.elapsed() < 2 * KEEP;
        if answer.is_err() && self.known.as_ref().is_some_and(stays) {
            return false;
        }
        let came = Instant::now();
        self.known = Some(Known {
            answer,
            at,
            came,
            server,
        });
        true
    }

    fn is_due(&self) -> bool {
        let keep = match &self.known {
            Some(known) if known.answer.is_ok() => KEEP,
            _ => PAUSE,
        };
        self.computing.is_none() && self.begun.is_none_or(|at| at.elapsed() >= keep)
    }

    fn compute(&mut self, window: Window) {
        let (tell, computing) = mpsc::channel();
        let server = server(&window);
        let thread = std::thread::Builder::new()
            .name("what-if".to_owned())
            .spawn(move || {
                nfscope_source::yield_to_others();
                nfscope_whatif::simulation::rest();
                // The agent may have ended meanwhile.
                let _ = tell.send(plausible(&window));
            });
        self.begun = Some(Instant::now());
        self.computing = thread.is_ok().then_some((computing, server));
    }

    fn changes(&self) -> Option<&Answer> {
        self.known.as_ref().map(|known| &known.answer)
    }

    /// Adds the gain of each change, and the number of threads that the model recommends.
    pub fn describe(&self, s: &mut Snapshot) {
        let Some(Ok(changes)) = self.changes() else {
            return;
        };
        for change in changes {
            if let Some(part) = change.part() {
                s.gauge(&f::CHANGE_GAIN, [label(part)], change.gain_low);
            }
            let threads = change.prediction.change.threads;
            if let Some(n) = threads.filter(|_| change.gain >= MIN_GAIN) {
                s.gauge(&f::RECOMMENDED_THREADS, [], f64::from(n));
            }
        }
    }

    /// Body of `/findings`.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn body(&self, report: Report<'_>) -> serde_json::Result<serde_json::Value> {
        let answer = self.changes();
        serde_json::to_value(Body {
            report,
            worth: answer.and_then(|a| a.as_deref().ok()),
            worth_unknown: answer.and_then(|a| a.as_ref().err().map(ToString::to_string)),
            worth_at: self.known.as_ref().map(|known| known.at),
        })
    }
}
