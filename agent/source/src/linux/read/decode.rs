//! Functions that all readers need: histograms from rows, and series about the probes' own maps.

pub use crate::clock::monotonic_ns;
use crate::linux::load::maps::Map;
use crate::linux::load::object::Loaded;
use crate::lossless;
use nfscope_model::family as f;
use nfscope_model::{Histogram, Scheme, Snapshot};
use nfscope_probes::TimeHist;

/// Converts a row of durations.
pub fn time(row: &impl TimeHist) -> Histogram {
    let (ns, counts) = row.parts();
    let mut h = Histogram::new(Scheme::TIME);
    h.counts.copy_from_slice(counts);
    h.sum = ns as f64 / 1e9;
    h
}

/// Converts buckets of a size or count.
pub fn sizes(scheme: Scheme, counts: &[u64], sum: u64) -> Histogram {
    let mut h = Histogram::new(scheme);
    h.counts.copy_from_slice(counts);
    h.sum = sum as f64;
    h
}

/// Text of the kernel: bytes up to the first zero.
pub fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    lossless::text(&bytes[..end])
}

/// Nanoseconds in seconds.
pub fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Events that a probe could not count, by reason; `map` has them by number.
pub fn lost(l: &Loaded, map: &str, probe: &str, s: &mut Snapshot, events: &[(&str, u32)]) {
    let Some(map) = l.map(map) else { return };
    for (reason, e) in events {
        s.counter(&f::EVENTS_LOST, [probe, reason], map.sum(e) as f64);
    }
}

/// Adds the number of entries and the capacity of a map.
pub fn fill(map: &Map, entries: usize, name: &str, s: &mut Snapshot) {
    s.gauge(&f::MAP_ENTRIES, [name], entries as f64);
    s.gauge(&f::MAP_CAPACITY, [name], f64::from(map.capacity()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probes_count_in_the_buckets_of_the_model() {
        let edges = nfscope_probes::time_edges::edges_ns();
        assert_eq!(edges.len() + 1, Scheme::TIME.len);
        for (i, &edge) in edges.iter().enumerate() {
            assert_eq!(edge, (Scheme::TIME.edge(i) * 1e9).floor() as u64);
            // An edge belongs to the bucket below it, in the kernel as in Rust.
            assert_eq!(nfscope_probes::time_bucket(edge), i, "{edge} ns");
            assert_eq!(
                nfscope_probes::time_bucket(edge + 1),
                i + 1,
                "{} ns",
                edge + 1
            );
        }
        // Powers of ten, for objectives, are exact; all other edges are those of the plain schema.
        for (ns, seconds) in [
            (100_000, 1e-4),
            (1_000_000, 0.001),
            (10_000_000, 0.01),
            (100_000_000, 0.1),
            (1_000_000_000, 1.0),
        ] {
            let at = nfscope_probes::time_bucket(ns);
            assert_eq!(Scheme::TIME.edge(at), seconds);
            for around in ns - 1_000..=ns + 1_000 {
                let bucket = nfscope_probes::time_bucket(around);
                assert_eq!(bucket, at + usize::from(around > ns), "{around} ns");
                assert_eq!(bucket, Scheme::TIME.bucket(around as f64 / 1e9));
            }
        }
        let mut x = 1u64;
        for _ in 0..200_000 {
            x = x
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let ns = x >> (x & 63);
            let want = edges
                .iter()
                .position(|&e| ns <= e)
                .unwrap_or(Scheme::TIME.len - 1);
            assert_eq!(nfscope_probes::time_bucket(ns), want, "{ns} ns");
        }
        // The test has the first and the last nanosecond of each cell, and values above all edges.
        let cells = (0..36).flat_map(|e| (0..16u64).map(move |m| (1u64 << e) + ((m << e) >> 4)));
        for ns in cells.flat_map(|least| [least - 1, least, least + 1]) {
            let want = edges.iter().filter(|&&e| e < ns).count();
            assert_eq!(nfscope_probes::time_bucket(ns), want, "{ns} ns");
        }
        for ns in [64_000_000_001, 1 << 36, 1 << 48, u64::MAX] {
            assert_eq!(nfscope_probes::time_bucket(ns), edges.len(), "{ns} ns");
        }
        for v in (0..70_000).chain([1 << 29, 1 << 30, (1 << 30) + 1, u64::MAX]) {
            assert_eq!(
                nfscope_probes::size_bucket(v, 32),
                Scheme::SIZE.bucket(v as f64),
                "{v} bytes"
            );
        }
    }
}
