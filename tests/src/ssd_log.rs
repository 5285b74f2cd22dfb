//! `lab ssd-log`: effect of a fast log device on synchronous writes over NFS, as nfscope measures it.
//!
//! A pool on one disk that takes 8 ms for each request, as a 7200 rpm disk does, serves 4 KiB O_SYNC writes; then a device that takes
//! 0.1 ms becomes its log, while it serves. The machine counts instructions (one is a nanosecond), and both disks are null_blk with a
//! timer. Times are therefore those of a CPU with a thousand million instructions a second, independent of the host's load.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context, Result};
use nfscope_model::family as f;
use nfscope_model::family::Family;
use nfscope_model::{Histogram, Sample, Snapshot, Window};

use crate::kernel::Kernel;
use crate::load::LoadReport;
use crate::server::Server;

/// Number of operations, and the kernel.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// NFS operations before the log device is added, and after
    #[arg(long, default_value_t = 1000)]
    pub ops: u64,
    /// The machine's kernel: 6.1 or 6.12
    #[arg(long, default_value = "6.12", value_parser = Kernel::named)]
    pub kernel: Kernel,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            ops: 1000,
            kernel: Kernel::V6_12,
        }
    }
}

/// Milliseconds of each request to the pool's disk, and to the log device.
const DISK_MS: f64 = 8.0;
const SSD_MS: f64 = 0.1;

/// Measurements of nfscope in one half of the experiment.
#[derive(Debug)]
pub struct Half {
    /// WRITEs a second.
    pub rate: f64,
    /// WRITEs of version 3.
    pub write: Histogram,
    /// Waits for the log.
    pub wait: Histogram,
    /// Bytes of the log in the pool's own disk, and on the log device.
    pub bytes: [f64; 2],
    /// The CPU's part of a WRITE, in seconds.
    pub cpu: f64,
    /// `nfscope_log_separate`
    pub separate: Option<f64>,
    /// Window of the half.
    pub window: Window,
}

/// Runs both halves: without a log device, and with one.
pub fn run(options: &Options) -> Result<[Half; 2]> {
    let server = Server::boot(options.kernel)
        .export("tmpfs")
        .icount()
        .faithful()
        .clients(1)
        .start()?;
    let zfs = options.kernel.zfs()?;
    server.sh(&format!(
        "set -e
         zfs_load {}
         null_disk disk {DISK_MS}
         null_disk ssd {SSD_MS}
         zpool create -f -o ashift=12 -o cachefile=none -O atime=off -m /run/exp/tank tank /dev/mapper/disk
         exportfs -o rw,sync,no_root_squash,insecure,no_subtree_check,fsid=9 '*:/run/exp/tank'",
        zfs.display()
    ))?;
    let agent = server.agent_start(&[])?;
    // Text patching takes long on one emulated CPU.
    agent
        .wait_until_healthy(Duration::from_secs(600))
        .inspect_err(|_| server.keep_logs())?;
    let mount = server
        .client(0)
        .mount("tank", "vers=3,nolock,proto=tcp,hard", "/run/exp/tank")?;
    let half = || -> Result<Half> {
        // The first commit of a file system makes its log, and waits for a transaction group.
        load(&server, &mount, 20)?;
        let before = agent.snapshot()?;
        let report = load(&server, &mount, options.ops)?;
        let after = agent.snapshot()?;
        half_of(&before, &after, &report)
    };
    let without = half().context("without a log device")?;
    server.sh("zpool add -f tank log /dev/mapper/ssd")?;
    let with = half().context("with a log device")?;
    agent.stop()?;
    Ok([without, with])
}

/// Runs a load right behind a transaction group, so that the next one is five seconds away. One script does both, because the clock
/// of an icount machine leaps while it waits for the host.
fn load(server: &Server, mount: &str, ops: u64) -> Result<LoadReport> {
    let load = server.lab_command(&format!("load --kind sync-writes --ops {ops} {mount}"));
    let output = server.sh_within(
        Duration::from_secs(600),
        &format!("zpool sync tank && {load}"),
    )?;
    serde_json::from_str(&output.stdout)
        .with_context(|| format!("lab load printed {:?}", output.stdout))
}

fn half_of(before: &Snapshot, after: &Snapshot, report: &LoadReport) -> Result<Half> {
    let window = after.since(before);
    let seen = &window.delta;
    let histogram = |family: &Family<2>, labels| -> Result<Histogram> {
        let found = seen.hist(family, labels).cloned();
        found.with_context(|| format!("no {} of {labels:?}", family.info.name))
    };
    let write = histogram(&f::OP_DURATION, ["3", "write"])?;
    let bytes = ["main", "separate"].map(|to| seen.value(&f::LOG_BYTES, ["zfs", "tank", to]));
    let cpu = seen.value(&f::OP_PHASE, ["3", "write", "cpu"]);
    Ok(Half {
        rate: write.count() as f64 / report.seconds,
        wait: histogram(&f::LOG_WAIT, ["zfs", "tank"])?,
        bytes: bytes.map(|b| b.unwrap_or(0.0)),
        cpu: cpu.context("no phases")? / write.count() as f64,
        separate: after.value(&f::LOG_SEPARATE, ["zfs", "tank"]),
        write,
        window,
    })
}

/// The two halves side by side, as Markdown.
pub fn table([without, with]: &[Half; 2]) -> String {
    let mut out =
        String::from("| | no log device | with one | factor |\n| --- | --- | --- | --- |\n");
    let mut row = |name: &str, of: &dyn Fn(&Half) -> f64, unit: &str, digits: usize| {
        let (a, b) = (of(without), of(with));
        let factor = match (a, b) {
            (0.0, _) | (_, 0.0) => "-".to_owned(),
            _ if b >= a => format!("{:.1} times", b / a),
            _ => format!("1/{:.0}", a / b),
        };
        let _ = writeln!(
            out,
            "| {name} | {a:.digits$}{unit} | {b:.digits$}{unit} | {factor} |"
        );
    };
    let ms = |h: &Histogram, q: f64| h.quantile(q).unwrap_or(0.0) * 1e3;
    row("WRITEs a second", &|h| h.rate, "", 0);
    row(
        "WRITE mean",
        &|h| h.write.mean().unwrap_or(0.0) * 1e3,
        " ms",
        2,
    );
    row("WRITE p99", &|h| ms(&h.write, 0.99), " ms", 2);
    row(
        "log wait mean",
        &|h| h.wait.mean().unwrap_or(0.0) * 1e3,
        " ms",
        2,
    );
    row("log wait p99", &|h| ms(&h.wait, 0.99), " ms", 2);
    row("CPU time of a WRITE", &|h| h.cpu * 1e3, " ms", 2);
    row(
        "log bytes to the pool's disk",
        &|h| h.bytes[0] / 1024.0,
        " KiB",
        0,
    );
    row(
        "log bytes to the log device",
        &|h| h.bytes[1] / 1024.0,
        " KiB",
        0,
    );
    out
}

/// Every series whose number for each WRITE differs between the halves by more than `factor`.
pub fn moved(halves: &[Half; 2], factor: f64) -> Vec<String> {
    let rates = |half: &Half| {
        let per_write = half.write.count() as f64;
        let mut all = std::collections::BTreeMap::new();
        for (info, series) in half.window.delta.filled() {
            for s in series {
                let n = match &s.sample {
                    Sample::Histogram(h) => h.count() as f64,
                    Sample::Counter(v) => *v,
                    Sample::Gauge(_) => continue,
                };
                all.insert(format!("{}{:?}", info.name, s.labels), n / per_write);
            }
        }
        all
    };
    let (a, b) = (rates(&halves[0]), rates(&halves[1]));
    a.iter()
        .filter(|(name, v)| {
            let now = b.get(*name).copied().unwrap_or(0.0);
            **v > 0.05 && (now > **v * factor || now * factor < **v)
        })
        .map(|(name, v)| {
            format!(
                "{name}: {v:.3} -> {:.3} a WRITE",
                b.get(name).unwrap_or(&0.0)
            )
        })
        .collect()
}
