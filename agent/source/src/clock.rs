//! The clock of every source: CLOCK_MONOTONIC, which the probes read, too.

/// Nanoseconds since the system started.
pub fn monotonic_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}
