//! `lab baselines`: reports of `nfscope baseline` on changes that the lab has made, and on none.
//!
//! Two experiments on one icount machine, its disks null_blk with a timer: a fast log device joins a pool on a slow disk, and one
//! thread becomes sixteen. The load is the same before and after; each client asks at a fixed rate.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::agent::Agent;
use crate::begun;
use crate::control::Running;
use crate::kernel::Kernel;
use crate::recordings::{BASELINES, STORE, Store};
use crate::server::Server;

/// Length of the recordings, and the directory of the reports.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The machine's kernel: 6.1 or 6.12
    #[arg(long, default_value = "6.12", value_parser = Kernel::named)]
    pub kernel: Kernel,
    /// Seconds of the machine for each side of a comparison, in three recordings with windows of one second
    #[arg(long, default_value_t = 60)]
    pub seconds: u32,
    /// Directory that keeps the reports
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Keep the store in `tests/recordings`.
    #[arg(skip)]
    pub write: bool,
}

/// Reports of one pair of recordings.
#[derive(Debug)]
pub struct Compared {
    /// Output of `nfscope baseline compare`.
    pub text: String,
    /// Report as JSON.
    pub json: Value,
    /// Report as a page.
    pub html: String,
}

/// The experiments.
#[derive(Debug)]
pub struct Experiments {
    /// Recordings of a server without a change, twice.
    pub same: Compared,
    /// Pool without and with a log device.
    pub log_device: Compared,
    /// Server with one thread and with sixteen.
    pub threads: Compared,
    /// Output of `nfscope capacity` on the server with one thread.
    pub capacity: String,
    /// Limit of a journal that is hardly used, predicted and measured.
    pub group_commit: GroupCommit,
}

/// The limit of a journal, predicted from little load and measured under full load.
#[derive(Debug)]
pub struct GroupCommit {
    /// Output of `nfscope capacity` on a recording with one client.
    pub text: String,
    /// Requests per second that the log takes, as predicted for `THREADS` threads.
    pub predicted: f64,
    /// Requests per second with more clients than threads, each of which asks again at once.
    pub measured: f64,
    /// Requests per second that the log takes with a single thread, whose commits serve one request each.
    pub single: f64,
}

impl Experiments {
    /// All experiments, each with its title.
    pub fn all(&self) -> [(&'static str, &Compared); 3] {
        [
            ("same", &self.same),
            ("log-device", &self.log_device),
            ("threads", &self.threads),
        ]
    }
}

/// Milliseconds of each request to the pool's disk and to the log device.
const DISK_MS: f64 = 8.0;
const LOG_MS: f64 = 0.1;
/// Threads of the server whose journal is measured.
const THREADS: u32 = 8;

/// A machine whose agent is recorded, by nfscope's own commands.
pub(crate) struct Bench<'a> {
    pub server: &'a Server,
    pub program: String,
    pub port: u16,
    pub seconds: u32,
}

impl<'a> Bench<'a> {
    /// Wraps a machine and its agent, for `seconds` of recordings.
    pub(crate) fn of(server: &'a Server, agent: &Agent, seconds: u32) -> Result<Bench<'a>> {
        Ok(Bench {
            server,
            program: server.nfscope_path()?.display().to_string(),
            port: agent.port(),
            seconds,
        })
    }
}

/// Boots an icount machine, for recordings.
pub(crate) fn boot(kernel: Kernel) -> Result<Server> {
    Server::boot(kernel)
        .export("tmpfs")
        .memory("3G")
        .icount()
        .start()
}

/// Starts the agent of the machine.
pub(crate) fn agent_of(server: &Server) -> Result<Agent> {
    let agent = server.agent_start(&[])?;
    // Text patching takes long on one emulated CPU.
    agent
        .wait_until_healthy(Duration::from_secs(600))
        .inspect_err(|_| server.keep_logs())?;
    // On one CPU one operation in a hundred would wait for the agent or the recorder: the very ones that a p99 is made of.
    server.sh(&format!("chrt -i -a -p 0 $(pidof {})", agent.process()))?;
    Ok(agent)
}

/// Options of the recordings that every run of the tests compares.
pub fn in_every_run(write: bool) -> Options {
    Options {
        kernel: Kernel::V6_12,
        // Three recordings have 60 windows of a second. Shorter windows need more readings: on one CPU, more than a hundredth of the
        // WRITEs would then wait for a reading, and a p99 is made of those.
        seconds: 60,
        keep: None,
        write,
    }
}

/// Records all experiments in a machine, and compares the recordings on this host: an emulated CPU takes twenty times as long for
/// statistics.
///
/// # Errors
/// When the machine, the agent or a load fails.
pub fn run(options: &Options) -> Result<Experiments> {
    let server = boot(options.kernel)?;
    let agent = agent_of(&server)?;
    let bench = Bench::of(&server, &agent, options.seconds)?;
    log_device(&bench, options.kernel).context("a log device")?;
    threads(&bench).context("one thread and sixteen")?;
    group_commit(&bench).context("the limit of a journal")?;
    agent.stop()?;
    let copy = BASELINES.copied(&server)?;
    if options.write {
        BASELINES.keep(&copy)?;
    }
    let done = Experiments::compared_in(&copy)?;
    if let Some(dir) = &options.keep {
        std::fs::create_dir_all(dir)?;
        for (name, compared) in done.all() {
            std::fs::write(dir.join(format!("{name}.html")), &compared.html)?;
            std::fs::write(dir.join(format!("{name}.json")), compared.json.to_string())?;
        }
    }
    Ok(done)
}

fn log_device(bench: &Bench, kernel: Kernel) -> Result<()> {
    let zfs = kernel.zfs()?;
    // A transaction group each five seconds delays about one WRITE in a hundred: chance would decide whether the p99 is one of them.
    bench.server.sh(&format!(
        "set -e; zfs_load {}
         echo 120 >/sys/module/zfs/parameters/zfs_txg_timeout
         scene_up zfs {DISK_MS}; nfsd_up 16; grace_over",
        zfs.display()
    ))?;
    let load = bench.load("clients write --clients 4 --within 4 --every 60 --scatter")?;
    bench.record_side("disk")?;
    bench.record_side("disk-again")?;
    bench.server.sh(&format!(
        "null_disk slog {LOG_MS} 64 && zpool add -f tank log /dev/mapper/slog"
    ))?;
    bench.record_side("log-device")?;
    end(load)
}

fn threads(bench: &Bench) -> Result<()> {
    bench
        .server
        .sh("set -e; scene_up ext4 2 0.1; nfsd_up 1; grace_over
         dd if=/dev/zero of=/run/exp/shared bs=1M count=128 status=none
         sync")?;
    // Evicting the file from the page cache keeps the last second like the first.
    let forget = bench.server.lab_command("evict-cache /run/exp/shared");
    let cold = bench.server.spawn(&forget)?;
    let load = bench.load("clients read --clients 16 --within 128 --every 40 --scatter")?;
    bench.record_side("one-thread")?;
    bench.server.sh("echo 16 >/proc/fs/nfsd/threads")?;
    bench.record_side("sixteen-threads")?;
    end(load)?;
    end(cold)
}

/// A journal on a disk of its own that takes 8 ms for each request: hardly used by one client, and then by more than the server has
/// threads.
fn group_commit(bench: &Bench) -> Result<()> {
    bench.server.sh(&format!(
        "set -e; scene_up ext4 {LOG_MS} {DISK_MS}; nfsd_up {THREADS}; grace_over"
    ))?;
    let recorded = |name: &str, load: &str| -> Result<()> {
        let load = bench.load(&format!("clients write --within 4 {load}"))?;
        // A recording of a third is long enough for a rate and the mean of hundreds of commits, each of which takes the disk 8 ms.
        bench.record(name, bench.seconds / REPEATS)?;
        end(load)
    };
    recorded("journal-light", "--clients 1 --every 60 --scatter")?;
    recorded("journal-full", "--clients 32")?;
    bench.server.sh("echo 1 >/proc/fs/nfsd/threads")?;
    recorded("journal-single", "--clients 4")
}

impl GroupCommit {
    fn of(store: &Store) -> Result<GroupCommit> {
        let rate = |name: &str| -> Result<Value> {
            let json = store.nfscope(&format!("capacity {name} --json"))?;
            serde_json::from_str(&json).context("capacity --json")
        };
        let (light, full, single) = (
            rate("journal-light")?,
            rate("journal-full")?,
            rate("journal-single")?,
        );
        let resources = light["resources"].as_array().context("no resources")?;
        let is_log = |r: &&Value| r["name"].as_str().is_some_and(|n| n.starts_with("log of"));
        let log = resources.iter().find(is_log).context("no log")?;
        let number = |v: &Value| v.as_f64().context("no rate");
        Ok(GroupCommit {
            text: store.nfscope("capacity journal-light")?,
            predicted: number(&log["max_rate"])?,
            measured: number(&full["rate"])?,
            single: number(&single["rate"])?,
        })
    }
}

impl Experiments {
    /// Compares the recordings of a store in this folder, on this host.
    ///
    /// # Errors
    /// When a recording is missing, or when nfscope fails.
    pub fn compared_in(folder: &Path) -> Result<Experiments> {
        let store = Store::of(folder);
        Ok(Experiments {
            same: Compared::of_sides(&store, "disk", "disk-again")?,
            log_device: Compared::of_sides(&store, "disk", "log-device")?,
            threads: Compared::of_sides(&store, "one-thread", "sixteen-threads")?,
            capacity: store.nfscope("capacity one-thread-1")?,
            group_commit: GroupCommit::of(&store)?,
        })
    }
}

impl Compared {
    /// Compares two sides of a store.
    fn of_sides(store: &Store, before: &str, after: &str) -> Result<Compared> {
        let [before, after] = [before, after].map(|side| names(side).join(","));
        let pair = format!("baseline compare {before} {after}");
        let text = store.nfscope(&format!("{pair} --html {}", store.page.display()))?;
        let json = store.nfscope(&format!("{pair} --json"))?;
        Ok(Compared {
            text,
            json: serde_json::from_str(&json).context("compare --json")?,
            html: std::fs::read_to_string(&store.page)?,
        })
    }
}

impl Bench<'_> {
    fn load(&self, what: &str) -> Result<Running> {
        let line = self.server.lab_command(&format!("{what} --seconds 36000"));
        let begun = "/run/begun-load";
        self.server.sh(&format!("rm -f {begun}"))?;
        let named = format!("export {}={begun}\n{line}", begun::BEGUN);
        let load = self.server.spawn(&named)?;
        self.server.lab(&format!("begun {begun}"))?;
        // The first seconds of a load differ from the rest.
        self.server.sh("sleep 5")?;
        Ok(load)
    }

    /// Records one side of a comparison several times: a single recording does not show how much recordings differ.
    fn record_side(&self, name: &str) -> Result<()> {
        names(name)
            .iter()
            .try_for_each(|n| self.record(n, self.seconds / REPEATS))
    }

    fn record(&self, name: &str, seconds: u32) -> Result<()> {
        let port = self.port;
        self.nfscope(&format!(
            "baseline record {name} --duration {seconds}s --interval 1s --url http://127.0.0.1:{port}"
        ))
        .map(drop)
    }

    /// Runs a command of nfscope in the machine, on its store.
    pub(crate) fn nfscope(&self, arguments: &str) -> Result<String> {
        let line = format!("chrt -i 0 {} {arguments} --store {STORE}", self.program);
        let output = self.server.sh_within(Duration::from_secs(1800), &line)?;
        Ok(output.stdout)
    }
}

/// Recordings of each side.
const REPEATS: u32 = 3;

/// `disk-1`, `disk-2`, `disk-3`
fn names(side: &str) -> Vec<String> {
    (1..=REPEATS).map(|i| format!("{side}-{i}")).collect()
}

fn end(load: Running) -> Result<()> {
    let early = load.has_ended();
    let output = load.kill()?;
    ensure!(
        !early,
        "the load ended early: {}{}",
        output.stderr,
        output.stdout
    );
    Ok(())
}
