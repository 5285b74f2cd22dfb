//! Quantiles of histograms that were taken in windows.

use crate::batch_means::error_of_sum;
use crate::{Ends, LEAST_WINDOWS, Measured, Spread};
use nfscope_model::{Histogram, Scheme, Sparse};

/// How sure it is which share of values lies beyond a quantile.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Beyond {
    all: Histogram,
    share: f64,
    /// Standard error of that share's log odds.
    error: f64,
}

impl Beyond {
    pub(super) fn ends(&self, t: f64) -> Ends {
        let odds = (self.share / (1.0 - self.share)).ln();
        let at = |odds: f64| place(&self.all, 1.0 / (1.0 + odds.exp()));
        // With more beyond it the quantile would be a lower one.
        let [low, middle, high] = [t, 0.0, -t].map(|t| at(odds + t * self.error));
        let or_nan = |p: &Option<Place>, of: fn(&Place) -> f64| p.as_ref().map_or(f64::NAN, of);
        Ends {
            middle: or_nan(&middle, |p| p.value),
            low: or_nan(&low, |p| p.value),
            high: or_nan(&high, |p| p.value),
            at_least: or_nan(&low, |p| p.at_least),
            at_most: or_nan(&high, |p| p.at_most),
        }
    }
}

/// Where in a histogram a quantile lies.
struct Place {
    value: f64,
    /// What is known of it for certain, where its bucket hides too much.
    at_least: f64,
    at_most: f64,
    bucket: usize,
    /// Part of that bucket's values below it.
    part: f64,
}

/// A bucket hides where in it the values are if it has this part of all that lie on one side of it: then they may all be in one
/// place.
const HIDES: f64 = 0.9;
/// Density changes by no more than this factor (its logarithm) from one edge of a bucket to the other.
const STEEPEST: f64 = 3.0;

/// The `q` quantile between the edges of its bucket: unlike the one value per bucket that [`Histogram::quantile`] has, it moves
/// when less than a bucket's worth changes. Inside the bucket density rises or falls exponentially on a logarithmic scale, by
/// as much as it does from the bucket before to the bucket behind.
fn place(all: &Histogram, q: f64) -> Option<Place> {
    let total = all.count() as f64;
    let last = all.counts.iter().rposition(|n| *n > 0)?;
    let rank = q * total;
    let mut below = 0.0;
    for (bucket, n) in all.counts.iter().enumerate() {
        let n = *n as f64;
        if n > 0.0 && (below + n >= rank || bucket == last) {
            let part = ((rank - below) / n).clamp(0.0, 1.0);
            let step = all.scheme.edge(1) / all.scheme.edge(0);
            let high = match bucket {
                b if b + 1 == all.scheme.len => all.scheme.edge(b - 1),
                b => all.scheme.edge(b),
            };
            let low = high / step;
            let value = low * step.powf(within(part, slope(all, bucket)));
            let hides = n > HIDES * (total - below).min(below + n);
            return Some(Place {
                value,
                at_least: if hides { low } else { value },
                at_most: if hides { high } else { value },
                bucket,
                part,
            });
        }
        below += n;
    }
    None
}

/// By how much the logarithm of density changes over a bucket.
fn slope(all: &Histogram, bucket: usize) -> f64 {
    let n = |i: usize| all.counts.get(i).map_or(0.0, |n| *n as f64);
    let before = bucket.checked_sub(1).map_or(0.0, n);
    // Half a value more on both sides: where there is none, there is little.
    (((n(bucket + 1) + 0.5) / (before + 0.5)).ln() / 2.0).clamp(-STEEPEST, STEEPEST)
}

/// Where in a bucket (0 to 1) this part of its values is reached.
fn within(part: f64, slope: f64) -> f64 {
    if slope.abs() < 1e-6 {
        return part;
    }
    (part * slope.exp_m1()).ln_1p() / slope
}

/// The `q` quantile of all windows together. `None` with fewer than [`LEAST_WINDOWS`] of them, or with fewer than ten values
/// on its far side.
pub fn quantile(windows: &[Sparse], scheme: Scheme, q: f64) -> Option<Measured> {
    let mut all = Histogram::new(scheme);
    windows.iter().for_each(|w| all.add(w, 0.0));
    let total = all.count() as f64;
    let share = 1.0 - q;
    if windows.len() < LEAST_WINDOWS || total * share.min(q) < 10.0 {
        return None;
    }
    let at = place(&all, q)?;
    // Values beyond it, counted by window: a p99 that two windows make is known no better than two values are.
    let (mut all_beyond, mut square) = (0.0f64, 0.0f64);
    let rest: Vec<f64> = windows
        .iter()
        .map(|w| {
            let (mut beyond, mut n): (f64, f64) = (0.0, 0.0);
            for (i, count) in w {
                let count = *count as f64;
                n += count;
                beyond += match usize::from(*i) {
                    i if i > at.bucket => count,
                    i if i == at.bucket => count * (1.0 - at.part),
                    _ => 0.0,
                };
            }
            let rare = if q < 0.5 { n - beyond } else { beyond };
            all_beyond += rare;
            square += rare * rare;
            beyond - share * n
        })
        .collect();
    let (se, dof) = error_of_sum(&rest);
    let dof = dof.min(all_beyond * all_beyond / square - 1.0).max(1.0);
    Some(Measured {
        // Where it hides: not far from anything in the bucket, and as every other view has it.
        value: match at.at_least < at.at_most {
            true => 2.0 * at.at_least * at.at_most / (at.at_least + at.at_most),
            false => at.value,
        },
        dof,
        spread: Spread::Quantile(Beyond {
            all,
            share,
            error: se / total / (share * q),
        }),
    })
}
