//! Where the probes stand, in words.

use crate::ProbeStatus;
use crate::probe::times_operations;
use std::sync::Arc;

/// The probes' state as the views see it.
#[derive(Debug, Clone, PartialEq)]
pub enum Status {
    /// The source is starting.
    Attaching,
    /// It runs, with these programs.
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

    /// `Ok` where NFS operations are being timed, else what this waits for.
    ///
    /// # Errors
    /// The reason, for a person.
    pub fn health(&self) -> Result<(), String> {
        if *self == Status::Attaching {
            return Err("attaching".to_owned());
        }
        if times_operations(self.probes()) {
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

/// Programs of one probe that stand the same for the same reason: one missing module concerns a dozen of them, and
/// should be said once.
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
    /// Its programs.
    pub fn programs(&self) -> &[&'a ProbeStatus] {
        &self.0
    }

    /// What they have in common.
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
    use crate::ProbeState;

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
}
