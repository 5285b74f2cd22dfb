//! The change between two estimates, and its p value.

use crate::estimate::Estimate;
use crate::interval::{CONFIDENCE, Interval};

/// Default minimum effect. A long recording detects differences that are too small to matter, and buckets alone shift quantiles
/// by up to 0.5 %.
pub const MIN_EFFECT: f64 = 0.02;

/// Smaller p values are reported as this one.
const MIN_P: f64 = 1e-9;

/// After divided by before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// The ratio with its 95 % interval.
    pub ratio: Interval,
    /// Probability of a difference at least as large if the true change is within the minimum effect.
    pub p: f64,
}

/// Compares two estimates of one quantity. Changes by up to `min_effect` (a ratio, 0.02 for 2 %) count as none: the p value is
/// that of the widest interval that contains no such change.
pub fn change(before: &Estimate, after: &Estimate, min_effect: f64) -> Change {
    let ratio = |confidence| {
        let (b, a) = (before.bounds(confidence), after.bounds(confidence));
        let (up, down) = (
            (a.high / a.middle).ln().hypot((b.middle / b.low).ln()),
            (a.middle / a.low).ln().hypot((b.high / b.middle).ln()),
        );
        let middle = a.middle / b.middle;
        Interval {
            value: after.value / before.value,
            // The uncertainty within buckets is not random: it may add up over both sides.
            low: middle * (-down).exp() * (a.outer_low / a.low) * (b.high / b.outer_high),
            high: middle * up.exp() * (a.outer_high / a.high) * (b.low / b.outer_low),
        }
    };
    let significant = |p: f64| {
        let i = ratio(1.0 - p);
        i.low > 1.0 + min_effect || i.high < 1.0 / (1.0 + min_effect)
    };
    // By bisection on the logarithm: the interval grows as p falls.
    let (mut no, mut yes) = (MIN_P.ln(), 0.0f64);
    if significant(MIN_P) {
        yes = no;
    }
    for _ in 0..40 {
        let middle = (no + yes) / 2.0;
        match significant(middle.exp()) {
            true => yes = middle,
            false => no = middle,
        }
    }
    Change {
        ratio: ratio(CONFIDENCE),
        p: yes.exp(),
    }
}
