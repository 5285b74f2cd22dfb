//! Bucket edges of durations: one source for the C tables that `build.rs` writes and for Rust.

/// Native bucket index (schema 2) of the first bucket: its upper edge is 2^-20 s.
pub const FIRST: i32 = -80;
/// Buckets between powers of 2^(1/4), the overflow bucket behind the last edge (2^6 s) included.
const UNDIVIDED: i32 = 106;
/// Powers of ten from 100 µs to 100 ms, in nanoseconds: people set objectives by them. Each divides the bucket that holds it, and costs a
/// count in every histogram of the kernel's tables. 1 s is a power of two, and an edge anyway.
pub const DECADES_NS: [u64; 4] = [100_000, 1_000_000, 10_000_000, 100_000_000];
/// Number of buckets.
pub const BUCKETS: usize = UNDIVIDED as usize + DECADES_NS.len();

/// Upper edges in whole nanoseconds: the largest duration that bucket `i` holds.
pub fn edges_ns() -> Vec<u64> {
    let powers = (0..UNDIVIDED - 1).map(|i| {
        let n = FIRST + i;
        let edge = 2f64.powi(n.div_euclid(4)) * 2f64.powf(f64::from(n.rem_euclid(4)) / 4.0);
        (edge * 1e9).floor() as u64
    });
    let mut edges: Vec<u64> = powers.chain(DECADES_NS).collect();
    edges.sort_unstable();
    edges
}

/// Least duration of each cell, power by power. 2^35 ns is 34 s, the last power of two with an edge above it.
fn cells() -> impl Iterator<Item = u64> {
    (0..36u32).flat_map(|e| (0..16u64).map(move |m| (1u64 << e) + ((m << e) >> 4)))
}

/// First bucket that could hold a duration, for each sixteenth of each power of two of nanoseconds. No sixteenth has two edges in it, so
/// that the next bucket is the only other that could.
pub fn first_by_cell() -> Vec<u8> {
    let edges = edges_ns();
    cells()
        .map(|least| {
            edges
                .iter()
                .position(|&edge| edge >= least)
                .map_or(BUCKETS as u8 - 1, |i| i as u8)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule on which `time_bucket()` in `bpf/lib/histogram.h` relies when it compares with one edge only. An edge in the last nanosecond of
    /// a cell leaves nothing of the cell above it.
    #[test]
    fn no_cell_has_two_edges() {
        let least: Vec<u64> = cells().collect();
        let edges = edges_ns();
        for cell in least.windows(2).filter(|c| c[0] >= 512) {
            let inside = edges.iter().filter(|e| (cell[0]..cell[1] - 1).contains(e));
            assert!(inside.count() <= 1, "{cell:?}");
        }
    }

    #[test]
    fn edges_rise_and_have_the_decades() {
        let edges = edges_ns();
        assert_eq!(edges.len() + 1, BUCKETS);
        assert!(edges.windows(2).all(|e| e[0] < e[1]), "{edges:?}");
        for decade in DECADES_NS.into_iter().chain([1_000_000_000]) {
            assert!(edges.contains(&decade), "{decade} ns");
        }
    }
}
