//! Where snapshots come from. Only a source talks to a kernel.

pub mod linux;

use crate::model::{ProbeStatus, Snapshot};
use serde::Serialize;

/// What the admin may choose about measuring.
#[derive(Debug, Clone)]
pub struct Options {
    /// Attach to kernel modules that load after the start. Costs keeping CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN.
    pub late_attach: bool,
    /// Ask the kernel for run counts and run times of every probe program (about 60 instructions per run).
    pub probe_stats: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            late_attach: true,
            probe_stats: false,
        }
    }
}

/// A running set of probes.
pub trait Source: Send {
    /// Reads everything now.
    fn snapshot(&mut self) -> Snapshot;
    /// The health of every probe program, without reading the measurements.
    fn probes(&self) -> Vec<ProbeStatus>;
    /// Attaches what has become possible since the last call (a module was loaded). Cheap when nothing changed;
    /// called every second.
    fn poll(&mut self);
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

/// True where NFS operations are being timed: every required program is attached.
pub fn times_operations(probes: &[ProbeStatus]) -> bool {
    use crate::model::ProbeState::{Attached, Fallback};
    probes.iter().any(|p| p.required)
        && probes
            .iter()
            .filter(|p| p.required)
            .all(|p| matches!(p.state, Attached | Fallback))
}
