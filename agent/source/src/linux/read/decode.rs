//! What every reader needs: histograms from per-CPU rows, and series about the probes' own maps.

use crate::linux::load::maps::Map;
use crate::linux::load::object::Loaded;
use nfscope_model::family as f;
use nfscope_model::{Histogram, Scheme, Snapshot};
use nfscope_probes::TimeHist;

/// Durations, summed over CPUs.
pub fn time<'a, T: TimeHist + 'a>(rows: impl Iterator<Item = &'a T>) -> Histogram {
    let mut h = Histogram::new(Scheme::TIME);
    let mut ns = 0u64;
    for r in rows {
        let (sum, counts) = r.parts();
        for (a, b) in h.counts.iter_mut().zip(counts) {
            *a += b;
        }
        ns += sum;
    }
    h.sum = ns as f64 / 1e9;
    h
}

/// Buckets of a size or count, summed over CPUs.
pub fn sizes<'a>(scheme: Scheme, rows: impl Iterator<Item = (&'a [u64], u64)>) -> Histogram {
    let mut h = Histogram::new(scheme);
    for (counts, sum) in rows {
        for (a, b) in h.counts.iter_mut().zip(counts) {
            *a += b;
        }
        h.sum += sum as f64;
    }
    h
}

/// Nanoseconds in seconds.
pub fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// CLOCK_MONOTONIC, the clock of the probes.
pub fn monotonic_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Events that a probe could not count, by reason; `map` has them by number.
pub fn lost(l: &Loaded, map: &str, probe: &str, s: &mut Snapshot, events: &[(&str, u32)]) {
    let Some(map) = l.map(map) else { return };
    for (reason, e) in events {
        s.counter(&f::EVENTS_LOST, [probe, reason], map.sum(e) as f64);
    }
}

/// How full a map is.
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
        for v in (0..70_000).chain([1 << 29, 1 << 30, (1 << 30) + 1, u64::MAX]) {
            assert_eq!(
                nfscope_probes::size_bucket(v, 32),
                Scheme::SIZE.bucket(v as f64),
                "{v} bytes"
            );
        }
    }
}
