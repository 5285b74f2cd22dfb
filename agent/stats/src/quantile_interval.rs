//! Confidence intervals of quantiles, and positions of quantiles in a histogram.

use crate::interval::Bounds;
use nfscope_model::{Histogram, Scheme};

/// Precision of the share of values above a quantile.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct QuantileError {
    pub all: Histogram,
    /// The share of values above the quantile.
    pub share: f64,
    /// Standard error of the log odds of that share.
    pub log_odds_error: f64,
}

impl QuantileError {
    pub(crate) fn bounds(&self, t: f64) -> Bounds {
        let odds = (self.share / (1.0 - self.share)).ln();
        let at = |odds: f64| position(&self.all, 1.0 / (1.0 + odds.exp()));
        // A larger share above the value means a lower quantile.
        let [low, middle, high] = [t, 0.0, -t].map(|t| at(odds + t * self.log_odds_error));
        let or_nan =
            |p: &Option<Position>, of: fn(&Position) -> f64| p.as_ref().map_or(f64::NAN, of);
        Bounds {
            middle: or_nan(&middle, |p| p.value),
            low: or_nan(&low, |p| p.value),
            high: or_nan(&high, |p| p.value),
            outer_low: or_nan(&low, |p| p.outer_low),
            outer_high: or_nan(&high, |p| p.outer_high),
        }
    }
}

/// The position of a quantile in a histogram.
pub(crate) struct Position {
    pub value: f64,
    /// Edges of the bucket if the position within the bucket is unknown; otherwise the value itself.
    pub outer_low: f64,
    pub outer_high: f64,
    pub bucket: usize,
    /// Share of the bucket's values below the quantile.
    pub part: f64,
}

/// Part of all values on one side of a bucket from which on the position within the bucket is unknown: the values may all be equal.
const UNRESOLVED_SHARE: f64 = 0.9;
/// Limit for the change of density (the logarithm of its factor) from one edge of a bucket to the other.
const MAX_SLOPE: f64 = 3.0;

/// Interpolates the `q` quantile between the edges of its bucket. Unlike [`Histogram::quantile`], which has one value per
/// bucket, it reacts to changes smaller than a bucket. Within the bucket the density rises or falls exponentially on a
/// logarithmic scale, by as much as from the bucket before to the bucket after.
pub(crate) fn position(all: &Histogram, q: f64) -> Option<Position> {
    let total = all.count() as f64;
    let last = all.counts.iter().rposition(|n| *n > 0)?;
    let rank = q * total;
    let mut below = 0.0;
    for (bucket, n) in all.counts.iter().enumerate() {
        let n = *n as f64;
        if n > 0.0 && (below + n >= rank || bucket == last) {
            let part = ((rank - below) / n).clamp(0.0, 1.0);
            let (low, high) = ends(&all.scheme, bucket);
            let value = low * (high / low).powf(within(part, slope(all, bucket)));
            let unresolved = n > UNRESOLVED_SHARE * (total - below).min(below + n);
            return Some(Position {
                value,
                outer_low: if unresolved { low } else { value },
                outer_high: if unresolved { high } else { value },
                bucket,
                part,
            });
        }
        below += n;
    }
    None
}

/// The edges of a bucket. One without a lower edge is as wide as a bucket of the schema; the overflow bucket is taken to be
/// such a bucket below its only edge.
fn ends(scheme: &Scheme, bucket: usize) -> (f64, f64) {
    let step = scheme.edge(1) / scheme.edge(0);
    match bucket {
        0 => (scheme.edge(0) / step, scheme.edge(0)),
        b if b + 1 == scheme.len => (scheme.edge(b - 1) / step, scheme.edge(b - 1)),
        b => (scheme.edge(b - 1), scheme.edge(b)),
    }
}

/// The change of the logarithm of density over a bucket. Buckets differ in width where a power of ten divides one, so that
/// counts are no densities.
fn slope(all: &Histogram, bucket: usize) -> f64 {
    let unit = (all.scheme.edge(1) / all.scheme.edge(0)).ln();
    // In buckets of the schema.
    let width = |i: usize| {
        let (low, high) = ends(&all.scheme, i.min(all.scheme.len - 1));
        (high / low).ln() / unit
    };
    // Half a value more for each such bucket, so that an empty neighbour gives a finite slope.
    let density = |i: Option<usize>| {
        let n = i.and_then(|i| all.counts.get(i));
        let width = i.map_or(1.0, width);
        (n.map_or(0.0, |n| *n as f64) + 0.5 * width) / width
    };
    let (before, after) = (bucket.checked_sub(1), Some(bucket + 1));
    // From the middle of one neighbour to the middle of the other.
    let apart = before.map_or(1.0, width) / 2.0 + width(bucket) + width(bucket + 1) / 2.0;
    let change = (density(after) / density(before)).ln();
    (change * width(bucket) / apart).clamp(-MAX_SLOPE, MAX_SLOPE)
}

/// The position in a bucket (0 to 1) at which this share of its values is reached.
fn within(part: f64, slope: f64) -> f64 {
    if slope.abs() < 1e-6 {
        return part;
    }
    (part * slope.exp_m1()).ln_1p() / slope
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Share of the values of a smooth distribution around 1.05 ms that are at most this long.
    fn share(seconds: f64) -> f64 {
        1.0 / (1.0 + (seconds / 1.05e-3).powf(-2.0))
    }

    fn counted(scheme: Scheme) -> Histogram {
        let mut h = Histogram::new(scheme);
        let below = |i: usize| (share(scheme.upper(i)) * 1e9).round() as u64;
        for i in 0..scheme.len {
            h.counts[i] = below(i) - i.checked_sub(1).map_or(0, below);
        }
        h
    }

    #[test]
    fn divided_buckets_give_the_quantiles_of_whole_ones() {
        for scheme in [Scheme::TIME, Scheme::TIME.undivided()] {
            let h = counted(scheme);
            for k in 1..1000 {
                let q = f64::from(k) / 1000.0;
                let truth = 1.05e-3 * (q / (1.0 - q)).sqrt();
                let got = position(&h, q).unwrap().value;
                assert!((got / truth - 1.0).abs() < 0.001, "{q}: {got} for {truth}");
            }
        }
    }

    #[test]
    fn a_quantile_lies_between_the_edges_of_its_bucket() {
        let scheme = Scheme::TIME;
        for bucket in 0..scheme.len - 1 {
            let mut h = Histogram::new(scheme);
            h.counts[bucket] = 100;
            for q in [0.01, 0.5, 0.99] {
                let at = position(&h, q).unwrap();
                let (low, high) = ends(&scheme, bucket);
                assert!(
                    low <= at.value && at.value <= high,
                    "{bucket}: {}",
                    at.value
                );
                assert_eq!((at.outer_low, at.outer_high), (low, high));
                assert_eq!(high, scheme.edge(bucket));
            }
        }
    }
}
