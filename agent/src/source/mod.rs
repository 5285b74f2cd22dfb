//! Where snapshots come from. Only a source talks to a kernel.

pub mod linux;

use crate::model::{ProbeStatus, SlowBatch, SlowFilter, Snapshot};
use serde::Serialize;

/// What the admin may choose about measuring.
#[derive(Debug, Clone)]
pub struct Options {
    /// Attach to kernel modules that load after the start. Costs keeping CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN.
    pub late_attach: bool,
    /// Ask the kernel for run counts and run times of every probe program (about 60 instructions per run).
    pub probe_stats: bool,
    /// Split operations into phases. Costs one short program at every context switch.
    pub phases: bool,
    /// Most clients with a series of their own.
    pub max_clients: usize,
    /// Most exports with a series of their own.
    pub max_exports: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            late_attach: true,
            probe_stats: false,
            phases: true,
            max_clients: 100,
            max_exports: 100,
        }
    }
}

/// A running set of probes.
pub trait Source: Send {
    /// Reads everything now, to tell somebody.
    fn snapshot(&mut self) -> Snapshot;
    /// The same for the agent's own judgement, of which nobody is told: what a series gained may still count for another one
    /// (a client's for `other`) when somebody is.
    fn look(&mut self) -> Snapshot {
        self.snapshot()
    }
    /// The health of every probe program, without reading the measurements.
    fn probes(&self) -> Vec<ProbeStatus>;
    /// Attaches what has become possible since the last call (a module was loaded). Cheap when nothing changed;
    /// called every second.
    fn poll(&mut self);
    /// Lets go of these probes, and of the kernel modules that they hold, until [`attach`](Source::attach) or until such a
    /// module is loaded anew. What they counted starts anew then. Says what became of each; a source that
    /// holds no modules has nothing to say.
    fn detach(&mut self, _probes: &[&'static str]) -> Vec<String> {
        Vec::new()
    }
    /// Attaches probes that were let go of; says what became of each.
    ///
    /// # Errors
    /// Where the agent has given up the capabilities that attaching needs.
    fn attach(&mut self, _probes: &[&'static str]) -> anyhow::Result<Vec<String>> {
        Ok(Vec::new())
    }
    /// Reports operations that `want` describes from now on, in place of what was asked for before; `None` ends it
    /// and frees the buffer. Costs nothing while nobody asks.
    ///
    /// # Errors
    /// Where operations are not timed here (yet), or `want` names an operation that does not exist.
    fn watch_slow(&mut self, want: Option<&SlowFilter>) -> anyhow::Result<()>;
    /// What was reported since the last call; never waits.
    fn take_slow(&mut self) -> SlowBatch;
}

/// One fact about the host, for `nfscope check`.
#[derive(Debug, Clone, Serialize)]
pub struct Fact {
    /// What was asked (`kernel`, `BTF`, `module BTF`, `CAP_BPF`).
    pub name: String,
    /// What the host answered.
    pub value: String,
    /// False where it limits what can be measured.
    pub ok: bool,
    /// What the admin can do about it; empty where nothing is to be done.
    pub fix: String,
}

/// One exported filesystem, for `nfscope check`.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Exported {
    /// As it is exported.
    pub path: String,
    /// Type of the filesystem there.
    pub fs: String,
    /// Label `volume` of its metrics.
    pub volume: String,
    /// Where its log lies, in words.
    pub log: String,
    /// Whether that is a device of its own; `null` where there is no log, or it cannot be told.
    pub separate: Option<bool>,
    /// False where something of the log is not measured, or is not as it should be.
    pub ok: bool,
    /// What of its log is measured.
    pub measured: String,
    /// What makes acknowledged writes less safe, or the log slower, than they look.
    pub warnings: Vec<String>,
    /// What the admin can do about that.
    pub fix: String,
}

/// How much can be measured here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// NFS operations can be timed with everything that belongs to it.
    Full,
    /// NFS operations can be timed; some probes are absent or use a fallback.
    Degraded,
    /// NFS operations cannot be timed.
    None,
}

/// The answer of `nfscope check`.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// NFS operations can be timed, in part, or not at all.
    pub verdict: Verdict,
    /// Facts about the host.
    pub facts: Vec<Fact>,
    /// Exported filesystems and their logs.
    pub exports: Vec<Exported>,
    /// What each probe program would do here.
    pub probes: Vec<ProbeStatus>,
}

/// Loads and attaches every probe that this host can run. One that cannot never stops the others.
///
/// # Errors
/// Only what leaves nothing to measure: no permission to load any program, naming the missing capability.
pub fn start(options: &Options) -> anyhow::Result<Box<dyn Source>> {
    linux::start(options)
}

/// Asks the host what it offers, attaching and detaching every probe to be sure.
pub fn check() -> Report {
    linux::check()
}

/// The words of all probes, to name them by.
pub fn words() -> impl Iterator<Item = &'static str> {
    linux::words()
}

/// True where NFS operations are being timed: every required program is attached.
pub fn times_operations(probes: &[ProbeStatus]) -> bool {
    probes.iter().any(|p| p.required)
        && probes
            .iter()
            .filter(|p| p.required)
            .all(|p| p.state.measures())
}
