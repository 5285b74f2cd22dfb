//! CPU time of a process.

use std::fs;

use anyhow::{Context, Result};

/// CPU seconds of all threads of a process.
pub(super) fn cpu_seconds(pid: u32) -> Result<f64> {
    let mut total = 0.0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let path = task?.path().join("schedstat");
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let nanoseconds = text.split_whitespace().next().context("schedstat")?;
        total += nanoseconds.parse::<f64>()? / 1e9;
    }
    Ok(total)
}
