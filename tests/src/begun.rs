//! A load says when it begins: its clients are connected, what they work with is there, and the next calls are its own.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::nice;

/// Names the file that a load makes when it begins.
pub const BEGUN: &str = "LAB_BEGUN";

/// The load begins.
pub fn tell() {
    if let Some(path) = std::env::var_os(BEGUN) {
        // Whoever waits for it goes on after a while.
        let _ = fs::write(PathBuf::from(path), "");
    }
}

/// Waits until all of these have begun, and says how many have not after a while: where the server answers nothing, a load
/// cannot begin.
///
/// The clock of a machine that counts instructions leaps over whatever nobody computes in, and so over the time that a slow
/// host takes to bring a load's program. Whoever waits computes, therefore, as long as nobody else wants to.
pub fn wait_for(loads: &[PathBuf], patience: Duration) -> usize {
    let started = Instant::now();
    let missing = || loads.iter().filter(|load| !load.exists()).count();
    let lowest = nice(19).is_ok();
    while started.elapsed() < patience && missing() > 0 {
        thread::yield_now();
    }
    if lowest {
        // May be refused where a machine's process is not root; then the rest is at the lowest priority, too.
        let _ = nice(-19);
    }
    missing()
}
