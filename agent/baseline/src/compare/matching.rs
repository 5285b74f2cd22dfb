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

    /// What a round is called.
    pub(super) fn round(self) -> &'static str {
        match self {
            Match::Hour => "day",
            Match::Weekday => "week",
        }
    }

    /// True if this side has hardly more than one round: how much rounds differ is not known from it.
    pub(super) fn is_one_round(self, side: &[SeriesSet]) -> bool {
        let seconds: f64 = side.iter().map(SeriesSet::seconds).sum();
        seconds < 1.5 * 3600.0 * self.hours() as f64
    }
}

/// Why hours cannot be paired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unpaired {
    /// No hour is in both sides.
    NoCommonHour,
    /// An hour is zero at one time and not at the other: a zero has no logarithm, and without that hour a change might be missed.
    Zero,
}

impl Unpaired {
    pub(super) fn why(self, by: Match) -> String {
        match self {
            Unpaired::NoCommonHour => {
                format!("no hour of the {} is in both sides", by.round())
            }
            Unpaired::Zero => {
                "zero in an hour of one side, and not in the same hour of the other".into()
            }
        }
    }
}

/// The differences of logarithms, after less before, of every hour that both sides have; in the order of hours. A side that has an
/// hour more than once enters with the mean of it.
///
/// # Errors
/// When no hour can be paired, or one that must not be left out.
pub(super) fn pairs(sides: &Sides, windows: &[Vec<f64>], by: Match) -> Result<Vec<f64>, Unpaired> {
    let (before, rest) = windows.split_at(sides.before.len());
    let before = hours(sides.before, before, by);
    let after = hours(sides.after, &rest[..sides.after.len()], by);
    let both = before
        .iter()
        .filter_map(|(hour, b)| Some((b, after.get(hour)?)));
    let both: Vec<_> = both.filter(|(b, a)| b.n + a.n > 0.0).collect();
    if both.is_empty() {
        return Err(Unpaired::NoCommonHour);
    }
    both.into_iter()
        .map(|(b, a)| match b.zeros + a.zeros == 0.0 {
            true => Ok(a.logarithms / a.n - b.logarithms / b.n),
            false => Err(Unpaired::Zero),
        })
        .collect()
}

/// What one side has of an hour.
#[derive(Default)]
struct Hour {
    logarithms: f64,
    n: f64,
    zeros: f64,
}

/// What one side has of each hour.
fn hours(side: &[SeriesSet], windows: &[Vec<f64>], by: Match) -> BTreeMap<i64, Hour> {
    let mut sums: BTreeMap<i64, Hour> = BTreeMap::new();
    for (c, values) in side.iter().zip(windows) {
        for (begin, value) in c.begins.iter().zip(values) {
            let at = c.metadata.began_ms + (begin * 1e3) as i64;
            // 1970 began on a Thursday, which is as good as any day.
            let hour = at.div_euclid(HOUR_MS).rem_euclid(by.hours());
            if *value > 0.0 && value.is_finite() {
                let sum = sums.entry(hour).or_default();
                sum.logarithms += value.ln();
                sum.n += 1.0;
            } else if *value == 0.0 {
                sums.entry(hour).or_default().zeros += 1.0;
            }
        }
    }
    sums
}
