//! `lab evict-cache`: what was read from a file is not remembered for long.

use std::fs::File;
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::fs::{Advice, fadvise};

/// Lets the page cache forget this file every so often, until it is killed. Unlike `drop_caches` it leaves everything else
/// in memory: the programs that run in a machine come from the host, and while they are fetched again the clock of a
/// machine that counts instructions leaps from timer to timer.
pub fn run(file: &Path, every: Duration) -> Result<()> {
    let open = File::open(file).with_context(|| format!("opening {}", file.display()))?;
    loop {
        fadvise(&open, 0, None, Advice::DontNeed)
            .with_context(|| format!("forgetting {}", file.display()))?;
        thread::sleep(every);
    }
}
