//! The clocks of machines that the host drives: each stands, with everything in its machine, while nobody here waits for the machine.
//!
//! Such a machine counts instructions, and where it is idle its clock leaps to its next timer. While it waited for a test to make up
//! its mind, minutes would pass in it: leases would end, and clients would send what nobody counts. So it runs only between a question
//! and its answer, and while a test [lets time pass](crate::pass). A busy host then changes no figure, and waiting costs nothing.
//!
//! In machines on the host's clock all of this does nothing.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;

use crate::qmp::Connection;

/// The driven machines of this process.
static DRIVEN: Mutex<Vec<Arc<Driven>>> = Mutex::new(Vec::new());

#[derive(Debug)]
struct Driven {
    control: SocketAddr,
    agents: Vec<SocketAddr>,
    qemu: Mutex<Qemu>,
}

#[derive(Debug)]
struct Qemu {
    connection: Connection,
    /// How many wait for the machine: it stands while it is zero.
    waiting: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on this machine, which runs, is driven.
///
/// # Errors
/// When QEMU does not do as it is told.
pub(crate) fn drive(control: SocketAddr, agents: &[SocketAddr], qmp: &Path) -> Result<()> {
    let mut connection = Connection::open(qmp)?;
    connection.execute("stop")?;
    let qemu = Mutex::new(Qemu {
        connection,
        waiting: 0,
    });
    lock(&DRIVEN).push(Arc::new(Driven {
        control,
        agents: agents.to_vec(),
        qemu,
    }));
    Ok(())
}

/// The machine has ended.
pub(crate) fn forget(control: SocketAddr) {
    lock(&DRIVEN).retain(|driven| driven.control != control);
}

/// While it lives the machine runs.
#[derive(Debug)]
#[must_use = "the machine stands when this is dropped"]
pub struct Runs(Option<Arc<Driven>>);

/// The machine at this address, which is that of its control or of one of its agents, runs as long as the answer lives.
pub fn runs(address: SocketAddr) -> Runs {
    let found = lock(&DRIVEN)
        .iter()
        .find(|d| d.control == address || d.agents.contains(&address))
        .map(Arc::clone);
    if let Some(driven) = &found {
        let mut qemu = lock(&driven.qemu);
        qemu.waiting += 1;
        if qemu.waiting == 1 {
            // A machine that has ended is missed by whoever asks it.
            let _ = qemu.connection.execute("cont");
        }
    }
    Runs(found)
}

impl Drop for Runs {
    fn drop(&mut self) {
        if let Some(driven) = &self.0 {
            let mut qemu = lock(&driven.qemu);
            qemu.waiting -= 1;
            if qemu.waiting == 0 {
                let _ = qemu.connection.execute("stop");
            }
        }
    }
}

/// The control addresses of the driven machines of this process.
pub(crate) fn driven() -> Vec<SocketAddr> {
    lock(&DRIVEN).iter().map(|d| d.control).collect()
}

/// How many times as long as on the host's clock something may take, by the host's clock, in a machine that counts instructions.
pub(crate) const SLOWER: u32 = 10;
