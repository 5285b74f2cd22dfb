//! What `nfscope check` tells of a host: facts, exports, and what can be measured there.

use crate::ProbeStatus;
use serde::Serialize;
use std::collections::BTreeMap;

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

/// One exported file system, for `nfscope check`.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Exported {
    /// As it is exported.
    pub path: String,
    /// Type of the file system there.
    pub fs: String,
    /// Label `volume` of its metrics.
    pub volume: String,
    /// Where its log lies, in words.
    pub log: String,
    /// Whether that is a device of its own; `null` where there is no log, or it is unknown.
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

/// Something of NFS on this host that nobody measures, for `nfscope check`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unseen {
    /// What it is (`LOCALIO`, `queue time over UDP`).
    pub what: String,
    /// Why, and what tells of it instead.
    pub why: String,
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
    /// Exported file systems and their logs.
    pub exports: Vec<Exported>,
    /// What each probe program would do here.
    pub probes: Vec<ProbeStatus>,
    /// What cannot be seen, of what this host does.
    pub unseen: Vec<Unseen>,
}

/// Whether the compiler of a host takes a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Compiled {
    /// Name of the script.
    pub name: String,
    /// True where it compiles with all of its parts.
    pub compiles: bool,
    /// What the compiler said, without paths and addresses.
    pub said: Vec<String>,
}

/// The answer of `nfscope check --report`: what an admin of an illumos server can send to the developers.
#[derive(Debug, Clone, Serialize)]
pub struct IllumosReport {
    /// Release and revision of nfscope.
    pub nfscope: String,
    /// Release of the system, without the host's name.
    pub release: String,
    /// As in `check`.
    pub verdict: Verdict,
    /// How each script stands.
    pub states: Vec<ProbeStatus>,
    /// Whether each script compiles.
    pub scripts: Vec<Compiled>,
    /// Whether each probe exists that a script names.
    pub probes: BTreeMap<String, bool>,
    /// Probes that the providers nfsv3 and nfsv4 have.
    pub operations: Vec<String>,
    /// Statistics of each kind.
    pub statistics: BTreeMap<String, usize>,
}
