//! A realistic mixed load: what applications do to NFS, in direct system calls, bounded by operations or by time.

mod actions;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::kernel_counters::KernelCounters;
use actions::Worker;

/// Which load, and for how long: see [`crate::Server::load`].
#[derive(Clone, Debug)]
pub struct Load {
    operations: u64,
    duration: Option<Duration>,
    seed: u64,
    every: Duration,
    kind: Kind,
    versions: Vec<String>,
}

/// What the load is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// Sync and async writes, reads and metadata of every sort.
    #[default]
    Mixed,
    /// 4 KiB writes with O_SYNC, and nothing else.
    SyncWrites,
}

impl Load {
    /// Sync and async writes, reads and metadata of every sort; 20,000 operations unless told otherwise.
    pub fn mixed() -> Load {
        Load {
            operations: 20_000,
            duration: None,
            seed: 1,
            every: Duration::ZERO,
            kind: Kind::Mixed,
            versions: vec!["3".to_owned(), "4.2".to_owned()],
        }
    }

    /// 4 KiB writes with O_SYNC from every mount.
    pub fn sync_writes() -> Load {
        Load {
            kind: Kind::SyncWrites,
            ..Load::mixed()
        }
    }

    /// Stops once the kernel has counted this many procedures (v3) and component operations (v4) since it began.
    pub fn ops(mut self, operations: u64) -> Load {
        self.operations = operations;
        self
    }

    /// Stops after this time instead.
    pub fn duration(mut self, duration: Duration) -> Load {
        self.operations = u64::MAX;
        self.duration = Some(duration);
        self
    }

    /// Does not stop.
    pub fn endless(self) -> Load {
        self.ops(u64::MAX)
    }

    /// Over mounts of these versions (3 and 4.2).
    pub fn versions(mut self, versions: &[&str]) -> Load {
        self.versions = versions.iter().map(|&v| v.to_owned()).collect();
        self
    }

    /// Another sequence of actions (1).
    pub fn seed(mut self, seed: u64) -> Load {
        self.seed = seed;
        self
    }

    /// Leaves so much time from one action of a thread to its next one (none).
    pub fn every(mut self, every: Duration) -> Load {
        self.every = every;
        self
    }

    pub(crate) fn patience(&self) -> Duration {
        match self.duration {
            Some(duration) => duration + Duration::from_secs(120),
            // Emulated and beside another machine, a slow device under it, still more than 100 operations a second.
            None => Duration::from_secs(120 + self.operations.min(100_000) / 100),
        }
    }

    /// Mounts what the load needs of a client.
    pub(crate) fn mount(&self, client: &Client) -> Result<Vec<String>> {
        self.versions
            .iter()
            .map(|v| client.mount_version(v))
            .collect()
    }

    pub(crate) fn command(&self, mounts: &[String]) -> String {
        let kind = match self.kind {
            Kind::Mixed => "mixed",
            Kind::SyncWrites => "sync-writes",
        };
        let mut command = format!("load --kind {kind} --seed {}", self.seed);
        if !self.every.is_zero() {
            command += &format!(" --every {}", self.every.as_secs_f64() * 1e3);
        }
        if self.operations != u64::MAX {
            command += &format!(" --ops {}", self.operations);
        }
        if let Some(duration) = self.duration {
            command += &format!(" --seconds {}", duration.as_secs_f64());
        }
        format!("{command} {}", mounts.join(" "))
    }
}

/// What a load did.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LoadReport {
    /// Procedures and component operations that the kernel counted from beginning to end.
    pub operations: u64,
    /// How long it took.
    pub seconds: f64,
    /// How often each action was done.
    pub actions: BTreeMap<String, u64>,
    /// Actions that a mount does not support (extended attributes over NFSv3), and how often they were tried.
    pub unsupported: BTreeMap<String, u64>,
}

/// `lab load`: two threads per mount, each in a directory of its own.
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
    let mut report = LoadReport::default();
    thread::scope(|scope| -> Result<()> {
        let mut workers = Vec::new();
        for (mount, n) in mounts.iter().zip(0..) {
            for w in 0..WORKERS_PER_MOUNT {
                let number = n * WORKERS_PER_MOUNT + w;
                let worker = Worker::new(mount, number, seed);
                let stop = &stop;
                workers.push(scope.spawn(move || -> Result<Worker> {
                    let mut worker = worker?;
                    while !stop.load(Ordering::Relaxed) {
                        // One worker's trouble ends the load, or the rest would hide it.
                        let begin = Instant::now();
                        worker
                            .step(kind)
                            .inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
                        thread::sleep(every.saturating_sub(begin.elapsed()));
                    }
                    Ok(worker)
                }));
            }
        }
        while !stop.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(20));
            let enough = (&counts()? - &before).operations() >= operations
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
