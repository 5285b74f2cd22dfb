//! Probes that were detached on request, so that their kernel modules can be replaced.

use super::object::Loaded;
use super::program::Probe;
use crate::host_table;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

/// Longest wait for the kernel to release modules: it frees programs once no CPU can be inside one.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Identity of a loaded module in /sys: the same number as long as it is not replaced.
type Incarnation = Option<u64>;

/// Detached probes, and the modules that were loaded at that time.
#[derive(Debug, Default)]
pub struct Detached(BTreeMap<&'static str, Vec<Incarnation>>);

impl Detached {
    /// Detaches a probe and remembers it. Returns text that says if its modules are free.
    pub fn add(&mut self, probe: &'static Probe, loaded: Loaded) -> String {
        let pinned = probe.pinned_modules();
        let before: Vec<_> = pinned.iter().map(|m| users(m)).collect();
        drop(loaded);
        self.0.insert(probe.word, incarnations(probe));
        let fewer = |m: &str, b: &Option<u32>| users(m) < *b;
        let begun = Instant::now();
        while begun.elapsed() < RELEASE_TIMEOUT
            && !pinned.iter().zip(&before).all(|(m, b)| fewer(m, b))
        {
            std::thread::sleep(POLL_INTERVAL);
        }
        // The kernel frees one program after the other: the last one may take a moment longer.
        let mut last: Vec<_> = pinned.iter().map(|m| users(m)).collect();
        while begun.elapsed() < RELEASE_TIMEOUT {
            std::thread::sleep(POLL_INTERVAL);
            let now = pinned.iter().map(|m| users(m)).collect();
            if last == now {
                break;
            }
            last = now;
        }
        let held = pinned.iter().zip(&last).map(|(m, n)| match n {
            Some(0) => format!("module {m} is free"),
            Some(n) => format!("module {m} has {n} other users"),
            None => format!("module {m} is built in or gone"),
        });
        let held: Vec<_> = held.collect();
        if held.is_empty() {
            String::new()
        } else {
            format!("; {}", held.join(", "))
        }
    }

    /// True if the probe was detached and a module of it was replaced or removed since; the probe is then forgotten.
    pub fn module_replaced(&mut self, probe: &Probe) -> bool {
        let was = self.0.get(probe.word);
        was.is_some_and(|was| *was != incarnations(probe)) && self.forget(probe)
    }

    /// Forgets the probe; returns false if it was not detached.
    pub fn forget(&mut self, probe: &Probe) -> bool {
        self.0.remove(probe.word).is_some()
    }
}

fn incarnations(probe: &Probe) -> Vec<Incarnation> {
    let of = |m: &&str| Some(fs::metadata(format!("/sys/module/{m}")).ok()?.ino());
    probe.pinned_modules().iter().map(of).collect()
}

/// Number of users of the module: other modules, mounts, open files, attached programs.
fn users(module: &str) -> Option<u32> {
    host_table::read_at(
        "/sys/module/MODULE/refcnt",
        format!("/sys/module/{module}/refcnt"),
    )?
    .trim()
    .parse()
    .ok()
}
