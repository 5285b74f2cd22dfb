//! Effects without replicates, compared with the noise of the others (R. V. Lenth, Quick and easy analysis of unreplicated factorials,
//! Technometrics 31, 1989).

use crate::interval::{CONFIDENCE, students_t};

/// Noise of effects, from the effects themselves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lenth {
    /// Pseudo standard error.
    pub error: f64,
    /// Margin of error: an effect beyond it stands out, if that effect was chosen in advance.
    pub margin: f64,
    /// Margin of error for all effects at once.
    pub simultaneous_margin: f64,
}

/// Noise of these effects; `None` for fewer than three.
pub fn lenth(effects: &[f64]) -> Option<Lenth> {
    lenth_of(effects, 1)
}

/// Noise of these effects, with margins for `responses` times as many effects: those of other responses, too.
pub fn lenth_of(effects: &[f64], responses: usize) -> Option<Lenth> {
    let median = |mut all: Vec<f64>| {
        all.sort_unstable_by(f64::total_cmp);
        let middle = all.len() / 2;
        match all.len() % 2 {
            0 => (all[middle - 1] + all[middle]) / 2.0,
            _ => all[middle],
        }
    };
    let m = effects.len();
    if m < 3 {
        return None;
    }
    let sizes: Vec<f64> = effects.iter().map(|e| e.abs()).collect();
    let first = 1.5 * median(sizes.clone());
    let small: Vec<f64> = sizes.into_iter().filter(|e| *e < 2.5 * first).collect();
    let error = match small.is_empty() {
        true => first,
        false => 1.5 * median(small),
    };
    let dof = m as f64 / 3.0;
    let all = 0.5 * (1.0 + CONFIDENCE.powf(1.0 / (m * responses.max(1)) as f64));
    Some(Lenth {
        error,
        margin: students_t(CONFIDENCE, dof) * error,
        simultaneous_margin: students_t(2.0 * all - 1.0, dof) * error,
    })
}

/// Expected sizes of effects of noise alone, in standard errors, the smallest first (C. Daniel, Use of half-normal plots in interpreting
/// factorial two-level experiments, Technometrics 1, 1959).
pub fn half_normal(effects: usize) -> Vec<f64> {
    (0..effects)
        .map(|i| students_t((i as f64 + 0.5) / effects as f64, f64::INFINITY))
        .collect()
}
