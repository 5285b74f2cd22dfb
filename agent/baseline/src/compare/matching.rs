//! Pairs like with like: the same hour of the day or of the week on both sides.

use crate::compare::options::Match;
use crate::compare::sides::Sides;
use crate::series::SeriesSet;
use std::collections::BTreeMap;

const HOUR_MS: i64 = 3_600_000;

impl Match {
    /// Hours in one round.
    fn hours(self) -> i64 {
        match self {
            Match::Hour => 24,
            Match::Weekday => 7 * 24,
        }
    }
}

/// The differences of logarithms, after less before, of every hour that both sides have; in the order of hours. A side that has an
/// hour more than once enters with the mean of it.
pub(super) fn pairs(sides: &Sides, windows: &[Vec<f64>], by: Match) -> Vec<f64> {
    let (before, rest) = windows.split_at(sides.before.len());
    let before = hours(sides.before, before, by);
    let after = hours(sides.after, &rest[..sides.after.len()], by);
    let both = before.iter().filter_map(|(hour, b)| {
        let a = after.get(hour)?;
        Some(a - b)
    });
    both.collect()
}

/// The mean logarithm of each hour.
fn hours(side: &[SeriesSet], windows: &[Vec<f64>], by: Match) -> BTreeMap<i64, f64> {
    let mut sums: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
    for (c, values) in side.iter().zip(windows) {
        for (begin, value) in c.begins.iter().zip(values) {
            let at = c.metadata.began_ms + (begin * 1e3) as i64;
            // 1970 began on a Thursday, which is as good as any day.
            let hour = at.div_euclid(HOUR_MS).rem_euclid(by.hours());
            if *value > 0.0 && value.is_finite() {
                let sum = sums.entry(hour).or_default();
                *sum = (sum.0 + value.ln(), sum.1 + 1.0);
            }
        }
    }
    sums.into_iter()
        .map(|(hour, (sum, n))| (hour, sum / n))
        .collect()
}
