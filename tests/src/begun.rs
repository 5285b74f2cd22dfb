//! Begin of a load: its clients are connected, its files are there, and the next calls are its own. The load creates a file then.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::nice;

/// Variable with the path of the file that a load makes when it begins.
pub const BEGUN: &str = "LAB_BEGUN";

/// Announces the begin of the load.
pub fn tell() {
    if let Some(path) = std::env::var_os(BEGUN) {
        // Without the file [`wait_for`] goes on after its timeout.
        let _ = fs::write(PathBuf::from(path), "");
    }
}

/// Waits until all of these loads have begun, and returns how many have not within `patience`: while the server answers nothing, a
/// load cannot begin.
///
/// The clock of an icount machine leaps over idle time, and so over the time that a slow host takes to bring a load's program. This
/// function therefore computes at the lowest priority while it waits.
pub fn wait_for(loads: &[PathBuf], patience: Duration) -> usize {
    let started = Instant::now();
    let missing = || loads.iter().filter(|load| !load.exists()).count();
    let lowest = nice(19).is_ok();
    while started.elapsed() < patience && missing() > 0 {
        thread::yield_now();
    }
    if lowest {
        // The kernel may refuse a process that is not root; then the rest runs at the lowest priority, too.
        let _ = nice(-19);
    }
    missing()
}
