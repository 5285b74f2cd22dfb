//! Simulates series with a slow wave that the values may hide.
//!
//! A correlated wave may be so weak beside the noise of single values that no correlation shows. It can still be most of the variation of
//! means over long stretches. The correlations of all lags together give an upper limit of its part of the variance. The limit is the less
//! precise, the fewer values there are.

use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand_distr::{Distribution, StandardNormal};

/// Correlation of the wave from one value to the next. Slower waves count as changes.
const CORRELATION: f64 = 0.9;
/// Sum of the wave's correlations over all lags, on both sides.
const SUM: f64 = 2.0 * CORRELATION / (1.0 - CORRELATION);
/// Lags at which the wave is looked for.
const FAR: usize = 20;
/// Standard errors that are added to the wave's estimated part of the variance.
const UPPER: f64 = 2.0;
/// Least part of a wave that is assumed to remain beside levels that follow it.
const LEAST_LEFT: f64 = 0.25;

/// A series without changes, with as much of a wave as the values allow.
#[derive(Debug)]
pub(crate) struct SlowWave {
    residuals: Vec<f64>,
    deviation: f64,
    share: f64,
}

impl SlowWave {
    /// Wave in values with one level in each stretch between `ends`.
    pub fn of(values: &[f64], ends: &[usize]) -> SlowWave {
        let mut residuals = Vec::with_capacity(values.len());
        for segment in ends.windows(2) {
            let stretch = &values[segment[0]..segment[1]];
            let mean = stretch.iter().sum::<f64>() / stretch.len() as f64;
            residuals.extend(stretch.iter().map(|v| v - mean));
        }
        let freedom = (residuals.len() + 1).saturating_sub(ends.len()).max(1);
        let variance = residuals.iter().map(|e| e * e).sum::<f64>() / freedom as f64;
        SlowWave {
            share: share(&residuals, ends.len() - 1),
            deviation: variance.sqrt(),
            residuals,
        }
    }

    /// Random series: the noise in another order, and a wave.
    pub fn sample(&self, random: &mut SmallRng) -> Vec<f64> {
        let (noise, wave) = ((1.0 - self.share).sqrt(), self.share.sqrt());
        let step = (1.0 - CORRELATION * CORRELATION).sqrt();
        let mut state: f64 = StandardNormal.sample(random);
        let mut next = |random: &mut SmallRng| {
            let z: f64 = StandardNormal.sample(random);
            state = CORRELATION * state + step * z;
            let e = self.residuals.choose(random).copied().unwrap_or(0.0);
            noise * e + wave * self.deviation * state
        };
        (0..self.residuals.len()).map(|_| next(random)).collect()
    }
}

/// Part of the variance that a wave may have: the upper end that the correlations of residuals around `levels` levels allow.
///
/// Each level removes the mean of its stretch, and so a part of the wave: over n values all correlations are smaller by their sum over n,
/// once for each level. A level that was chosen to differ most removes twice as much.
fn share(residuals: &[f64], levels: usize) -> f64 {
    let n = residuals.len() as f64;
    let square: f64 = residuals.iter().map(|e| e * e).sum();
    if square <= 0.0 {
        return 0.0;
    }
    let (mut found, mut sum, mut norm) = (0.0, 0.0, 0.0);
    for k in 1..=FAR.min(residuals.len() / 4) {
        let of_wave = CORRELATION.powi(k as i32);
        let products = residuals.iter().zip(&residuals[k..]).map(|(a, b)| a * b);
        found += of_wave * products.sum::<f64>() / square;
        sum += of_wave;
        norm += of_wave * of_wave;
    }
    let taken = sum / norm * (levels + 1) as f64 / n;
    let left = (1.0 - SUM * taken).max(LEAST_LEFT);
    let share = ((found / norm + taken) / left).clamp(0.0, 1.0);
    let error = ((1.0 + SUM * share) / (n * norm)).sqrt() / left;
    (share + UPPER * error).min(1.0)
}
