//! Correction of p values for multiple comparisons.

/// Corrects p values so that the probability of at least one false positive among all of them stays below the level of a single
/// test (S. Holm, A simple sequentially rejective multiple test procedure, Scand. J. of Statistics 6, 1979).
pub fn holm(p: &[f64]) -> Vec<f64> {
    holm_weighted(p, &vec![1.0; p.len()])
}

/// Corrects p values as [`holm`] does, with a positive weight for each comparison (section 4 of the same paper). A comparison is first
/// tested at its part of the level. An effect that is found leaves its part to the others.
pub fn holm_weighted(p: &[f64], weights: &[f64]) -> Vec<f64> {
    let all: Vec<(f64, f64)> = p.iter().copied().zip(weights.iter().copied()).collect();
    let mut order: Vec<usize> = (0..all.len()).collect();
    let each = |i: usize| all[i].0 / all[i].1;
    order.sort_by(|a, b| each(*a).total_cmp(&each(*b)));
    let mut corrected = vec![1.0; all.len()];
    let mut max = 0.0f64;
    for (rank, i) in order.iter().enumerate() {
        let left: f64 = order[rank..].iter().map(|i| all[*i].1).sum();
        max = max.max(each(*i) * left).min(1.0);
        corrected[*i] = max;
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

    /// Rejected by hand at 0.05: 0.02 has 8 of 10 parts and passes 0.04; then 0.01 has one of two parts left and passes 0.025; then 0.06
    /// has the whole level and does not pass.
    #[test]
    fn weights_are_parts_of_the_level() {
        let corrected = holm_weighted(&[0.02, 0.01, 0.06], &[0.8, 0.1, 0.1]);
        for (is, wanted) in corrected.iter().zip([0.025, 0.025, 0.06]) {
            assert!((is - wanted).abs() < 1e-12, "{corrected:?}");
        }
        let p = [0.01, 0.04, 0.03, 0.005];
        for (is, wanted) in holm_weighted(&p, &[2.0; 4]).iter().zip(holm(&p)) {
            assert!((is - wanted).abs() < 1e-12);
        }
    }
}
