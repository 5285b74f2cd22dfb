//! Estimates of each quantity on both sides, and tests whether they differ.

use crate::compare::result::{Quantity, Row, Subject, Verdict};
use crate::histogram_series::HistogramSeries;
use crate::series::SeriesSet;
use nfscope_model::{family as f, phase};
use nfscope_stats as stats;
use nfscope_stats::{CONFIDENCE, Estimate, Interval, MIN_WINDOWS};

/// A phase with a smaller share of an operation's time on both sides is not compared.
const MIN_PHASE_SHARE: f64 = 0.05;

/// All rows with their verdicts, p values corrected for multiple comparisons.
pub(super) fn rows(
    before: &SeriesSet,
    after: &SeriesSet,
    subjects: &[Subject],
    min_effect: f64,
) -> Vec<Row> {
    let mut rows: Vec<Row> = subjects
        .iter()
        .flat_map(|s| of_subject(before, after, s, min_effect))
        .collect();
    let tested: Vec<usize> = (0..rows.len()).filter(|i| rows[*i].p.is_some()).collect();
    let p: Vec<f64> = tested.iter().filter_map(|i| rows[*i].p).collect();
    for (i, p) in tested.into_iter().zip(stats::holm(&p)) {
        let row = &mut rows[i];
        row.p = Some(p);
        row.verdict = verdict(row, p);
    }
    rows
}

fn verdict(row: &Row, p: f64) -> Verdict {
    let Some(ratio) = row.ratio.filter(|_| p <= 1.0 - CONFIDENCE) else {
        return Verdict::NoEvidence;
    };
    if ratio.value < 1.0 {
        fell(&row.quantity)
    } else {
        rose(&row.quantity)
    }
}

const QUANTILES: [u8; 3] = [50, 90, 99];

fn of_subject(
    before: &SeriesSet,
    after: &SeriesSet,
    subject: &Subject,
    min_effect: f64,
) -> Vec<Row> {
    let [of_before, of_after] = durations(before, after, subject);
    let sides = [(before, of_before), (after, of_after)];
    let both = |quantity, of: &dyn Fn(&SeriesSet, &HistogramSeries) -> Evidence| {
        let side = |(c, times): &(&SeriesSet, Option<HistogramSeries>)| {
            times.as_ref().map_or(Evidence::NotMeasured, |s| of(c, s))
        };
        row(subject, quantity, sides.each_ref().map(side), min_effect)
    };
    let rate = || both(Quantity::Rate, &|c, s| amount(&s.counts, &c.lengths));
    let latency = || {
        let mean = both(Quantity::Mean, &|_, s| {
            known(stats::ratio(&s.sums, &s.counts))
        });
        let quantile = |percent| {
            both(Quantity::Quantile { percent }, &|_, s| {
                let q = f64::from(percent) / 100.0;
                known(stats::quantile(&s.buckets, s.scheme, q))
            })
        };
        [mean].into_iter().chain(QUANTILES.map(quantile))
    };
    let mut rows = Vec::new();
    match subject {
        Subject::Op { version, op } => {
            rows.push(rate());
            rows.extend(latency());
            let mut splits = sides
                .each_ref()
                .map(|(c, s)| Some(Split::of(c, s.as_ref()?, version, op)));
            // An agent that does not know the rare ones has not measured them.
            let knows = |c: &SeriesSet| c.numbers(&f::RPC_PHASE, |l| l[1] == "upcall").is_some();
            if let ([Some(before), Some(after)], [true, true]) =
                (&mut splits, sides.each_ref().map(|(c, _)| knows(c)))
            {
                before.add_rare_of(after);
                after.add_rare_of(before);
            }
            for (i, phase) in phase::OF_OP.into_iter().enumerate() {
                let mut shares = splits.iter().flatten().filter_map(|s| s.share(i));
                if shares.any(|share| share >= MIN_PHASE_SHARE) {
                    let quantity = Quantity::Phase { phase };
                    let side =
                        |s: &Option<Split>| s.as_ref().map_or(Evidence::NotMeasured, |s| s.side(i));
                    rows.push(row(
                        subject,
                        quantity,
                        splits.each_ref().map(side),
                        min_effect,
                    ));
                }
            }
        }
        Subject::Log { .. } => {
            rows.push(rate());
            rows.extend(latency());
        }
        Subject::Requests { .. } | Subject::Queue => rows.extend(latency()),
        Subject::SyncWrites => {
            let writes = [before, after].map(|c| (c, sync_writes(c)));
            let both = |quantity, of: &dyn Fn(&SeriesSet, &SyncWrites) -> Evidence| {
                let side = |(c, w): &(&SeriesSet, Option<SyncWrites>)| {
                    w.as_ref().map_or(Evidence::NotMeasured, |w| of(c, w))
                };
                row(subject, quantity, writes.each_ref().map(side), min_effect)
            };
            rows.push(both(Quantity::Rate, &|c, w| amount(&w.durable, &c.lengths)));
            rows.push(both(Quantity::Share, &|_, w| amount(&w.stable, &w.all)));
        }
    }
    rows.retain(|r| r.before.is_some() || r.after.is_some());
    rows
}

/// An operation's time and its phases, in the windows in which phases were measured.
struct Split {
    /// In the order of [`phase::OF_OP`]; `None` for a phase that is not measured.
    seconds: [Option<Vec<f64>>; phase::OPS],
    counts: Vec<f64>,
    sums: Vec<f64>,
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
        }
    }

    /// A rare phase has no series before it first occurs. What occurred on the other side alone did not occur here.
    fn add_rare_of(&mut self, other: &Split) {
        for (i, phase) in phase::OF_OP.iter().enumerate() {
            let rare = phase::RARE.contains(phase) && self.seconds.iter().any(Option::is_some);
            if rare && self.seconds[i].is_none() && other.seconds[i].is_some() {
                self.seconds[i] = Some(vec![0.0; self.counts.len()]);
            }
        }
    }

    /// The share of the time in a phase; 0 without operations.
    fn share(&self, phase: usize) -> Option<f64> {
        let seconds: f64 = self.seconds[phase].as_ref()?.iter().sum();
        let all: f64 = self.sums.iter().sum();
        Some(if all > 0.0 { seconds / all } else { 0.0 })
    }

    /// The evidence about the seconds of a phase per operation.
    fn side(&self, phase: usize) -> Evidence {
        let seconds = self.seconds[phase].as_ref();
        seconds.map_or(Evidence::NotMeasured, |s| amount(s, &self.counts))
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
        Subject::SyncWrites => None,
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

/// What one recording says about a quantity.
enum Evidence {
    NotMeasured,
    /// Measured in enough windows, and zero in all of them.
    None,
    TooLittle,
    Known {
        estimate: Estimate,
        /// Present in at least half of the windows. Its absence on the other side is then not random.
        steady: bool,
    },
}

fn known(estimate: Option<Estimate>) -> Evidence {
    estimate.map_or(Evidence::TooLittle, |estimate| Evidence::Known {
        estimate,
        steady: false,
    })
}

/// Evidence about the ratio of `y` to `x`, where `y` may be zero.
fn amount(y: &[f64], x: &[f64]) -> Evidence {
    if y.len() < MIN_WINDOWS || x.iter().sum::<f64>() <= 0.0 {
        return Evidence::TooLittle;
    }
    let with = y.iter().filter(|y| **y > 0.0).count();
    match stats::ratio(y, x) {
        _ if with == 0 => Evidence::None,
        None => Evidence::TooLittle,
        Some(estimate) => Evidence::Known {
            estimate,
            steady: 2 * with >= y.len(),
        },
    }
}

impl Evidence {
    fn interval(&self) -> Option<Interval> {
        match self {
            Evidence::None => Some(Interval {
                value: 0.0,
                low: 0.0,
                high: 0.0,
            }),
            Evidence::Known { estimate, .. } => Some(estimate.interval(CONFIDENCE)),
            Evidence::NotMeasured | Evidence::TooLittle => None,
        }
    }
}

fn row(subject: &Subject, quantity: Quantity, sides: [Evidence; 2], min_effect: f64) -> Row {
    let mut row = Row {
        subject: subject.clone(),
        before: sides[0].interval(),
        after: sides[1].interval(),
        ratio: None,
        p: None,
        verdict: Verdict::NotComparable,
        why: None,
        quantity,
    };
    match &sides {
        [
            Evidence::Known {
                estimate: before, ..
            },
            Evidence::Known {
                estimate: after, ..
            },
        ] => {
            let change = stats::change(before, after, min_effect);
            (row.ratio, row.p) = (Some(change.ratio), Some(change.p));
        }
        [Evidence::None, Evidence::None] => row.verdict = Verdict::NoEvidence,
        [Evidence::Known { steady: true, .. }, Evidence::None] => row.verdict = fell(&row.quantity),
        [Evidence::None, Evidence::Known { steady: true, .. }] => row.verdict = rose(&row.quantity),
        [Evidence::NotMeasured, _] => row.why = Some("not measured before".into()),
        [_, Evidence::NotMeasured] => row.why = Some("not measured after".into()),
        [Evidence::TooLittle, _] => row.why = Some(too_little("before")),
        [_, Evidence::TooLittle] => row.why = Some(too_little("after")),
        _ => row.why = Some("absent on one side, and too rare on the other to tell".into()),
    }
    row
}

fn fell(quantity: &Quantity) -> Verdict {
    match quantity {
        Quantity::Rate | Quantity::Share => Verdict::Less,
        _ => Verdict::Better,
    }
}

fn rose(quantity: &Quantity) -> Verdict {
    match quantity {
        Quantity::Rate | Quantity::Share => Verdict::More,
        _ => Verdict::Worse,
    }
}

fn too_little(side: &str) -> String {
    format!(
        "too few values {side}: at least {MIN_WINDOWS} windows are needed, and ten values beyond a quantile"
    )
}
