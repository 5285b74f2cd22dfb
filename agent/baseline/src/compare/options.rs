//! Options of a comparison.

use crate::target_metric::Metric;
use nfscope_stats::MIN_EFFECT;

/// Options of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Changes by up to this count as none: 0.02 for 2 %.
    pub min_effect: f64,
    /// Standard deviation between recordings of an unchanged server beyond their windows, if the user states it: 0.05 for 5 %.
    pub between: Option<f64>,
    /// Quantity that is tested first, at the whole level.
    pub primary: Option<Metric>,
    /// Pairing of times of both sides.
    pub matching: Option<Match>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            min_effect: MIN_EFFECT,
            between: None,
            primary: None,
            matching: None,
        }
    }
}

/// Pairing of like times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// Each hour of the day with the same hour.
    Hour,
    /// Each hour of the week with the same hour of the same weekday.
    Weekday,
}
