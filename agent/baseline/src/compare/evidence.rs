//! Evidence of one recording about one quantity.

use nfscope_stats as stats;
use nfscope_stats::{CONFIDENCE, Estimate, Interval, MIN_WINDOWS};

/// Evidence of a recording about a quantity.
#[derive(Debug, Clone)]
pub(super) enum Evidence {
    NotMeasured,
    /// The quantity was measured in enough windows, and is zero in all of them.
    None {
        /// Half an event, in place of zero where a logarithm is needed.
        half: Estimate,
    },
    TooLittle,
    /// The quantity is present in some recordings and absent in others.
    Mixed,
    Known {
        estimate: Estimate,
    },
}

pub(super) fn known(estimate: Option<Estimate>) -> Evidence {
    estimate.map_or(Evidence::TooLittle, |estimate| Evidence::Known { estimate })
}

/// Evidence about the ratio of `y` to `x`, where `y` may be zero.
pub(super) fn amount(y: &[f64], x: &[f64]) -> Evidence {
    let of = x.iter().sum::<f64>();
    if y.len() < MIN_WINDOWS || of <= 0.0 {
        return Evidence::TooLittle;
    }
    if y.iter().all(|y| *y <= 0.0) {
        return Evidence::None {
            half: Estimate::half_an_event(of, y.len()),
        };
    }
    known(stats::ratio(y, x))
}

impl Evidence {
    pub(super) fn interval(&self) -> Option<Interval> {
        match self {
            Evidence::None { .. } => Some(Interval {
                value: 0.0,
                low: 0.0,
                high: 0.0,
            }),
            Evidence::Known { estimate } => Some(estimate.interval(CONFIDENCE)),
            Evidence::NotMeasured | Evidence::TooLittle | Evidence::Mixed => None,
        }
    }

    pub(super) fn estimate(&self) -> Option<&Estimate> {
        match self {
            Evidence::Known { estimate } => Some(estimate),
            _ => None,
        }
    }

    /// The estimate, or half an event if there was none.
    pub(super) fn at_least_half(&self) -> Option<&Estimate> {
        match self {
            Evidence::Known { estimate } | Evidence::None { half: estimate } => Some(estimate),
            _ => None,
        }
    }
}

/// Joint evidence of all recordings of one side. A recording without a known value makes the side unknown: leaving it out would be a
/// choice.
pub(super) fn of_side(all: &[Evidence]) -> Evidence {
    let first = |is: fn(&Evidence) -> bool| all.iter().find(|e| is(e)).cloned();
    if all.is_empty() {
        return Evidence::NotMeasured;
    }
    first(|e| matches!(e, Evidence::NotMeasured))
        .or_else(|| first(|e| matches!(e, Evidence::TooLittle)))
        .or_else(|| {
            let absent = all.iter().filter(|e| matches!(e, Evidence::None { .. }));
            // Present in some recordings and absent in others: zero has no logarithm.
            let some = (1..all.len()).contains(&absent.count());
            some.then_some(Evidence::Mixed)
        })
        .unwrap_or_else(|| all[0].clone())
}
