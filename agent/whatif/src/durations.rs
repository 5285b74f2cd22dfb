//! Durations that the simulation draws.

use nfscope_model::Histogram;
use rand::Rng;
use rand::rngs::SmallRng;

/// Distribution of a duration.
#[derive(Debug, Clone, PartialEq)]
pub enum Durations {
    /// Always the same.
    Constant(f64),
    /// Between half and one and a half times the mean.
    Even(f64),
    /// Exponential with this mean.
    Exponential(f64),
    /// Distribution of a histogram: each value with the upper end of its accumulated share.
    Measured(Vec<(f64, f64)>),
}

impl Durations {
    /// Values of a histogram, each at the place of its bucket and scaled so that the mean is exact; `None` without values.
    pub fn of(h: &Histogram) -> Option<Durations> {
        let (mean, n) = (h.mean()?, h.count() as f64);
        let mut shares = Vec::new();
        let (mut seen, mut sum) = (0.0, 0.0);
        for (i, count) in h.counts.iter().enumerate().filter(|(_, c)| **c > 0) {
            let value = h.scheme.middle(i);
            seen += *count as f64 / n;
            sum += *count as f64 / n * value;
            shares.push((seen, value));
        }
        for (_, value) in &mut shares {
            *value *= mean / sum;
        }
        Some(Durations::Measured(shares))
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        match self {
            Durations::Constant(m) | Durations::Even(m) | Durations::Exponential(m) => *m,
            Durations::Measured(shares) => {
                let before = std::iter::once(0.0).chain(shares.iter().map(|s| s.0));
                shares
                    .iter()
                    .zip(before)
                    .map(|(s, b)| s.1 * (s.0 - b))
                    .sum()
            }
        }
    }

    /// The distribution scaled to another mean.
    pub fn with_mean(&self, mean: f64) -> Durations {
        let old = self.mean();
        match self {
            Durations::Measured(shares) if old > 0.0 => {
                Durations::Measured(shares.iter().map(|s| (s.0, s.1 * mean / old)).collect())
            }
            Durations::Even(_) => Durations::Even(mean),
            Durations::Exponential(_) => Durations::Exponential(mean),
            Durations::Constant(_) | Durations::Measured(_) => Durations::Constant(mean),
        }
    }

    pub(crate) fn draw(&self, random: &mut SmallRng) -> f64 {
        match self {
            Durations::Constant(m) => *m,
            Durations::Even(m) => m * (0.5 + random.random::<f64>()),
            Durations::Exponential(m) => -m * (1.0 - random.random::<f64>()).ln(),
            Durations::Measured(shares) => {
                let at = random.random::<f64>();
                let i = shares.partition_point(|s| s.0 < at);
                shares.get(i).or(shares.last()).map_or(0.0, |s| s.1)
            }
        }
    }
}

/// Index of one of several, drawn by weight.
pub(crate) fn pick(weights: &[f64], random: &mut SmallRng) -> usize {
    let mut at = random.random::<f64>() * weights.iter().sum::<f64>();
    let found = weights.iter().position(|w| {
        at -= w;
        at < 0.0
    });
    found.unwrap_or(0)
}
