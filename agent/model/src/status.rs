//! State of the probes, in words.

use crate::probe::times_operations;
use crate::{ProbeState, ProbeStatus};
use std::sync::Arc;

/// State of the probes, for the views.
#[derive(Debug, Clone, PartialEq)]
pub enum Status {
    /// The source is starting.
    Attaching,
    /// The source runs, with these programs.
    Running(Arc<[ProbeStatus]>),
}

impl Status {
    /// The probe programs; none yet while attaching.
    pub fn probes(&self) -> &[ProbeStatus] {
        match self {
            Status::Attaching => &[],
            Status::Running(probes) => probes,
        }
    }

    /// `Ok` if NFS operations are being timed, or the own mounts of a client without an NFS server; else the condition that is missing.
    ///
    /// # Errors
    /// The reason, for a person.
    pub fn health(&self) -> Result<(), String> {
        if *self == Status::Attaching {
            return Err("attaching".to_owned());
        }
        if times_operations(self.probes()) || self.is_of_client() {
            return Ok(());
        }
        let missing = self
            .probes()
            .iter()
            .filter(|p| p.required && !p.state.measures());
        let missing: Vec<_> = group(missing).iter().map(Group::to_string).collect();
        Err(if missing.is_empty() {
            "NFS operations are not timed: this host offers no probe for them".to_owned()
        } else {
            format!("NFS operations are not timed: {}", missing.join("; "))
        })
    }
}

impl Status {
    /// True for an agent of a client: it observes this host's own mounts, and there is no NFS server here yet.
    fn is_of_client(&self) -> bool {
        let mut required = self.probes().iter().filter(|p| p.required);
        self.client().is_some() && required.all(|p| p.state == ProbeState::Waiting)
    }

    /// State of the probe of this host's own mounts; `None` if it was not requested, or is detached.
    fn client(&self) -> Option<ProbeState> {
        let program = self.probes().iter().rfind(|p| p.probe == "client")?;
        Some(program.state).filter(|state| *state != ProbeState::Detached)
    }

    /// Sentence on what is being measured, where [`health`](Status::health) is good.
    pub fn measures(&self) -> &'static str {
        const TIMED: &str = "NFS operations are being timed";
        if times_operations(self.probes()) {
            return TIMED;
        }
        match self.client() {
            Some(state) if state.measures() => "RPCs of this host's NFS mounts are being timed",
            Some(ProbeState::Unsupported) => {
                "sums of this host's NFS mounts are read from /proc/self/mountstats"
            }
            _ => "waits for an NFS mount or an NFS server",
        }
    }
}

/// Programs of one probe in the same state for the same reason. A missing module concerns a dozen of them, and should be reported once.
#[derive(Debug)]
pub struct Group<'a>(Vec<&'a ProbeStatus>);

/// Groups programs, in the order of their first ones.
pub fn group<'a>(probes: impl Iterator<Item = &'a ProbeStatus>) -> Vec<Group<'a>> {
    let mut out: Vec<Group<'a>> = Vec::new();
    for p in probes {
        let same = |o: &&ProbeStatus| {
            o.probe == p.probe && o.state == p.state && o.reason == p.reason && o.fix == p.fix
        };
        match out.iter_mut().find(|g| g.0.first().is_some_and(same)) {
            Some(g) => g.0.push(p),
            None => out.push(Group(vec![p])),
        }
    }
    out
}

impl<'a> Group<'a> {
    /// Programs of the group.
    pub fn programs(&self) -> &[&'a ProbeStatus] {
        &self.0
    }

    /// First program of the group, for the state and the reason that all of them have.
    pub fn first(&self) -> &'a ProbeStatus {
        self.0[0]
    }
}

impl std::fmt::Display for Group<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let p = self.first();
        let names: Vec<_> = self.0.iter().map(|p| p.program.as_str()).collect();
        write!(f, "{} {}", p.probe, p.state.as_str())?;
        if !p.reason.is_empty() {
            write!(f, ": {}", p.reason)?;
        }
        write!(f, " ({})", names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(name: &str, state: ProbeState, reason: &str) -> ProbeStatus {
        ProbeStatus {
            probe: "nfsd".into(),
            program: name.into(),
            hook: String::new(),
            gives: String::new(),
            required: name != "extra",
            state,
            reason: reason.into(),
            fix: String::new(),
        }
    }

    #[test]
    fn one_reason_is_said_once() {
        use ProbeState::{Attached, Unsupported, Waiting};
        let status = Status::Running(Arc::new([
            program("nfsd_send", Waiting, "no nfsd"),
            program("ok", Attached, ""),
            program("extra", Waiting, "no nfsd"),
            program("old", Unsupported, "no BTF"),
            program("nfsd_run", Waiting, "no nfsd"),
        ]));
        assert_eq!(
            status.health().unwrap_err(),
            "NFS operations are not timed: nfsd waiting: no nfsd (nfsd_send, nfsd_run); nfsd unsupported: no BTF (old)"
        );
        assert_eq!(Status::Attaching.health().unwrap_err(), "attaching");
        let fine = Status::Running(Arc::new([program("ok", Attached, "")]));
        assert_eq!(fine.health(), Ok(()));
        assert!(Status::Running(Arc::new([])).health().is_err());
    }

    #[test]
    fn an_agent_of_a_client_needs_no_server() {
        use ProbeState::{Attached, Detached, Unsupported, Unused, Waiting};
        let with = |nfsd, client| {
            let client = ProbeStatus {
                probe: "client".into(),
                required: false,
                ..program("client_rpc_end", client, "")
            };
            Status::Running(Arc::new([program("nfsd_send", nfsd, "no nfsd"), client]))
        };
        for (client, says) in [
            (Attached, "RPCs of this host's NFS mounts are being timed"),
            (
                Unsupported,
                "sums of this host's NFS mounts are read from /proc/self/mountstats",
            ),
            (Unused, "waits for an NFS mount or an NFS server"),
        ] {
            assert_eq!(with(Waiting, client).health(), Ok(()));
            assert_eq!(with(Waiting, client).measures(), says);
            // A server whose operations cannot be timed is not healthy because it is a client, too.
            assert!(with(Unsupported, client).health().is_err());
        }
        assert!(with(Waiting, Detached).health().is_err());
        let both = with(Attached, Attached);
        assert_eq!(both.measures(), "NFS operations are being timed");
    }
}
