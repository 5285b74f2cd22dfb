//! Durations in a histogram of fixed size, whose quantiles are within 2 % of the values.

use serde::Serialize;

/// Buckets of each power of two, as a power of two.
const FINE: u32 = 6;
const BUCKETS: usize = (65 - FINE as usize) << FINE;

/// Durations in nanoseconds. It needs no memory before the first one, and 30 KiB from then on.
#[derive(Debug, Clone, Default)]
pub(super) struct Durations {
    counts: Vec<u64>,
    count: u64,
    sum: f64,
    largest: u64,
}

fn bucket(ns: u64) -> usize {
    if ns < 1 << FINE {
        return ns as usize;
    }
    let shift = ns.ilog2() - FINE;
    (((shift + 1) as usize) << FINE) + ((ns >> shift) as usize - (1 << FINE))
}

/// Middle of a bucket.
fn value(bucket: usize) -> u64 {
    let (row, column) = (bucket >> FINE, (bucket & ((1 << FINE) - 1)) as u64);
    match row {
        0 => column,
        row => {
            let shift = row as u32 - 1;
            (((1 << FINE) + column) << shift) + (1 << shift) / 2
        }
    }
}

impl Durations {
    pub(super) fn add(&mut self, ns: u64) {
        if self.counts.is_empty() {
            self.counts = vec![0; BUCKETS];
        }
        self.counts[bucket(ns)] += 1;
        self.count += 1;
        self.sum += ns as f64;
        self.largest = self.largest.max(ns);
    }

    pub(super) fn merge(&mut self, other: &Durations) {
        if other.counts.is_empty() {
            return;
        }
        if self.counts.is_empty() {
            self.counts = vec![0; BUCKETS];
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.largest = self.largest.max(other.largest);
    }

    /// Nanoseconds that the share `q` of the durations does not exceed.
    fn quantile(&self, q: f64) -> u64 {
        let rank = ((self.count as f64 * q).ceil() as u64).max(1);
        let mut below = 0;
        for (i, n) in self.counts.iter().enumerate() {
            below += n;
            if below >= rank {
                return value(i).min(self.largest);
            }
        }
        self.largest
    }

    /// Quantiles; `None` without durations.
    pub(super) fn quantiles(&self) -> Option<Quantiles> {
        let seconds = |ns: u64| ns as f64 / 1e9;
        (self.count > 0).then(|| Quantiles {
            mean: self.sum / self.count as f64 / 1e9,
            p50: seconds(self.quantile(0.5)),
            p90: seconds(self.quantile(0.9)),
            p99: seconds(self.quantile(0.99)),
            max: seconds(self.largest),
        })
    }
}

/// Mean and quantiles of durations, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quantiles {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90 % are at most that long.
    pub p90: f64,
    /// 99 % are at most that long.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_two_percent_and_the_largest_is_exact() {
        let mut d = Durations::default();
        assert!(d.quantiles().is_none());
        for ns in 1..=100_000u64 {
            d.add(ns * 1000);
        }
        let q = d.quantiles().unwrap();
        assert!((q.p50 / 0.05 - 1.0).abs() < 0.02, "{q:?}");
        assert!((q.p99 / 0.099 - 1.0).abs() < 0.02, "{q:?}");
        assert_eq!(q.max, 0.1);
        let mut all = Durations::default();
        all.add(u64::MAX);
        all.add(0);
        all.merge(&d);
        assert_eq!(all.quantile(1.0), u64::MAX);
        assert_eq!(all.quantile(0.0), 0);
    }
}
