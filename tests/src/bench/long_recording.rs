//! Costs of two recordings of a day: their size in the store, and the time to compare them.
//!
//! An example program of the crate `nfscope-baseline` makes them, so that the lab itself needs no database.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::median::median;
use crate::paths;

/// Comparison of two days.
#[derive(Clone, Debug)]
pub struct Days {
    /// Bytes that one day takes in the store.
    pub bytes: u64,
    /// Seconds of `nfscope baseline compare`, the median of five.
    pub seconds: f64,
}

/// Compares two recordings of 24 hours.
pub fn days(program: &Path) -> Result<Days> {
    let writer = paths::baseline_example("long_recording")?;
    let dir = std::env::temp_dir().join(format!("nfscope-bench-{}", std::process::id()));
    std::fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
    let path = dir.join("store.db");
    let status = Command::new(&writer)
        .arg(&path)
        .args(["monday", "tuesday"])
        .status()
        .with_context(|| format!("starting {}", writer.display()))?;
    ensure!(status.success(), "{} said {status}", writer.display());
    let bytes = std::fs::metadata(&path)?.len() / 2;
    let mut times = Vec::new();
    for _ in 0..5 {
        let begun = Instant::now();
        let output = Command::new(program)
            .args(["baseline", "compare", "monday", "tuesday", "--store"])
            .arg(&path)
            .output()?;
        ensure!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        times.push(begun.elapsed().as_secs_f64());
    }
    std::fs::remove_dir_all(&dir)?;
    Ok(Days {
        bytes,
        seconds: median(&mut times),
    })
}
