//! Cost of a reading, and kernel memory, with more possible CPUs: per-CPU tables have a copy for each.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use nfscope_model::family;

use super::median::median;
use crate::kernel::Kernel;
use crate::load::Load;
use crate::server::Server;

/// Numbers of possible CPUs.
pub(super) const SIZES: [u32; 3] = [2, 16, 64];
/// Later kernels take none of QEMU's absent CPUs for possible.
const KERNEL: Kernel = Kernel::V6_1;
const MIXED: u64 = 3000;
const READINGS: usize = 9;
/// Time after which an agent makes a new reading: for a quarter of a second it repeats the last one.
const FRESH: Duration = Duration::from_millis(300);

/// Costs at one number of possible CPUs.
#[derive(Debug)]
pub(super) struct Sized {
    pub possible: u32,
    /// Seconds of a reading, the median: an instruction takes a nanosecond.
    pub reading: f64,
    /// Series of operations in use.
    pub operations: usize,
    /// Bytes of kernel memory by the agent's own metric, with all its probes attached.
    pub memory: f64,
}

pub(super) fn measure(possible: u32) -> Result<Sized> {
    let server = Server::boot(KERNEL)
        .export("ext4")
        .cpus(1)
        .possible_cpus(possible)
        .clients(1)
        .icount()
        .start()?;
    server.sh("modprobe -a xfs btrfs")?;
    let agent = server.agent(&[])?;
    server.load(Load::mixed().ops(MIXED))?;
    let mut readings = Vec::new();
    for _ in 0..READINGS {
        thread::sleep(FRESH);
        let text = agent.get("/metrics")?;
        let name = family::SCRAPE_SECONDS.info.name;
        let line = text.lines().find_map(|l| l.strip_prefix(name));
        let seconds = line.and_then(|l| l.trim().parse().ok());
        readings.push(seconds.with_context(|| format!("no {name}"))?);
    }
    let seen = agent.snapshot()?;
    let sized = Sized {
        possible,
        reading: median(&mut readings),
        operations: seen.series(&family::OP_DURATION.info).len(),
        memory: (seen.numbers(&family::KERNEL_MEMORY))
            .map(|(_, bytes)| bytes)
            .sum(),
    };
    agent.stop()?;
    Ok(sized)
}
