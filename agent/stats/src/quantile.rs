//! Quantiles of histograms that were recorded in windows.

use crate::batch_means::{error_of_sum, independent_share};
use crate::estimate::{Estimate, MIN_WINDOWS, StandardError};
use crate::memory::Memory;
use crate::quantile_interval::{Position, QuantileError, position};
use crate::tail::Tail;
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
    let above = above(windows, &at);
    let residuals = residuals(&above, share);
    // Values beyond the quantile, by window. If two windows have all of them, the quantile is known no better than from two values.
    let beyond: Vec<(f64, f64)> = match q < 0.5 {
        true => above.iter().map(|(above, n)| (n - above, *n)).collect(),
        false => above,
    };
    let (all_rare, square) = beyond
        .iter()
        .fold((0.0, 0.0), |(sum, square): (f64, f64), (r, _)| {
            (sum + r, square + r * r)
        });
    let contributing = all_rare * all_rare / square;
    // Windows with values beyond the quantile come in spells, and a spell shows the variation no better than one window. These windows are
    // too few to show the correlation, so it is taken from the median, which all windows have.
    let median = position(&all, 0.5)?;
    let spells = independent_share(&self::residuals(&self::above(windows, &median), 0.5));
    let sum = error_of_sum(&residuals);
    let stretches = sum.stretches.min(contributing);
    let stretches_below = match q < 0.5 {
        true => stretches,
        false => stretches.max(windows.len() as f64 * spells),
    };
    let dof = sum.dof.min(contributing * spells - 1.0).max(1.0);
    Some(Estimate {
        // For a quantile that its bucket does not resolve: the harmonic mean of the edges, as in every other view.
        value: match at.outer_low < at.outer_high {
            true => 2.0 * at.outer_low * at.outer_high / (at.outer_low + at.outer_high),
            false => at.value,
        },
        dof,
        stretches,
        stretches_below,
        tail: Some(Tail::new(&beyond, share.min(q), sum.stretches, sum.error)),
        error: StandardError::Quantile(QuantileError {
            all,
            share,
            log_odds_error: sum.error / total / (share * q),
        }),
    })
}

/// How much of the counts of values beyond the `q` quantile is explained by neighbours that resemble each other; `None` without values.
pub fn quantile_memory(windows: &[Sparse], scheme: Scheme, q: f64) -> Option<Memory> {
    let mut all = Histogram::new(scheme);
    windows.iter().for_each(|w| all.add(w, 0.0));
    let at = position(&all, q)?;
    Some(Memory::of(&residuals(&above(windows, &at), 1.0 - q)))
}

/// Values above a position, and all values, of each window.
fn above(windows: &[Sparse], at: &Position) -> Vec<(f64, f64)> {
    let of = |w: &Sparse| {
        w.iter().fold((0.0, 0.0), |(above, n), (i, count)| {
            let count = *count as f64;
            let part = match usize::from(*i) {
                i if i > at.bucket => 1.0,
                i if i == at.bucket => 1.0 - at.part,
                _ => 0.0,
            };
            (above + part * count, n + count)
        })
    };
    windows.iter().map(of).collect()
}

/// Excess of each window: its values above the position, less the number by the share of all windows.
fn residuals(above: &[(f64, f64)], share: f64) -> Vec<f64> {
    above.iter().map(|(above, n)| above - share * n).collect()
}

/// The `q` quantile of one window; `None` if it is empty.
pub fn quantile_of(window: &Sparse, scheme: Scheme, q: f64) -> Option<f64> {
    let mut all = Histogram::new(scheme);
    all.add(window, 0.0);
    position(&all, q).map(|at| at.value)
}
