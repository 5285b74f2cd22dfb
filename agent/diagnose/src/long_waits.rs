//! Distribution of waiting time over the lengths of waits. Callers that wait for each reply send less while they wait. Therefore long waits
//! are few where they cost most, and their part of the time counts, not their part of the number.

use crate::ratio::{part, sum};
use nfscope_model::Histogram;

/// The waits of a histogram that are at least as long as a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LongWaits {
    /// Number of these waits.
    pub count: f64,
    /// Part of the number of all waits that are these, 0 to 1.
    pub of_count: f64,
    /// Part of the time of all waits that is in these, 0 to 1.
    pub of_time: f64,
    /// Part of the sum of squared lengths that they have, 0 to 1. A caller that comes at a random time meets a write with a probability by
    /// its length, and waits by its length: this is the part of the expected waiting.
    pub of_squares: f64,
    /// Longest wait, at most this; infinite beyond the last edge.
    pub longest: f64,
}

/// Waits of `limit` or longer. A bucket belongs to them if its middle does.
pub fn long_waits(h: &Histogram, limit: f64) -> LongWaits {
    let buckets = || {
        let used = h.counts.iter().enumerate().filter(|(_, n)| **n > 0);
        used.map(|(i, n)| (*n as f64, h.scheme.middle(i)))
    };
    let long = || buckets().filter(|(_, middle)| *middle >= limit);
    let count = sum(long().map(|(n, _)| n));
    let last = h.counts.iter().rposition(|n| *n > 0);
    LongWaits {
        count,
        of_count: part(count, sum(buckets().map(|(n, _)| n))),
        of_time: part(
            sum(long().map(|(n, middle)| n * middle)),
            sum(buckets().map(|(n, middle)| n * middle)),
        ),
        of_squares: part(
            sum(long().map(|(n, middle)| n * middle * middle)),
            sum(buckets().map(|(n, middle)| n * middle * middle)),
        ),
        longest: last.map_or(0.0, |i| h.scheme.upper(i)),
    }
}

/// Weight of a wait by its length, 0 to 1: half at the limit, zero at half of the limit, one at twice the limit. A device a little below
/// the limit is hardly better than one a little above it.
pub fn weight(seconds: f64, limit: f64) -> f64 {
    (0.5 + 0.5 * (seconds / limit).log2()).clamp(0.0, 1.0)
}

/// Mean [`weight`] of the waits of a histogram, 0 to 1. Each wait counts by its length to this power: 1 for the time that was waited, 2 for
/// the expected wait of a caller that comes at a random time.
pub fn mean_weight(h: &Histogram, limit: f64, power: i32) -> f64 {
    let used = || {
        let used = h.counts.iter().enumerate().filter(|(_, n)| **n > 0);
        used.map(|(i, n)| (*n as f64, h.scheme.middle(i)))
    };
    part(
        sum(used().map(|(n, m)| n * m.powi(power) * weight(m, limit))),
        sum(used().map(|(n, m)| n * m.powi(power))),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_model::Scheme;

    fn histogram(waits: &[(f64, u64)]) -> Histogram {
        let mut h = Histogram::new(Scheme::TIME);
        for (seconds, n) in waits {
            h.counts[Scheme::TIME.bucket(*seconds)] += n;
            h.sum += seconds * *n as f64;
        }
        h
    }

    /// A journal that stalls for half a second every five, and is fast in between.
    #[test]
    fn few_waits_can_have_nearly_all_of_the_time() {
        let h = histogram(&[(0.2e-3, 4950), (0.45, 50)]);
        let long = long_waits(&h, 1e-3);
        assert_eq!(long.count, 50.0);
        assert!((long.of_count - 0.01).abs() < 1e-9, "{long:?}");
        assert!((0.94..0.97).contains(&long.of_time), "{long:?}");
        assert!(long.of_squares > 0.9999, "{long:?}");
        assert!((0.45..0.6).contains(&long.longest), "{long:?}");
    }

    #[test]
    fn a_wait_counts_more_the_longer_it_is() {
        for (seconds, expected) in [
            (0.0, 0.0),
            (1e-3, 0.0),
            (2e-3, 0.5),
            (4e-3, 1.0),
            (1.0, 1.0),
        ] {
            assert_eq!(weight(seconds, 2e-3), expected, "{seconds}");
        }
        assert!((weight(2.04e-3, 2e-3) - weight(1.96e-3, 2e-3)).abs() < 0.05);
        // Time decides, and not the number.
        let h = histogram(&[(0.2e-3, 4950), (0.45, 50)]);
        assert!(mean_weight(&h, 1e-3, 1) > 0.9);
        assert_eq!(mean_weight(&histogram(&[]), 1e-3, 1), 0.0);
    }

    #[test]
    fn short_waits_have_none() {
        let long = long_waits(&histogram(&[(0.2e-3, 5000)]), 1e-3);
        assert_eq!((long.count, long.of_time, long.of_squares), (0.0, 0.0, 0.0));
        assert_eq!(long_waits(&histogram(&[]), 1e-3), LongWaits::default());
        // Waits beyond the last edge have no known length.
        let beyond = long_waits(&histogram(&[(1000.0, 1)]), 1e-3);
        assert_eq!((beyond.of_time, beyond.longest), (1.0, f64::INFINITY));
    }
}
