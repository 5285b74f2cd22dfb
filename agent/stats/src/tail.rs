//! Precision of a quantile's tail: the values beyond it.

use crate::interval::CONFIDENCE;

/// Least number of separate spells of values beyond a quantile for a measurement that may end, because spells determine the error of that
/// number.
pub const MIN_SPELLS_TO_STOP: f64 = 30.0;

/// The values beyond a quantile, counted window by window.
///
/// An interval of a quantile rests on the share of these values, so the correlation of the counts decides how many windows are independent.
/// Values that come together count as one. They are counted by spells, as extremes are (R. L. Smith and I. Weissman, Estimating the
/// extremal index, J. Royal Statistical Society B 56, 1994).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tail {
    /// Share of all values that is beyond the quantile.
    pub share: f64,
    /// Independent stretches of time, by the correlation of the counts.
    pub stretches: f64,
    /// Number of spells of equal size with the same precision.
    pub spells: f64,
}

impl Tail {
    /// Tail from the values beyond the quantile and all values of each window. `error` is the standard error of the sum of `beyond`.
    pub(crate) fn new(beyond: &[(f64, f64)], share: f64, stretches: f64, error: f64) -> Tail {
        let all: f64 = beyond.iter().map(|(beyond, _)| beyond).sum();
        // Number of spells of equal size that have this error, if each comes by itself.
        let by_error = (all / error).powi(2);
        Tail {
            share,
            stretches,
            spells: by_error.min(separate(beyond, share)),
        }
    }

    /// Least number of independent stretches that show a spell of one stretch, if such spells have all values beyond the quantile. With
    /// fewer stretches all spells may be missing.
    pub fn min_stretches(&self) -> f64 {
        (1.0 - CONFIDENCE).ln() / (1.0 - self.share).ln()
    }

    /// Factor by which a measurement must be longer before its tail allows it to end; 1 or less if it does.
    pub fn lacks(&self) -> f64 {
        (self.min_stretches() / self.stretches).max(MIN_SPELLS_TO_STOP / self.spells)
    }

    /// Returns true if a measurement may end.
    pub fn is_enough(&self) -> bool {
        self.lacks() <= 1.0
    }
}

/// Rounding, relative to the values of a window.
const ROUNDING: f64 = 1e-9;

/// Number of spells of equal size with the same precision as the runs of windows that have more values beyond the quantile than its share;
/// infinite if no window has more.
fn separate(beyond: &[(f64, f64)], share: f64) -> f64 {
    let has_more = |(beyond, all): &(f64, f64)| beyond - share * all > ROUNDING * all;
    let runs = beyond.chunk_by(|a, b| has_more(a) == has_more(b));
    let sizes = runs
        .filter(|run| has_more(&run[0]))
        .map(|run| run.iter().map(|(beyond, _)| beyond).sum::<f64>());
    let (sum, square) = sizes.fold((0.0, 0.0), |(sum, square), n| (sum + n, square + n * n));
    match square > 0.0 {
        true => sum * sum / square,
        false => f64::INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows of a hundred values, of which `beyond` are beyond the quantile.
    fn windows(beyond: &[f64]) -> Vec<(f64, f64)> {
        beyond.iter().map(|n| (*n, 100.0)).collect()
    }

    #[test]
    fn values_that_come_together_are_one_spell() {
        let of = |beyond: &[f64]| separate(&windows(beyond), 0.1);
        assert_eq!(of(&[0.0, 20.0, 20.0, 0.0, 40.0, 0.0]), 2.0);
        assert_eq!(of(&[30.0, 0.0, 30.0, 5.0, 30.0]), 3.0);
        // A spell that is far larger than the others determines the precision alone.
        assert!(of(&[90.0, 90.0, 90.0, 0.0, 11.0, 0.0, 11.0]) < 1.2);
        // All windows are equal.
        assert_eq!(of(&[10.0; 40]), f64::INFINITY);
        assert_eq!(
            separate(&[(0.1 + 0.2, 3.0), (0.3, 3.0)], 0.1),
            f64::INFINITY
        );
    }

    #[test]
    fn a_rarer_tail_takes_more_windows() {
        let of = |share, stretches, spells| Tail {
            share,
            stretches,
            spells,
        };
        let least = |share| of(share, 0.0, 0.0).min_stretches().ceil();
        // With the least number of stretches, rare values are missing in 5 % of recordings.
        assert_eq!([0.5, 0.1, 0.01].map(least), [5.0, 29.0, 299.0]);
        assert!(of(0.01, 299.0, 30.0).is_enough());
        assert!(!of(0.01, 298.0, 30.0).is_enough() && !of(0.01, 299.0, 29.0).is_enough());
        assert_eq!(of(0.5, 100.0, 10.0).lacks(), 3.0);
    }
}
