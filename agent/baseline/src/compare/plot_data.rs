//! The data of each plot.

use crate::changes;
use crate::compare::evidence::Evidence;
use crate::compare::labels;
use crate::compare::quantities;
use crate::compare::quantities::{durations, durations_of, phases};
use crate::compare::result::{Bars, Curve, Dots, Row, Subject, TimeSeries};
use crate::compare::sides::Sides;
use crate::series::SeriesSet;
use crate::workload;
use nfscope_model::{Histogram, family as f};
use nfscope_stats::Interval;

/// Most plots of a kind; readers skip more.
const MOST: usize = 4;

/// Latency distributions of the operations and the intent log with the most time.
pub(super) fn curves(before: &SeriesSet, after: &SeriesSet, subjects: &[Subject]) -> Vec<Curve> {
    let log = subjects.iter().find(|s| matches!(s, Subject::Log { .. }));
    let mut curves = Vec::new();
    for subject in ops(subjects).take(MOST).chain(log) {
        let sides = durations(before, after, subject);
        // Whole buckets are used, so that all are equally wide on a logarithmic axis.
        let mut schemes = sides.iter().flatten().map(|s| s.scheme.undivided());
        let Some(scheme) = schemes.next() else {
            continue;
        };
        let marks = [0, 1].map(|side| {
            let few = [before, after][side].metadata.has_few_edges();
            let s = sides[side].as_ref().filter(|_| !few)?;
            let of = |q| Some(nfscope_stats::quantile(&s.buckets, s.scheme, q)?.value);
            Some([of(0.5)?, of(0.99)?])
        });
        let [b, a] = sides.map(|s| {
            let all = s.map_or_else(|| Histogram::new(scheme), |s| s.total().undivided());
            all.counts.iter().map(|n| *n as f64).collect()
        });
        curves.push(Curve {
            title: labels::subject(subject),
            edges: (0..scheme.len).map(|i| scheme.upper(i)).collect(),
            before: b,
            after: a,
            marks,
        });
    }
    curves
}

/// Quantity of a row in each recording of both sides.
pub(super) fn dots(sides: &Sides, row: &Row) -> Dots {
    let all = sides.before.iter().chain(sides.after).collect::<Vec<_>>();
    let of = quantities::of(&all, &row.subject);
    let one = of.into_iter().find(|of| of.quantity == row.quantity);
    let each: Vec<Option<Interval>> = match one {
        Some(of) => of.evidence.iter().map(Evidence::interval).collect(),
        None => vec![None; all.len()],
    };
    let (before, after) = each.split_at(sides.before.len());
    Dots {
        title: labels::named(row),
        quantity: row.quantity.clone(),
        values: [before.to_vec(), after.to_vec()],
    }
}

/// Phases of the operations with the most time.
pub(super) fn bars(before: &SeriesSet, after: &SeriesSet, subjects: &[Subject]) -> Vec<Bars> {
    let of = |c, version: &str, op: &str| phases(c, version, op).unwrap_or_default();
    let phased = subjects.iter().filter_map(|s| {
        let Subject::Op { version, op } = s else {
            return None;
        };
        Some(Bars {
            title: labels::subject(s),
            before: of(before, version, op),
            after: of(after, version, op),
        })
    });
    phased.take(MOST).collect()
}

/// The rate of all operations, and the mean latency of the operations with the most time.
pub(super) fn time_series(
    before: &SeriesSet,
    after: &SeriesSet,
    subjects: &[Subject],
) -> Vec<TimeSeries> {
    let rate = |c: &SeriesSet| {
        let all = c.histograms(&f::OP_DURATION, |_| true);
        let all = all.map_or_else(Vec::new, |s| s.counts);
        over_time(c, &all, &c.lengths)
    };
    let mut time_series = vec![TimeSeries {
        title: "Operations per second".into(),
        what: "operations per second".into(),
        latency: false,
        before: rate(before),
        after: rate(after),
        changes: Default::default(),
    }];
    for subject in ops(subjects).take(2) {
        let of = |c: &SeriesSet| {
            let s = durations_of(c, subject);
            s.map_or_else(Vec::new, |s| over_time(c, &s.sums, &s.counts))
        };
        time_series.push(TimeSeries {
            title: format!("{}, mean", labels::subject(subject)),
            what: match subject {
                Subject::Op { op, .. } => format!("{op} mean"),
                Subject::Workload { job, operation } => {
                    format!("{} mean", workload::label(job, operation))
                }
                _ => String::new(),
            },
            latency: true,
            before: of(before),
            after: of(after),
            changes: Default::default(),
        });
    }
    time_series.retain(|c| !c.before.is_empty() || !c.after.is_empty());
    time_series
}

/// Finds when the drawn quantities changed during each recording.
pub fn mark_changes(all: &mut [TimeSeries], before: &SeriesSet, after: &SeriesSet) {
    for (side, c) in [before, after].into_iter().enumerate() {
        let found = changes::changes(c).changes;
        for drawn in all.iter_mut() {
            let of = found.iter().filter(|f| f.what == drawn.what);
            let at = of.map(|f| (f.at_ms - c.metadata.began_ms) as f64 / 1e3);
            drawn.changes[side] = at.collect();
        }
    }
}

/// Points of a line, one per window; if windows are missing, one point without a value.
fn over_time(c: &SeriesSet, y: &[f64], x: &[f64]) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    let mut end = f64::INFINITY;
    for (((y, x), begin), length) in y.iter().zip(x).zip(&c.begins).zip(&c.lengths) {
        if *begin > end + length {
            points.push((end, f64::NAN));
        }
        // A window without operations has no latency.
        let value = if *x > 0.0 { y / x } else { f64::NAN };
        points.push((*begin, value));
        end = begin + length;
    }
    points
}

fn ops(subjects: &[Subject]) -> impl Iterator<Item = &Subject> {
    let timed = |s: &&Subject| matches!(s, Subject::Op { .. } | Subject::Workload { .. });
    subjects.iter().filter(timed)
}
