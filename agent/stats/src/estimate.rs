//! An estimate with its standard error.

use crate::interval::{Bounds, CONFIDENCE, Interval, students_t};
use crate::quantile_interval::QuantileError;
use crate::tail::Tail;

/// Least number of windows, from which their variation can be estimated.
pub const MIN_WINDOWS: usize = 10;

/// Least number of independent windows (`stretches`) for a verdict. With fewer, their variation is hardly known, and an interval that holds
/// is too wide to be of use. See [`Estimate::is_known`].
pub const MIN_STRETCHES: f64 = 3.0;

/// A value with its standard error.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Degrees of freedom of its standard error.
    pub dof: f64,
    /// Number of independent windows with the same precision: correlated windows count as fewer.
    pub stretches: f64,
    /// Number of independent windows behind the lower end of the interval alone. For a high quantile it can exceed `stretches`: the
    /// quantile is not below the median, which every window shows.
    pub(crate) stretches_below: f64,
    /// Precision of the values beyond a quantile, if this is one.
    pub tail: Option<Tail>,
    pub(crate) error: StandardError,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StandardError {
    /// Standard error of the logarithm of the value.
    Log(f64),
    Quantile(QuantileError),
}

impl Estimate {
    /// Estimate in place of zero, where a logarithm is needed: half an event in all of `of`. The logarithm of a count has a variance of
    /// about one over the count.
    pub fn half_an_event(of: f64, windows: usize) -> Estimate {
        Estimate {
            value: 0.5 / of,
            dof: windows as f64 - 1.0,
            stretches: windows as f64,
            stretches_below: windows as f64,
            tail: None,
            error: StandardError::Log(2f64.sqrt()),
        }
    }

    /// The interval that covers the true value with this probability.
    pub fn interval(&self, confidence: f64) -> Interval {
        let bounds = self.bounds(confidence);
        Interval {
            value: self.value,
            low: bounds.outer_low,
            high: bounds.outer_high,
        }
    }

    pub(crate) fn bounds(&self, confidence: f64) -> Bounds {
        let t = students_t(confidence, self.dof);
        match &self.error {
            StandardError::Log(se) => {
                let (low, high) = (self.value * (-t * se).exp(), self.value * (t * se).exp());
                Bounds {
                    middle: self.value,
                    low,
                    high,
                    outer_low: low,
                    outer_high: high,
                }
            }
            StandardError::Quantile(q) => q.bounds(t),
        }
    }

    /// Standard error of the logarithm. That of a quantile is derived from its 95 % interval, without the uncertainty within its bucket.
    pub fn log_error(&self) -> f64 {
        match self.error {
            StandardError::Log(se) => se,
            StandardError::Quantile(_) => {
                let b = self.bounds(CONFIDENCE);
                (b.high / b.low).ln() / 2.0 / students_t(CONFIDENCE, self.dof)
            }
        }
    }

    /// Returns true if there are enough independent windows for a verdict.
    pub fn is_known(&self) -> bool {
        self.stretches >= MIN_STRETCHES
    }

    /// Returns true if there are enough independent windows for a verdict that rests on the lower end of the interval.
    pub fn is_known_from_below(&self) -> bool {
        self.stretches_below >= MIN_STRETCHES
    }

    /// Uncertainty of the value within its bucket, as a difference of logarithms; more windows do not reduce it.
    pub fn hidden(&self) -> f64 {
        let i = self.interval(0.0);
        let hidden = (i.high / i.value).ln().max((i.value / i.low).ln());
        if hidden.is_finite() {
            hidden.max(0.0)
        } else {
            0.0
        }
    }

    /// Estimates how many windows each side needs to detect a change by this factor with this power. It assumes that both sides
    /// vary as the `windows` of this estimate do, and a two-sided test at 95 % beyond `min_effect`. `None` where a histogram bucket
    /// hides such a change: no number of windows finds it then.
    ///
    /// The standard error of a short recording is itself uncertain by about a third, and this number by two thirds. It holds
    /// for one comparison; with several, more windows are needed.
    pub fn windows_to_find(
        &self,
        factor: f64,
        min_effect: f64,
        power: f64,
        windows: usize,
    ) -> Option<f64> {
        let effect = (factor / (1.0 + min_effect)).ln() - 2.0 * self.hidden();
        if effect <= 0.0 {
            return None;
        }
        let quantiles = students_t(CONFIDENCE, self.dof) + students_t(2.0 * power - 1.0, self.dof);
        let variance = self.log_error().powi(2) * windows as f64;
        let n = 2.0 * variance * (quantiles / effect).powi(2);
        // A smaller number would give no verdict.
        let least = MIN_STRETCHES * windows as f64 / self.stretches;
        Some(n.max(least).max(MIN_WINDOWS as f64))
    }
}
