//! `lab cost`: how long one operation takes, for a machine that counts instructions (`Builder::icount`).

use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use rustix::fs::{AtFlags, CWD, OFlags, StatxFlags, statx};
use serde::{Deserialize, Serialize};

/// Nanoseconds per operation on one mount. Where instructions are counted, a nanosecond is an instruction.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Cost {
    /// A write of 4 KiB with O_SYNC.
    pub sync_write: f64,
    /// A GETATTR.
    pub getattr: f64,
}

/// Times both operations on one mount, after a warm-up.
pub fn measure(mount: &Path, times: u32) -> Result<Cost> {
    let path = mount.join("cost");
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(OFlags::SYNC.bits() as i32)
        .open(&path)
        .with_context(|| format!("opening {}", path.display()))?;
    let write = || file.write_all_at(&[b'c'; 4096], 0);
    // Asks the server whatever the attribute cache knows.
    let getattr = || -> std::io::Result<()> {
        statx(CWD, &path, AtFlags::STATX_FORCE_SYNC, StatxFlags::SIZE)?;
        Ok(())
    };
    Ok(Cost {
        sync_write: each(times, write).context("writing")?,
        getattr: each(times, getattr).context("asking for attributes")?,
    })
}

fn each(times: u32, mut operation: impl FnMut() -> std::io::Result<()>) -> std::io::Result<f64> {
    for _ in 0..times / 5 {
        operation()?;
    }
    let started = Instant::now();
    for _ in 0..times {
        operation()?;
    }
    Ok(started.elapsed().as_nanos() as f64 / f64::from(times))
}
