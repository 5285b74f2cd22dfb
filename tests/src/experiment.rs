//! `lab experiment`: a designed experiment on a real server, made by `nfscope experiment run` from a plan file.
//!
//! Three factors on an icount machine: a log device beside a slow pool, the number of threads, and the property `sync` of the file
//! system. Clients send unstable WRITEs, so that a WRITE waits for the log only with `sync=always`: a fast log device helps there,
//! and does nothing with `sync=standard`. Threads do nothing, because there are fewer clients than threads.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::baselines::{Bench, agent_of, boot};
use crate::kernel::Kernel;
use crate::recordings::{EXPERIMENT, Store};

/// Length and number of the runs, and the directory of the results.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The machine's kernel: 6.1 or 6.12
    #[arg(long, default_value = "6.12", value_parser = Kernel::named)]
    pub kernel: Kernel,
    /// Seconds of the machine for each run, in windows of one second
    #[arg(long, default_value_t = 20)]
    pub seconds: u32,
    /// How often each combination is run
    #[arg(long, default_value_t = 3)]
    pub replicates: u32,
    /// Directory that keeps the page
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Keep the store in `tests/recordings`.
    #[arg(skip)]
    pub write: bool,
}

/// Result of the experiment.
#[derive(Debug)]
pub struct Done {
    /// Output of `nfscope experiment analyse`.
    pub text: String,
    /// Result as JSON.
    pub json: Value,
    /// Result as a page.
    pub html: String,
}

/// Milliseconds of each request to the pool's disk, and to the log device.
const DISK_MS: f64 = 8.0;
const LOG_MS: f64 = 0.1;

/// The response is the mean, because no bucket hides a part of it.
const METRIC: &str = "write:mean";

/// Plan file of the experiment. `zpool remove` of a log device waits for a transaction group, which `zpool sync` makes.
fn plan(lab: &str, seconds: u32, replicates: u32) -> String {
    format!(
        r#"name = "slog"
replicates = {replicates}
seed = 7

[run]
load = "{lab} clients write --unstable --clients 4 --within 4 --every 60 --scatter --seconds 36000"
warmup = "5s"
record = "{seconds}s"
interval = "1s"

[[factor]]
name = "log"
low.level = "disk"
low.set = "! zpool status tank | grep -q slog || {{ zpool remove tank /dev/mapper/slog && zpool sync tank; }}"
low.verify = "! zpool status tank | grep -q slog"
high.level = "slog"
high.set = "zpool status tank | grep -q slog || zpool add -f tank log /dev/mapper/slog"
high.verify = "zpool status tank | grep -q slog"

[[factor]]
name = "threads"
low.level = "8"
low.set = "echo 8 >/proc/fs/nfsd/threads"
low.verify = "grep -qx 8 /proc/fs/nfsd/threads"
high.level = "16"
high.set = "echo 16 >/proc/fs/nfsd/threads"
high.verify = "grep -qx 16 /proc/fs/nfsd/threads"

[[factor]]
name = "sync"
low.level = "standard"
low.set = "zfs set sync=standard tank/export"
low.verify = "zfs get -H -o value sync tank/export | grep -qx standard"
high.level = "always"
high.set = "zfs set sync=always tank/export"
high.verify = "zfs get -H -o value sync tank/export | grep -qx always"
"#
    )
}

/// Options of the runs that every run of the tests analyses: each combination once.
pub fn in_every_run(write: bool) -> Options {
    Options {
        kernel: Kernel::V6_12,
        seconds: 10,
        replicates: 1,
        keep: None,
        write,
    }
}

/// Makes and analyses every run.
///
/// # Errors
/// When the machine, the agent or a run fails.
pub fn run(options: &Options) -> Result<Done> {
    let server = boot(options.kernel)?;
    let agent = agent_of(&server)?;
    let bench = Bench::of(&server, &agent, options.seconds)?;
    let zfs = options.kernel.zfs()?;
    server.sh(&format!(
        "set -e; zfs_load {}; scene_up zfs {DISK_MS}; nfsd_up 8; grace_over
         null_disk slog {LOG_MS} 64",
        zfs.display()
    ))?;
    let plan = plan(&server.lab_command(""), options.seconds, options.replicates);
    let file = "/run/slog.toml";
    server.sh(&format!("cat >{file} <<'PLAN'\n{plan}PLAN"))?;
    bench.nfscope(&format!(
        "experiment run {file} --url http://127.0.0.1:{}",
        bench.port
    ))?;
    agent.stop()?;
    let copy = EXPERIMENT.copied(&server)?;
    if options.write {
        EXPERIMENT.keep(&copy)?;
    }
    let done = Done::analysed_in(&copy)?;
    if let Some(dir) = &options.keep {
        std::fs::create_dir_all(dir.join("experiments"))?;
        std::fs::write(dir.join("slog.toml"), &plan)?;
        std::fs::write(dir.join("slog.html"), &done.html)?;
        std::fs::write(dir.join("slog.json"), done.json.to_string())?;
        // The store and the plan, for `nfscope experiment analyse` on the host.
        for what in ["baselines.db", "experiments/slog.json"] {
            std::fs::copy(copy.join(what), dir.join(what))?;
        }
    }
    Ok(done)
}

impl Done {
    /// Analyses the runs of a store in this folder, on this host.
    ///
    /// # Errors
    /// When a run is missing, or when nfscope fails.
    pub fn analysed_in(folder: &Path) -> Result<Done> {
        let store = Store::of(folder);
        let analyse = format!("experiment analyse slog --metric {METRIC}");
        let text = store.nfscope(&format!("{analyse} --html {}", store.page.display()))?;
        let json = store.nfscope(&format!("{analyse} --json"))?;
        Ok(Done {
            text,
            json: serde_json::from_str(&json).context("analyse --json")?,
            html: std::fs::read_to_string(store.page)?,
        })
    }
}
