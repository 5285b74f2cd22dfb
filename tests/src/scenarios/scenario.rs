//! A scenario: the contents of a file of `tests/scenarios/`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use nfscope_model::finding::Kind;
use serde::Deserialize;

use crate::kernel::Kernel;

/// A server with a fault that the lab has made, or without one.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Name of the file without its ending.
    #[serde(skip)]
    pub name: String,
    /// Description in a sentence.
    pub title: String,
    /// The server on which the fault acts.
    pub server: Place,
    /// Subcommands of `lab` that load the server, all at the same time. `load` runs over mounts of two clients.
    #[serde(default)]
    pub load: Vec<String>,
    /// Clients have the CPU whenever they want it, as on machines of their own: they call even while other programs keep the server
    /// from it.
    #[serde(default)]
    pub clients_first: bool,
    /// Fault; empty on a healthy server.
    #[serde(default)]
    pub fault: Fault,
    /// Findings that a diagnosis must have.
    pub diagnosis: Expected,
    /// Length of the window, by the machine's clock. A CPU that is never idle takes the host some minutes.
    #[serde(default = "two")]
    pub seconds: f64,
    /// Kernels on which the scenario runs.
    #[serde(default = "both")]
    pub kernels: Vec<String>,
}

/// The server of a scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// ext4, ext4-fast, xfs, btrfs, zfs, or tmpfs, which has no disks.
    #[serde(default = "ext4")]
    pub fs: String,
    /// Milliseconds that each request to the data's disk takes.
    #[serde(default = "fast")]
    pub disk_ms: f64,
    /// Requests that the data's disk serves at a time.
    #[serde(default = "many")]
    pub disk_depth: u32,
    /// Milliseconds that each request to the log's own disk takes. Without it the log is inside the file system.
    pub log_ms: Option<f64>,
    /// MiB of the log's own disk. OpenZFS writes blocks that find no room there to the pool's main disks.
    #[serde(default = "small")]
    pub log_mib: u32,
    /// nfsd threads.
    #[serde(default = "eight")]
    pub threads: u32,
    /// Shell commands on the server, before the load begins.
    #[serde(default)]
    pub prepare: String,
}

/// Fault beside the server's own disks and threads: shell commands on the server, where `$LAB` is this program.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Commands before the load begins.
    #[serde(default)]
    pub begin: String,
    /// Commands while the load runs; killed at the end.
    #[serde(default)]
    pub during: String,
    /// Commands that undo both.
    #[serde(default)]
    pub end: String,
    /// True if the fault is over, and undone, before the window begins.
    #[serde(default)]
    pub is_over: bool,
}

/// Findings that a right diagnosis has.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Kinds of findings, the strongest first, in this order; none on a healthy server.
    pub findings: Vec<String>,
    /// Kinds that may be found as well, behind the first.
    #[serde(default)]
    pub may: Vec<String>,
    /// Kinds that would be wrong.
    #[serde(default)]
    pub must_not: Vec<String>,
    /// Words that are in the evidence or in the advice of the findings.
    #[serde(default)]
    pub says: Vec<String>,
    /// Words that `nfscope diagnose` prints on one line, for an equal time after the window.
    #[serde(default)]
    pub command_says: Vec<String>,
    /// Words that would be false.
    #[serde(default)]
    pub must_not_say: Vec<String>,
}

fn both() -> Vec<String> {
    Kernel::ZFS.map(|k| k.name().to_owned()).to_vec()
}

fn ext4() -> String {
    "ext4".to_owned()
}

fn fast() -> f64 {
    0.1
}

fn many() -> u32 {
    64
}

fn two() -> f64 {
    2.0
}

fn small() -> u32 {
    64
}

fn eight() -> u32 {
    8
}

impl Scenario {
    /// The kind that must be found first, or `healthy`.
    pub fn expected(&self) -> &str {
        self.diagnosis
            .findings
            .first()
            .map_or("healthy", String::as_str)
    }

    /// True if the scenario runs on this kernel.
    pub fn runs_on(&self, kernel: Kernel) -> bool {
        self.kernels.iter().any(|k| k == kernel.name())
    }

    fn read(path: &Path) -> Result<Scenario> {
        let text =
            fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        let mut scenario: Scenario =
            toml::from_str(&text).with_context(|| format!("reading {}", path.display()))?;
        let name = path.file_stem().unwrap_or_default();
        scenario.name = name.to_string_lossy().into_owned();
        scenario
            .check()
            .with_context(|| path.display().to_string())?;
        Ok(scenario)
    }

    fn check(&self) -> Result<()> {
        let said = &self.diagnosis;
        let kinds = || {
            let all = [&said.findings, &said.may, &said.must_not];
            all.into_iter().flatten()
        };
        for kind in kinds() {
            let times = kinds().filter(|k| *k == kind).count();
            ensure!(times == 1, "{kind} is named {times} times in [diagnosis]");
            ensure!(
                Kind::ALL.iter().any(|k| k.as_str() == kind),
                "no kind of finding is called {kind}; there are {}",
                Kind::ALL.map(Kind::as_str).join(", ")
            );
        }
        for kernel in &self.kernels {
            Kernel::named(kernel)?;
        }
        Ok(())
    }
}

/// Every scenario, by name.
pub fn all_scenarios() -> Result<Vec<Scenario>> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let entries = fs::read_dir(&dir).with_context(|| format!("reading {}", dir.display()))?;
    let mut paths = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<Vec<_>>>()?;
    paths.sort();
    paths
        .iter()
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .map(|path| Scenario::read(path))
        .collect()
}
