//! The change between two estimates, and its p value.

use crate::estimate::Estimate;
use crate::interval::{CONFIDENCE, Interval, students_t};

/// Default minimum effect. A long recording detects differences that are too small to matter, and buckets alone shift quantiles
/// by up to 0.5 %.
pub const MIN_EFFECT: f64 = 0.02;

/// Smallest p value that is reported.
pub(crate) const MIN_P: f64 = 1e-9;

/// Steps in which an interval is widened.
const STEPS: u32 = 30;
/// Halvings of the step from the widest significant interval to the next one.
const BISECTIONS: usize = 25;

/// Ratio of a quantity after a change to the quantity before it, with the test of that ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// The ratio with its 95 % interval.
    pub ratio: Interval,
    /// Probability of a difference at least as large if the true change is within the minimum effect.
    pub p: f64,
    /// Standard error of the logarithm of the ratio.
    pub error: f64,
    /// Degrees of freedom of that standard error.
    pub dof: f64,
    /// Uncertainty of the ratio by histogram buckets, as a difference of logarithms.
    pub hidden: f64,
}

impl Change {
    /// The smallest rise that a test at this level would have found with this power, as a factor above 1.
    pub fn smallest_found(&self, min_effect: f64, level: f64, power: f64) -> f64 {
        let quantiles = students_t(1.0 - level, self.dof) + students_t(2.0 * power - 1.0, self.dof);
        (1.0 + min_effect) * (self.hidden + quantiles * self.error).exp()
    }

    /// Interval of the ratio at this confidence, and no narrower than that of 95 %.
    pub fn wider(&self, confidence: f64) -> Interval {
        let half = students_t(confidence, self.dof) * self.error + self.hidden;
        Interval {
            value: self.ratio.value,
            low: self.ratio.low.min(self.ratio.value * (-half).exp()),
            high: self.ratio.high.max(self.ratio.value * half.exp()),
        }
    }

    /// Returns true if the interval contains no change beyond the minimum effect: then any change is too small to matter.
    pub fn is_small(&self, min_effect: f64) -> bool {
        self.ratio.low >= 1.0 / (1.0 + min_effect) && self.ratio.high <= 1.0 + min_effect
    }
}

/// Compares two estimates of one quantity. Changes by up to `min_effect` (a ratio, 0.02 for 2 %) count as none: the p value is
/// that of the widest interval that contains no such change.
///
/// `between` is the standard deviation by which two recordings of an unchanged server differ beyond their windows, relative to the
/// value (0.05 for 5 %). With 0 it is left out: the result is then that of these two recordings alone.
pub fn change(before: &Estimate, after: &Estimate, min_effect: f64, between: f64) -> Change {
    let ratio = |confidence| {
        let (b, a) = (before.bounds(confidence), after.bounds(confidence));
        // Each side has its share of the variance between recordings. This variance is stated and not estimated, so the distribution is
        // normal.
        let recordings = between.ln_1p() * 2f64.sqrt() * students_t(confidence, f64::INFINITY);
        let (up, down) = (
            (a.high / a.middle)
                .ln()
                .hypot((b.middle / b.low).ln())
                .hypot(recordings),
            (a.middle / a.low)
                .ln()
                .hypot((b.high / b.middle).ln())
                .hypot(recordings),
        );
        let middle = a.middle / b.middle;
        Interval {
            value: after.value / before.value,
            // The uncertainty within buckets is not random: it may add up over both sides.
            low: middle * (-down).exp() * (a.outer_low / a.low) * (b.high / b.outer_high),
            high: middle * up.exp() * (a.outer_high / a.high) * (b.low / b.outer_low),
        }
    };
    let significant = |i: &Interval| i.low > 1.0 + min_effect || i.high < 1.0 / (1.0 + min_effect);
    // Uncertainty by buckets adds up, and random errors add up in squares. If the random part of a wide interval leaves a bucket, that
    // interval may lie within a narrower one. It is then extended to contain the narrower one.
    let wider = |inner: Interval, log_p: f64| {
        let i = ratio(1.0 - log_p.exp());
        Interval {
            low: if i.low >= inner.low { inner.low } else { i.low },
            high: if i.high <= inner.high {
                inner.high
            } else {
                i.high
            },
            ..i
        }
    };
    // The reported interval is one of the steps, so that a p value below its level and the interval agree.
    let level = (1.0 - CONFIDENCE).ln();
    let mut steps: Vec<f64> = (1..=STEPS)
        .map(|n| MIN_P.ln() * f64::from(n) / f64::from(STEPS))
        .collect();
    let shown = steps.partition_point(|log_p| *log_p > level);
    steps.insert(shown, level);
    let mut all = vec![(0.0, ratio(0.0))];
    for log_p in steps {
        all.push((log_p, wider(all[all.len() - 1].1, log_p)));
    }
    // The widest interval that contains no relevant change, by bisection beyond it.
    let p = match all.partition_point(|(_, i)| significant(i)) {
        0 => 1.0,
        n if n == all.len() => MIN_P,
        n => {
            let ((mut yes, inner), mut no) = (all[n - 1], all[n].0);
            for _ in 0..BISECTIONS {
                let middle = (no + yes) / 2.0;
                match significant(&wider(inner, middle)) {
                    true => yes = middle,
                    false => no = middle,
                }
            }
            yes.exp()
        }
    };
    Change {
        ratio: all[shown + 1].1,
        p,
        error: before
            .log_error()
            .hypot(after.log_error())
            .hypot(between.ln_1p() * 2f64.sqrt()),
        dof: before.dof.min(after.dof),
        hidden: before.hidden() + after.hidden(),
    }
}
