//! The health of each probe, as data: every view says the same about what is measured and why something is not.

use serde::{Deserialize, Serialize};

/// State of a probe program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeState {
    /// The program is attached to its first choice of hook.
    Attached,
    /// The program is attached to a second choice that measures the same, or a little less; the reason says what.
    Fallback,
    /// The program will attach by itself once the kernel module or the service that it observes is there.
    Waiting,
    /// The program observes a kind of file system that this host does not use, and attaches by itself once it does. Nothing is lacking.
    Unused,
    /// The program was detached on request, so that its kernel module can be unloaded. It attaches again on request, or once the module is
    /// loaded anew.
    Detached,
    /// This host cannot offer the program; the reason says what is missing and what would help.
    Unsupported,
}

impl ProbeState {
    /// True if the program is attached, to any of its hooks.
    pub fn measures(self) -> bool {
        matches!(self, ProbeState::Attached | ProbeState::Fallback)
    }

    /// True if the program will attach by itself.
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

/// A probe program, its state and the reason for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeStatus {
    /// Name of the probe, one word: `nfsd`, `sched`, `jbd2`, ...
    pub probe: String,
    /// Name of the program inside the probe, at most 15 characters.
    pub program: String,
    /// Hook to which the program attaches, as the kernel names it (`tp_btf/svc_process`).
    pub hook: String,
    /// Data that the program gives, in one line.
    pub gives: String,
    /// True if NFS operations cannot be timed without the program.
    pub required: bool,
    /// State of the program.
    pub state: ProbeState,
    /// Reason for any state but `attached`; empty for `attached`.
    pub reason: String,
    /// Action for the admin; empty where nothing is to be done.
    pub fix: String,
}

/// True for the probes of an agent on illumos: no other reads the kernel's counts by `kstat`.
pub fn is_illumos(probes: &[ProbeStatus]) -> bool {
    probes.iter().any(|p| p.probe == "kstat")
}

/// True if NFS operations are being timed: every required program is attached.
pub fn times_operations(probes: &[ProbeStatus]) -> bool {
    probes.iter().any(|p| p.required)
        && probes
            .iter()
            .filter(|p| p.required)
            .all(|p| p.state.measures())
}
