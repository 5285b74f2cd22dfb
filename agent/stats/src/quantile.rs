//! Quantiles of histograms that were recorded in windows.

use crate::batch_means::error_of_sum;
use crate::estimate::{Estimate, MIN_WINDOWS, StandardError};
use crate::quantile_interval::{QuantileError, position};
use nfscope_model::{Histogram, Scheme, Sparse};

/// The `q` quantile of all windows together. `None` with fewer than [`MIN_WINDOWS`] windows, or with fewer than ten values
/// beyond the quantile.
pub fn quantile(windows: &[Sparse], scheme: Scheme, q: f64) -> Option<Estimate> {
    let mut all = Histogram::new(scheme);
    windows.iter().for_each(|w| all.add(w, 0.0));
    let total = all.count() as f64;
    let share = 1.0 - q;
    if windows.len() < MIN_WINDOWS || total * share.min(q) < 10.0 {
        return None;
    }
    let at = position(&all, q)?;
    // Values above it, counted by window: if two windows contribute all of them, the quantile is known no better than from two
    // values.
    let (mut all_above, mut square) = (0.0f64, 0.0f64);
    let residuals: Vec<f64> = windows
        .iter()
        .map(|w| {
            let (mut above, mut n): (f64, f64) = (0.0, 0.0);
            for (i, count) in w {
                let count = *count as f64;
                n += count;
                above += match usize::from(*i) {
                    i if i > at.bucket => count,
                    i if i == at.bucket => count * (1.0 - at.part),
                    _ => 0.0,
                };
            }
            let rare = if q < 0.5 { n - above } else { above };
            all_above += rare;
            square += rare * rare;
            above - share * n
        })
        .collect();
    let sum = error_of_sum(&residuals);
    let contributing = all_above * all_above / square;
    let dof = sum.dof.min(contributing - 1.0).max(1.0);
    Some(Estimate {
        // If the bucket does not resolve it: the harmonic mean of the edges, as in every other view.
        value: match at.outer_low < at.outer_high {
            true => 2.0 * at.outer_low * at.outer_high / (at.outer_low + at.outer_high),
            false => at.value,
        },
        dof,
        stretches: sum.stretches,
        error: StandardError::Quantile(QuantileError {
            all,
            share,
            log_odds_error: sum.error / total / (share * q),
        }),
    })
}

/// The `q` quantile of one window; `None` where it is empty.
pub fn quantile_of(window: &Sparse, scheme: Scheme, q: f64) -> Option<f64> {
    let mut all = Histogram::new(scheme);
    all.add(window, 0.0);
    position(&all, q).map(|at| at.value)
}
