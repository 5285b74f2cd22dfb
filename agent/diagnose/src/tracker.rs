//! Follows findings from window to window, with hysteresis: a finding begins after two windows in a row, and clears after
//! two.

use crate::attribution::Attribution;
use crate::breakdown::Breakdown;
use crate::causes::{self, Edge};
use crate::course::{Slice, course};
use crate::evaluate::{by_rank, evaluate_breakdown};
use crate::normal::{Learner, Normal};
use crate::rules;
use nfscope_model::finding::{Diagnosis, Finding, Kind, Severity};
use nfscope_model::probe::times_operations;
use nfscope_model::{ProbeStatus, Snapshot, Window, family as f};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, SystemTime};

/// Length of a window.
pub const WINDOW: Duration = Duration::from_secs(10);
/// Windows in a row with a finding before it begins, and without it before it clears.
const WINDOWS_IN_A_ROW: u32 = 2;
/// Windows in a row for findings that chance does not cause, such as stuck requests: they are reported at once.
const STUCK_WINDOWS_IN_A_ROW: u32 = 1;
/// Windows without retries that end the finding. A client sleeps for up to 30 s before it asks for a lock again, and for 15 s elsewhere, so
/// 40 s of silence are enough.
const WINDOWS_WITHOUT_RETRIES: u32 = 4;
/// Windows over which the trend of a finding is computed: ten minutes.
const COURSE_WINDOWS: usize = 60;
/// Cleared findings that are kept for the report.
const MAX_HISTORY: usize = 100;

/// A finding from its begin until it clears.
#[derive(Debug, Clone, Serialize)]
pub struct Episode {
    /// End of the window with which the finding began, in seconds since 1970.
    pub began: f64,
    /// End of that window by CLOCK_MONOTONIC, so that a clock that is set changes no length.
    #[serde(skip)]
    since: Duration,
    /// End of the window with which the finding cleared, in seconds since 1970; `null` while it is active.
    pub ended: Option<f64>,
    /// The largest share of any of its windows.
    pub worst_share: f64,
    /// The finding in the latest window that had it.
    pub finding: Finding,
}

/// A finding that began or cleared.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// The finding is active now; with its summary.
    Began(Kind, String),
    /// The finding is not active any more; with the time that it was active.
    Cleared(Kind, Duration),
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Change::Began(kind, summary) => {
                write!(f, "finding {} is active: {summary}", kind.as_str())
            }
            Change::Cleared(kind, active) => write!(
                f,
                "finding {} cleared after {} s",
                kind.as_str(),
                active.as_secs()
            ),
        }
    }
}

/// Evaluates window after window.
#[derive(Debug, Default)]
pub struct FindingTracker {
    earlier: Option<Snapshot>,
    /// Windows in a row that contradict the present state of a kind.
    contradicting: BTreeMap<Kind, u32>,
    active: BTreeMap<Kind, Episode>,
    history: VecDeque<Episode>,
    /// Waiting in each of the latest windows, without a gap between them.
    slices: VecDeque<Slice>,
    /// Pairs of a cause and its consequence in the last window.
    causes: Vec<Edge>,
    /// Actions against a finding, ordered by their predicted gain.
    worth: BTreeMap<Kind, Vec<String>>,
    /// The last window, if an active finding was found in it.
    window: Option<Window>,
    last: Option<Diagnosis>,
    /// The server's own state in words, where clients wait for it.
    server_state: Option<String>,
    /// Usual times of the server's requests.
    usual: Learner,
}

/// Returns true if the same probes measured all the time between two readings: then the window between them can have findings.
fn comparable(earlier: &Snapshot, now: &Snapshot) -> bool {
    let same = |(a, b): (&ProbeStatus, &ProbeStatus)| {
        (&a.probe, &a.program, a.state) == (&b.probe, &b.program, b.state)
    };
    now.goes_on_from(earlier)
        && now.probes.len() == earlier.probes.len()
        && now.probes.iter().zip(&earlier.probes).all(same)
}

/// Returns true if operations were counted all the time between two readings. The window may have no findings if a probe came meanwhile.
fn counted(earlier: &Snapshot, now: &Snapshot) -> bool {
    times_operations(&earlier.probes) && now.goes_on_from(earlier)
}

/// The body of `/findings`.
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    /// Active findings, the largest share first.
    pub active: Vec<&'a Episode>,
    /// Cleared findings, the latest first; at most 100.
    pub history: Vec<&'a Episode>,
    /// Diagnosis of the last window; `null` before the first window has ended, and while operations are not timed.
    pub last_window: Option<&'a Diagnosis>,
    /// Usual times of the server's requests; absent until an hour without a critical finding was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub normal: Option<Normal>,
}

/// A finding of the last window, with the trend of its waiting over the latest windows.
fn with_course(found: &Finding, slices: &VecDeque<Slice>) -> Finding {
    let mut finding = found.clone();
    finding.evidence.extend(course(finding.kind, slices.iter()));
    finding
}

/// Puts the actions with a predicted gain before the others.
fn put_first(finding: &mut Finding, actions: Option<&Vec<String>>) {
    finding
        .advice
        .splice(0..0, actions.into_iter().flatten().cloned());
}

/// Summary of a finding that has cleared: its first verb is put in the past tense, and "now" is removed. The sentence about a mount has a
/// name before its verb, and stays unchanged.
fn in_the_past(kind: Kind, summary: &str) -> String {
    let verbs = [(" is ", " was "), (" are ", " were ")];
    let first = verbs
        .into_iter()
        .filter_map(|(now, then)| Some((summary.find(now)?, now, then)));
    match first.min_by_key(|(at, ..)| *at) {
        Some((_, now, then)) if kind != Kind::SlowMount => {
            let past = summary.replacen(now, then, 1);
            past.replacen(" in the server now", " in the server", 1)
        }
        _ => summary.to_owned(),
    }
}

impl FindingTracker {
    /// Ends a window with this reading and begins the next. Returns the findings that began or cleared.
    pub fn step(&mut self, now: Snapshot, clock: SystemTime) -> Vec<Change> {
        self.step_and(now, clock, |_, _, _| {})
    }

    /// Does the same as [`FindingTracker::step`], and shows a window that has ended, the findings by then, and the reading that ended it.
    /// Windows begin where the last one ended, by [`Snapshot::at`]. A repeated reading of the source ends no window. `clock` is the time of
    /// the reading.
    pub fn step_and(
        &mut self,
        now: Snapshot,
        clock: SystemTime,
        show: impl FnOnce(&FindingTracker, &Window, &Snapshot),
    ) -> Vec<Change> {
        let at = clock
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0.0, |d| d.as_secs_f64());
        let told = |e: &Snapshot| (e.began, e.at) == (now.began, now.at) && e.probes == now.probes;
        if self.earlier.as_ref().is_some_and(told) {
            return Vec::new();
        }
        let changes = match self.earlier.take() {
            // Without timed operations a finding cannot stay active, and a server cannot be called healthy.
            _ if !times_operations(&now.probes) => self.clear_all(at, now.at),
            Some(earlier) if comparable(&earlier, &now) => {
                let window = now.since(&earlier);
                let (changes, found) = self.evaluate(&window, at);
                show(self, &window, &now);
                self.window = found.then_some(window);
                changes
            }
            earlier => {
                self.earlier = earlier;
                self.cut(now, show);
                return Vec::new();
            }
        };
        self.earlier = Some(now);
        changes
    }

    /// Ends a window before its time with this reading, and begins the next. The window has no findings, because it may be short.
    pub fn cut(&mut self, now: Snapshot, show: impl FnOnce(&FindingTracker, &Window, &Snapshot)) {
        self.slices.clear();
        let earlier = self.earlier.take();
        if let Some(earlier) = earlier.filter(|earlier| counted(earlier, &now)) {
            show(self, &now.since(&earlier), &now);
        }
        self.earlier = Some(now);
    }

    fn clear_all(&mut self, at: f64, monotonic: Duration) -> Vec<Change> {
        (self.last, self.window, self.server_state) = (None, None, None);
        self.slices.clear();
        self.contradicting.clear();
        let active: Vec<_> = self.active.keys().copied().collect();
        (active.into_iter())
            .filter_map(|kind| self.clear(kind, at, monotonic))
            .collect()
    }

    fn clear(&mut self, kind: Kind, at: f64, monotonic: Duration) -> Option<Change> {
        let mut episode = self.active.remove(&kind)?;
        episode.ended = Some(at);
        episode.finding.summary = in_the_past(kind, &episode.finding.summary);
        self.worth.remove(&kind);
        let active = monotonic.saturating_sub(episode.since);
        self.history.push_front(episode);
        self.history.truncate(MAX_HISTORY);
        Some(Change::Cleared(kind, active))
    }

    /// Evaluates a window. Returns the changes, and true if an active finding was found in this window.
    fn evaluate(&mut self, window: &Window, at: f64) -> (Vec<Change>, bool) {
        let active: Vec<_> = self.active.keys().copied().collect();
        let breakdown = Breakdown::of(window);
        let d = evaluate_breakdown(window, &breakdown, &active, self.usual.normal());
        if d.findings.iter().all(|f| f.severity < Severity::Critical) {
            self.usual.add(&breakdown);
        }
        self.server_state = rules::server_state(&breakdown).into_iter().next();
        self.causes = causes::edges(&breakdown, &Attribution::of(&breakdown));
        self.slices.push_back(Slice::of(&breakdown));
        if self.slices.len() > COURSE_WINDOWS {
            self.slices.pop_front();
        }
        let mut changes = Vec::new();
        for kind in Kind::ALL {
            let found = d.finding(kind);
            if let (Some(episode), Some(found)) = (self.active.get_mut(&kind), found) {
                episode.worst_share = episode.worst_share.max(found.share);
                episode.finding = with_course(found, &self.slices);
                put_first(&mut episode.finding, self.worth.get(&kind));
            }
            if found.is_some() == self.active.contains_key(&kind) {
                self.contradicting.remove(&kind);
                continue;
            }
            let windows = self.contradicting.entry(kind).or_default();
            *windows += 1;
            let enough = match (kind, found) {
                // Retries of a deferred client become ever more rare, so the first window counts.
                (Kind::StuckRequests | Kind::RetryLater | Kind::UnacknowledgedReplies, Some(_)) => {
                    STUCK_WINDOWS_IN_A_ROW
                }
                (Kind::RetryLater, None) => WINDOWS_WITHOUT_RETRIES,
                _ => WINDOWS_IN_A_ROW,
            };
            if *windows < enough {
                continue;
            }
            self.contradicting.remove(&kind);
            match found {
                Some(found) => {
                    changes.push(Change::Began(kind, found.summary.clone()));
                    let episode = Episode {
                        began: at,
                        since: window.delta.at,
                        ended: None,
                        worst_share: found.share,
                        finding: with_course(found, &self.slices),
                    };
                    self.active.insert(kind, episode);
                }
                None => changes.extend(self.clear(kind, at, window.delta.at)),
            }
        }
        // A finding stays active for a window without it.
        let found = self.active.keys().any(|kind| d.finding(*kind).is_some());
        self.last = Some(d);
        (changes, found)
    }

    /// Adds the families of findings: whether each kind is active, and its score. A kind that this host cannot determine has
    /// no score.
    pub fn describe(&self, s: &mut Snapshot) {
        for kind in Kind::ALL {
            let active = self.active.contains_key(&kind);
            let labels = [kind.as_str()];
            s.gauge(&f::BOTTLENECK_ACTIVE, labels, f64::from(u8::from(active)));
            if let Some(share) = self.last.as_ref().and_then(|d| d.share(kind)) {
                s.gauge(&f::BOTTLENECK_SCORE, labels, share);
            }
        }
    }

    /// The last window, if an active finding was found in it.
    pub fn window(&self) -> Option<&Window> {
        self.window.as_ref()
    }

    /// The reading that begins the window under way.
    pub fn earlier(&self) -> Option<&Snapshot> {
        self.earlier.as_ref()
    }

    /// The kinds that are active, and the share of each in the latest window that had it.
    pub fn shares(&self) -> impl Iterator<Item = (Kind, f64)> {
        self.active.iter().map(|(kind, e)| (*kind, e.finding.share))
    }

    /// The kinds that are active.
    pub fn active(&self) -> impl Iterator<Item = Kind> {
        self.active.keys().copied()
    }

    /// Puts the actions with a predicted gain before the other actions of active findings, until these clear.
    pub fn set_worth(&mut self, actions: impl Fn(Kind) -> Vec<String>) {
        for (kind, episode) in &mut self.active {
            let known = self
                .worth
                .insert(*kind, actions(*kind))
                .map_or(0, |w| w.len());
            episode.finding.advice.drain(..known);
            put_first(&mut episode.finding, self.worth.get(kind));
        }
    }

    /// Reason why the server does not serve all requests now: the summary of the finding about stuck ones.
    pub fn degraded(&self) -> Option<&str> {
        let stuck = self.active.get(&Kind::StuckRequests);
        let stuck = stuck.map(|e| e.finding.summary.as_str());
        stuck.or(self.server_state.as_deref())
    }

    /// The body of `/findings`.
    pub fn report(&self) -> Report<'_> {
        let mut active: Vec<_> = self.active.values().collect();
        active.sort_by(|a, b| by_rank(&a.finding, &b.finding));
        causes::put_first(&mut active, |e| e.finding.kind, &self.causes);
        Report {
            active,
            history: self.history.iter().collect(),
            last_window: self.last.as_ref(),
            normal: self.usual.normal(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::test_server::Server;

    #[test]
    fn a_finding_that_has_cleared_is_told_in_the_past_tense() {
        for (kind, now, then) in [
            (
                Kind::StuckRequests,
                "3 requests are stuck in the server now, the oldest for 5.00 s",
                "3 requests were stuck in the server, the oldest for 5.00 s",
            ),
            (
                Kind::StuckRequests,
                "1 request is stuck in the server now, the oldest for 2.00 s",
                "1 request was stuck in the server, the oldest for 2.00 s",
            ),
            (
                Kind::SlowIntentLog,
                "94 % of request time in the server is spent waiting for the journal or intent log",
                "94 % of request time in the server was spent waiting for the journal or intent log",
            ),
            (
                Kind::ConnectionLimit,
                "too many connections are open: the kernel closed 2 connections of clients, which connect again",
                "too many connections were open: the kernel closed 2 connections of clients, which connect again",
            ),
            // The summary is in the past already, or has a name with a verb in it.
            (
                Kind::RetryLater,
                "2 operations were answered",
                "2 operations were answered",
            ),
            (
                Kind::SlowMount,
                "RPCs of /this is it take 2 s",
                "RPCs of /this is it take 2 s",
            ),
        ] {
            assert_eq!(in_the_past(kind, now), then);
        }
    }

    #[test]
    fn a_fault_that_lasts_does_not_become_usual() {
        let server = |log: f64| Window {
            length: WINDOW,
            delta: Server::with_busy_log(log).snapshot(),
        };
        let severity = |t: &FindingTracker| t.active[&Kind::SlowIntentLog].finding.severity;
        let mut tracker = FindingTracker::default();
        let mut see = |log: f64, windows: usize| {
            let window = server(log);
            for _ in 0..windows {
                tracker.evaluate(&window, 0.0);
            }
            (tracker.report().normal, severity(&tracker))
        };
        // From the first window on the log is slow: nothing is usual, and the fixed limits decide.
        assert_eq!(see(8e-3, 400), (None, Severity::Critical));
        // A finding that is not critical may be the usual state of a server.
        let (normal, now) = see(0.9e-3, 360);
        assert_eq!(now, Severity::Warning);
        // No hour of a critical finding changes what is usual.
        assert_eq!(see(8e-3, 2000), (normal, Severity::Critical));
    }

    /// Readings are ten seconds apart by the source's clock, whatever the wall clock says.
    #[test]
    fn a_wall_clock_that_is_set_changes_no_length_of_a_finding() {
        let mut tracker = FindingTracker::default();
        let finding = Finding {
            kind: Kind::SlowDisk,
            share: 0.5,
            severity: nfscope_model::finding::Severity::Warning,
            summary: String::new(),
            evidence: Vec::new(),
            advice: Vec::new(),
        };
        let since = Duration::from_secs(100);
        for at in [5000.0, 10.0] {
            let episode = Episode {
                began: 1000.0,
                since,
                ended: None,
                worst_share: 0.5,
                finding: finding.clone(),
            };
            tracker.active.insert(Kind::SlowDisk, episode);
            let cleared = tracker.clear(Kind::SlowDisk, at, since + WINDOW);
            assert_eq!(cleared, Some(Change::Cleared(Kind::SlowDisk, WINDOW)));
        }
    }
}
