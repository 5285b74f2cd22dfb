//! Estimates of each quantity on both sides, and what may be said of their difference.

use crate::compare::result::{Estimate, Quantity, Row, Subject, Verdict};
use crate::histogram_series::Spreads;
use crate::series::Columns;
use nfscope_model::{family as f, phase};
use nfscope_stats as stats;
use nfscope_stats::{CONFIDENCE, Interval, LEAST_WINDOWS, Measured};

/// A phase with a smaller part of an operation's time on both sides is not compared.
const LEAST_OF_OP: f64 = 0.05;

/// Every row, with its verdict.
pub(super) fn judged(
    before: &Columns,
    after: &Columns,
    subjects: &[Subject],
    least: f64,
) -> Vec<Row> {
    let mut rows: Vec<Row> = subjects
        .iter()
        .flat_map(|s| of_subject(before, after, s, least))
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

fn of_subject(before: &Columns, after: &Columns, subject: &Subject, least: f64) -> Vec<Row> {
    let sides = [before, after].map(|c| (c, spreads(c, subject)));
    let both = |quantity, of: &dyn Fn(&Columns, &Spreads) -> Side| {
        let side = |(c, times): &(&Columns, Option<Spreads>)| {
            times.as_ref().map_or(Side::NotMeasured, |s| of(c, s))
        };
        row(subject, quantity, sides.each_ref().map(side), least)
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
            let splits = sides
                .each_ref()
                .map(|(c, s)| Some(Split::of(c, s.as_ref()?, version, op)));
            for (i, phase) in phase::OF_OP.into_iter().enumerate() {
                let mut shares = splits.iter().flatten().filter_map(|s| s.share(i));
                if shares.any(|share| share >= LEAST_OF_OP) {
                    let quantity = Quantity::Phase { phase };
                    let side =
                        |s: &Option<Split>| s.as_ref().map_or(Side::NotMeasured, |s| s.side(i));
                    rows.push(row(subject, quantity, splits.each_ref().map(side), least));
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
            let both = |quantity, of: &dyn Fn(&Columns, &SyncWrites) -> Side| {
                let side = |(c, w): &(&Columns, Option<SyncWrites>)| {
                    w.as_ref().map_or(Side::NotMeasured, |w| of(c, w))
                };
                row(subject, quantity, writes.each_ref().map(side), least)
            };
            rows.push(both(Quantity::Rate, &|c, w| amount(&w.orders, &c.lengths)));
            rows.push(both(Quantity::Share, &|_, w| amount(&w.stable, &w.all)));
        }
    }
    rows.retain(|r| r.before.is_some() || r.after.is_some());
    rows
}

/// An operation's time and what of it went into each phase, in the windows in which operations were split.
struct Split {
    /// In the order of [`phase::OF_OP`]; `None` for a phase that is not told.
    seconds: [Option<Vec<f64>>; 5],
    counts: Vec<f64>,
    sums: Vec<f64>,
}

impl Split {
    fn of(c: &Columns, times: &Spreads, version: &str, op: &str) -> Split {
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

    /// A phase's part of the time; nothing where there was no operation.
    fn share(&self, phase: usize) -> Option<f64> {
        let seconds: f64 = self.seconds[phase].as_ref()?.iter().sum();
        let all: f64 = self.sums.iter().sum();
        Some(if all > 0.0 { seconds / all } else { 0.0 })
    }

    /// What is known of a phase's seconds in an operation.
    fn side(&self, phase: usize) -> Side {
        let seconds = self.seconds[phase].as_ref();
        seconds.map_or(Side::NotMeasured, |s| amount(s, &self.counts))
    }
}

/// The part of an operation's durations, in seconds of one of them, that each phase is; `None` for one that is not told.
pub(super) fn phases(c: &Columns, version: &str, op: &str) -> Option<[Option<f64>; 5]> {
    let times = c.spreads(&f::OP_DURATION, |l| l == [version, op])?;
    let mean = times.mean().unwrap_or(0.0);
    let split = Split::of(c, &times, version, op);
    Some(std::array::from_fn(|i| Some(mean * split.share(i)?)))
}

/// The durations of a subject.
pub(super) fn spreads(c: &Columns, subject: &Subject) -> Option<Spreads> {
    match subject {
        Subject::Op { version, op } => c.spreads(&f::OP_DURATION, |l| l == [version, op]),
        Subject::Requests { version } => c.spreads(&f::RPC_DURATION, |l| l == [version]),
        Subject::Queue => c.spreads(&f::RPC_QUEUE, |_| true),
        Subject::Log { fs, volume } => c.spreads(&f::LOG_WAIT, |l| l == [fs, volume]),
        Subject::SyncWrites => None,
    }
}

/// Orders to make something durable per window: WRITEs and COMMITs; the WRITEs among them; all WRITEs.
struct SyncWrites {
    orders: Vec<f64>,
    stable: Vec<f64>,
    all: Vec<f64>,
}

fn sync_writes(c: &Columns) -> Option<SyncWrites> {
    let all = c.numbers(&f::WRITE, |_| true)?;
    let none = || vec![0.0; all.len()];
    let stable = c.numbers(&f::WRITE, |[_, how]| how != "unstable");
    let stable = stable.unwrap_or_else(none);
    let commits = c.spreads(&f::OP_DURATION, |[_, op]| op == "commit");
    let commits = commits.map_or_else(none, |s| s.counts);
    let orders = stable.iter().zip(&commits).map(|(a, b)| a + b).collect();
    Some(SyncWrites {
        orders,
        stable,
        all,
    })
}

/// What is known of a quantity on one side.
enum Side {
    NotMeasured,
    /// None of it in windows enough.
    None,
    TooLittle,
    Known {
        measured: Measured,
        /// In half of the windows, at least: then it is no chance if there is none elsewhere.
        steady: bool,
    },
}

fn known(measured: Option<Measured>) -> Side {
    measured.map_or(Side::TooLittle, |measured| Side::Known {
        measured,
        steady: false,
    })
}

/// Of something that there may be none of: `y` in windows of `x`.
fn amount(y: &[f64], x: &[f64]) -> Side {
    if y.len() < LEAST_WINDOWS || x.iter().sum::<f64>() <= 0.0 {
        return Side::TooLittle;
    }
    let with = y.iter().filter(|y| **y > 0.0).count();
    match stats::ratio(y, x) {
        _ if with == 0 => Side::None,
        None => Side::TooLittle,
        Some(measured) => Side::Known {
            measured,
            steady: 2 * with >= y.len(),
        },
    }
}

impl Side {
    fn estimate(&self) -> Option<Estimate> {
        match self {
            Side::None => Some(Estimate {
                value: 0.0,
                low: 0.0,
                high: 0.0,
            }),
            Side::Known { measured, .. } => Some(estimate(measured.interval(CONFIDENCE))),
            Side::NotMeasured | Side::TooLittle => None,
        }
    }
}

fn row(subject: &Subject, quantity: Quantity, sides: [Side; 2], least: f64) -> Row {
    let mut row = Row {
        subject: subject.clone(),
        before: sides[0].estimate(),
        after: sides[1].estimate(),
        ratio: None,
        p: None,
        verdict: Verdict::NotComparable,
        why: None,
        quantity,
    };
    match &sides {
        [
            Side::Known {
                measured: before, ..
            },
            Side::Known {
                measured: after, ..
            },
        ] => {
            let change = stats::change(before, after, least);
            (row.ratio, row.p) = (Some(estimate(change.ratio)), Some(change.p));
        }
        [Side::None, Side::None] => row.verdict = Verdict::NoEvidence,
        [Side::Known { steady: true, .. }, Side::None] => row.verdict = fell(&row.quantity),
        [Side::None, Side::Known { steady: true, .. }] => row.verdict = rose(&row.quantity),
        [Side::NotMeasured, _] => row.why = Some("not measured before".into()),
        [_, Side::NotMeasured] => row.why = Some("not measured after".into()),
        [Side::TooLittle, _] => row.why = Some(too_little("before")),
        [_, Side::TooLittle] => row.why = Some(too_little("after")),
        _ => row.why = Some("too seldom to tell whether there is none of it on one side".into()),
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
        "none or too little of it {side}: it takes {LEAST_WINDOWS} windows, and ten values beyond a quantile"
    )
}

fn estimate(i: Interval) -> Estimate {
    Estimate {
        value: i.value,
        low: i.low,
        high: i.high,
    }
}
