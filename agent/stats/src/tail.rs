//! What the values beyond a quantile are known from.

use crate::interval::CONFIDENCE;

/// Separate spells of values beyond a quantile below which a measurement never ends: the error of their number is known from as many.
pub const MIN_SPELLS_TO_STOP: f64 = 30.0;

/// The values beyond a quantile, counted window by window.
///
/// Their share of all values is what an interval of a quantile rests on, so that the correlation of these counts decides how many windows
/// are independent. Values that come together tell as much as one of them. They are counted by spells, as extremes are (R. L. Smith and
/// I. Weissman, Estimating the extremal index, J. Royal Statistical Society B 56, 1994).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tail {
    /// Share of all values that is beyond the quantile.
    pub share: f64,
    /// Independent stretches of time, by the correlation of the counts.
    pub stretches: f64,
    /// Spells of equal size that would tell as much.
    pub spells: f64,
}

impl Tail {
    /// `beyond` and all values of each window. `error` is the standard error of the sum of `beyond`.
    pub(crate) fn new(beyond: &[(f64, f64)], share: f64, stretches: f64, error: f64) -> Tail {
        let all: f64 = beyond.iter().map(|(beyond, _)| beyond).sum();
        // As many spells of equal size have this error if each comes by itself.
        let by_error = (all / error).powi(2);
        Tail {
            share,
            stretches,
            spells: by_error.min(separate(beyond, share)),
        }
    }

    /// Independent stretches of time that show a spell as long as one of them, if such spells have all values beyond the quantile. With
    /// fewer, all of them may be missing.
    pub fn min_stretches(&self) -> f64 {
        (1.0 - CONFIDENCE).ln() / (1.0 - self.share).ln()
    }

    /// How many times longer a measurement must be until these are enough to end it; 1 or less if they are.
    pub fn lacks(&self) -> f64 {
        (self.min_stretches() / self.stretches).max(MIN_SPELLS_TO_STOP / self.spells)
    }

    /// True if a measurement may end.
    pub fn is_enough(&self) -> bool {
        self.lacks() <= 1.0
    }
}

/// Rounding, relative to the values of a window.
const ROUNDING: f64 = 1e-9;

/// Spells of equal size that would tell as much as the runs of windows with more values beyond the quantile than its share; infinite
/// where no window has more.
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

    /// Windows of a hundred values, of which so many are beyond the quantile.
    fn windows(beyond: &[f64]) -> Vec<(f64, f64)> {
        beyond.iter().map(|n| (*n, 100.0)).collect()
    }

    #[test]
    fn values_that_come_together_are_one_spell() {
        let of = |beyond: &[f64]| separate(&windows(beyond), 0.1);
        assert_eq!(of(&[0.0, 20.0, 20.0, 0.0, 40.0, 0.0]), 2.0);
        assert_eq!(of(&[30.0, 0.0, 30.0, 5.0, 30.0]), 3.0);
        // One that is far larger than the others tells of itself.
        assert!(of(&[90.0, 90.0, 90.0, 0.0, 11.0, 0.0, 11.0]) < 1.2);
        // No window differs from another.
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
        // As many windows have none of those that are as rare in 5 % of recordings.
        assert_eq!([0.5, 0.1, 0.01].map(least), [5.0, 29.0, 299.0]);
        assert!(of(0.01, 299.0, 30.0).is_enough());
        assert!(!of(0.01, 298.0, 30.0).is_enough() && !of(0.01, 299.0, 29.0).is_enough());
        assert_eq!(of(0.5, 100.0, 10.0).lacks(), 3.0);
    }
}
