//! Report of `nfscope check` on a host: facts, exports, and what can be measured there.

use crate::ProbeStatus;
use serde::Serialize;
use std::collections::BTreeMap;

/// A fact about the host, for `nfscope check`.
#[derive(Debug, Clone, Serialize)]
pub struct Fact {
    /// Name of the fact (`kernel`, `BTF`, `module BTF`, `CAP_BPF`).
    pub name: String,
    /// Value of the fact on this host.
    pub value: String,
    /// False if the fact limits what can be measured.
    pub ok: bool,
    /// Action for the admin; empty where nothing is to be done.
    pub fix: String,
}

/// Begin of the warning of an export whose dataset's properties were not read; the reason follows it.
pub const PROPERTIES_UNKNOWN: &str = "sync and logbias are not known";

/// An exported file system, for `nfscope check`.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Exported {
    /// Path under which the file system is exported.
    pub path: String,
    /// Type of the file system.
    pub fs: String,
    /// Label `volume` of the metrics of its log.
    pub volume: String,
    /// Location of its log, in words.
    pub log: String,
    /// True if the log has a device of its own; `null` where there is no log, or its location is unknown.
    pub separate: Option<bool>,
    /// False if a part of the log is not measured, or is not as it should be.
    pub ok: bool,
    /// Parts of the log that are measured.
    pub measured: String,
    /// Facts that make acknowledged writes less safe, or the log slower, than they look.
    pub warnings: Vec<String>,
    /// Action for the admin against the warnings.
    pub fix: String,
}

/// A part of NFS on this host that nfscope does not measure, for `nfscope check`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unseen {
    /// Name of the part (`LOCALIO`, `queue time over UDP`).
    pub what: String,
    /// Why the part is not measured, and which other data shows it.
    pub why: String,
}

/// Extent of what can be measured here.
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
    /// Exported file systems and their logs.
    pub exports: Vec<Exported>,
    /// Expected state of each probe program on this host.
    pub probes: Vec<ProbeStatus>,
    /// Parts of NFS that this host uses and nfscope does not measure.
    pub unseen: Vec<Unseen>,
}

/// Result of a trial compilation of a script on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Compiled {
    /// Name of the script.
    pub name: String,
    /// True if the script compiles with all of its parts.
    pub compiles: bool,
    /// Messages of the compiler, without paths and addresses.
    pub said: Vec<String>,
}

/// The answer of `nfscope check --report`: what an admin of an illumos server can send to the developers.
#[derive(Debug, Clone, Serialize)]
pub struct IllumosReport {
    /// Release and revision of nfscope.
    pub nfscope: String,
    /// Release of the system, without the host's name.
    pub release: String,
    /// Verdict, as in `check`.
    pub verdict: Verdict,
    /// State of each script.
    pub states: Vec<ProbeStatus>,
    /// Result of the compiler for each script.
    pub scripts: Vec<Compiled>,
    /// Probes that the scripts name; true if the probe exists on the host.
    pub probes: BTreeMap<String, bool>,
    /// Probes that the providers nfsv3 and nfsv4 have.
    pub operations: Vec<String>,
    /// Number of statistics of each kind.
    pub statistics: BTreeMap<String, usize>,
}
