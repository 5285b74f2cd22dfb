//! What is drawn: the numbers behind each drawing.

use crate::compare::hypothesis::{phases, spreads};
use crate::compare::labels as words;
use crate::compare::result::{Bars, Course, Curve, Subject};
use crate::series::Columns;
use nfscope_model::{Histogram, family as f};

/// More drawings of a kind would not be looked at.
const MOST: usize = 4;

/// Distributions of the operations and logs with the most time.
pub(super) fn curves(before: &Columns, after: &Columns, subjects: &[Subject]) -> Vec<Curve> {
    let log = subjects.iter().find(|s| matches!(s, Subject::Log { .. }));
    let mut curves = Vec::new();
    for subject in ops(subjects).take(MOST).chain(log) {
        let sides = [before, after].map(|c| spreads(c, subject));
        let Some(scheme) = sides.iter().flatten().map(|s| s.scheme).next() else {
            continue;
        };
        let [b, a] = sides.map(|s| {
            let all = s.map_or_else(|| Histogram::new(scheme), |s| s.total());
            all.counts.iter().map(|n| *n as f64).collect()
        });
        curves.push(Curve {
            title: words::subject(subject),
            edges: (0..scheme.len).map(|i| scheme.upper(i)).collect(),
            before: b,
            after: a,
        });
    }
    curves
}

/// Phases of the operations with the most time.
pub(super) fn bars(before: &Columns, after: &Columns, subjects: &[Subject]) -> Vec<Bars> {
    let of = |c, version: &str, op: &str| phases(c, version, op).unwrap_or_default();
    ops(subjects)
        .take(MOST)
        .filter_map(|s| {
            let Subject::Op { version, op } = s else {
                return None;
            };
            Some(Bars {
                title: words::subject(s),
                before: of(before, version, op),
                after: of(after, version, op),
            })
        })
        .collect()
}

/// All operations a second, and the mean latency of the operations with the most time.
pub(super) fn courses(before: &Columns, after: &Columns, subjects: &[Subject]) -> Vec<Course> {
    let rate = |c: &Columns| {
        let all = c.spreads(&f::OP_DURATION, |_| true);
        let all = all.map_or_else(Vec::new, |s| s.counts);
        over_time(c, &all, &c.lengths)
    };
    let mut courses = vec![Course {
        title: "Operations a second".into(),
        latency: false,
        before: rate(before),
        after: rate(after),
    }];
    for subject in ops(subjects).take(2) {
        let of = |c: &Columns| {
            let s = spreads(c, subject);
            s.map_or_else(Vec::new, |s| over_time(c, &s.sums, &s.counts))
        };
        courses.push(Course {
            title: format!("{}, mean", words::subject(subject)),
            latency: true,
            before: of(before),
            after: of(after),
        });
    }
    courses.retain(|c| !c.before.is_empty() || !c.after.is_empty());
    courses
}

/// One point per window, and one without a value where windows are missing.
fn over_time(c: &Columns, y: &[f64], x: &[f64]) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    let mut end = f64::INFINITY;
    for (((y, x), begin), length) in y.iter().zip(x).zip(&c.begins).zip(&c.lengths) {
        if *begin > end + length {
            points.push((end, f64::NAN));
        }
        // No operation has no latency.
        let value = if *x > 0.0 { y / x } else { f64::NAN };
        points.push((*begin, value));
        end = begin + length;
    }
    points
}

fn ops(subjects: &[Subject]) -> impl Iterator<Item = &Subject> {
    subjects.iter().filter(|s| matches!(s, Subject::Op { .. }))
}
