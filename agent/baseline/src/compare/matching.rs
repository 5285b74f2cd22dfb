//! Pairs like with like: the same hour of the day or of the week on both sides.

use crate::compare::options::Match;
use crate::compare::sides::Sides;
use crate::series::SeriesSet;
use nfscope_stats as stats;
use nfscope_stats::Estimate;
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

    /// Name of a round.
    pub(super) fn round(self) -> &'static str {
        match self {
            Match::Hour => "day",
            Match::Weekday => "week",
        }
    }

    /// Hour of the round in which a window of this recording begins, and the number of the round since the recording began.
    fn at(self, c: &SeriesSet, begin: f64) -> (i64, i64) {
        let hour = |seconds: f64| {
            let ms = c.metadata.began_ms + (seconds * 1e3) as i64;
            ms.div_euclid(HOUR_MS)
        };
        let (first, this) = (hour(c.begins[0]), hour(begin));
        // 1970 began on a Thursday; the weekday at which rounds begin does not matter.
        let in_round = this.rem_euclid(self.hours());
        (in_round, (this - first).div_euclid(self.hours()))
    }
}

/// Reason why hours cannot be paired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unpaired {
    /// No hour is on both sides.
    NoCommonHour,
    /// An hour is zero at one time and not at the other. Zero has no logarithm, and without that hour a change might be missed.
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

/// Differences of logarithms, after less before, of every hour that both sides have; in the order of hours. An hour that a side has more
/// than once enters with its mean.
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

/// Values of one side in one hour.
#[derive(Default)]
struct Hour {
    logarithms: f64,
    n: f64,
    zeros: f64,
}

/// Values of one side in each hour.
fn hours(side: &[SeriesSet], windows: &[Vec<f64>], by: Match) -> BTreeMap<i64, Hour> {
    let mut sums: BTreeMap<i64, Hour> = BTreeMap::new();
    for (c, values) in side.iter().zip(windows) {
        for (begin, value) in c.begins.iter().zip(values) {
            let (hour, _) = by.at(c, *begin);
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

/// Part of the fullest round's hours below which a round is left out: it would leave few hours that all rounds have.
const WHOLE: f64 = 0.75;

/// Logarithms by hour of one round.
type Round = BTreeMap<i64, f64>;

/// Rounds of one side, each with most of the hours of the fullest.
fn rounds_of(side: &[SeriesSet], windows: &[Vec<f64>], by: Match) -> Vec<Round> {
    let mut all = Vec::new();
    for (c, values) in side.iter().zip(windows) {
        let mut sums: BTreeMap<i64, BTreeMap<i64, (f64, f64)>> = BTreeMap::new();
        for (begin, value) in c.begins.iter().zip(values) {
            let (hour, round) = by.at(c, *begin);
            if *value > 0.0 && value.is_finite() {
                let sum = sums.entry(round).or_default().entry(hour).or_default();
                *sum = (sum.0 + value.ln(), sum.1 + 1.0);
            }
        }
        let mean = |hours: BTreeMap<i64, (f64, f64)>| -> Round {
            hours
                .into_iter()
                .map(|(h, (sum, n))| (h, sum / n))
                .collect()
        };
        all.extend(sums.into_values().map(mean));
    }
    let fullest = all.iter().map(Round::len).max().unwrap_or(0) as f64;
    all.retain(|round| round.len() as f64 >= WHOLE * fullest);
    all
}

/// Returns true if a side has several rounds, which show how much rounds of an unchanged server differ.
pub(super) fn has_several(sides: &Sides, by: Match) -> bool {
    are_several(sides.before, by) || are_several(sides.after, by)
}

/// Returns true if recordings have several rounds.
pub(super) fn are_several(side: &[SeriesSet], by: Match) -> bool {
    let every: Vec<Vec<f64>> = side.iter().map(|c| vec![1.0; c.begins.len()]).collect();
    rounds_of(side, &every, by).len() > 1
}

/// Returns an estimate for each round of both sides: the mean over the hours that every round has. Each hour is relative to its mean over
/// all rounds, so that the wave of the day is in no estimate. `None` if too few hours are in all rounds.
pub(super) fn rounds(sides: &Sides, windows: &[Vec<f64>], by: Match) -> Option<[Vec<Estimate>; 2]> {
    let (before, rest) = windows.split_at(sides.before.len());
    let before = rounds_of(sides.before, before, by);
    let after = rounds_of(sides.after, &rest[..sides.after.len()], by);
    let all = || before.iter().chain(&after);
    let first = all().next()?;
    let common: Vec<i64> = (first.keys().copied())
        .filter(|hour| all().all(|round| round.contains_key(hour)))
        .collect();
    let n = all().count() as f64;
    let profile = |hour: &i64| all().map(|round| round[hour]).sum::<f64>() / n;
    let profile: Vec<f64> = common.iter().map(profile).collect();
    let one = |round: &Round| -> Option<Estimate> {
        let hours = common.iter().zip(&profile);
        let relative: Vec<f64> = hours.map(|(hour, of)| (round[hour] - of).exp()).collect();
        stats::ratio(&relative, &vec![1.0; relative.len()])
    };
    let side = |all: &[Round]| all.iter().map(one).collect::<Option<Vec<_>>>();
    Some([side(&before)?, side(&after)?])
}
