//! Confidence intervals and their width in standard errors.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// The confidence of every reported interval.
pub const CONFIDENCE: f64 = 0.95;

/// A value and the ends of its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// The value.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The ends of an interval: from random variation alone, and including the uncertainty within a histogram bucket, which is not
/// random.
pub(crate) struct Bounds {
    pub middle: f64,
    pub low: f64,
    pub high: f64,
    pub outer_low: f64,
    pub outer_high: f64,
}

/// Half width of an interval of this confidence in standard errors; infinite without degrees of freedom.
pub(crate) fn students_t(confidence: f64, dof: f64) -> f64 {
    // Above this number of degrees of freedom both distributions agree to four digits, and the inverse of Student's t is slow.
    if dof > 1e6 {
        return Normal::standard().inverse_cdf(0.5 + confidence / 2.0);
    }
    StudentsT::new(0.0, 1.0, dof).map_or(f64::INFINITY, |t| t.inverse_cdf(0.5 + confidence / 2.0))
}

/// Probability that a variable with Student's t distribution is further from 0 than this.
pub(crate) fn beyond(t: f64, dof: f64) -> f64 {
    // NaN is zero divided by zero: there is no difference.
    if t.is_nan() {
        return 1.0;
    }
    StudentsT::new(0.0, 1.0, dof).map_or(1.0, |d| 2.0 * d.sf(t.abs()))
}
