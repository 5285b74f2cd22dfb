//! `lab block-cost`: cost of the block probe on this host, in nanoseconds, beside biolatency of libbpf-tools. Both are attached at
//! the same time, so that they see the same requests.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::kernel::cache;
use crate::paths;

/// File and number of the reads.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Directory of the file that is read, on the device whose requests are counted
    #[arg(long, default_value = "/var/tmp")]
    pub directory: PathBuf,
    /// Direct reads of 4 KiB in each round
    #[arg(long, default_value_t = 40_000)]
    pub reads: u64,
    /// Rounds; the median is shown
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
}

/// Tracepoints of a request: both tools name their programs after them.
pub const STEPS: [&str; 3] = ["insert", "issue", "complete"];

/// Nanoseconds of one run of a tool's program at each of [`STEPS`]; `None` where it has none.
pub type Cost = [Option<f64>; 3];

/// Costs of the tools, by what they measure.
#[derive(Debug)]
pub struct Costs {
    /// nfscope's block probe: queue and device time, bytes, and forced unit access by device and operation.
    pub nfscope: Cost,
    /// `biolatency -Q`: time in the queue and at the device together.
    pub queued: Cost,
    /// `biolatency`: time at the device.
    pub device: Cost,
}

impl Costs {
    /// Cost of a request in nfscope's programs, as a fraction of its cost in both modes of biolatency together.
    pub fn part(&self) -> f64 {
        let sum = |c: &Cost| c.iter().flatten().sum::<f64>();
        sum(&self.nfscope) / (sum(&self.queued) + sum(&self.device))
    }
}

/// Programs of the kernel by identifier: nanoseconds that each has run, and how often.
type Runs = BTreeMap<u64, (u64, u64)>;

/// Measures the costs of all tools.
///
/// # Errors
/// When a tool cannot be started or does not attach, and when no request reached the device.
pub fn run(options: &Options) -> Result<Costs> {
    let biolatency = cache().join("libbpf-tools/usr/sbin/biolatency");
    ensure!(
        biolatency.is_file(),
        "{} is missing; run: tests/setup/setup.sh bench",
        biolatency.display()
    );
    let file = Scratch::new(&options.directory, options.reads)?;
    let arguments = [
        "agent",
        "--probe-stats",
        "--web.listen-address",
        "127.0.0.1:0",
    ];
    // Tools start one after the other: the kernel does not say which process loaded a program.
    let (_agent, nfscope) = Tool::start(&paths::nfscope_program()?, &arguments)?;
    let (_queued, queued) = Tool::start(&biolatency, &["-Q", "86400"])?;
    let (_device, device) = Tool::start(&biolatency, &["86400"])?;
    let mut rounds = Vec::new();
    for _ in 0..options.rounds.max(1) {
        let before = runs()?;
        file.read()?;
        rounds.push((before, runs()?));
    }
    let [nfscope, queued, device] = [nfscope, queued, device].map(|ids| {
        ids.map(|id| {
            let each = rounds.iter().filter_map(|(a, b)| nanoseconds(a, b, id?));
            median(each.collect())
        })
    });
    let costs = Costs {
        nfscope,
        queued,
        device,
    };
    ensure!(
        costs.part().is_finite(),
        "no request reached the device below {}: it may be a file system in memory",
        options.directory.display()
    );
    Ok(costs)
}

fn median(mut all: Vec<f64>) -> Option<f64> {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}

fn nanoseconds(before: &Runs, after: &Runs, id: u64) -> Option<f64> {
    let ((time0, count0), (time1, count1)) = (*before.get(&id)?, *after.get(&id)?);
    (count1 > count0).then(|| (time1 - time0) as f64 / (count1 - count0) as f64)
}

/// A file with blocks on the device; dropping it removes the file.
struct Scratch(PathBuf, u64);

impl Scratch {
    fn new(directory: &Path, reads: u64) -> Result<Scratch> {
        let path = directory.join(format!("nfscope-block-cost-{}", std::process::id()));
        File::create_new(&path).with_context(|| format!("creating {}", path.display()))?;
        let scratch = Scratch(path, reads);
        scratch.dd("/dev/zero", &scratch.0, &["conv=fsync"])?;
        Ok(scratch)
    }

    fn read(&self) -> Result<()> {
        self.dd(&self.0, "/dev/null", &["iflag=direct"])
    }

    fn dd(&self, from: impl AsRef<Path>, to: impl AsRef<Path>, more: &[&str]) -> Result<()> {
        let output = Command::new("dd")
            .arg(format!("if={}", from.as_ref().display()))
            .arg(format!("of={}", to.as_ref().display()))
            .arg(format!("count={}", self.1))
            .arg("bs=4k")
            .args(more)
            .output()
            .context("starting dd")?;
        ensure!(
            output.status.success(),
            "dd: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A process; dropping it kills the process.
struct Tool(Child);

impl Tool {
    /// Starts the tool, and waits for its programs at [`STEPS`].
    fn start(program: &Path, arguments: &[&str]) -> Result<(Tool, [Option<u64>; 3])> {
        let before: Vec<u64> = runs()?.into_keys().collect();
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        let tool = Tool(child);
        let started = Instant::now();
        loop {
            let listed = bpftool()?;
            let found = STEPS.map(|step| new_program(&listed, &before, step));
            // biolatency without -Q only attaches to insertions on kernels before 5.11.
            if found[1].is_some() && found[2].is_some() {
                // A loaded program needs a moment more to be attached.
                thread::sleep(Duration::from_secs(2));
                return Ok((tool, found));
            }
            ensure!(
                started.elapsed() < Duration::from_secs(20),
                "{} has not attached: {found:?}; nfscope check says what this host refuses",
                program.display()
            );
            thread::sleep(Duration::from_millis(200));
        }
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program at this step of the block layer that was not there before.
fn new_program(listed: &Value, before: &[u64], step: &str) -> Option<u64> {
    let is_new = |p: &&Value| p["id"].as_u64().is_some_and(|id| !before.contains(&id));
    let named = |p: &&Value| {
        let name = p["name"].as_str().unwrap_or_default();
        // biolatency: block_rq_insert, block_rq_issue, block_rq_comple; nfscope: block_insert, ...
        name.starts_with("block_") && name.contains(&step[..step.len().min(5)])
    };
    let found = listed.as_array()?.iter().filter(is_new).find(named);
    found?["id"].as_u64()
}

fn runs() -> Result<Runs> {
    let listed = bpftool()?;
    let all = listed.as_array().context("bpftool prints a list")?;
    let number = |p: &Value, key: &str| p[key].as_u64().unwrap_or(0);
    Ok(all
        .iter()
        .map(|p| {
            (
                number(p, "id"),
                (number(p, "run_time_ns"), number(p, "run_cnt")),
            )
        })
        .collect())
}

fn bpftool() -> Result<Value> {
    let output = Command::new("bpftool")
        .args(["--json", "prog", "show"])
        .output()
        .context("starting bpftool")?;
    serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())
        .context("bpftool prog show")
}
