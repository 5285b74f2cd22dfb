//! Several recordings on each side of a comparison: the recording is the unit.
//!
//! Windows show how much a recording varies within itself. They do not show how much two recordings of an unchanged server differ:
//! placement on disks, caches and clients differ from run to run. Only several recordings show that (T. Kalibera and R. Jones, Rigorous
//! benchmarking in reasonable time, ISMM 2013).

use crate::autocorrelation::are_alike;
use crate::batch_means::error_of_sum;
use crate::change::{Change, MIN_P};
use crate::estimate::Estimate;
use crate::interval::{CONFIDENCE, Interval, beyond, students_t};

/// Least number of pairs whose variation is estimated. An interval of six pairs is a third wider than its standard error would make it. An
/// interval of three pairs is more than twice as wide.
pub const MIN_PAIRS: usize = 6;

/// Comparison of one quantity by several recordings on each side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Replicated {
    /// Geometric mean of the recordings before, with its 95 % interval.
    pub before: Interval,
    /// Geometric mean of the recordings after.
    pub after: Interval,
    /// Change from before to after.
    pub change: Change,
    /// Variance of the logarithm within recordings, at their length; longer recordings reduce it.
    pub within: f64,
    /// Variance of the logarithm between recordings beyond that; only more recordings reduce it. 0 if none is seen.
    pub between: f64,
}

impl Replicated {
    /// Recordings on each side that find a change by this factor with this power, in a two-sided test at this level. `None` where a
    /// histogram bucket hides such a change, or no reasonable number finds it.
    pub fn recordings_to_find(
        &self,
        factor: f64,
        min_effect: f64,
        level: f64,
        power: f64,
    ) -> Option<f64> {
        let effect = (factor / (1.0 + min_effect)).ln() - self.change.hidden;
        if effect <= 0.0 {
            return None;
        }
        let variance = self.within + self.between;
        // The number decreases with the degrees of freedom, which increase with the number: hence the loop.
        let mut n = 2.0f64;
        while n < 1000.0 {
            let dof = 2.0 * n - 2.0;
            let quantiles = students_t(1.0 - level, dof) + students_t(2.0 * power - 1.0, dof);
            if 2.0 * variance * (quantiles / effect).powi(2) <= n {
                return Some(n);
            }
            n += 1.0;
        }
        None
    }
}

/// Compares the recordings of two sides: Student's t on logarithms, with the variance of all groups pooled. `earlier` are groups of
/// recordings that are not compared and differ by nothing within each group; they only contribute to the variance. `beside` is the
/// uncertainty of the ratio by histogram buckets beyond that of the estimates. `None` if no group has two recordings, or if a side has
/// none.
pub fn replicated(
    before: &[Estimate],
    after: &[Estimate],
    earlier: &[Vec<Estimate>],
    beside: f64,
    min_effect: f64,
) -> Option<Replicated> {
    let groups = [before, after]
        .into_iter()
        .chain(earlier.iter().map(Vec::as_slice));
    let (mut squares, mut dof, mut within, mut all) = (0.0, 0.0, 0.0, 0.0f64);
    for group in groups {
        let (_, square) = mean_and_square(group);
        squares += square;
        dof += (group.len() as f64 - 1.0).max(0.0);
        within += group.iter().map(|e| e.log_error().powi(2)).sum::<f64>();
        all += group.len() as f64;
    }
    if dof < 1.0 || before.is_empty() || after.is_empty() {
        return None;
    }
    let within = within / all;
    // Recordings that agree better than their windows allow do so by chance.
    let variance = (squares / dof).max(within);
    let side = |group: &[Estimate]| {
        let (mean, _) = mean_and_square(group);
        let hidden = hidden(group);
        let half = students_t(CONFIDENCE, dof) * (variance / group.len() as f64).sqrt() + hidden;
        Interval {
            value: mean.exp(),
            low: (mean - half).exp(),
            high: (mean + half).exp(),
        }
    };
    let (b, _) = mean_and_square(before);
    let (a, _) = mean_and_square(after);
    let error = (variance / before.len() as f64 + variance / after.len() as f64).sqrt();
    let hidden = hidden(before) + hidden(after) + beside;
    Some(Replicated {
        before: side(before),
        after: side(after),
        change: of_mean(a - b, error, dof, hidden, min_effect),
        within,
        between: (squares / dof - within).max(0.0),
    })
}

/// The mean of the logarithms, and the sum of their squared deviations from it.
fn mean_and_square(group: &[Estimate]) -> (f64, f64) {
    let n = (group.len() as f64).max(1.0);
    let mean = group.iter().map(|e| e.value.ln()).sum::<f64>() / n;
    let square = group.iter().map(|e| (e.value.ln() - mean).powi(2)).sum();
    (mean, square)
}

/// Largest uncertainty by buckets in a group. It is the same in every recording, so more recordings do not average it out.
fn hidden(group: &[Estimate]) -> f64 {
    group.iter().map(Estimate::hidden).fold(0.0, f64::max)
}

/// Compares pairs: the differences of logarithms, after less before, in order of time. Also returns the number of independent pairs with
/// the same precision. `None` for very few pairs.
///
/// Neighbouring pairs may be correlated, and only the series itself shows how much. Their error is therefore that of batch means. Pairs in
/// random order need no such caution: see [`paired_rounds`].
pub fn paired(differences: &[f64], hidden: f64, min_effect: f64) -> Option<(Change, f64)> {
    let n = differences.len() as f64;
    if differences.len() < MIN_PAIRS {
        return None;
    }
    let mean = differences.iter().sum::<f64>() / n;
    let deviations: Vec<f64> = differences.iter().map(|d| d - mean).collect();
    let sum = error_of_sum(&deviations);
    let change = of_mean(mean, sum.error / n, sum.dof, hidden, min_effect);
    Some((change, sum.stretches))
}

/// Compares two treatments that were measured once in each round, in random order: Student's paired t on the differences of
/// logarithms. `None` for fewer than [`MIN_PAIRS`] rounds.
///
/// Disturbances that both treatments of a round share cancel. The random order gives a random sign to those in which blocks differ: drift,
/// place in the round, noise that lasts for several blocks. Each round is therefore an observation (R. A. Fisher, The Design of
/// Experiments, 1935, chapter 3). Only a disturbance that follows one treatment from round to round makes differences of neighbours alike.
/// If these are more alike than those of 99 in 100 independent series, the error is that of [`paired`].
pub fn paired_rounds(differences: &[f64], min_effect: f64) -> Option<Change> {
    let n = differences.len() as f64;
    if differences.len() < MIN_PAIRS {
        return None;
    }
    if are_alike(differences) {
        return paired(differences, 0.0, min_effect).map(|(change, _)| change);
    }
    let mean = differences.iter().sum::<f64>() / n;
    let squares: f64 = differences.iter().map(|d| (d - mean).powi(2)).sum();
    let dof = n - 1.0;
    let error = (squares / dof / n).sqrt();
    Some(of_mean(mean, error, dof, 0.0, min_effect))
}

/// Change from a mean of differences of logarithms, or a difference of means of logarithms, with its standard error.
fn of_mean(mean: f64, error: f64, dof: f64, hidden: f64, min_effect: f64) -> Change {
    let half = students_t(CONFIDENCE, dof) * error + hidden;
    let excess = mean.abs() - min_effect.ln_1p() - hidden;
    let p = match excess > 0.0 {
        true => beyond(excess / error, dof).max(MIN_P),
        false => 1.0,
    };
    Change {
        ratio: Interval {
            value: mean.exp(),
            low: (mean - half).exp(),
            high: (mean + half).exp(),
        },
        p,
        error,
        dof,
        hidden,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fisher's example of the paired test: heights of Darwin's fifteen pairs of maize plants, crossed less self-fertilised, in eighths
    /// of an inch (The Design of Experiments, 1935, section 17). He gives a mean of 20.933, t = 2.148 and, in section 21, a chance of
    /// 0.0497 on either side taken together.
    #[test]
    fn the_paired_interval_is_fishers() {
        let eighths = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48];
        let d: Vec<f64> = eighths.map(f64::from).to_vec();
        let change = paired_rounds(&d, 0.0).unwrap();
        let [mean, low, high] =
            [change.ratio.value, change.ratio.low, change.ratio.high].map(f64::ln);
        assert!((mean - 314.0 / 15.0).abs() < 1e-9, "{mean}");
        assert!((mean / change.error - 2.148).abs() < 5e-4, "{change:?}");
        assert_eq!(change.dof, 14.0);
        assert!((change.p - 0.0497).abs() < 5e-5, "{change:?}");
        // t(0.975, 14) = 2.1448, W. S. Gosset's table.
        let half = 2.1448 * mean / 2.148;
        assert!((low - (mean - half)).abs() < 0.02 && (high - (mean + half)).abs() < 0.02);
    }

    #[test]
    fn five_rounds_have_no_interval() {
        assert_eq!(paired_rounds(&[0.1, 0.2, 0.1, 0.2, 0.1], 0.02), None);
        assert!(paired_rounds(&[0.1, 0.2, 0.1, 0.2, 0.1, 0.2], 0.02).is_some());
    }
}
