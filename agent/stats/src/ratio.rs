//! The ratio of two sums over windows.

use crate::batch_means::error_of_sum;
use crate::estimate::{Estimate, MIN_WINDOWS, StandardError};

/// The sum of `y` over the sum of `x`, one of each per window. `None` with fewer than [`MIN_WINDOWS`], or where a sum is
/// not positive.
pub fn ratio(y: &[f64], x: &[f64]) -> Option<Estimate> {
    let (all_y, all_x) = (y.iter().sum::<f64>(), x.iter().sum::<f64>());
    if y.len() < MIN_WINDOWS || all_y <= 0.0 || all_x <= 0.0 {
        return None;
    }
    let value = all_y / all_x;
    let residuals: Vec<f64> = y.iter().zip(x).map(|(y, x)| y - value * x).collect();
    let sum = error_of_sum(&residuals);
    Some(Estimate {
        value,
        dof: sum.dof,
        stretches: sum.stretches,
        stretches_below: sum.stretches,
        tail: None,
        error: StandardError::Log(sum.error / all_y),
    })
}
