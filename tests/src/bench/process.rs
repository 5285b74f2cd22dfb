//! CPU time and memory of a process.

use std::fs;

use anyhow::{Context, Result};

/// Ticks in which the kernel reports CPU time to user space (USER_HZ, include/uapi/asm-generic/param.h).
const TICKS_A_SECOND: f64 = 100.0;

/// CPU seconds of all threads of a process, and of its children that have ended: the agent attaches in a child.
pub(super) fn cpu_seconds(pid: u32) -> Result<f64> {
    let mut total = 0.0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let path = task?.path().join("schedstat");
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let nanoseconds = text.split_whitespace().next().context("schedstat")?;
        total += nanoseconds.parse::<f64>()? / 1e9;
    }
    let path = format!("/proc/{pid}/stat");
    let text = fs::read_to_string(&path).with_context(|| path.clone())?;
    // The name in parentheses is followed by the state and twelve numbers, and then by the ticks of children, in user mode and in the
    // kernel.
    let (_, numbers) = text.rsplit_once(')').context("stat")?;
    let of_children = numbers.split_whitespace().skip(13).take(2);
    for ticks in of_children {
        total += ticks.parse::<f64>()? / TICKS_A_SECOND;
    }
    Ok(total)
}

/// Memory figure of a process in KiB.
pub(super) fn kib(pid: u32, key: &str) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    let line = status.lines().find_map(|l| l.strip_prefix(key));
    let number = line.and_then(|l| l.split_whitespace().next()?.parse().ok());
    number.with_context(|| format!("no {key} in {path}"))
}
