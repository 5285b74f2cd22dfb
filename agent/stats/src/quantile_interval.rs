//! Confidence intervals of quantiles, and positions of quantiles in a histogram.

use crate::interval::Bounds;
use nfscope_model::Histogram;

/// How precisely the share of values above a quantile is known.
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
    /// Ends of its bucket where the position within the bucket is unknown; otherwise the value itself.
    pub outer_low: f64,
    pub outer_high: f64,
    pub bucket: usize,
    /// Share of that bucket's values below it.
    pub part: f64,
}

/// If a bucket holds more than this share of all values on one side of it, nothing is known of their position within the bucket:
/// they may all be equal.
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
            let step = all.scheme.edge(1) / all.scheme.edge(0);
            let high = match bucket {
                b if b + 1 == all.scheme.len => all.scheme.edge(b - 1),
                b => all.scheme.edge(b),
            };
            let low = high / step;
            let value = low * step.powf(within(part, slope(all, bucket)));
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

/// The change of the logarithm of density over a bucket.
fn slope(all: &Histogram, bucket: usize) -> f64 {
    let n = |i: usize| all.counts.get(i).map_or(0.0, |n| *n as f64);
    let before = bucket.checked_sub(1).map_or(0.0, n);
    // Half a value more on both sides, so that an empty neighbour gives a finite slope.
    (((n(bucket + 1) + 0.5) / (before + 0.5)).ln() / 2.0).clamp(-MAX_SLOPE, MAX_SLOPE)
}

/// The position in a bucket (0 to 1) at which this share of its values is reached.
fn within(part: f64, slope: f64) -> f64 {
    if slope.abs() < 1e-6 {
        return part;
    }
    (part * slope.exp_m1()).ln_1p() / slope
}
