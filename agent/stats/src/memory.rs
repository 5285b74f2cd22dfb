//! Memory of a series: windows that are far apart resemble each other.
//!
//! An interval of a series rests on parts of it that are independent of each other. In a series with long memory there are none: the longer
//! its parts are, the longer are the waves that they have in common (J. Beran, Statistics for Long-Memory Processes, 1994). A series that
//! keeps one level for a while and then another looks the same.

use crate::autocorrelation::bias_corrected;

/// Upper limit of the estimated correlation of neighbours.
const MAX_AUTOCORRELATION: f64 = 0.97;
/// Most lags of the test: each has less weight than the one before it.
const LAGS: usize = 256;
/// Rounding error, relative to the value of a window: a smaller difference counts as none.
const ROUNDING: f64 = 1e-9;
/// Least variance of the score, for correlations close to 1.
const MIN_VARIANCE: f64 = 0.02;
/// Score above which a measurement goes on. Of autoregressions up to 0.6, 3 to 11 % exceed it from [`MIN_WINDOWS_OF_TEST`] windows on.
const SHORT: f64 = 1.28;
/// Score above which a memory is long. Of autoregressions up to 0.6, at most 3 % exceed it from [`MIN_WINDOWS_OF_TEST`] windows on. An
/// autoregression of 0.9 does in 8 % of 50 windows, and a moving average of 6 windows in 30 % of 180: neither is one of lag one that few
/// windows show.
const LONG: f64 = 2.33;
/// Least number of windows of a test. The score of fewer is not yet normal: 10 % of autoregressions of 0.6 exceed [`LONG`] in 10 windows.
pub const MIN_WINDOWS_OF_TEST: usize = 50;
/// Least number of separate runs of windows above the mean for a measurement that may end: with fewer, one more run would change the mean.
pub const MIN_RISES_TO_STOP: f64 = 20.0;

/// Memory of a series: what the correlation of neighbouring windows does not explain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Memory {
    /// Standard errors by which distant windows resemble each other more than neighbours explain; `None` with fewer than
    /// [`MIN_WINDOWS_OF_TEST`] windows.
    score: Option<f64>,
    /// Effective number of runs of windows above the mean: the number of runs of equal size with the same precision.
    pub rises: f64,
}

impl Memory {
    /// Memory of the sum of `y` over the sum of `x`, one of each for each window.
    pub fn of_ratio(y: &[f64], x: &[f64]) -> Memory {
        let ratio = y.iter().sum::<f64>() / x.iter().sum::<f64>();
        let residual = |(y, x): (&f64, &f64)| {
            let z = y - ratio * x;
            if z.abs() > ROUNDING * y.abs() { z } else { 0.0 }
        };
        Memory::of(&y.iter().zip(x).map(residual).collect::<Vec<_>>())
    }

    /// Memory of a series whose expectation is zero.
    pub(crate) fn of(z: &[f64]) -> Memory {
        Memory {
            score: (z.len() >= MIN_WINDOWS_OF_TEST).then(|| score(z)),
            rises: rises(z),
        }
    }

    /// True if there are enough windows for a test. A measurement does not end without one.
    pub fn is_tested(&self) -> bool {
        self.score.is_some()
    }

    /// True if no test speaks against a short memory.
    pub fn is_short(&self) -> bool {
        self.score.is_none_or(|score| score <= SHORT)
    }

    /// True if a look finds nothing against the end of a measurement of a mean, once the memory is tested.
    pub fn is_enough(&self) -> bool {
        self.is_short() && self.rises >= MIN_RISES_TO_STOP
    }

    /// True if a short memory does not explain the series: no interval of it holds.
    pub fn is_long(&self) -> bool {
        self.score.is_some_and(|score| score > LONG)
    }
}

/// Standard errors by which the innovations of an autoregression are fractionally integrated: the locally best test against a long memory
/// (P. M. Robinson, Efficient tests of nonstationary hypotheses, JASA 89, 1994; K. Tanaka, The nonstationary fractional unit root,
/// Econometric Theory 15, 1999). Waves below the noise of single windows and levels that last give high scores, too.
fn score(z: &[f64]) -> f64 {
    let n = z.len() as f64;
    let mean = z.iter().sum::<f64>() / n;
    let r = bias_corrected(z).min(MAX_AUTOCORRELATION);
    let innovations: Vec<f64> = z
        .windows(2)
        .map(|w| w[1] - mean - r * (w[0] - mean))
        .collect();
    let mean = innovations.iter().sum::<f64>() / innovations.len() as f64;
    let square: f64 = innovations.iter().map(|e| (e - mean).powi(2)).sum();
    // No window differs from another.
    if square <= f64::EPSILON * z.iter().map(|z| z * z).sum::<f64>() {
        return 0.0;
    }
    let (mut sum, mut all, mut by_neighbours, mut power) = (0.0, 0.0, 0.0, 1.0);
    for k in 1..=LAGS.min(innovations.len() / 2) {
        let far = innovations[k..].iter();
        let products = innovations
            .iter()
            .zip(far)
            .map(|(a, b)| (a - mean) * (b - mean));
        let lag = k as f64;
        // Correlations around an estimated mean are smaller by one over n.
        sum += (products.sum::<f64>() / square + 1.0 / n) / lag;
        all += 1.0 / (lag * lag);
        by_neighbours += power / lag;
        power *= r;
    }
    // The correlation of neighbours was estimated, and takes a part of it.
    let variance = all - (1.0 - r * r) * by_neighbours * by_neighbours;
    sum * (n / variance.max(MIN_VARIANCE)).sqrt()
}

/// Effective number of runs of windows above the mean: the squared sum of their sizes over the sum of their squares. A run far larger than
/// the others counts nearly alone.
fn rises(z: &[f64]) -> f64 {
    let mean = z.iter().sum::<f64>() / z.len() as f64;
    let runs = z.chunk_by(|a, b| (*a > mean) == (*b > mean));
    let sizes = runs.map(|run| run.iter().map(|z| z - mean).sum::<f64>());
    let (sum, square) = sizes
        .filter(|size| *size > 0.0)
        .fold((0.0, 0.0), |(sum, square), n| (sum + n, square + n * n));
    match square > 0.0 {
        true => sum * sum / square,
        false => f64::INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_windows_have_no_memory_and_one_spell_is_one() {
        let equal = Memory::of_ratio(&[3.0; 60], &[1.5; 60]);
        assert!(equal.is_short() && equal.rises.is_infinite());
        // Windows that differ by rounding alone, more and more.
        let y: Vec<f64> = (0..60)
            .map(|i| 3.0 * (1.0 + 1e-15 * f64::from(i)))
            .collect();
        let equal = Memory::of_ratio(&y, &[1.5; 60]);
        assert!(equal.is_short() && equal.rises.is_infinite());
        let mut y = [1.0; 60];
        y[30..40].fill(9.0);
        assert_eq!(Memory::of_ratio(&y, &[1.0; 60]).rises, 1.0);
    }

    /// Autoregressions of 0.6 whose score exceeds [`LONG`] by chance, and a step of which one window less is not tested.
    #[test]
    fn few_windows_have_no_verdict() {
        let ten = [10.4, 12.8, 12.7, 12.8, 12.3, 11.8, 11.7, 11.0, 9.9, 9.1];
        let twenty = [
            12.2, 10.2, 10.4, 10.0, 9.1, 8.9, 8.8, 9.2, 9.9, 11.0, 10.8, 11.5, 11.3, 10.9, 10.3,
            9.1, 7.9, 8.6, 8.9, 9.6,
        ];
        let noise = |i: usize| (i * 7919 % 101) as f64 / 101.0;
        let step = |n: usize| -> Vec<f64> {
            (0..n)
                .map(|i| noise(i) + f64::from(i >= n / 2) * 0.6)
                .collect()
        };
        for few in [&ten[..], &twenty[..], &step(MIN_WINDOWS_OF_TEST - 1)[..]] {
            let memory = Memory::of_ratio(few, &vec![1.0; few.len()]);
            assert!(!memory.is_tested() && !memory.is_long(), "{memory:?}");
            assert!(memory.is_short(), "{memory:?}");
        }
        let memory = Memory::of_ratio(&step(MIN_WINDOWS_OF_TEST), &[1.0; MIN_WINDOWS_OF_TEST]);
        assert!(memory.is_tested() && memory.is_long(), "{memory:?}");
    }

    /// A step halfway through a recording is a long memory: no correlation of neighbours explains it.
    #[test]
    fn a_step_is_a_long_memory() {
        let noise = |i: usize| (i * 7919 % 101) as f64 / 101.0;
        let y: Vec<f64> = (0..180)
            .map(|i| noise(i) + f64::from(i >= 90) * 0.6)
            .collect();
        assert!(Memory::of_ratio(&y, &[1.0; 180]).is_long());
        let y: Vec<f64> = (0..180).map(noise).collect();
        assert!(Memory::of_ratio(&y, &[1.0; 180]).is_short());
    }
}
