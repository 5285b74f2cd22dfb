//! Standard errors of sums over autocorrelated windows, by batch means.

use crate::autocorrelation::bias_corrected;

/// Most batches of a short recording; more than half as many once it has that number of windows. A long recording has as many batches as
/// the square root of its number of windows, so that the standard error itself becomes more precise.
const BATCHES: usize = 20;
/// Largest autocorrelation that is corrected for: closer to 1 the correction would be a guess.
const MAX_AUTOCORRELATION: f64 = 0.97;
const MAX_BATCH_AUTOCORRELATION: f64 = 0.9;
/// Standard errors that are added to the estimated autocorrelation before independent stretches are counted: nine of ten series are less
/// correlated than that.
const UPPER: f64 = 1.28;

/// Precision of a sum over windows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SumError {
    /// Standard error of the sum.
    pub error: f64,
    /// Degrees of freedom of the standard error; never less than one.
    pub dof: f64,
    /// Number of independent windows with the same precision; a cautious estimate.
    pub stretches: f64,
}

/// Standard error of the sum of `z`, a series whose expectation is zero.
///
/// Non-overlapping batch means (A. M. Law, Simulation Modeling and Analysis, section 9.5.3): sums over stretches of time are nearly
/// independent where single windows are not. In half an hour of windows the stretches are short. Therefore:
/// - The autocorrelation at lag 1 is removed first and restored in the result (prewhitening: D. W. K. Andrews and J. C. Monahan, An
///   improved heteroskedasticity and autocorrelation consistent covariance matrix estimator, Econometrica 60, 1992).
/// - The correlation that remains between batches widens the error by sqrt((1 + r) / (1 - r)), as in N-Skart (A. Tafazzoli et al.,
///   Performance of Skart, INFORMS J. on Computing 23, 2011).
/// - The variation of independent stretches has one degree of freedom less than there are stretches, however many batches they are cut
///   into. Student's t with these makes the intervals of short or correlated series wide enough.
pub(crate) fn error_of_sum(z: &[f64]) -> SumError {
    let n = z.len() as f64;
    let autocorrelation = bias_corrected(z).min(MAX_AUTOCORRELATION);
    let mean = z.iter().sum::<f64>() / n;
    let innovations: Vec<f64> = match autocorrelation > 0.0 {
        true => z
            .windows(2)
            .map(|w| w[1] - mean - autocorrelation * (w[0] - mean))
            .collect(),
        false => z.iter().map(|z| z - mean).collect(),
    };
    let size = innovations.len().div_ceil(BATCHES.max(z.len().isqrt()));
    let sums: Vec<f64> = innovations
        .chunks_exact(size)
        .map(|b| b.iter().sum())
        .collect();
    let k = sums.len() as f64;
    let mean = sums.iter().sum::<f64>() / k;
    let variance = sums.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / (k - 1.0);
    let r = bias_corrected(&sums).min(MAX_BATCH_AUTOCORRELATION);
    let of_window = variance / size as f64 * (1.0 + r) / (1.0 - r);
    let error = (n * of_window).sqrt() / (1.0 - autocorrelation);
    let stretches = stretches(z, error);
    SumError {
        error,
        dof: (k - 1.0).min(stretches - 1.0).max(1.0),
        stretches,
    }
}

/// Number of independent windows that would give this standard error of the sum.
fn stretches(z: &[f64], error: f64) -> f64 {
    let n = z.len() as f64;
    let by_correlation = n * independent_share(z);
    let mean = z.iter().sum::<f64>() / n;
    let square: f64 = z.iter().map(|z| (z - mean).powi(2)).sum();
    let by_error = n * square / (error * error);
    match by_error.is_finite() {
        true => by_error.min(by_correlation),
        // All windows are equal.
        false => by_correlation,
    }
}

/// Independent windows per window, by the correlation of neighbours. With few windows the correlation is known badly, and its upper end is
/// taken.
pub(crate) fn independent_share(z: &[f64]) -> f64 {
    let r = bias_corrected(z);
    let above = UPPER * ((1.0 - r * r).max(0.0) / z.len() as f64).sqrt();
    let r = (r + above).min(MAX_AUTOCORRELATION);
    (1.0 - r) / (1.0 + r)
}
