//! Follows findings from window to window, with hysteresis: a finding begins after two windows in a row, and clears after
//! two.

use crate::breakdown::Breakdown;
use crate::course::{Slice, course};
use crate::evaluate::{by_rank, evaluate_breakdown};
use nfscope_model::finding::{Diagnosis, Finding, Kind};
use nfscope_model::probe::times_operations;
use nfscope_model::{ProbeStatus, Snapshot, Window, family as f};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, SystemTime};

/// Length of a window.
pub const WINDOW: Duration = Duration::from_secs(10);
/// A finding begins after so many windows in a row with it, and clears after so many without it.
const WINDOWS_IN_A_ROW: u32 = 2;
/// Requests that are stuck are no matter of chance: they are reported at once.
const STUCK_WINDOWS_IN_A_ROW: u32 = 1;
/// Windows over which the course of a finding is told: ten minutes.
const COURSE_WINDOWS: usize = 60;
/// Cleared findings that are kept for the report.
const MAX_HISTORY: usize = 100;

/// One finding from its begin until it clears.
#[derive(Debug, Clone, Serialize)]
pub struct Episode {
    /// Seconds since 1970 when its first window ended.
    pub began: f64,
    /// Seconds since 1970 when its last window ended; `null` while the finding is active.
    pub ended: Option<f64>,
    /// The largest share of any of its windows.
    pub worst_share: f64,
    /// The finding in the latest window that had it.
    pub finding: Finding,
}

/// A finding that began or cleared.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// The finding is active now. With its summary.
    Began(Kind, String),
    /// The finding is not active any more. With the time that it was active.
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
    /// What each of the latest windows waited for, without a gap between them.
    slices: VecDeque<Slice>,
    /// What would cure a finding, by its worth.
    worth: BTreeMap<Kind, Vec<String>>,
    /// The last window, if an active finding was found in it.
    window: Option<Window>,
    last: Option<Diagnosis>,
}

/// Whether two readings make a window. A probe that was attached or detached between them counts from zero again.
fn comparable(earlier: &Snapshot, now: &Snapshot) -> bool {
    let same = |(a, b): (&ProbeStatus, &ProbeStatus)| {
        (&a.probe, &a.program, a.state) == (&b.probe, &b.program, b.state)
    };
    now.at > earlier.at
        && now.probes.len() == earlier.probes.len()
        && now.probes.iter().zip(&earlier.probes).all(same)
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
}

/// A finding of the last window, with the course of its waiting over the latest ones.
fn with_course(found: &Finding, slices: &VecDeque<Slice>) -> Finding {
    let mut finding = found.clone();
    finding.evidence.extend(course(finding.kind, slices.iter()));
    finding
}

/// Actions of which somebody has computed the worth come first.
fn put_first(finding: &mut Finding, actions: Option<&Vec<String>>) {
    finding
        .advice
        .splice(0..0, actions.into_iter().flatten().cloned());
}

impl FindingTracker {
    /// Ends a window with this reading and begins the next. Returns the findings that began or cleared.
    pub fn step(&mut self, now: Snapshot, clock: SystemTime) -> Vec<Change> {
        self.step_and(now, clock, |_, _, _| {})
    }

    /// The same; shows a window that has ended, what is found by then, and the reading that ended it.
    pub fn step_and(
        &mut self,
        now: Snapshot,
        clock: SystemTime,
        show: impl FnOnce(&FindingTracker, &Window, &Snapshot),
    ) -> Vec<Change> {
        let at = clock
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0.0, |d| d.as_secs_f64());
        let changes = match self.earlier.take() {
            // Without timed operations a finding cannot stay active, and a server cannot be called healthy.
            _ if !times_operations(&now.probes) => self.clear_all(at),
            Some(earlier) if comparable(&earlier, &now) => {
                let window = now.since(&earlier);
                let (changes, found) = self.evaluate(&window, at);
                show(self, &window, &now);
                self.window = found.then_some(window);
                changes
            }
            _ => {
                self.slices.clear();
                Vec::new()
            }
        };
        self.earlier = Some(now);
        changes
    }

    fn clear_all(&mut self, at: f64) -> Vec<Change> {
        (self.last, self.window) = (None, None);
        self.slices.clear();
        self.contradicting.clear();
        let active: Vec<_> = self.active.keys().copied().collect();
        (active.into_iter())
            .filter_map(|kind| self.clear(kind, at))
            .collect()
    }

    fn clear(&mut self, kind: Kind, at: f64) -> Option<Change> {
        let mut episode = self.active.remove(&kind)?;
        episode.ended = Some(at);
        self.worth.remove(&kind);
        // The clock may have been set back since the finding began.
        let active = Duration::try_from_secs_f64(at - episode.began).unwrap_or_default();
        self.history.push_front(episode);
        self.history.truncate(MAX_HISTORY);
        Some(Change::Cleared(kind, active))
    }

    /// With whether an active finding was found in this window.
    fn evaluate(&mut self, window: &Window, at: f64) -> (Vec<Change>, bool) {
        let active: Vec<_> = self.active.keys().copied().collect();
        let breakdown = Breakdown::of(window);
        let d = evaluate_breakdown(window, &breakdown, &active);
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
                // A client that is put off asks ever more seldom.
                (Kind::StuckRequests | Kind::RetryLater, Some(_)) => STUCK_WINDOWS_IN_A_ROW,
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
                        ended: None,
                        worst_share: found.share,
                        finding: with_course(found, &self.slices),
                    };
                    self.active.insert(kind, episode);
                }
                None => changes.extend(self.clear(kind, at)),
            }
        }
        // A finding stays for a window without it.
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

    /// Puts the actions of which the worth was computed before the other actions of active findings, until these clear.
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

    /// Why the server does not serve all requests now: the summary of the finding about stuck ones.
    pub fn degraded(&self) -> Option<&str> {
        let episode = self.active.get(&Kind::StuckRequests)?;
        Some(&episode.finding.summary)
    }

    /// The body of `/findings`.
    pub fn report(&self) -> Report<'_> {
        let mut active: Vec<_> = self.active.values().collect();
        active.sort_by(|a, b| by_rank(&a.finding, &b.finding));
        Report {
            active,
            history: self.history.iter().collect(),
            last_window: self.last.as_ref(),
        }
    }
}
