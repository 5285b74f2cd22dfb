//! `lab load`: runs a load on the mounts of its host.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use serde::{Deserialize, Serialize};

use super::actions::Worker;
use super::kind::Kind;
use crate::begun;
use crate::kernel_counters::KernelCounters;

/// Result of a load.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LoadReport {
    /// Procedures and component operations that the kernel counted from beginning to end.
    pub operations: u64,
    /// Seconds of the load.
    pub seconds: f64,
    /// Number of each action.
    pub actions: BTreeMap<String, u64>,
    /// Actions that a mount does not support (extended attributes over NFSv3), and how often they were tried.
    pub unsupported: BTreeMap<String, u64>,
}

/// Runs `lab load`: two threads per mount, each in a directory of its own. A mixed load that ends by its operations goes on until the
/// first thread of each mount has done every action: otherwise a mount with slower calls would have few of some actions, or none.
pub fn run(
    kind: Kind,
    operations: u64,
    duration: Option<Duration>,
    seed: u64,
    every: Duration,
    mounts: &[PathBuf],
) -> Result<LoadReport> {
    const WORKERS_PER_MOUNT: u64 = 2;
    let started = Instant::now();
    let before = counts()?;
    let stop = AtomicBool::new(false);
    let not_through = AtomicUsize::new(match kind {
        Kind::Mixed if duration.is_none() => mounts.len(),
        _ => 0,
    });
    let mut report = LoadReport::default();
    thread::scope(|scope| -> Result<()> {
        let mut workers = Vec::new();
        for (mount, n) in mounts.iter().zip(0..) {
            for w in 0..WORKERS_PER_MOUNT {
                let number = n * WORKERS_PER_MOUNT + w;
                let worker = Worker::new(mount, number, seed);
                let (stop, not_through) = (&stop, &not_through);
                let work = move || -> Result<Worker> {
                    let mut worker = worker?;
                    if w == 0 && not_through.load(Ordering::Relaxed) > 0 {
                        worker.every_action()?;
                        not_through.fetch_sub(1, Ordering::Relaxed);
                    }
                    while !stop.load(Ordering::Relaxed) {
                        let begin = Instant::now();
                        worker.step(kind)?;
                        thread::sleep(every.saturating_sub(begin.elapsed()));
                    }
                    Ok(worker)
                };
                // An error of one worker ends the load, or the other workers would hide it.
                workers
                    .push(scope.spawn(move || {
                        work().inspect_err(|_| stop.store(true, Ordering::Relaxed))
                    }));
            }
        }
        begun::tell();
        while !stop.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(20));
            let enough = (not_through.load(Ordering::Relaxed) == 0
                && (&counts()? - &before).operations() >= operations)
                || duration.is_some_and(|d| started.elapsed() >= d);
            stop.fetch_or(enough, Ordering::Relaxed);
        }
        for worker in workers {
            let worker = worker.join().map_err(|_| anyhow!("a worker panicked"))??;
            add(&mut report.actions, &worker.done);
            add(&mut report.unsupported, &worker.unsupported);
        }
        Ok(())
    })?;
    report.seconds = started.elapsed().as_secs_f64();
    report.operations = (&counts()? - &before).operations();
    Ok(report)
}

fn counts() -> Result<KernelCounters> {
    let path = "/proc/net/rpc/nfsd";
    let text = fs::read_to_string(path)
        .with_context(|| format!("reading {path}; a load runs beside the server"))?;
    KernelCounters::parse(&text)
}

fn add(into: &mut BTreeMap<String, u64>, from: &BTreeMap<&'static str, u64>) {
    for (action, times) in from {
        *into.entry((*action).to_owned()).or_default() += times;
    }
}
