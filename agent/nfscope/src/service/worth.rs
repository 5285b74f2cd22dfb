//! What changes of the server would be worth, while there are findings: computed from a window of theirs by the model of
//! `nfscope what-if`, on a thread of its own.

use nfscope_diagnose::tracker::{FindingTracker, Report};
use nfscope_model::finding::Kind;
use nfscope_model::{Snapshot, Window, family as f};
use nfscope_whatif::{MIN_GAIN, Part, Plausible, Refusal, plausible};
use serde::Serialize;
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime};

/// An answer is computed again after so long. It takes some tenths of a second of CPU time.
const KEEP: Duration = Duration::from_secs(600);
/// A refusal is: the next window may tell more.
const KEEP_REFUSAL: Duration = Duration::from_secs(60);

/// What is changed to cure a kind of finding.
fn cures(kind: Kind) -> &'static [Part] {
    match kind {
        // Requests wait for a thread less long where each has its thread for a shorter time, too.
        Kind::ThreadStarvation => &[Part::Threads, Part::Log, Part::Disk],
        Kind::SlowIntentLog | Kind::SmallSyncWrites => &[Part::Log, Part::Threads],
        Kind::SlowDisk => &[Part::Disk, Part::Threads],
        Kind::CpuSaturation => &[Part::Cpus],
        _ => &[],
    }
}

/// Actions against a kind of finding whose worth is computed, the most valuable one first.
pub fn actions(kind: Kind, changes: &[Plausible]) -> Vec<String> {
    let cures = cures(kind);
    let known = changes
        .iter()
        .filter(|p| p.gain >= MIN_GAIN && p.part().is_some_and(|part| cures.contains(&part)));
    known
        .map(|p| format!("{} (nfscope what-if)", p.sentence()))
        .collect()
}

type Answer = Result<Vec<Plausible>, Refusal>;

/// The last answer, and the one that is being computed.
#[derive(Debug, Default)]
pub struct Worth {
    computing: Option<mpsc::Receiver<Answer>>,
    begun: Option<Instant>,
    /// Findings that were active when it began.
    kinds: Vec<Kind>,
    /// With the time when it was there, in seconds since 1970.
    answer: Option<(Answer, f64)>,
}

/// The body of `/findings`.
#[derive(Serialize)]
struct Body<'a> {
    #[serde(flatten)]
    report: Report<'a>,
    /// What changes would be worth, the most valuable one first.
    #[serde(skip_serializing_if = "Option::is_none")]
    worth: Option<&'a [Plausible]>,
    /// Why nothing can be said of changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    worth_unknown: Option<String>,
    /// When either was computed, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    worth_at: Option<f64>,
}

impl Worth {
    /// Takes an answer that has come, and begins to compute one where it is due.
    pub fn step(&mut self, findings: &mut FindingTracker, now: SystemTime) {
        if let Some(answer) = self.computing.as_ref().and_then(|c| c.try_recv().ok()) {
            self.computing = None;
            let at = now
                .duration_since(SystemTime::UNIX_EPOCH)
                .map_or(0.0, |d| d.as_secs_f64());
            let changes = answer.as_deref().unwrap_or_default();
            findings.set_worth(|kind| actions(kind, changes));
            self.answer = Some((answer, at));
        }
        let active: Vec<_> = findings
            .active()
            .filter(|kind| !cures(*kind).is_empty())
            .collect();
        if active.is_empty() {
            *self = Worth::default();
            return;
        }
        if !self.is_due(&active) {
            return;
        }
        if let Some(window) = findings.take_window() {
            self.compute(window, active);
        }
    }

    fn is_due(&self, active: &[Kind]) -> bool {
        let keep = match &self.answer {
            Some((Ok(_), _)) => KEEP,
            _ => KEEP_REFUSAL,
        };
        let old = self.begun.is_none_or(|at| at.elapsed() >= keep);
        self.computing.is_none() && (old || active.iter().any(|kind| !self.kinds.contains(kind)))
    }

    fn compute(&mut self, window: Window, active: Vec<Kind>) {
        let (tell, computing) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("what-if".to_owned())
            .spawn(move || {
                nfscope_source::yield_to_others();
                // Whoever has no findings any more has dropped the receiver.
                let _ = tell.send(plausible(&window));
            });
        (self.begun, self.kinds) = (Some(Instant::now()), active);
        self.computing = thread.is_ok().then_some(computing);
    }

    /// Adds what each change would gain, and the number of threads that the model recommends.
    pub fn describe(&self, s: &mut Snapshot) {
        let Some((Ok(changes), _)) = &self.answer else {
            return;
        };
        for change in changes {
            let name = match change.part() {
                Some(Part::Threads) => "threads",
                Some(Part::Log) => "log",
                Some(Part::Disk) => "disk",
                Some(Part::Cpus) => "cpus",
                None => continue,
            };
            s.gauge(&f::CHANGE_GAIN, [name], change.gain);
            let threads = change.prediction.change.threads;
            if let Some(n) = threads.filter(|_| change.gain >= MIN_GAIN) {
                s.gauge(&f::RECOMMENDED_THREADS, [], f64::from(n));
            }
        }
    }

    /// The body of `/findings`.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn body(&self, findings: &FindingTracker) -> serde_json::Result<Vec<u8>> {
        let answer = self.answer.as_ref();
        serde_json::to_vec(&Body {
            report: findings.report(),
            worth: answer.and_then(|(a, _)| a.as_deref().ok()),
            worth_unknown: answer.and_then(|(a, _)| a.as_ref().err().map(ToString::to_string)),
            worth_at: answer.map(|(_, at)| *at),
        })
    }
}
