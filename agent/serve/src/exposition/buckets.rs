//! Two forms of a histogram: few classic buckets, and native ones as fine as the schema.

use nfscope_model::Histogram;
use prometheus_client::encoding::{NativeHistogram, NativeHistogramBuckets};

/// `le` and count of the classic buckets, not accumulated; the last one is `+Inf`.
#[derive(Debug, PartialEq)]
pub(super) struct Classic(pub(super) Vec<(f64, u64)>);

impl Classic {
    /// Buckets with these edges. Each edge is an edge of the histogram as well, so a classic bucket is a whole number of fine ones and
    /// stays exact.
    pub(super) fn of(h: &Histogram, edges: &[f64]) -> Self {
        let mut next = 0;
        let mut up_to = |edge: f64, end: usize| {
            let n = h.counts[next..end].iter().sum();
            next = end;
            (edge, n)
        };
        let mut out = Vec::with_capacity(edges.len() + 1);
        for edge in edges {
            out.push(up_to(*edge, h.scheme.bucket(*edge) + 1));
        }
        out.push(up_to(f64::INFINITY, h.counts.len()));
        Classic(out)
    }
}

/// Native form of a histogram: bucket 0 is its zero bucket, the others keep their index. Native histograms have the edges of their schema
/// only, so buckets that a power of ten divides are merged again.
#[derive(Debug)]
pub(super) struct Native {
    schema: i32,
    zero_threshold: f64,
    zero_count: u64,
    spans: Vec<(i32, u32)>,
    deltas: Vec<i64>,
}

impl Native {
    /// Most empty buckets in a row that are cheaper to write than a new span.
    const GAP: i32 = 2;

    pub(super) fn of(h: &Histogram) -> Self {
        let h = &h.undivided();
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
                // The first offset is an index. Later ones are distances from the span before.
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

    /// Counts by index, as a Prometheus server decodes spans and deltas.
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
    fn classic_edges_are_those_asked_for() {
        for edges in [&[][..], &[1.0], &[1e-4, 0.001, 0.5, 64.0]] {
            let classic = Classic::of(&Histogram::new(Scheme::TIME), edges).0;
            let mut asked = edges.to_vec();
            asked.push(f64::INFINITY);
            assert_eq!(classic.iter().map(|b| b.0).collect::<Vec<_>>(), asked);
        }
    }

    #[test]
    fn a_classic_bucket_holds_what_is_not_above_its_le() {
        let values = [
            0.0,
            1e-6,
            1e-4,
            0.000_5,
            0.001,
            0.001_000_001,
            0.01,
            0.010_000_001,
            0.1,
            0.100_000_001,
            0.9,
            1.0,
            1.000_000_001,
            64.0,
            65.0,
            1e9,
        ];
        let edges = [1e-4, 0.001, 0.01, 0.1, 1.0, 64.0];
        let classic = Classic::of(&filled(Scheme::TIME, &values), &edges).0;
        let mut accumulated = 0;
        for (le, n) in classic {
            accumulated += n;
            let truth = values.iter().filter(|v| **v <= le).count() as u64;
            assert_eq!(accumulated, truth, "le={le}");
        }
    }

    #[test]
    fn native_buckets_keep_index_and_count() {
        let scheme = Scheme::TIME.undivided();
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

    /// Values on both sides of every power of ten, at which the schema has no edge.
    #[test]
    fn native_buckets_have_no_edges_but_those_of_their_schema() {
        let values: Vec<f64> = [1e-4, 0.001, 0.01, 0.1, 1.0]
            .into_iter()
            .flat_map(|v| [v * 0.999, v, v * 1.001, v * 1.02])
            .collect();
        let native = Native::of(&filled(Scheme::TIME, &values));
        let plain = Native::of(&filled(Scheme::TIME.undivided(), &values));
        assert_eq!(native.schema, 2);
        assert_eq!(read(&native), read(&plain));
        let mut truth = BTreeMap::new();
        for v in &values {
            *truth.entry((v.log2() * 4.0).ceil() as i32).or_insert(0) += 1;
        }
        assert_eq!(read(&native), truth);
    }

    #[test]
    fn an_empty_histogram_is_still_recognised_as_native() {
        let native = Native::of(&Histogram::new(Scheme::COUNT));
        assert!(native.spans.is_empty());
        // Prometheus takes a positive zero threshold, or a span, for the mark of a native histogram.
        assert!(native.zero_threshold > 0.0);
    }
}
