//! Histograms of one quantity, one per window.

use nfscope_model::{Histogram, Scheme, Sparse};

/// Histograms of one bucket scheme in consecutive windows.
#[derive(Debug, Clone)]
pub struct HistogramSeries {
    /// Bucket scheme.
    pub scheme: Scheme,
    /// Buckets.
    pub buckets: Vec<Sparse>,
    /// Number of values.
    pub counts: Vec<f64>,
    /// Sum of values, in base units.
    pub sums: Vec<f64>,
}

impl HistogramSeries {
    /// A series without windows.
    pub fn new(scheme: Scheme) -> Self {
        HistogramSeries {
            scheme,
            buckets: Vec::new(),
            counts: Vec::new(),
            sums: Vec::new(),
        }
    }

    /// Extends the series with empty windows to this number of windows.
    pub fn begin(&mut self, windows: usize) {
        self.buckets.resize(windows, Sparse::new());
        self.counts.resize(windows, 0.0);
        self.sums.resize(windows, 0.0);
    }

    /// Adds a histogram to the last window. The series takes the common scheme of both. A histogram without a common scheme is ignored.
    pub fn add(&mut self, h: &Histogram) {
        let Some(common) = self.scheme.common(&h.scheme) else {
            return;
        };
        self.convert(common);
        if let (Some(h), Some(buckets), Some(n), Some(sum)) = (
            h.in_scheme(common),
            self.buckets.last_mut(),
            self.counts.last_mut(),
            self.sums.last_mut(),
        ) {
            *buckets = merged(buckets, &h.sparse());
            *n += h.count() as f64;
            *sum += h.sum;
        }
    }

    /// Gives both series their common scheme, so that a difference never comes from the edges.
    pub fn align(&mut self, other: &mut HistogramSeries) {
        if let Some(common) = self.scheme.common(&other.scheme) {
            self.convert(common);
            other.convert(common);
        }
    }

    /// Converts to a scheme that is at most as fine.
    fn convert(&mut self, scheme: Scheme) {
        if self.scheme == scheme {
            return;
        }
        for buckets in &mut self.buckets {
            let mut h = Histogram::new(self.scheme);
            h.add(buckets, 0.0);
            *buckets = h.in_scheme(scheme).map_or_else(Sparse::new, |h| h.sparse());
        }
        self.scheme = scheme;
    }

    /// Merges windows in pairs.
    pub fn coarsen(&mut self) {
        let sums = |v: &[f64]| v.chunks(2).map(|c| c.iter().sum()).collect();
        self.buckets = self
            .buckets
            .chunks(2)
            .map(|c| merged(&c[0], c.get(1).map_or(&[][..], |b| b)))
            .collect();
        self.counts = sums(&self.counts);
        self.sums = sums(&self.sums);
    }

    /// Number of values in all windows.
    pub fn count(&self) -> f64 {
        self.counts.iter().sum()
    }

    /// Sum of the values in all windows.
    pub fn sum(&self) -> f64 {
        self.sums.iter().sum()
    }

    /// Mean of the values in all windows.
    pub fn mean(&self) -> Option<f64> {
        (self.count() > 0.0).then(|| self.sum() / self.count())
    }

    /// All windows merged into one histogram.
    pub fn total(&self) -> Histogram {
        let mut all = Histogram::new(self.scheme);
        for (buckets, sum) in self.buckets.iter().zip(&self.sums) {
            all.add(buckets, *sum);
        }
        all
    }
}

/// Merges two sparse histograms; both are ordered by index.
fn merged(a: &[(u16, u64)], b: &[(u16, u64)]) -> Sparse {
    let mut sum: Sparse = a.iter().chain(b).copied().collect();
    sum.sort_by_key(|(i, _)| *i);
    sum.dedup_by(|later, earlier| {
        let same = later.0 == earlier.0;
        if same {
            earlier.1 += later.1;
        }
        same
    });
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(counts: &[(u16, u64)], sum: f64) -> Histogram {
        let mut h = Histogram::new(Scheme::TIME);
        h.add(counts, sum);
        h
    }

    #[test]
    fn versions_become_one_and_windows_without_it_count() {
        let mut s = HistogramSeries::new(Scheme::TIME);
        s.begin(1);
        s.add(&histogram(&[(3, 1), (7, 2)], 1.0));
        s.add(&histogram(&[(3, 4), (5, 1)], 2.0));
        s.add(&Histogram {
            scheme: Scheme::SIZE,
            ..histogram(&[(3, 9)], 9.0)
        });
        assert_eq!(s.scheme, Scheme::TIME);
        s.begin(3);
        assert_eq!(s.buckets, [vec![(3, 5), (5, 1), (7, 2)], vec![], vec![]]);
        assert_eq!((s.count(), s.sum()), (8.0, 3.0));
        let total = s.total();
        s.coarsen();
        assert_eq!(s.buckets, [vec![(3, 5), (5, 1), (7, 2)], vec![]]);
        assert_eq!(s.total(), total);
    }

    #[test]
    fn an_agent_without_edges_at_powers_of_ten_can_be_followed() {
        let mut s = HistogramSeries::new(Scheme::TIME);
        s.begin(1);
        // Both halves of the bucket that 1 ms divides.
        let at = Scheme::TIME.bucket(0.001) as u16;
        s.add(&histogram(&[(at, 2), (at + 1, 3)], 1.0));
        s.begin(2);
        let mut plain = Histogram::new(Scheme::TIME.undivided());
        let whole = plain.scheme.bucket(0.001);
        plain.counts[whole] = 4;
        s.add(&plain);
        assert_eq!(s.scheme, plain.scheme);
        let whole = whole as u16;
        assert_eq!(s.buckets, [vec![(whole, 5)], vec![(whole, 4)]]);
        // An agent with divided buckets follows one without.
        s.add(&histogram(&[(at, 1), (at + 1, 1)], 1.0));
        assert_eq!(s.buckets[1], [(whole, 6)]);
        assert_eq!((s.count(), s.sum()), (11.0, 2.0));
    }
}
