//! What one recording says about one quantity.

use nfscope_stats as stats;
use nfscope_stats::{CONFIDENCE, Estimate, Interval, MIN_WINDOWS};

/// What one recording says about a quantity.
#[derive(Debug, Clone)]
pub(super) enum Evidence {
    NotMeasured,
    /// Measured in enough windows, and zero in all of them.
    None,
    TooLittle,
    Known {
        estimate: Estimate,
        /// Present in at least half of the windows. Its absence on the other side is then not random.
        steady: bool,
    },
}

pub(super) fn known(estimate: Option<Estimate>) -> Evidence {
    estimate.map_or(Evidence::TooLittle, |estimate| Evidence::Known {
        estimate,
        steady: false,
    })
}

/// Evidence about the ratio of `y` to `x`, where `y` may be zero.
pub(super) fn amount(y: &[f64], x: &[f64]) -> Evidence {
    if y.len() < MIN_WINDOWS || x.iter().sum::<f64>() <= 0.0 {
        return Evidence::TooLittle;
    }
    let with = y.iter().filter(|y| **y > 0.0).count();
    match stats::ratio(y, x) {
        _ if with == 0 => Evidence::None,
        None => Evidence::TooLittle,
        Some(estimate) => Evidence::Known {
            estimate,
            steady: 2 * with >= y.len(),
        },
    }
}

impl Evidence {
    pub(super) fn interval(&self) -> Option<Interval> {
        match self {
            Evidence::None => Some(Interval {
                value: 0.0,
                low: 0.0,
                high: 0.0,
            }),
            Evidence::Known { estimate, .. } => Some(estimate.interval(CONFIDENCE)),
            Evidence::NotMeasured | Evidence::TooLittle => None,
        }
    }

    pub(super) fn estimate(&self) -> Option<&Estimate> {
        match self {
            Evidence::Known { estimate, .. } => Some(estimate),
            _ => None,
        }
    }
}

/// What all recordings of one side say together. One that is not known makes the side unknown: to leave it out would be a choice.
pub(super) fn of_side(all: &[Evidence]) -> Evidence {
    let first = |is: fn(&Evidence) -> bool| all.iter().find(|e| is(e)).cloned();
    if all.is_empty() {
        return Evidence::NotMeasured;
    }
    first(|e| matches!(e, Evidence::NotMeasured))
        .or_else(|| first(|e| matches!(e, Evidence::TooLittle)))
        .or_else(|| {
            let absent = all.iter().filter(|e| matches!(e, Evidence::None)).count();
            match absent {
                0 => None,
                n if n == all.len() => Some(Evidence::None),
                // Present in some and absent in others: there is no logarithm of zero.
                _ => Some(Evidence::TooLittle),
            }
        })
        .unwrap_or_else(|| match all {
            [one] => one.clone(),
            all => {
                let steady = all
                    .iter()
                    .all(|e| matches!(e, Evidence::Known { steady: true, .. }));
                let first = all.iter().find_map(Evidence::estimate).cloned();
                first.map_or(Evidence::TooLittle, |estimate| Evidence::Known {
                    estimate,
                    steady,
                })
            }
        })
}
