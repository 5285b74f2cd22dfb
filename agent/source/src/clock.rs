//! The clock of every source, CLOCK_MONOTONIC, which the probes read, too; and the wall clock at a moment of it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Pairs of clock readings; the pair with the shortest interruption counts.
const TRIES: usize = 5;

/// Nanoseconds since the system started, by CLOCK_MONOTONIC: without the time that the system was suspended.
pub fn monotonic_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Time since the system started, by CLOCK_MONOTONIC.
pub fn now() -> Duration {
    Duration::from_nanos(monotonic_ns())
}

/// Reads both clocks at one moment: nanoseconds of CLOCK_MONOTONIC, and the wall clock.
pub fn both() -> (u64, SystemTime) {
    let pair = || (monotonic_ns(), SystemTime::now(), monotonic_ns());
    closest([(); TRIES].map(|()| pair()))
}

/// The middle of the pair whose two readings of CLOCK_MONOTONIC are closest to each other, and its wall clock.
fn closest(pairs: [(u64, SystemTime, u64); TRIES]) -> (u64, SystemTime) {
    let took = |(before, _, after): &(u64, SystemTime, u64)| after.saturating_sub(*before);
    let mut best = pairs[0];
    for pair in pairs {
        if took(&pair) < took(&best) {
            best = pair;
        }
    }
    (best.0 + took(&best) / 2, best.1)
}

/// Time since 1970 by the wall clock at a moment of CLOCK_MONOTONIC that has passed; `None` before 1970. The answer does not depend
/// on the time that has passed since that moment, unless the clock was set in between.
pub fn wall(at: Duration) -> Option<Duration> {
    let (now, wall) = both();
    let wall = wall.duration_since(UNIX_EPOCH).ok()?;
    wall.checked_sub(Duration::from_nanos(now).checked_sub(at)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_that_was_interrupted_does_not_count() {
        let wall = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        // The thread lost its CPU for seconds inside of four pairs, before and behind the wall clock.
        let pairs = [
            (1000, wall(4), 3_000_000_000),
            (3_000_000_100, wall(5), 8_000_000_000),
            (8_000_000_000, wall(8), 8_000_000_200),
            (8_000_000_300, wall(9), 9_000_000_000),
            (9_000_000_000, wall(11), 11_000_000_000),
        ];
        assert_eq!(closest(pairs), (8_000_000_100, wall(8)));
    }

    #[test]
    fn a_moment_that_has_not_come_has_no_wall_clock() {
        let now = now();
        assert!(wall(now).is_some());
        assert_eq!(wall(now + Duration::from_secs(3600)), None);
    }
}
