//! `lab evict-cache`: evicts a file from the page cache, again and again.

use std::fs::File;
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::fs::{Advice, fadvise};

/// Evicts this file from the page cache at every interval, until killed. Unlike `drop_caches` it leaves everything else in memory:
/// the programs that run in a machine come from the host, and while they are read again the clock of an icount machine leaps from
/// timer to timer.
pub fn run(file: &Path, every: Duration) -> Result<()> {
    let open = File::open(file).with_context(|| format!("opening {}", file.display()))?;
    loop {
        fadvise(&open, 0, None, Advice::DontNeed)
            .with_context(|| format!("forgetting {}", file.display()))?;
        thread::sleep(every);
    }
}
