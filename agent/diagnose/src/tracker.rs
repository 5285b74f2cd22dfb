//! Findings over time: they neither flap nor linger.

use crate::evaluate::judge;
use nfscope_model::finding::{Diagnosis, Finding, Kind};
use nfscope_model::probe::times_operations;
use nfscope_model::{ProbeStatus, Snapshot, Window, family as f};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, SystemTime};

/// How long a window is.
pub const WINDOW: Duration = Duration::from_secs(10);
/// So many windows in a row begin a finding, and so many end it.
const ROW: u32 = 2;
/// Findings that are over and remembered.
const HISTORY: usize = 100;

/// A finding that holds, or held.
#[derive(Debug, Clone, Serialize)]
pub struct Episode {
    /// Seconds since 1970 when its first window ended.
    pub began: f64,
    /// The same of its last one; `null` while it holds.
    pub ended: Option<f64>,
    /// The largest share that it had.
    pub worst_share: f64,
    /// As it was seen last.
    pub finding: Finding,
}

/// What has begun or ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// With its summary.
    Began(Kind, String),
    /// After so long.
    Ended(Kind, Duration),
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Change::Began(kind, summary) => write!(f, "finding {}: {summary}", kind.as_str()),
            Change::Ended(kind, held) => write!(
                f,
                "finding {} has ended after {} s",
                kind.as_str(),
                held.as_secs()
            ),
        }
    }
}

/// Judges window after window.
#[derive(Debug, Default)]
pub struct Watch {
    earlier: Option<Snapshot>,
    /// Windows in a row that speak against how a kind stands now.
    against: BTreeMap<Kind, u32>,
    holding: BTreeMap<Kind, Episode>,
    over: VecDeque<Episode>,
    last: Option<Diagnosis>,
}

/// What was attached or let go of meanwhile counts anew: such a window compares nothing.
fn comparable(earlier: &Snapshot, now: &Snapshot) -> bool {
    let same = |(a, b): (&ProbeStatus, &ProbeStatus)| {
        (&a.probe, &a.program, a.state) == (&b.probe, &b.program, b.state)
    };
    now.at > earlier.at
        && now.probes.len() == earlier.probes.len()
        && now.probes.iter().zip(&earlier.probes).all(same)
}

/// `/findings`
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    /// Those that hold, the strongest first.
    pub active: Vec<&'a Episode>,
    /// Those that are over, the latest first; at most 100.
    pub history: Vec<&'a Episode>,
    /// The judgement of the last window; `null` before the first has ended, and while operations are not timed.
    pub last_window: Option<&'a Diagnosis>,
}

impl Watch {
    /// Ends a window with this reading, and begins the next.
    pub fn step(&mut self, now: Snapshot, clock: SystemTime) -> Vec<Change> {
        let at = clock
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0.0, |d| d.as_secs_f64());
        let changes = match self.earlier.take() {
            // Nothing can be said any more: least of all that all is well.
            _ if !times_operations(&now.probes) => self.give_up(at),
            Some(earlier) if comparable(&earlier, &now) => self.judge(&now.since(&earlier), at),
            _ => Vec::new(),
        };
        self.earlier = Some(now);
        changes
    }

    fn give_up(&mut self, at: f64) -> Vec<Change> {
        self.last = None;
        self.against.clear();
        let held: Vec<_> = self.holding.keys().copied().collect();
        held.into_iter()
            .filter_map(|kind| self.end(kind, at))
            .collect()
    }

    fn end(&mut self, kind: Kind, at: f64) -> Option<Change> {
        let mut episode = self.holding.remove(&kind)?;
        episode.ended = Some(at);
        // A clock that was set back meanwhile makes no negative time.
        let held = Duration::try_from_secs_f64(at - episode.began).unwrap_or_default();
        self.over.push_front(episode);
        self.over.truncate(HISTORY);
        Some(Change::Ended(kind, held))
    }

    fn judge(&mut self, window: &Window, at: f64) -> Vec<Change> {
        let held: Vec<_> = self.holding.keys().copied().collect();
        let d = judge(window, &held);
        let mut changes = Vec::new();
        for kind in Kind::ALL {
            let found = d.finding(kind);
            if let (Some(episode), Some(found)) = (self.holding.get_mut(&kind), found) {
                episode.worst_share = episode.worst_share.max(found.share);
                episode.finding = found.clone();
            }
            if found.is_some() == self.holding.contains_key(&kind) {
                self.against.remove(&kind);
                continue;
            }
            let row = self.against.entry(kind).or_default();
            *row += 1;
            if *row < ROW {
                continue;
            }
            self.against.remove(&kind);
            match found {
                Some(found) => {
                    changes.push(Change::Began(kind, found.summary.clone()));
                    let episode = Episode {
                        began: at,
                        ended: None,
                        worst_share: found.share,
                        finding: found.clone(),
                    };
                    self.holding.insert(kind, episode);
                }
                None => changes.extend(self.end(kind, at)),
            }
        }
        self.last = Some(d);
        changes
    }

    /// Adds what holds and what each kind explains. A kind of which this host tells nothing has no score.
    pub fn describe(&self, s: &mut Snapshot) {
        for kind in Kind::ALL {
            let active = self.holding.contains_key(&kind);
            let labels = [kind.as_str()];
            s.gauge(&f::BOTTLENECK_ACTIVE, labels, f64::from(u8::from(active)));
            if let Some(share) = self.last.as_ref().and_then(|d| d.share(kind)) {
                s.gauge(&f::BOTTLENECK_SCORE, labels, share);
            }
        }
    }

    /// For `/findings`.
    pub fn report(&self) -> Report<'_> {
        let mut active: Vec<_> = self.holding.values().collect();
        active.sort_by(|a, b| b.finding.share.total_cmp(&a.finding.share));
        Report {
            active,
            history: self.over.iter().collect(),
            last_window: self.last.as_ref(),
        }
    }
}
