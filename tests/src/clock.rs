//! Clocks of driven machines: a machine stands still, with its clock, while this process does not wait for it.
//!
//! A driven machine counts instructions, and its clock leaps to the next timer while it is idle. During a pause of a test, minutes
//! would pass in it: leases would end, and clients would send requests that the test does not expect. The machine therefore runs only
//! between a request and its answer, and while a test [lets time pass](crate::pass). A busy host then changes no figure, and waiting
//! costs nothing.
//!
//! For machines on the host's clock these functions do nothing.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;

use crate::qmp::Connection;

/// Driven machines of this process.
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
    /// Number of callers that wait for the machine: it stands still while that is zero.
    waiting: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers a running machine as driven, and stops it.
///
/// # Errors
/// When QEMU refuses the command.
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

/// Removes a machine that has ended.
pub(crate) fn forget(control: SocketAddr) {
    lock(&DRIVEN).retain(|driven| driven.control != control);
}

/// Lets the machine run while it lives.
#[derive(Debug)]
#[must_use = "the machine stands when this is dropped"]
pub struct Runs(Option<Arc<Driven>>);

/// Lets the machine at this address run while the returned value lives. The address is that of the machine's control or of one of its
/// agents.
pub fn runs(address: SocketAddr) -> Runs {
    let found = lock(&DRIVEN)
        .iter()
        .find(|d| d.control == address || d.agents.contains(&address))
        .map(Arc::clone);
    if let Some(driven) = &found {
        let mut qemu = lock(&driven.qemu);
        qemu.waiting += 1;
        if qemu.waiting == 1 {
            // The caller's own request will report a machine that has ended.
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

/// Control addresses of the driven machines of this process.
pub(crate) fn driven() -> Vec<SocketAddr> {
    lock(&DRIVEN).iter().map(|d| d.control).collect()
}

/// Factor by which something may take longer, by the host's clock, in an icount machine than on the host's clock.
pub(crate) const SLOWER: u32 = 10;
