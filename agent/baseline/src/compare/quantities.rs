//! Quantities of a subject in each recording.

use crate::compare::errors;
use crate::compare::evidence::{Evidence, amount, known};
use crate::compare::result::{Quantity, Subject};
use crate::histogram_series::HistogramSeries;
use crate::series::SeriesSet;
use crate::workload;
use nfscope_model::{family as f, phase};
use nfscope_stats as stats;

/// Share of an operation's time in all recordings below which a phase is not compared.
const MIN_PHASE_SHARE: f64 = 0.05;

const QUANTILES: [u8; 3] = [50, 90, 99];

/// A quantity in several recordings.
pub(super) struct InAll {
    pub quantity: Quantity,
    /// Evidence in the order of the recordings.
    pub evidence: Vec<Evidence>,
    /// Value in each window of each recording; NaN if it has none.
    pub windows: Vec<Vec<f64>>,
}

/// The quantities of a subject in all of these recordings.
pub(super) fn of(all: &[&SeriesSet], subject: &Subject) -> Vec<InAll> {
    let mut rows = Vec::new();
    match subject {
        Subject::Op { version, op } => {
            let times = aligned(all, subject);
            rows.push(rate(all, &times));
            rows.extend(latency(all, &times));
            rows.extend(phases_of(all, &times, version, op));
        }
        Subject::Log { .. } => {
            let times = aligned(all, subject);
            rows.push(rate(all, &times));
            rows.extend(latency(all, &times));
        }
        Subject::Requests { .. } | Subject::Queue => {
            rows.extend(latency(all, &aligned(all, subject)))
        }
        Subject::SyncWrites => {
            let writes: Vec<_> = all.iter().map(|c| sync_writes(c)).collect();
            rows.push(ratios(Quantity::Rate, all, |i, c| {
                let w = writes[i].as_ref()?;
                Some((w.durable.clone(), c.lengths.clone()))
            }));
            rows.push(ratios(Quantity::Share, all, |i, _| {
                let w = writes[i].as_ref()?;
                Some((w.stable.clone(), w.all.clone()))
            }));
        }
        Subject::Errors { version, op } => {
            rows.push(ratios(Quantity::Rate, all, |_, c| {
                let (failed, _) = errors::of(c, version, op)?;
                Some((failed, c.lengths.clone()))
            }));
            rows.push(ratios(Quantity::Share, all, |_, c| {
                errors::of(c, version, op)
            }));
        }
        Subject::Dropped { reason } => rows.push(ratios(Quantity::Share, all, |_, c| {
            errors::dropped(c, reason)
        })),
        Subject::Replays => {
            rows.push(ratios(Quantity::Share, all, |_, c| errors::replays(c)));
        }
        Subject::Workload { job, operation } => {
            rows.push(ratios(Quantity::Rate, all, |_, c| {
                workload::rate(c, job, operation)
            }));
            rows.extend(latency(all, &aligned(all, subject)));
        }
        Subject::WorkloadErrors { job } => {
            rows.push(ratios(Quantity::Share, all, |_, c| {
                workload::failed(c, job)
            }));
        }
    }
    rows
}

type Times = Vec<Option<HistogramSeries>>;

/// The durations of a subject in all recordings, in the same bucket scheme.
fn aligned(all: &[&SeriesSet], subject: &Subject) -> Times {
    let mut times: Times = all.iter().map(|c| durations_of(c, subject)).collect();
    // The first pass gives the first recording the common scheme of all. The second pass gives it to the others.
    for _ in 0..2 {
        let mut each = times.iter_mut().flatten();
        if let Some(first) = each.next() {
            each.for_each(|other| first.align(other));
        }
    }
    times
}

fn rate(all: &[&SeriesSet], times: &Times) -> InAll {
    ratios(Quantity::Rate, all, |i, c| {
        Some((times[i].as_ref()?.counts.clone(), c.lengths.clone()))
    })
}

/// A quantity that is a ratio of two sums, window by window.
pub(super) fn ratios(
    quantity: Quantity,
    all: &[&SeriesSet],
    of: impl Fn(usize, &SeriesSet) -> Option<(Vec<f64>, Vec<f64>)>,
) -> InAll {
    let (mut evidence, mut windows) = (Vec::new(), Vec::new());
    for (i, c) in all.iter().enumerate() {
        let (e, w) = match of(i, c) {
            None => (Evidence::NotMeasured, Vec::new()),
            Some((y, x)) => (amount(&y, &x), per_window(&y, &x)),
        };
        evidence.push(e);
        windows.push(w);
    }
    InAll {
        quantity,
        evidence,
        windows,
    }
}

fn per_window(y: &[f64], x: &[f64]) -> Vec<f64> {
    y.iter().zip(x).map(|(y, x)| y / x).collect()
}

fn latency(recordings: &[&SeriesSet], times: &Times) -> Vec<InAll> {
    let all = |quantity,
               evidence: &dyn Fn(&HistogramSeries) -> Evidence,
               windows: &dyn Fn(&HistogramSeries) -> Vec<f64>| InAll {
        quantity,
        evidence: times
            .iter()
            .map(|s| s.as_ref().map_or(Evidence::NotMeasured, evidence))
            .collect(),
        windows: times
            .iter()
            .map(|s| s.as_ref().map_or_else(Vec::new, windows))
            .collect(),
    };
    let mut rows = vec![all(
        Quantity::Mean,
        &|s| known(stats::ratio(&s.sums, &s.counts)),
        &|s| per_window(&s.sums, &s.counts),
    )];
    for percent in QUANTILES {
        let q = f64::from(percent) / 100.0;
        let mut row = all(
            Quantity::Quantile { percent },
            &|s| known(stats::quantile(&s.buckets, s.scheme, q)),
            &|s| {
                let each = s.buckets.iter();
                each.map(|w| stats::quantile_of(w, s.scheme, q).unwrap_or(f64::NAN))
                    .collect()
            },
        );
        // A quantile between few edges is a guess. Guesses of two servers differ by more than chance although nothing changed.
        for (i, c) in recordings.iter().enumerate() {
            if c.metadata.has_few_edges() {
                row.evidence[i] = Evidence::NotMeasured;
                row.windows[i].clear();
            }
        }
        rows.push(row);
    }
    rows
}

fn phases_of(all: &[&SeriesSet], times: &Times, version: &str, op: &str) -> Vec<InAll> {
    let mut splits: Vec<Option<Split>> = all
        .iter()
        .zip(times)
        .map(|(c, s)| Some(Split::of(c, s.as_ref()?, version, op)))
        .collect();
    // An agent that does not know the rare phases has not measured them.
    let knows = |c: &SeriesSet| c.numbers(&f::RPC_PHASE, |l| l[1] == "upcall").is_some();
    if all.iter().all(|c| knows(c)) && splits.iter().all(Option::is_some) {
        for (i, phase) in phase::OF_OP.iter().enumerate() {
            let seen = splits.iter().flatten().any(|s| s.seconds[i].is_some());
            if phase::RARE.contains(phase) && seen {
                splits.iter_mut().flatten().for_each(|s| s.add_rare(i));
            }
        }
    }
    let mut rows = Vec::new();
    for (i, phase) in phase::OF_OP.into_iter().enumerate() {
        let mut shares = splits.iter().flatten().filter_map(|s| s.share(i));
        if shares.any(|share| share >= MIN_PHASE_SHARE) {
            let mut row = ratios(Quantity::Phase { phase }, all, |at, _| {
                let split = splits[at].as_ref()?;
                Some((split.seconds[i].clone()?, split.counts.clone()))
            });
            for (windows, split) in row.windows.iter_mut().zip(&splits) {
                if let Some(split) = split.as_ref().filter(|_| !windows.is_empty()) {
                    *windows = split.at_their_times(windows);
                }
            }
            rows.push(row);
        }
    }
    rows
}

/// An operation's time and its phases, in the windows in which phases were measured.
struct Split {
    /// Seconds in the order of [`phase::OF_OP`]; `None` for a phase that is not measured.
    seconds: [Option<Vec<f64>>; phase::OPS],
    counts: Vec<f64>,
    sums: Vec<f64>,
    /// True for each window, of all, in which phases were measured.
    measured: Vec<bool>,
}

impl Split {
    fn of(c: &SeriesSet, times: &HistogramSeries, version: &str, op: &str) -> Split {
        let split = c.measured(&f::OP_PHASE.info);
        let of = |v: &[f64]| -> Vec<f64> {
            let both = v.iter().zip(&split).filter(|(_, split)| **split);
            both.map(|(v, _)| *v).collect()
        };
        Split {
            seconds: phase::OF_OP.map(|phase| {
                let seconds = c.numbers(&f::OP_PHASE, |l| l == [version, op, phase])?;
                Some(of(&seconds))
            }),
            counts: of(&times.counts),
            sums: of(&times.sums),
            measured: split.clone(),
        }
    }

    /// Values at all windows of the recording: NaN where phases were not measured.
    fn at_their_times(&self, values: &[f64]) -> Vec<f64> {
        let mut values = values.iter();
        let each = self.measured.iter().map(|m| match m {
            true => values.next().copied().unwrap_or(f64::NAN),
            false => f64::NAN,
        });
        each.collect()
    }

    /// Adds a rare phase, which has no series before it first occurs. A phase that occurred only in another recording is zero here.
    fn add_rare(&mut self, i: usize) {
        if self.seconds[i].is_none() && self.seconds.iter().any(Option::is_some) {
            self.seconds[i] = Some(vec![0.0; self.counts.len()]);
        }
    }

    /// Share of the time in a phase; 0 without operations.
    fn share(&self, phase: usize) -> Option<f64> {
        let seconds: f64 = self.seconds[phase].as_ref()?.iter().sum();
        let all: f64 = self.sums.iter().sum();
        Some(if all > 0.0 { seconds / all } else { 0.0 })
    }
}

/// Mean seconds of each phase per operation; `None` for a phase that is not measured.
pub(super) fn phases(c: &SeriesSet, version: &str, op: &str) -> Option<[Option<f64>; phase::OPS]> {
    let times = c.histograms(&f::OP_DURATION, |l| l == [version, op])?;
    let mean = times.mean().unwrap_or(0.0);
    let split = Split::of(c, &times, version, op);
    Some(std::array::from_fn(|i| Some(mean * split.share(i)?)))
}

/// The durations of a subject on both sides, in the same bucket scheme.
pub(super) fn durations(
    before: &SeriesSet,
    after: &SeriesSet,
    subject: &Subject,
) -> [Option<HistogramSeries>; 2] {
    let mut sides = [before, after].map(|c| durations_of(c, subject));
    if let [Some(before), Some(after)] = &mut sides {
        before.align(after);
    }
    sides
}

/// The durations of a subject.
pub(super) fn durations_of(c: &SeriesSet, subject: &Subject) -> Option<HistogramSeries> {
    match subject {
        Subject::Op { version, op } => c.histograms(&f::OP_DURATION, |l| l == [version, op]),
        Subject::Requests { version } => c.histograms(&f::RPC_DURATION, |l| l == [version]),
        Subject::Queue => c.histograms(&f::RPC_QUEUE, |_| true),
        Subject::Log { fs, volume } => c.histograms(&f::LOG_WAIT, |l| l == [fs, volume]),
        Subject::Workload { job, operation } => {
            c.histograms(&workload::DURATION, |l| l == [job, operation])
        }
        Subject::SyncWrites
        | Subject::Errors { .. }
        | Subject::Dropped { .. }
        | Subject::WorkloadErrors { .. }
        | Subject::Replays => None,
    }
}

/// Per window: requests for durability (stable WRITEs and COMMITs), the stable WRITEs among them, and all WRITEs.
struct SyncWrites {
    durable: Vec<f64>,
    stable: Vec<f64>,
    all: Vec<f64>,
}

fn sync_writes(c: &SeriesSet) -> Option<SyncWrites> {
    let all = c.numbers(&f::WRITE, |_| true)?;
    let none = || vec![0.0; all.len()];
    let stable = c.numbers(&f::WRITE, |[_, how]| how != "unstable");
    let stable = stable.unwrap_or_else(none);
    let commits = c.histograms(&f::OP_DURATION, |[_, op]| op == "commit");
    let commits = commits.map_or_else(none, |s| s.counts);
    let durable = stable.iter().zip(&commits).map(|(a, b)| a + b).collect();
    Some(SyncWrites {
        durable,
        stable,
        all,
    })
}
