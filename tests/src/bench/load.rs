//! Measurement of operations in the machine: one operation repeated, and its cost.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use rustix::fs::{AtFlags, OFlags, StatxFlags, statx};
use serde::{Deserialize, Serialize};

use crate::kernel_counters::KernelCounters;
use crate::raw::repeat::{Repeat, WRITE_SIZE, What};

/// File that is written and looked up, directly in the export.
const FILE: &str = "bench";

/// Client that sends the operations.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Client {
    /// The kernel's NFS client, through a mount over loopback: the cost of an application's write.
    Mount,
    /// The lab's own client on a TCP connection: little more than the server's cost.
    Raw,
}

impl Client {
    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Client::Mount => "mount",
            Client::Raw => "raw",
        }
    }
}

/// Measured operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Case {
    /// Client that sends the operation.
    pub client: Client,
    /// 3, or 4 for 4.2.
    pub version: u32,
    /// A 4 KiB O_SYNC WRITE, a GETATTR, or a LOOKUP, which the raw client alone sends.
    pub what: What,
}

impl Case {
    /// The operation in words.
    fn operation(self) -> &'static str {
        match self.what {
            What::Write => "4 KiB sync write",
            What::Getattr => "getattr",
            What::Lookup => "lookup",
        }
    }

    /// The operation with its version.
    pub fn name(self) -> String {
        let version = if self.version == 3 { "v3" } else { "v4.2" };
        format!("{}, {version}", self.operation())
    }

    /// All cases, in the order in which they are measured and shown.
    pub fn all(quick: bool, clients: &[Client]) -> Vec<Case> {
        let mut cases = Vec::new();
        for client in clients {
            let all: &[What] = match quick {
                true => &[What::Write],
                false => &[What::Write, What::Getattr],
            };
            cases.extend(Case::of(*client, all));
        }
        cases
    }

    /// Cases for the costs of the agent's features.
    pub fn of_features() -> Vec<Case> {
        Case::of(Client::Raw, &[What::Write, What::Getattr, What::Lookup])
    }

    /// Cases for the cost of the probe of mounts.
    pub fn of_client_view() -> Vec<Case> {
        Case::all(false, &[Client::Mount])
    }

    fn of(client: Client, all: &[What]) -> Vec<Case> {
        let versions = |what: &What| {
            let what = *what;
            [3, 4].map(|version| Case {
                client,
                version,
                what,
            })
        };
        all.iter().flat_map(versions).collect()
    }

    fn counted(self, counts: &KernelCounters) -> u64 {
        let name = match self.what {
            What::Write => "write",
            What::Getattr => "getattr",
            What::Lookup => "lookup",
        };
        match self.version {
            3 => counts.proc3(name),
            _ => counts.op4(name),
        }
    }
}

/// Figures of a program of the kernel, over one measurement.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Program {
    /// Number of runs.
    pub runs: u64,
    /// Nanoseconds of all runs (on an icount machine: instructions).
    pub ns: u64,
}

/// Cost of a repeated operation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measure {
    /// The repeated operation.
    pub case: Case,
    /// Number of operations.
    pub ops: u64,
    /// Nanoseconds of the whole measurement.
    pub ns: u64,
    /// Nanoseconds per operation in each tenth: shows whether a cost is steady or was disturbed.
    pub tenths: Vec<f64>,
    /// RPC calls that the server counted during the measurement.
    pub calls: u64,
    /// Programs of the kernel that ran during the measurement, by name and id, if the kernel counts them
    /// (`kernel.bpf_stats_enabled`).
    pub programs: BTreeMap<String, Program>,
}

impl Measure {
    /// Time, or counted instructions, per operation.
    pub fn per_op(&self) -> f64 {
        self.ns as f64 / self.ops as f64
    }
}

/// Measures each case in turn.
pub fn run(cases: &[Case], ops: u64, mounts: &[PathBuf], programs: bool) -> Result<Vec<Measure>> {
    let path = Path::new("/run/exp").join(FILE);
    fs::write(&path, [b'x'; WRITE_SIZE]).with_context(|| format!("writing {}", path.display()))?;
    cases
        .iter()
        .map(|case| measure(*case, ops, mounts, programs))
        .collect()
}

fn measure(case: Case, ops: u64, mounts: &[PathBuf], programs: bool) -> Result<Measure> {
    let mut step = stepper(case, mounts)?;
    for _ in 0..ops / 10 + 20 {
        step()?;
    }
    let before = (counts()?, programs.then(running_programs).transpose()?);
    let started = Instant::now();
    let mut tenths = Vec::with_capacity(10);
    for n in 0..10 {
        let (begun, times) = (started.elapsed(), ops * (n + 1) / 10 - ops * n / 10);
        for _ in 0..times {
            step()?;
        }
        tenths.push((started.elapsed() - begun).as_nanos() as f64 / times as f64);
    }
    let ns = u64::try_from(started.elapsed().as_nanos())?;
    let after = programs.then(running_programs).transpose()?;
    let delta = &counts()? - &before.0;
    let counted = case.counted(&delta);
    ensure!(
        counted == ops,
        "{case:?}: {ops} operations were sent, and the server counted {counted}"
    );
    // The mounts renew their leases now and then.
    let spare = 5;
    ensure!(
        (ops..=ops + spare).contains(&delta.rpc_calls),
        "{case:?}: {ops} operations took {} RPC calls",
        delta.rpc_calls
    );
    Ok(Measure {
        case,
        ops,
        ns,
        tenths,
        calls: delta.rpc_calls,
        programs: difference(before.1, after),
    })
}

fn stepper(case: Case, mounts: &[PathBuf]) -> Result<Box<dyn FnMut() -> Result<()>>> {
    if case.client == Client::Raw {
        let mut repeat = Repeat::new(case.version, case.what, FILE)?;
        return Ok(Box::new(move || repeat.step()));
    }
    let mount = mounts.get(usize::from(case.version != 3));
    let path = mount.context("a mount for each version")?.join(FILE);
    ensure!(case.what != What::Lookup, "a mount keeps what it looked up");
    if case.what == What::Write {
        let file = File::options()
            .write(true)
            .custom_flags(OFlags::SYNC.bits() as i32)
            .open(&path)
            .with_context(|| format!("opening {}", path.display()))?;
        let data = [b'y'; WRITE_SIZE];
        return Ok(Box::new(move || Ok(file.write_all_at(&data, 0)?)));
    }
    // Attributes of the directory are read: no client gets a delegation of it, so that each GETATTR goes to the server.
    let directory = File::open(path.parent().context("a mount point")?)?;
    Ok(Box::new(move || {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC;
        statx(&directory, c"", flags, StatxFlags::BASIC_STATS)?;
        Ok(())
    }))
}

fn counts() -> Result<KernelCounters> {
    KernelCounters::parse(&fs::read_to_string("/proc/net/rpc/nfsd")?)
}

pub(super) fn running_programs() -> Result<BTreeMap<String, Program>> {
    let output = Command::new("bpftool")
        .args(["-j", "prog", "show"])
        .output()
        .context("running bpftool")?;
    let listed: Vec<serde_json::Value> =
        serde_json::from_slice(&output.stdout).context("what bpftool prog show printed")?;
    let number = |p: &serde_json::Value, key: &str| p[key].as_u64().unwrap_or(0);
    Ok(listed
        .iter()
        .map(|p| {
            let name = format!("{}#{}", p["name"].as_str().unwrap_or("?"), number(p, "id"));
            let runs = number(p, "run_cnt");
            let ns = number(p, "run_time_ns");
            (name, Program { runs, ns })
        })
        .collect())
}

pub(super) type Programs = Option<BTreeMap<String, Program>>;

pub(super) fn difference(before: Programs, after: Programs) -> BTreeMap<String, Program> {
    let before = before.unwrap_or_default();
    let mut programs = after.unwrap_or_default();
    for (name, program) in &mut programs {
        if let Some(before) = before.get(name) {
            program.runs -= before.runs;
            program.ns -= before.ns;
        }
    }
    programs.retain(|_, program| program.runs > 0);
    programs
}
