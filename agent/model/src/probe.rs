//! The health of each probe, as data: every view says the same about what is measured and why something is not.

use serde::{Deserialize, Serialize};

/// How one probe program stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeState {
    /// Attached by its first choice of hook.
    Attached,
    /// Attached by a second choice that measures the same, or a little less: the reason says what.
    Fallback,
    /// Will attach by itself once the kernel module or the service it observes is there.
    Waiting,
    /// It observes a kind of file system that this host does not use; attaches by itself when it does. Nothing is lacking.
    Unused,
    /// Detached on request, so that its kernel module can be unloaded; attaches again on request, or once the module is
    /// loaded anew.
    Detached,
    /// This host cannot offer it; the reason says what is missing and what would help.
    Unsupported,
}

impl ProbeState {
    /// True where the program is attached, by whichever hook.
    pub fn measures(self) -> bool {
        matches!(self, ProbeState::Attached | ProbeState::Fallback)
    }

    /// True where it will attach by itself.
    pub fn may_come(self) -> bool {
        matches!(self, ProbeState::Waiting | ProbeState::Unused)
    }

    /// The state's name in JSON and in labels.
    pub fn as_str(self) -> &'static str {
        match self {
            ProbeState::Attached => "attached",
            ProbeState::Fallback => "fallback",
            ProbeState::Waiting => "waiting",
            ProbeState::Unused => "unused",
            ProbeState::Detached => "detached",
            ProbeState::Unsupported => "unsupported",
        }
    }
}

/// One probe program, its state and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeStatus {
    /// The probe's one word: `nfsd`, `sched`, `jbd2`, ...
    pub probe: String,
    /// The program inside it, at most 15 characters.
    pub program: String,
    /// The hook it attaches to, as the kernel names it (`tp_btf/svc_process`).
    pub hook: String,
    /// What it gives, in one line.
    pub gives: String,
    /// True where NFS operations cannot be timed without it.
    pub required: bool,
    /// Where it stands.
    pub state: ProbeState,
    /// Why it is not simply attached; empty where it is.
    pub reason: String,
    /// What the admin can do about it; empty where nothing is to be done.
    pub fix: String,
}

/// True for the probes of an agent on illumos: no other reads the kernel's counts by `kstat`.
pub fn is_illumos(probes: &[ProbeStatus]) -> bool {
    probes.iter().any(|p| p.probe == "kstat")
}

/// True where NFS operations are being timed: every required program is attached.
pub fn times_operations(probes: &[ProbeStatus]) -> bool {
    probes.iter().any(|p| p.required)
        && probes
            .iter()
            .filter(|p| p.required)
            .all(|p| p.state.measures())
}
