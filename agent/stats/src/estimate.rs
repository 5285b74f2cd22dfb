//! An estimate with its standard error.

use crate::interval::{Bounds, CONFIDENCE, Interval, students_t};
use crate::quantile_interval::QuantileError;

/// With fewer windows their variation cannot be estimated.
pub const MIN_WINDOWS: usize = 10;

/// A value with its standard error.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Degrees of freedom of its standard error.
    pub dof: f64,
    pub(crate) error: StandardError,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StandardError {
    /// Of the logarithm of the value.
    Log(f64),
    Quantile(QuantileError),
}

impl Estimate {
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

    /// Standard error of its logarithm; for a quantile derived from its 95 % interval.
    pub fn log_error(&self) -> f64 {
        match self.error {
            StandardError::Log(se) => se,
            StandardError::Quantile(_) => {
                let i = self.interval(CONFIDENCE);
                (i.high / i.low).ln() / 2.0 / students_t(CONFIDENCE, self.dof)
            }
        }
    }

    /// Estimates how many windows each side needs to detect a change by this factor with this power. It assumes that both sides
    /// vary as the `windows` of this estimate do, and a two-sided test at 95 % beyond `min_effect`.
    ///
    /// The standard error of a short recording is itself uncertain by about a third, and this number by two thirds. It holds
    /// for one comparison; with several, more windows are needed.
    pub fn windows_to_find(&self, factor: f64, min_effect: f64, power: f64, windows: usize) -> f64 {
        let quantiles = students_t(CONFIDENCE, self.dof) + students_t(2.0 * power - 1.0, self.dof);
        let variance = self.log_error().powi(2) * windows as f64;
        let n = 2.0 * variance * (quantiles / (factor / (1.0 + min_effect)).ln()).powi(2);
        n.max(MIN_WINDOWS as f64)
    }
}
