//! Correlation of each value of a series with the next.

/// Autocorrelation at lag 1, as computed from the series; `None` if all values are equal.
pub(crate) fn lag_one(z: &[f64]) -> Option<f64> {
    let mean = z.iter().sum::<f64>() / z.len() as f64;
    let square: f64 = z.iter().map(|z| (z - mean).powi(2)).sum();
    let lagged: f64 = z.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum();
    let r = lagged / square;
    r.is_finite().then_some(r)
}

/// Standard errors above 0 from which on the correlation of neighbouring rounds is not chance: one of a hundred independent series has
/// more.
const ALIKE: f64 = 2.33;

/// True if neighbours are more alike than those of 99 in 100 independent series.
pub fn are_alike(z: &[f64]) -> bool {
    lag_one(z).is_some_and(|r| r > ALIKE / (z.len() as f64).sqrt())
}

/// Autocorrelation at lag 1, 0 if negative, corrected for its bias in short series (M. G. Kendall, Note on bias in the estimation
/// of autocorrelation, Biometrika 41, 1954).
pub(crate) fn bias_corrected(z: &[f64]) -> f64 {
    lag_one(z).map_or(0.0, |r| (r + (1.0 + 3.0 * r) / z.len() as f64).max(0.0))
}
