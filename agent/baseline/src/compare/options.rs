//! What a comparison is asked for.

use crate::target_metric::Metric;
use nfscope_stats::MIN_EFFECT;

/// How to compare.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Changes by up to this count as none: 0.02 for 2 %.
    pub min_effect: f64,
    /// By how much two recordings of an unchanged server differ beyond their windows, if somebody knows: 0.05 for 5 %.
    pub between: Option<f64>,
    /// What is tested first, at the whole level.
    pub primary: Option<Metric>,
    /// Which times are compared with which.
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

/// Pairs like with like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// Each hour of the day with the same hour.
    Hour,
    /// Each hour of the week with the same hour of the same weekday.
    Weekday,
}
