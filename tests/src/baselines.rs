//! `lab baselines`: what `nfscope baseline` says of changes that the lab has made, and of none.
//!
//! Two experiments on one machine that counts instructions, its disks null_blk with a timer: a fast log device joins a pool on
//! a slow disk, and one thread becomes sixteen. The load is the same before and after, each client asking every so often.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::begun;
use crate::control::Running;
use crate::kernel::Kernel;
use crate::server::Server;

/// How long to record, and what to keep.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The machine's kernel: 6.1 or 6.12
    #[arg(long, default_value = "6.12", value_parser = Kernel::named)]
    pub kernel: Kernel,
    /// Seconds of the machine for each recording, in windows of one second
    #[arg(long, default_value_t = 60)]
    pub seconds: u32,
    /// Keep the reports here
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
}

/// What was said of one pair of recordings.
#[derive(Debug)]
pub struct Compared {
    /// As `nfscope baseline compare` prints it.
    pub text: String,
    /// The same as JSON.
    pub json: Value,
    /// And as a page.
    pub html: String,
}

/// The experiments.
#[derive(Debug)]
pub struct Experiments {
    /// The same server twice.
    pub same: Compared,
    /// Without and with a log device.
    pub log_device: Compared,
    /// One thread and sixteen.
    pub threads: Compared,
    /// What `nfscope capacity` says of one thread.
    pub capacity: String,
}

impl Experiments {
    /// Each with its title.
    pub fn all(&self) -> [(&'static str, &Compared); 3] {
        [
            ("same", &self.same),
            ("log-device", &self.log_device),
            ("threads", &self.threads),
        ]
    }
}

/// Requests of the pool's disk and of the log device take this long, in milliseconds.
const DISK_MS: f64 = 8.0;
const LOG_MS: f64 = 0.1;
const STORE: &str = "/run/baselines.db";

struct Bench<'a> {
    server: &'a Server,
    program: String,
    port: u16,
    seconds: u32,
}

/// Plays them.
///
/// # Errors
/// When the machine, the agent or a load fails.
pub fn run(options: &Options) -> Result<Experiments> {
    let server = Server::boot(options.kernel)
        .export("tmpfs")
        .memory("3G")
        .icount()
        .start()?;
    let agent = server.agent_start(&[])?;
    // Text patching takes its time where it is emulated on one CPU.
    agent
        .wait_until_healthy(Duration::from_secs(600))
        .inspect_err(|_| server.keep_logs())?;
    // With one CPU, one operation in a hundred would wait for who reads and records: the very ones that a p99 is made of.
    server.sh(&format!("chrt -i -a -p 0 $(pidof {})", agent.process()))?;
    let bench = Bench {
        server: &server,
        program: server.nfscope_path()?.display().to_string(),
        port: agent.port(),
        seconds: options.seconds,
    };
    let (same, log_device) = log_device(&bench, options.kernel).context("a log device")?;
    let (threads, capacity) = threads(&bench).context("one thread and sixteen")?;
    agent.stop()?;
    let done = Experiments {
        same,
        log_device,
        threads,
        capacity,
    };
    if let Some(dir) = &options.keep {
        std::fs::create_dir_all(dir)?;
        for (name, compared) in done.all() {
            std::fs::write(dir.join(format!("{name}.html")), &compared.html)?;
            std::fs::write(dir.join(format!("{name}.json")), compared.json.to_string())?;
        }
    }
    Ok(done)
}

fn log_device(bench: &Bench, kernel: Kernel) -> Result<(Compared, Compared)> {
    let zfs = kernel.zfs()?;
    bench.server.sh(&format!(
        "set -e; zfs_load {}; scene_up zfs {DISK_MS}; nfsd_up 16; grace_over",
        zfs.display()
    ))?;
    let load = bench.load("clients write --clients 4 --within 4 --every 60 --scatter")?;
    bench.record("disk")?;
    bench.record("disk-again")?;
    bench.server.sh(&format!(
        "null_disk slog {LOG_MS} 64 && zpool add -f tank log /dev/mapper/slog"
    ))?;
    bench.record("log-device")?;
    end(load)?;
    Ok((
        bench.compare("disk", "disk-again")?,
        bench.compare("disk", "log-device")?,
    ))
}

fn threads(bench: &Bench) -> Result<(Compared, String)> {
    bench
        .server
        .sh("set -e; scene_up ext4 2 0.1; nfsd_up 1; grace_over
         dd if=/dev/zero of=/run/exp/shared bs=1M count=128 status=none
         sync")?;
    // What has been read is forgotten, so that the last second is as the first.
    let forget = bench.server.lab_command("evict-cache /run/exp/shared");
    let cold = bench.server.spawn(&forget)?;
    let load = bench.load("clients read --clients 16 --within 128 --every 40 --scatter")?;
    bench.record("one-thread")?;
    bench.server.sh("echo 16 >/proc/fs/nfsd/threads")?;
    bench.record("sixteen-threads")?;
    end(load)?;
    end(cold)?;
    let capacity = bench.nfscope("capacity one-thread")?;
    Ok((bench.compare("one-thread", "sixteen-threads")?, capacity))
}

impl Bench<'_> {
    fn load(&self, what: &str) -> Result<Running> {
        let line = self.server.lab_command(&format!("{what} --seconds 36000"));
        let begun = "/run/begun-load";
        self.server.sh(&format!("rm -f {begun}"))?;
        let named = format!("export {}={begun}\n{line}", begun::BEGUN);
        let load = self.server.spawn(&named)?;
        self.server.lab(&format!("begun {begun}"))?;
        // What a load does first is not what it does then.
        self.server.sh("sleep 5")?;
        Ok(load)
    }

    fn record(&self, name: &str) -> Result<()> {
        let (port, seconds) = (self.port, self.seconds);
        self.nfscope(&format!(
            "baseline record {name} --duration {seconds}s --interval 1s --url http://127.0.0.1:{port}"
        ))
        .map(drop)
    }

    fn compare(&self, before: &str, after: &str) -> Result<Compared> {
        let pair = format!("baseline compare {before} {after}");
        let page = "/run/report.html";
        let text = self.nfscope(&format!("{pair} --html {page}"))?;
        let json = self.nfscope(&format!("{pair} --json"))?;
        Ok(Compared {
            text,
            json: serde_json::from_str(&json).context("compare --json")?,
            html: self.server.sh(&format!("cat {page}"))?.stdout,
        })
    }

    fn nfscope(&self, arguments: &str) -> Result<String> {
        let line = format!("chrt -i 0 {} {arguments} --store {STORE}", self.program);
        let output = self.server.sh_within(Duration::from_secs(1800), &line)?;
        Ok(output.stdout)
    }
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
