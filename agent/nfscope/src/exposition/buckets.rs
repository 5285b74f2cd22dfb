//! A histogram's two faces: coarse classic buckets, and native ones as fine as the kernel keeps them.

use nfscope_model::Histogram;
use prometheus_client::encoding::{NativeHistogram, NativeHistogramBuckets};

/// `le` and count of the classic buckets, not accumulated: one per power of two, and `+Inf`.
///
/// A power of two is an edge of every scheme, so each classic bucket is a whole number of fine ones and stays exact.
#[derive(Debug, PartialEq)]
pub(super) struct Classic(pub(super) Vec<(f64, u64)>);

impl Classic {
    pub(super) fn of(h: &Histogram) -> Self {
        let per = 1i32 << h.scheme.schema;
        let last = h.scheme.len - 1;
        let mut out = Vec::with_capacity(h.scheme.len / per as usize + 2);
        let mut n = 0;
        for (i, count) in h.counts.iter().enumerate() {
            n += count;
            if i == last || (h.scheme.first + i as i32).rem_euclid(per) == 0 {
                out.push((h.scheme.upper(i), n));
                n = 0;
            }
        }
        Classic(out)
    }
}

/// The same as a native histogram: bucket 0 is its zero bucket, the others keep their index.
#[derive(Debug)]
pub(super) struct Native {
    schema: i32,
    zero_threshold: f64,
    zero_count: u64,
    spans: Vec<(i32, u32)>,
    deltas: Vec<i64>,
}

impl Native {
    /// Empty buckets up to this many in a row are cheaper written out than as a new span.
    const GAP: i32 = 2;

    pub(super) fn of(h: &Histogram) -> Self {
        let mut native = Native {
            schema: i32::from(h.scheme.schema),
            zero_threshold: h.scheme.edge(0),
            zero_count: h.counts[0],
            spans: Vec::new(),
            deltas: Vec::new(),
        };
        let (mut next, mut before) = (0, 0i64);
        for (i, &count) in h.counts.iter().enumerate().skip(1) {
            if count == 0 {
                continue;
            }
            let index = h.scheme.first + i as i32;
            match native.spans.last_mut() {
                Some((_, length)) if index - next <= Self::GAP => {
                    for _ in next..index {
                        native.deltas.push(-before);
                        before = 0;
                        *length += 1;
                    }
                    *length += 1;
                }
                // The first offset is an index, the others are distances from the span before.
                _ => native.spans.push((index - next, 1)),
            }
            native.deltas.push(count as i64 - before);
            (next, before) = (index + 1, count as i64);
        }
        native
    }

    pub(super) fn borrow(&self) -> NativeHistogram<'_> {
        NativeHistogram {
            schema: self.schema,
            zero_threshold: self.zero_threshold,
            zero_count: self.zero_count,
            negative: NativeHistogramBuckets {
                spans: &[],
                deltas: &[],
            },
            positive: NativeHistogramBuckets {
                spans: &self.spans,
                deltas: &self.deltas,
            },
            created: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_model::Scheme;
    use std::collections::BTreeMap;

    fn filled(scheme: Scheme, values: &[f64]) -> Histogram {
        let mut h = Histogram::new(scheme);
        for v in values {
            h.counts[scheme.bucket(*v)] += 1;
            h.sum += v;
        }
        h
    }

    /// Index to count, as a Prometheus server reads spans and deltas.
    fn read(n: &Native) -> BTreeMap<i32, i64> {
        let (mut index, mut count) = (0, 0);
        let mut deltas = n.deltas.iter();
        let mut out = BTreeMap::new();
        for (offset, length) in &n.spans {
            index += offset;
            for _ in 0..*length {
                count += deltas.next().unwrap();
                if count != 0 {
                    out.insert(index, count);
                }
                index += 1;
            }
        }
        assert_eq!(deltas.next(), None);
        out
    }

    #[test]
    fn classic_edges_are_the_powers_of_two() {
        let edges: Vec<f64> = Classic::of(&Histogram::new(Scheme::TIME))
            .0
            .iter()
            .map(|b| b.0)
            .collect();
        let mut expected: Vec<f64> = (-20..=6).map(|n| 2f64.powi(n)).collect();
        expected.push(f64::INFINITY);
        assert_eq!(edges, expected);
        assert_eq!(Classic::of(&Histogram::new(Scheme::SIZE)).0.len(), 32);
        assert_eq!(Classic::of(&Histogram::new(Scheme::COUNT)).0.len(), 12);
    }

    #[test]
    fn a_classic_bucket_holds_what_is_not_above_its_le() {
        let values = [
            0.0, 1e-6, 0.000_5, 0.001, 0.9, 1.0, 1.000_1, 64.0, 65.0, 1e9,
        ];
        let classic = Classic::of(&filled(Scheme::TIME, &values)).0;
        let mut accumulated = 0;
        for (le, n) in classic {
            accumulated += n;
            let truth = values.iter().filter(|v| **v <= le).count() as u64;
            assert_eq!(accumulated, truth, "le={le}");
        }
    }

    #[test]
    fn native_buckets_keep_index_and_count() {
        let scheme = Scheme::TIME;
        let mut h = Histogram::new(scheme);
        // Neighbours, a short gap, a long gap, the zero bucket and the overflow bucket.
        for (i, n) in [(0, 9), (1, 1), (2, 7), (5, 3), (40, 2), (scheme.len - 1, 4)] {
            h.counts[i] = n;
        }
        let native = Native::of(&h);
        assert_eq!(native.zero_count, 9);
        assert_eq!(native.zero_threshold, 2f64.powi(-20));
        assert_eq!(
            read(&native),
            BTreeMap::from([(-79, 1), (-78, 7), (-75, 3), (-40, 2), (25, 4)])
        );
        assert_eq!(native.spans, [(-79, 5), (34, 1), (64, 1)]);
    }

    #[test]
    fn an_empty_histogram_is_still_recognised_as_native() {
        let native = Native::of(&Histogram::new(Scheme::COUNT));
        assert!(native.spans.is_empty());
        // Prometheus takes a positive zero threshold, or a span, for the mark of a native histogram.
        assert!(native.zero_threshold > 0.0);
    }
}
