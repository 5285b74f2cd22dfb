//! Correction of p values for multiple comparisons.

/// Corrects p values so that the probability of at least one false positive among all of them stays below the level of a single
/// test (S. Holm, A simple sequentially rejective multiple test procedure, Scand. J. of Statistics 6, 1979).
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut corrected = vec![1.0; p.len()];
    let mut max = 0.0f64;
    for (rank, i) in order.into_iter().enumerate() {
        max = max.max(p[i] * (p.len() - rank) as f64).min(1.0);
        corrected[i] = max;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_holm_has_it() {
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (is, wanted) in corrected.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((is - wanted).abs() < 1e-12, "{corrected:?}");
        }
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }
}
