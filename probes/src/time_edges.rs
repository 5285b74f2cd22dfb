//! The bucket edges of durations: one truth for the C tables that `build.rs` writes and for Rust.

/// Native bucket index (schema 2) of the first bucket: its upper edge is 2^-20 s.
pub const FIRST: i32 = -80;
/// Buckets, the overflow bucket behind the last edge (2^6 s) included.
pub const BUCKETS: usize = 106;

/// Upper edges in whole nanoseconds: the largest duration that bucket `i` holds.
pub fn edges_ns() -> Vec<u64> {
    (0..BUCKETS as i32 - 1)
        .map(|i| {
            let n = FIRST + i;
            let edge = 2f64.powi(n.div_euclid(4)) * 2f64.powf(f64::from(n.rem_euclid(4)) / 4.0);
            (edge * 1e9).floor() as u64
        })
        .collect()
}

/// For each sixteenth of each power of two of nanoseconds, the first bucket that could hold a duration in it. A sixteenth
/// is narrower than a bucket, so that the one behind is the only other that could.
pub fn first_by_cell() -> Vec<u8> {
    let edges = edges_ns();
    // 2^35 ns is 34 s, the last power of two with an edge above it.
    (0..36u32)
        .flat_map(|e| (0..16u64).map(move |m| (1u64 << e) + ((m << e) >> 4)))
        .map(|least| {
            edges
                .iter()
                .position(|&edge| edge >= least)
                .map_or(BUCKETS as u8 - 1, |i| i as u8)
        })
        .collect()
}
