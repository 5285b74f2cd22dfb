//! The mean of independent runs and its confidence interval.

use crate::autocorrelation::{are_alike, lag_one};
use crate::batch_means::error_of_sum;
use crate::interval::{CONFIDENCE, students_t};
use serde::Serialize;

/// Autocorrelation above which consecutive repetitions do not count as independent.
pub const CORRELATED: f64 = 0.3;
/// Least number of repetitions, from which the autocorrelation can be estimated.
const MIN_REPETITIONS: usize = 10;

/// A mean and half the width of its 95 % confidence interval; unknown for one value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Mean of the runs.
    pub mean: f64,
    /// Half the width of the interval.
    pub half_width: Option<f64>,
}

impl Interval {
    /// Interval by Student's t, for independent runs; `None` without a run.
    pub fn of(values: &[f64]) -> Option<Interval> {
        let n = values.len() as f64;
        if values.is_empty() {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        let half_width =
            (n > 1.0).then(|| students_t(CONFIDENCE, n - 1.0) * (squares / (n - 1.0) / n).sqrt());
        Some(Interval { mean, half_width })
    }

    /// Interval of the mean of rounds in order of time. If neighbours are more alike than those of 99 in 100 independent series, the error
    /// is that of batch means, as in [`paired_rounds`](crate::paired_rounds).
    pub fn of_rounds(values: &[f64]) -> Option<Interval> {
        let own = Interval::of(values)?;
        if !are_alike(values) {
            return Some(own);
        }
        let deviations: Vec<f64> = values.iter().map(|v| v - own.mean).collect();
        let sum = error_of_sum(&deviations);
        let half_width = students_t(CONFIDENCE, sum.dof) * sum.error / values.len() as f64;
        Some(Interval {
            half_width: Some(half_width),
            ..own
        })
    }

    /// Half the width, relative to the mean; unknown if the mean is zero.
    pub fn relative(&self) -> Option<f64> {
        let part = self.half_width? / self.mean;
        part.is_finite().then_some(part)
    }
}

/// The autocorrelation of consecutive runs at lag 1; `None` for fewer than ten runs, or if all are equal.
pub fn autocorrelation(values: &[f64]) -> Option<f64> {
    lag_one(values).filter(|_| values.len() >= MIN_REPETITIONS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::SmallRng;
    use rand_distr::{Distribution, StandardNormal};

    #[test]
    fn students_t_by_the_book() {
        // t(0.975, 4) = 2.776; the standard deviation of 1..5 is 1.5811.
        let i = Interval::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!(i.mean, 3.0);
        assert!((i.half_width.unwrap() - 2.776 * 1.5811 / 5f64.sqrt()).abs() < 1e-3);
        assert!((i.relative().unwrap() - 1.963 / 3.0).abs() < 1e-3);
        assert_eq!(Interval::of(&[2.0, 2.0]).unwrap().half_width, Some(0.0));
    }

    #[test]
    fn one_run_has_no_interval_and_none_no_mean() {
        let one = Interval::of(&[7.0]).unwrap();
        assert_eq!((one.mean, one.half_width), (7.0, None));
        assert_eq!(Interval::of(&[]), None);
        assert_eq!(Interval::of(&[0.0, 0.0]).unwrap().relative(), None);
    }

    /// Rounds with a mean of 0 that follow a wave with this correlation.
    fn wave(n: usize, r: f64, random: &mut SmallRng) -> Vec<f64> {
        let mut last: f64 = StandardNormal.sample(random);
        let next = || {
            let own: f64 = StandardNormal.sample(random);
            last = r * last + (1.0 - r * r).sqrt() * own;
            last
        };
        std::iter::repeat_with(next).take(n).collect()
    }

    /// Intervals of 60 rounds that resemble their neighbours hold more often than those of Student's t, which take each for independent.
    #[test]
    fn rounds_that_resemble_each_other_have_wider_intervals() {
        let mut random = SmallRng::seed_from_u64(71);
        let held = |i: Interval| usize::from(i.mean.abs() <= i.half_width.unwrap());
        let (mut rounds, mut independent) = (0, 0);
        for _ in 0..1000 {
            let values = wave(60, 0.6, &mut random);
            let (own, alone) = (
                Interval::of_rounds(&values).unwrap(),
                Interval::of(&values).unwrap(),
            );
            assert_eq!(own.mean, alone.mean);
            rounds += held(own);
            independent += held(alone);
        }
        println!("of 1000 intervals {rounds} hold by rounds and {independent} by Student's t");
        assert!(
            rounds >= 850 && independent <= 720,
            "{rounds} {independent}"
        );
    }

    /// Rounds that do not resemble each other have the interval of Student's t, but for one of a hundred.
    #[test]
    fn independent_rounds_have_the_interval_of_students_t() {
        let mut random = SmallRng::seed_from_u64(72);
        let same = (0..1000).filter(|_| {
            let values = wave(60, 0.0, &mut random);
            Interval::of_rounds(&values) == Interval::of(&values)
        });
        let same = same.count();
        assert!(same >= 980, "{same}");
        let slow: Vec<f64> = (0..24).map(|i| f64::from(i % 12 / 6)).collect();
        let [rounds, alone] = [Interval::of_rounds(&slow), Interval::of(&slow)];
        let width = |i: Option<Interval>| i.unwrap().half_width.unwrap();
        assert!(width(rounds) > 1.5 * width(alone));
    }

    #[test]
    fn a_trend_is_correlated_and_alternation_is_not() {
        let trend: Vec<f64> = (0..10).map(f64::from).collect();
        assert!(autocorrelation(&trend).unwrap() > CORRELATED);
        let saw: Vec<f64> = (0..10).map(|i| f64::from(i % 2)).collect();
        assert!(autocorrelation(&saw).unwrap() < -0.8);
        assert_eq!(autocorrelation(&trend[..9]), None);
        assert_eq!(autocorrelation(&[1.0; 10]), None);
    }
}
