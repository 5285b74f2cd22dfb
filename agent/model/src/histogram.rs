//! Exponential histograms in the bucket scheme that the probes fill and Prometheus' native histograms use.

use serde::{Deserialize, Serialize};

/// A bucket scheme: bucket `i` of `len` holds values up to and including `2^((first + i) / 2^schema)` in the family's
/// base unit (seconds or bytes). Bucket 0 also holds everything below its edge, the last bucket everything above the
/// edge before it.
///
/// `schema` and the index arithmetic are those of Prometheus native histograms (of the standard schemas those from one bucket
/// per power of two on), so that no value moves between buckets on its way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Untrusted")]
pub struct Scheme {
    /// Buckets per power of two are `2^schema`; 0 to 8.
    pub schema: i8,
    /// Native bucket index of bucket 0.
    pub first: i32,
    /// Number of buckets, the overflow bucket included.
    pub len: usize,
}

/// A scheme from a file or from another host.
#[derive(Deserialize)]
struct Untrusted {
    schema: i8,
    first: i32,
    len: usize,
}

/// Edges outside of these are none of a duration or a size, and more buckets than these are none of ours.
const MOST_POWERS: i64 = 128;
const MOST_BUCKETS: usize = 4096;

impl TryFrom<Untrusted> for Scheme {
    type Error = &'static str;

    fn try_from(s: Untrusted) -> Result<Scheme, Self::Error> {
        let Untrusted { schema, first, len } = s;
        if !(0..=8).contains(&schema) {
            return Err("a bucket scheme between whole powers of two, or of an unknown kind");
        }
        let last = i64::from(first) + len as i64;
        let powers = -MOST_POWERS << schema..=MOST_POWERS << schema;
        let known = powers.contains(&i64::from(first)) && powers.contains(&last);
        if !(2..=MOST_BUCKETS).contains(&len) || !known {
            return Err("a bucket scheme out of all bounds");
        }
        Ok(Scheme { schema, first, len })
    }
}

impl Scheme {
    /// Durations: four buckets per power of two from 2^-20 s (0.95 µs) to 2^6 s (64 s). Any quantile read from it is
    /// within 9 % of the truth (half of the step 2^(1/4), harmonic).
    pub const TIME: Scheme = Scheme {
        schema: 2,
        first: -80,
        len: 106,
    };
    /// Sizes: one bucket per power of two from 1 byte to 2^30 bytes.
    pub const SIZE: Scheme = Scheme {
        schema: 0,
        first: 0,
        len: 32,
    };
    /// Small counts (component ops per COMPOUND): one bucket per power of two from 1 to 1024.
    pub const COUNT: Scheme = Scheme {
        schema: 0,
        first: 0,
        len: 12,
    };

    /// Upper edge of bucket `i` in base units; infinite for the overflow bucket.
    pub fn upper(&self, i: usize) -> f64 {
        if i + 1 >= self.len {
            return f64::INFINITY;
        }
        self.edge(i)
    }

    /// `2^((first + i) / 2^schema)`, also for the overflow bucket's would-be edge.
    pub fn edge(&self, i: usize) -> f64 {
        let n = self.first + i as i32;
        let per = 1i32 << self.schema;
        // Split so that whole powers of two are exact.
        let (whole, part) = (n.div_euclid(per), n.rem_euclid(per));
        2f64.powi(whole) * 2f64.powf(f64::from(part) / f64::from(per))
    }

    /// The bucket of a value in base units: the first whose upper edge is not below it.
    pub fn bucket(&self, v: f64) -> usize {
        (0..self.len - 1)
            .find(|&i| v <= self.edge(i))
            .unwrap_or(self.len - 1)
    }
}

/// Index and count of each bucket that has something, by index.
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

    /// Adds the values of another histogram of the same scheme.
    pub fn merge(&mut self, other: &Histogram) {
        debug_assert_eq!(self.scheme, other.scheme);
        for (a, b) in self.counts.iter_mut().zip(&other.counts) {
            *a += b;
        }
        self.sum += other.sum;
    }

    /// Adds values by bucket, and their sum. What is of no bucket here is left out.
    pub fn add(&mut self, counts: &[(u16, u64)], sum: f64) {
        for (i, n) in counts {
            if let Some(c) = self.counts.get_mut(usize::from(*i)) {
                *c += n;
            }
        }
        self.sum += sum;
    }

    /// The buckets that have something.
    pub fn sparse(&self) -> Sparse {
        let all = (0..).zip(self.counts.iter().copied());
        all.filter(|(_, n)| *n > 0).collect()
    }

    /// What was added since `earlier`. Where any count went backwards the source started anew, and everything in
    /// `self` came since.
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
    /// It is the value that halves the relative error between the edges of the bucket in which the quantile lies
    /// (their harmonic mean). The overflow bucket answers with its lower edge, the first bucket with its upper one:
    /// a bound, not a guess.
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
    fn a_value_on_an_upper_edge_belongs_to_the_bucket_below_it() {
        for scheme in [Scheme::TIME, Scheme::SIZE, Scheme::COUNT] {
            for i in 0..scheme.len - 1 {
                let edge = scheme.edge(i);
                assert_eq!(scheme.bucket(edge), i);
                assert_eq!(scheme.bucket(edge * 1.000_001), i + 1);
            }
        }
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
