//! Exponential histograms in the buckets that the probes fill.

use crate::scheme::Scheme;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Index and count of each bucket that is not empty, in the order of the index.
pub type Sparse = Vec<(u16, u64)>;

/// Counts per bucket of a [`Scheme`], and the exact sum of the values in base units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Foreign")]
pub struct Histogram {
    /// Bucket scheme of `counts`.
    pub scheme: Scheme,
    /// Values per bucket, not accumulated; `scheme.len` of them.
    pub counts: Vec<u64>,
    /// Sum of all values, in base units.
    pub sum: f64,
}

/// A histogram from another host.
#[derive(Deserialize)]
struct Foreign {
    scheme: Scheme,
    counts: Vec<u64>,
    sum: f64,
}

impl TryFrom<Foreign> for Histogram {
    type Error = &'static str;

    fn try_from(h: Foreign) -> Result<Histogram, Self::Error> {
        let Foreign {
            scheme,
            counts,
            sum,
        } = h;
        if counts.len() != scheme.len {
            return Err("a histogram without a count for each of its buckets");
        }
        Ok(Histogram {
            scheme,
            counts,
            sum,
        })
    }
}

impl Histogram {
    /// An empty histogram.
    pub fn new(scheme: Scheme) -> Self {
        Histogram {
            scheme,
            counts: vec![0; scheme.len],
            sum: 0.0,
        }
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Mean in base units; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        let n = self.count();
        (n > 0).then(|| self.sum / n as f64)
    }

    /// Adds the values of another histogram, in the finest scheme that can count both. A histogram without a common scheme is ignored.
    pub fn merge(&mut self, other: &Histogram) {
        let common = self.scheme.common(&other.scheme);
        debug_assert!(common.is_some(), "{:?}, {:?}", self.scheme, other.scheme);
        let Some(common) = common else { return };
        if self.scheme != common {
            *self = self.undivided();
        }
        let Some(other) = other.in_scheme(common) else {
            return;
        };
        for (a, b) in self.counts.iter_mut().zip(&other.counts) {
            *a += b;
        }
        self.sum += other.sum;
    }

    /// Sum of these histograms; `None` without a histogram.
    pub fn merged<'a>(all: impl IntoIterator<Item = &'a Histogram>) -> Option<Histogram> {
        let mut all = all.into_iter();
        let mut first = all.next()?.clone();
        all.for_each(|h| first.merge(h));
        Some(first)
    }

    /// Converts to the plain schema: the halves of each bucket that a decade divides are added up.
    pub fn undivided(&self) -> Histogram {
        let mut whole = Histogram::new(self.scheme.undivided());
        for (i, n) in self.counts.iter().enumerate() {
            let native = self.scheme.native(i) - self.scheme.first;
            if let Some(c) = whole.counts.get_mut(native as usize) {
                *c += n;
            }
        }
        whole.sum = self.sum;
        whole
    }

    /// Converts to a scheme that is at most as fine; `None` where its values cannot be counted in it.
    pub fn in_scheme(&self, scheme: Scheme) -> Option<Cow<'_, Histogram>> {
        if self.scheme == scheme {
            return Some(Cow::Borrowed(self));
        }
        (self.scheme.undivided() == scheme).then(|| Cow::Owned(self.undivided()))
    }

    /// Adds values by bucket, and their sum. Counts of buckets that this scheme does not have are ignored.
    pub fn add(&mut self, counts: &[(u16, u64)], sum: f64) {
        for (i, n) in counts {
            if let Some(c) = self.counts.get_mut(usize::from(*i)) {
                *c += n;
            }
        }
        self.sum += sum;
    }

    /// Buckets that are not empty.
    pub fn sparse(&self) -> Sparse {
        let all = (0..).zip(self.counts.iter().copied());
        all.filter(|(_, n)| *n > 0).collect()
    }

    /// Values that were added since `earlier`. If any count went backwards, the source started anew, and all values of `self` came since.
    pub fn since(&self, earlier: &Histogram) -> Histogram {
        if self.scheme != earlier.scheme
            || self.counts.iter().zip(&earlier.counts).any(|(b, a)| b < a)
        {
            return self.clone();
        }
        Histogram {
            scheme: self.scheme,
            counts: self
                .counts
                .iter()
                .zip(&earlier.counts)
                .map(|(b, a)| b - a)
                .collect(),
            sum: (self.sum - earlier.sum).max(0.0),
        }
    }

    /// The `q` quantile (0 to 1) in base units, `None` without values.
    ///
    /// The bucket in which the quantile lies gives the result: the value that halves the relative error between both edges (their harmonic
    /// mean). For the overflow bucket it is the lower edge, for the first bucket the upper one: a bound, not a guess.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let total = self.count();
        if total == 0 {
            return None;
        }
        let rank = ((q.clamp(0.0, 1.0) * total as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (i, n) in self.counts.iter().enumerate() {
            seen += n;
            if seen >= rank {
                return Some(match i {
                    0 => self.scheme.edge(0),
                    _ if i + 1 == self.scheme.len => self.scheme.edge(i - 1),
                    _ => {
                        let (lo, hi) = (self.scheme.edge(i - 1), self.scheme.edge(i));
                        2.0 * lo * hi / (lo + hi)
                    }
                });
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fixed pseudo-random sequence (SplitMix64), so that a failure repeats.
    fn samples(n: usize) -> Vec<f64> {
        let mut x = 0x5eed_u64;
        (0..n)
            .map(|_| {
                x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut z = x;
                z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                let u = ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64;
                // Log-uniform over 1 µs to 64 s.
                1e-6 * (64e6f64).powf(u)
            })
            .collect()
    }

    #[test]
    fn every_quantile_is_within_ten_percent_of_the_recorded_samples() {
        let mut all = samples(20_000);
        let mut h = Histogram::new(Scheme::TIME);
        for &v in &all {
            h.counts[Scheme::TIME.bucket(v)] += 1;
        }
        all.sort_by(f64::total_cmp);
        for q in [0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1.0] {
            let truth = all[((q * all.len() as f64).ceil() as usize).max(1) - 1];
            let got = h.quantile(q).unwrap();
            assert!(
                (got / truth - 1.0).abs() <= 0.10,
                "q={q}: {got} for a true {truth}"
            );
        }
    }

    #[test]
    fn halves_are_what_the_plain_schema_counts() {
        let (mut divided, mut plain) = (
            Histogram::new(Scheme::TIME),
            Histogram::new(Scheme::TIME.undivided()),
        );
        for v in samples(5_000).into_iter().chain([1e-3, 1e-9, 65.0]) {
            for h in [&mut divided, &mut plain] {
                h.counts[h.scheme.bucket(v)] += 1;
                h.sum += v;
            }
        }
        assert_eq!(divided.undivided(), plain);
        assert_eq!(plain.undivided(), plain);
        assert_eq!(plain.in_scheme(Scheme::TIME), None);
        // Merging converts to the plain schema in either order.
        let mut twice = plain.clone();
        twice.merge(&plain);
        let both = |first: &Histogram, second: &Histogram| {
            let mut all = first.clone();
            all.merge(second);
            all
        };
        assert_eq!(both(&divided, &plain), twice);
        assert_eq!(both(&plain, &divided), twice);
        assert_eq!(both(&divided, &divided).undivided(), twice);
    }

    #[test]
    fn a_window_of_a_restarted_source_is_what_came_since() {
        let mut a = Histogram::new(Scheme::COUNT);
        a.counts[1] = 5;
        let mut b = Histogram::new(Scheme::COUNT);
        b.counts[1] = 2;
        b.sum = 4.0;
        assert_eq!(b.since(&a), b);
        a.counts[1] = 1;
        a.sum = 2.0;
        assert_eq!(b.since(&a).counts[1], 1);
        assert_eq!(b.since(&a).sum, 2.0);
    }
}
