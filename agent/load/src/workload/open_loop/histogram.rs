//! Durations of one kind of request, counted in bins of less than 1 %.

use crate::workload::fio_report::JobTotals;
use std::collections::BTreeMap;
use std::time::Duration;

/// Bits of a duration that a bin keeps: bins are at most 1/128 of their value wide.
const BITS: u32 = 8;

/// Durations that one worker has counted.
#[derive(Debug, Clone, Default)]
pub(super) struct Durations {
    bins: BTreeMap<u64, u64>,
    sum_ns: f64,
    bytes: u64,
    pub failed: u64,
    /// Error number of the first failure.
    pub error: i64,
}

impl Durations {
    pub fn add(&mut self, duration: Duration, bytes: u64) {
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        *self.bins.entry(bin(ns)).or_default() += 1;
        self.sum_ns += ns as f64;
        self.bytes += bytes;
    }

    pub fn merge(&mut self, other: &Durations) {
        for (ns, n) in &other.bins {
            *self.bins.entry(*ns).or_default() += n;
        }
        self.sum_ns += other.sum_ns;
        self.bytes += other.bytes;
        self.error = if self.failed > 0 {
            self.error
        } else {
            other.error
        };
        self.failed += other.failed;
    }

    pub fn done(&self) -> u64 {
        self.bins.values().sum()
    }

    /// Totals in the form of fio's report, after this elapsed time.
    pub fn totals(&self, moves_data: bool, elapsed: Duration) -> JobTotals {
        let bytes = moves_data.then_some(self.bytes);
        JobTotals::counted(self.bins.clone(), self.sum_ns, bytes, elapsed)
    }
}

/// Middle of the bin that a duration belongs to.
fn bin(ns: u64) -> u64 {
    let shift = (u64::BITS - ns.leading_zeros()).saturating_sub(BITS);
    ((ns >> shift) << shift) + ((1 << shift) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bin_is_close_to_its_values() {
        for ns in [0, 1, 255, 256, 1000, 123_456, 987_654_321, u64::MAX / 3] {
            let error = (bin(ns) as f64 - ns as f64).abs();
            assert!(error <= ns as f64 / 256.0 + 0.5, "{ns}: {}", bin(ns));
        }
    }
}
