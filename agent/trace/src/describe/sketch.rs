//! Sketches: distributions, numbers of distinct things and most frequent things, in bounded memory.

use serde::Serialize;
use std::collections::{BTreeSet, HashMap};

/// Bits of a number that look random (finaliser of SplitMix64).
pub fn mix(n: u64) -> u64 {
    let mut z = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Steps in each doubling of a value.
const STEPS: u64 = 8;
const BUCKETS: usize = 8 + 61 * STEPS as usize;

/// Distribution of numbers: counts in buckets of which eight double the value. A value read back is at most 12.5 % too low.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    buckets: Vec<u64>,
    count: u64,
    sum: f64,
}

impl Default for Distribution {
    fn default() -> Distribution {
        Distribution {
            buckets: vec![0; BUCKETS],
            count: 0,
            sum: 0.0,
        }
    }
}

/// A bucket with its counts, for JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bucket {
    /// Lowest value.
    pub from: u64,
    /// Values in the bucket.
    pub count: u64,
}

impl Distribution {
    fn bucket(value: u64) -> usize {
        if value < STEPS {
            return value as usize;
        }
        let log = u64::from(value.ilog2());
        let step = (value >> (log - 3)) & (STEPS - 1);
        ((log - 2) * STEPS + step) as usize
    }

    fn lowest(bucket: usize) -> u64 {
        let bucket = bucket as u64;
        match bucket < STEPS {
            true => bucket,
            false => (STEPS + bucket % STEPS) << (bucket / STEPS - 1),
        }
    }

    /// Adds a value.
    pub fn add(&mut self, value: u64) {
        self.buckets[Self::bucket(value)] += 1;
        self.count += 1;
        self.sum += value as f64;
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Mean; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// Value below or at which this part of all is, to 12.5 %; `None` without values.
    pub fn quantile(&self, part: f64) -> Option<u64> {
        let rank = (part * self.count as f64).ceil().max(1.0) as u64;
        let mut below = 0;
        self.buckets().find_map(|b| {
            below += b.count;
            (below >= rank).then_some(b.from)
        })
    }

    /// Buckets with values.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> {
        let counts = self.buckets.iter().enumerate();
        counts.filter(|(_, n)| **n > 0).map(|(i, n)| Bucket {
            from: Self::lowest(i),
            count: *n,
        })
    }

    /// Largest difference of the two cumulative distributions at an edge of a bucket (Kolmogorov-Smirnov): 0 if they are equal, 1 if no
    /// value of one is as low as any of the other. `None` if either has no values.
    pub fn distance(&self, other: &Distribution) -> Option<f64> {
        if self.count == 0 || other.count == 0 {
            return None;
        }
        let (mut here, mut there, mut largest) = (0, 0, 0.0_f64);
        for (a, b) in self.buckets.iter().zip(&other.buckets) {
            (here, there) = (here + a, there + b);
            let parts = (
                here as f64 / self.count as f64,
                there as f64 / other.count as f64,
            );
            largest = largest.max((parts.0 - parts.1).abs());
        }
        Some(largest)
    }
}

impl Serialize for Distribution {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.buckets())
    }
}

const REGISTER_BITS: u32 = 11;
const REGISTERS: usize = 1 << REGISTER_BITS;

/// Number of distinct things, with a standard error of 2.3 % (P. Flajolet et al., HyperLogLog, AofA 2007).
#[derive(Debug, Clone, PartialEq)]
pub struct Distinct(Vec<u8>);

impl Default for Distinct {
    fn default() -> Distinct {
        Distinct(vec![0; REGISTERS])
    }
}

impl Distinct {
    /// Adds a thing by its hash.
    pub fn add(&mut self, hash: u64) {
        let register = (hash >> (64 - REGISTER_BITS)) as usize;
        let rank = (hash << REGISTER_BITS).leading_zeros().min(63) + 1;
        self.0[register] = self.0[register].max(rank as u8);
    }

    /// Adds the things of another.
    pub fn merge(&mut self, other: &Distinct) {
        for (here, there) in self.0.iter_mut().zip(&other.0) {
            *here = (*here).max(*there);
        }
    }

    /// Estimate.
    pub fn count(&self) -> f64 {
        let m = REGISTERS as f64;
        let sum: f64 = self.0.iter().map(|r| (-f64::from(*r)).exp2()).sum();
        let raw = 0.7213 / (1.0 + 1.079 / m) * m * m / sum;
        let empty = self.0.iter().filter(|r| **r == 0).count();
        // Few things are counted by the registers that are still empty.
        match raw <= 2.5 * m && empty > 0 {
            true => m * (m / empty as f64).ln(),
            false => raw,
        }
    }
}

/// Most frequent things, in `most` counters (A. Metwally et al., Efficient computation of frequent and top-k elements, ICDT 2005). A count
/// is never too low, and too high by no more than its error.
#[derive(Debug, Clone)]
pub struct Frequent {
    most: usize,
    counts: HashMap<u64, (u64, u64)>,
    order: BTreeSet<(u64, u64)>,
}

impl Frequent {
    /// Counts with this number of counters.
    pub fn new(most: usize) -> Frequent {
        Frequent {
            most,
            counts: HashMap::new(),
            order: BTreeSet::new(),
        }
    }

    /// Adds to a thing.
    pub fn add(&mut self, thing: u64, weight: u64) {
        let (count, error) = match self.counts.get(&thing) {
            Some(before) => {
                self.order.remove(&(before.0, thing));
                *before
            }
            None if self.counts.len() >= self.most => {
                let lowest = self.order.pop_first().unwrap_or_default();
                self.counts.remove(&lowest.1);
                (lowest.0, lowest.0)
            }
            None => (0, 0),
        };
        let count = count.saturating_add(weight);
        self.counts.insert(thing, (count, error));
        self.order.insert((count, thing));
    }

    /// Things with their counts and the errors of these, the most frequent first.
    pub fn top(&self, most: usize) -> Vec<(u64, u64, u64)> {
        let all = self.order.iter().rev().take(most);
        all.map(|(count, thing)| {
            let error = self.counts.get(thing).map_or(0, |c| c.1);
            (*thing, *count, error)
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_read_back_is_at_most_an_eighth_too_low() {
        for value in (0..64).flat_map(|shift| {
            [
                1_u64 << shift,
                (1 << shift) + (1 << shift) / 3,
                u64::MAX >> shift,
            ]
        }) {
            let lowest = Distribution::lowest(Distribution::bucket(value));
            assert!(lowest <= value, "{value}");
            assert!(lowest as f64 >= value as f64 / 1.125, "{value} {lowest}");
        }
        let mut d = Distribution::default();
        (1..=1000).for_each(|v| d.add(v));
        assert_eq!(d.quantile(0.5), Some(480));
        assert_eq!(d.mean(), Some(500.5));
        assert_eq!(Distribution::default().quantile(0.5), None);
    }

    #[test]
    fn distributions_are_as_far_from_each_other_as_their_largest_difference() {
        let of = |values: &[u64]| {
            let mut d = Distribution::default();
            values.iter().for_each(|v| d.add(*v));
            d
        };
        assert_eq!(of(&[1, 2, 3]).distance(&of(&[1, 2, 3, 1, 2, 3])), Some(0.0));
        assert_eq!(of(&[1, 2]).distance(&of(&[100, 200])), Some(1.0));
        assert_eq!(of(&[1, 100]).distance(&of(&[1, 1])), Some(0.5));
        assert_eq!(of(&[]).distance(&of(&[1])), None);
    }

    #[test]
    fn distinct_things_are_counted_to_some_percent() {
        for n in [1, 100, 5000, 1_000_000_u64] {
            let mut d = Distinct::default();
            (0..n).for_each(|i| d.add(mix(i)));
            (0..n).for_each(|i| d.add(mix(i)));
            let error = d.count() / n as f64 - 1.0;
            assert!(error.abs() < 0.07, "{n}: {}", d.count());
        }
    }

    #[test]
    fn the_most_frequent_things_are_found_with_bounds_of_their_counts() {
        let mut f = Frequent::new(64);
        for i in 0..100_000_u64 {
            f.add(if i % 10 == 0 { 7 } else { 1000 + i }, 1);
        }
        let (thing, count, error) = f.top(1)[0];
        assert_eq!(thing, 7);
        assert!(
            (10_000..=10_000 + error).contains(&count),
            "{count} {error}"
        );
    }
}
