//! `lab cpu-hog`: keeps every CPU busy, again and again for a while.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// Binds a thread to each CPU, all busy at the same time and idle at the same time, until killed. Run it with a real-time priority;
/// the kernel takes 5 % of each second from those, so leave more than that idle.
pub fn run(busy: Duration, idle: Duration) -> Result<()> {
    let round = (busy + idle).as_nanos();
    ensure!(
        !busy.is_zero() && !idle.is_zero(),
        "busy for ever, or never"
    );
    let cpus = thread::available_parallelism()?.get();
    thread::scope(|scope| {
        let spinners: Vec<_> = (0..cpus)
            .map(|n| {
                scope.spawn(move || -> Result<()> {
                    let mut only = CpuSet::new();
                    only.set(n);
                    sched_setaffinity(None, &only)
                        .with_context(|| format!("binding a thread to CPU {n}"))?;
                    loop {
                        // All threads follow CLOCK_MONOTONIC, which they share, so that no CPU is free while others are busy.
                        let now = clock_gettime(ClockId::Monotonic);
                        let now = Duration::new(now.tv_sec as u64, now.tv_nsec as u32);
                        let phase = Duration::from_nanos((now.as_nanos() % round) as u64);
                        let left = busy.saturating_sub(phase);
                        let until = Instant::now() + left;
                        while Instant::now() < until {
                            std::hint::spin_loop();
                        }
                        thread::sleep((busy + idle).saturating_sub(phase.max(busy)));
                    }
                })
            })
            .collect();
        for spinner in spinners {
            match spinner.join() {
                Ok(ended) => ended?,
                Err(_) => anyhow::bail!("a spinner panicked"),
            }
        }
        Ok(())
    })
}
