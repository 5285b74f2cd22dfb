//! Ratios of configurations to the first one, by pairs within rounds: for tables of campaigns, and for versions.

use nfscope_stats::mean_interval::Interval;
use nfscope_stats::{Change, MIN_EFFECT, holm_weighted, paired_rounds};

/// Corrected p value up to which there is evidence.
pub(crate) const LEVEL: f64 = 0.05;
/// Power of the difference that a row without evidence names.
const POWER: f64 = 0.8;

/// Ratio of a configuration to the first one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Beside {
    /// Geometric mean of the ratios; `None` without a pair.
    pub ratio: Option<f64>,
    /// Ends of its 95 % interval; `None` for fewer than six rounds.
    pub interval: Option<[f64; 2]>,
    /// Test of a difference; `None` if there is no interval.
    pub change: Option<Change>,
}

impl Beside {
    /// Builds the ratio from its logarithms, one for each round.
    pub(crate) fn of(differences: &[f64]) -> Beside {
        let change = paired_rounds(differences, MIN_EFFECT);
        let mean = differences.iter().sum::<f64>() / differences.len() as f64;
        let few = (!differences.is_empty()).then(|| mean.exp());
        Beside {
            ratio: change.map(|c| c.ratio.value).or(few),
            interval: change.map(|c| [c.ratio.low, c.ratio.high]),
            change,
        }
    }
}

/// Result of a test with Holm's correction.
pub(crate) struct Judged {
    /// Corrected p value of a difference beyond the least effect.
    pub p: f64,
    /// True if there is evidence of such a difference.
    pub found: bool,
    /// Smallest ratio above 1 that this number of rounds finds in four of five campaigns.
    pub finds: f64,
}

/// Judges each change, by its weight among all.
pub(crate) fn judge(changes: &[(Change, f64)]) -> Vec<Judged> {
    let p: Vec<f64> = changes.iter().map(|(c, _)| c.p).collect();
    let weights: Vec<f64> = changes.iter().map(|(_, w)| *w).collect();
    let all: f64 = weights.iter().sum();
    let each = changes.iter().zip(holm_weighted(&p, &weights));
    let judged = each.map(|((change, weight), p)| Judged {
        p,
        found: p <= LEVEL,
        finds: change.smallest_found(MIN_EFFECT, LEVEL * weight / all, POWER),
    });
    judged.collect()
}

/// Mean over rounds, with its interval from `least` rounds on.
pub(crate) fn over_rounds(values: &[f64], least: usize) -> Option<Interval> {
    let mut mean = Interval::of_rounds(values)?;
    if values.len() < least {
        mean.half_width = None;
    }
    Some(mean)
}
