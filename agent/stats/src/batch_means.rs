//! Standard errors of sums over windows that resemble their neighbours.

/// So many batches at most, and more than half as many once there are as many windows; of long recordings the square root of
/// the number of windows, so that the error's own error falls, too.
const BATCHES: usize = 20;
/// Closer to 1 the correction would be a guess.
const MOST_LIKE: f64 = 0.97;
const MOST_LIKE_BATCHES: f64 = 0.9;

/// The standard error of the sum of `z`, a series whose expectation is zero, and its degrees of freedom.
///
/// Non-overlapping batch means (A. M. Law, Simulation Modeling and Analysis, section 9.5.3): sums over stretches of time are
/// nearly independent where single windows are not. In half an hour of windows the stretches are short, therefore:
/// - what a window has of the one before is taken out first and put back into the result (prewhitening: D. W. K. Andrews and
///   J. C. Monahan, An improved heteroskedasticity and autocorrelation consistent covariance matrix estimator, Econometrica
///   60, 1992);
/// - what resemblance remains between batches widens the error by sqrt((1 + r) / (1 - r)), as in N-Skart (A. Tafazzoli et
///   al., Performance of Skart, INFORMS J. on Computing 23, 2011).
pub(super) fn error_of_sum(z: &[f64]) -> (f64, f64) {
    let n = z.len() as f64;
    let like = correlation(z).min(MOST_LIKE);
    let mean = z.iter().sum::<f64>() / n;
    let fresh: Vec<f64> = match like > 0.0 {
        true => z
            .windows(2)
            .map(|w| w[1] - mean - like * (w[0] - mean))
            .collect(),
        false => z.iter().map(|z| z - mean).collect(),
    };
    let size = fresh.len().div_ceil(BATCHES.max(z.len().isqrt()));
    let sums: Vec<f64> = fresh.chunks_exact(size).map(|b| b.iter().sum()).collect();
    let k = sums.len() as f64;
    let mean = sums.iter().sum::<f64>() / k;
    let variance = sums.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / (k - 1.0);
    let r = correlation(&sums).min(MOST_LIKE_BATCHES);
    let of_window = variance / size as f64 * (1.0 + r) / (1.0 - r);
    ((n * of_window).sqrt() / (1.0 - like), k - 1.0)
}

/// The correlation of each with the next, 0 if negative, corrected for its bias in short series (M. G. Kendall, Note on bias
/// in the estimation of autocorrelation, Biometrika 41, 1954).
fn correlation(z: &[f64]) -> f64 {
    lag_one(z).map_or(0.0, |r| (r + (1.0 + 3.0 * r) / z.len() as f64).max(0.0))
}

/// Autocorrelation at lag 1, as it is in the series; `None` where all values are the same.
pub fn lag_one(z: &[f64]) -> Option<f64> {
    let mean = z.iter().sum::<f64>() / z.len() as f64;
    let square: f64 = z.iter().map(|z| (z - mean).powi(2)).sum();
    let lagged: f64 = z.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum();
    let r = lagged / square;
    r.is_finite().then_some(r)
}
