//! Slots for machines, shared by all test processes. Two cores emulate two machines whose time is the host's, and no more. icount
//! machines have a time of their own, so that more of them than there are cores only take longer.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::spec::Spec;

/// Slots for machines on the host's clock.
pub const SLOTS: usize = 2;
/// Slots for icount machines: two cores are busy while one of these machines waits for its test.
const COUNTING_SLOTS: usize = 3;
/// Longest wait for a slot: longer than the slowest test.
const PATIENCE: Duration = Duration::from_secs(20 * 60);

/// Waits for a slot of the machine's kind. The slot is held until every copy of the returned descriptor is closed.
pub fn take(spec: &Spec) -> Result<OwnedFd> {
    let (slots, kind) = match (spec.icount, spec.beside) {
        (false, false) => (SLOTS, ""),
        (true, _) => (COUNTING_SLOTS, "counting-"),
        (false, true) => (1, "beside-"),
    };
    let dir = crate::kernel::cache().join("slots");
    fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
    let started = Instant::now();
    let mut reported = false;
    loop {
        for slot in 0..slots {
            let path = dir.join(format!("{kind}{slot}.lock"));
            let file = File::options()
                .create(true)
                .truncate(false)
                .write(true)
                .open(&path)
                .with_context(|| format!("opening {}", path.display()))?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(file.into()),
                Err(Errno::WOULDBLOCK) => {}
                Err(e) => return Err(e).with_context(|| format!("locking {}", path.display())),
            }
        }
        if !reported && started.elapsed() > Duration::from_secs(2) {
            reported = true;
            eprintln!("lab: {slots} machines are running already; waiting for one to end");
        }
        if started.elapsed() > PATIENCE {
            bail!(
                "no machine ended within {} minutes; see who holds them: fuser -v {}/*.lock",
                PATIENCE.as_secs() / 60,
                dir.display()
            );
        }
        thread::sleep(Duration::from_millis(100));
    }
}
