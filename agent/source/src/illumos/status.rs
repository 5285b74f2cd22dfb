//! State of the scripts as probes, and NFS that no script measures.

use super::complaint::Complaint;
use super::runner::Failure;
use super::scripts::{Parts, Script};
use nfscope_model::host_report::Unseen;
use nfscope_model::{ProbeState, ProbeStatus};

/// Ways to give a process the right to trace the kernel.
pub const PRIVILEGES: &str = "run it by pfexec as a user with the profile Primary Administrator, as root, or as the service of \
    deploy/smf/nfscope.xml, which has the privileges dtrace_kernel, dtrace_proc and dtrace_user";

/// State, reason and fix.
fn stands(runs: bool, failure: Option<&Failure>, module: &str) -> (ProbeState, String, String) {
    let Some(failure) = failure.filter(|_| !runs) else {
        return match runs {
            true => (ProbeState::Attached, String::new(), String::new()),
            false => (ProbeState::Waiting, "it is starting".into(), String::new()),
        };
    };
    let why = failure.why.clone();
    match failure.fault {
        Some(Complaint::Privileges) => (ProbeState::Unsupported, why, PRIVILEGES.into()),
        Some(Complaint::NoProbe) => (
            ProbeState::Waiting,
            why,
            format!(
                "it is tried again: these probes belong to {module}; where that is loaded, this release lacks one of them"
            ),
        ),
        _ => (ProbeState::Waiting, why, "it is started again".into()),
    }
}

/// Status of a script.
pub fn of_script(
    script: &Script,
    runs: bool,
    failure: Option<&Failure>,
    parts: Parts,
) -> ProbeStatus {
    let (mut state, mut reason, fix) = stands(runs, failure, script.module);
    if script.required && runs && !parts.exports {
        state = ProbeState::Fallback;
        reason = "the probes of this release do not tell the export".into();
    }
    ProbeStatus {
        probe: script.probe.into(),
        program: script.name.into(),
        hook: script.hooks.into(),
        gives: script.gives.into(),
        required: script.required,
        state,
        reason,
        fix,
    }
}

/// Status of the phases. On illumos the script for operations measures them; on Linux they have a probe of their own.
pub fn of_phases(nfs: &ProbeStatus, parts: Parts) -> ProbeStatus {
    let (mut state, mut reason) = (nfs.state, nfs.reason.clone());
    if !parts.phases {
        state = ProbeState::Unsupported;
        reason =
            "left out by --no-phases, or the probes sched:::off-cpu and sched:::wakeup are missing"
                .into();
    } else if !parts.zfs && nfs.state.measures() {
        state = ProbeState::Fallback;
        reason =
            "zil_commit, zio_wait or dmu_tx_wait cannot be traced: waits for the log and for disks count as lock".into();
    } else if nfs.state == ProbeState::Fallback {
        state = ProbeState::Attached;
        reason.clear();
    }
    ProbeStatus {
        probe: "sched".into(),
        program: "phases".into(),
        hook: "sched:::off-cpu, sched:::wakeup".into(),
        gives: "phases of operations: cpu, runqueue, log, disk, lock".into(),
        required: false,
        state,
        reason,
        fix: nfs.fix.clone(),
    }
}

/// Status of rare waits, which are distinguished from other sleep if the kernel has their functions.
pub fn of_waits(phases: &ProbeStatus, parts: Parts) -> Vec<ProbeStatus> {
    let all = [
        (
            "throttle",
            parts.zfs,
            "dmu_tx_wait",
            "operations: waits until written data is stored",
        ),
        (
            "upcall",
            parts.upcalls,
            "door_upcall",
            "operations and requests: waits for daemons",
        ),
        (
            "recall",
            parts.recalls,
            "rfs4_check_delegated_byfp, rfs4_dbe_twait",
            "operations: waits for clients to return delegations",
        ),
        (
            "reclaim",
            parts.reclaim,
            "page_create_throttle",
            "operations: waits for free memory",
        ),
    ];
    let status = |(program, there, functions, gives): (&str, bool, &str, &str)| {
        let missing = format!("{functions} cannot be traced: these waits count as lock");
        let (state, reason) = match phases.state {
            // The state is that of waits for the log and disks.
            ProbeState::Attached | ProbeState::Fallback if there => {
                (ProbeState::Attached, String::new())
            }
            ProbeState::Attached | ProbeState::Fallback => (ProbeState::Unsupported, missing),
            other => (other, phases.reason.clone()),
        };
        ProbeStatus {
            probe: "sched".into(),
            program: program.into(),
            hook: format!("fbt: {functions}"),
            gives: gives.into(),
            required: false,
            state,
            reason,
            fix: match state {
                ProbeState::Waiting => phases.fix.clone(),
                _ => String::new(),
            },
        }
    };
    all.into_iter().map(status).collect()
}

/// Status of the kernel's own counts.
pub fn of_kstat(runs: bool, failure: Option<&Failure>) -> ProbeStatus {
    let (state, reason, fix) = stands(runs, failure, "the kernel");
    ProbeStatus {
        probe: "kstat".into(),
        program: "kstat".into(),
        hook: "nfs:0:rfsproccnt_*, unix:0:rpc_*_server, cpu, disks".into(),
        gives: "coverage, reply cache, CPUs, busy time of block devices".into(),
        required: false,
        state,
        reason,
        fix,
    }
}

/// Parts of NFS without a probe on illumos.
pub fn unseen() -> Vec<Unseen> {
    let all = [
        (
            "NFSv2 and NFSACL",
            "the kernel has no probes for them; kstats nfs:0:rfsproccnt_v2 and nfs_acl:0:aclproccnt_* count their calls",
        ),
        (
            "replies from the duplicate request cache and refused requests",
            "the operation's probes do not fire for them, while kstat counts them: coverage is below 1 by their share",
        ),
        (
            "arguments of operations that NFSv4.1 added",
            "no provider describes them: such operations are timed and have no status, client and export",
        ),
        (
            "round-trip times of clients, bytes of requests",
            "no stable probe tells them",
        ),
        (
            "client and file of a request that is stuck",
            "the scripts keep a number for each thread: it tells the operation, its age and its wait",
        ),
    ];
    let unseen = |(what, why): (&str, &str)| Unseen {
        what: what.to_owned(),
        why: why.to_owned(),
    };
    all.into_iter().map(unseen).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::illumos::scripts::SCRIPTS;

    #[test]
    fn each_fault_has_its_state_and_its_fix() {
        let failure = |fault| Failure {
            why: "because".into(),
            fault,
        };
        let of = |runs, fault: Option<Option<Complaint>>| {
            let failure = fault.map(failure);
            let s = of_script(&SCRIPTS[0], runs, failure.as_ref(), Parts::ALL);
            (s.state, s.reason, s.fix)
        };
        assert_eq!(of(true, None).0, ProbeState::Attached);
        assert_eq!(of(false, None).0, ProbeState::Waiting);
        let (state, reason, fix) = of(false, Some(Some(Complaint::Privileges)));
        assert_eq!((state, &*reason), (ProbeState::Unsupported, "because"));
        assert!(fix.contains("dtrace_kernel"));
        let (state, _, fix) = of(false, Some(Some(Complaint::NoProbe)));
        assert_eq!(state, ProbeState::Waiting);
        assert!(fix.contains("nfssrv"), "{fix}");
        // A process that runs again needs no reason why the last one ended.
        assert_eq!(
            of(true, Some(None)),
            (ProbeState::Attached, String::new(), String::new())
        );
    }

    #[test]
    fn phases_follow_the_script_that_measures_them() {
        let nfs = of_script(
            &SCRIPTS[0],
            true,
            None,
            Parts {
                exports: false,
                ..Parts::ALL
            },
        );
        assert_eq!(nfs.state, ProbeState::Fallback);
        assert_eq!(of_phases(&nfs, Parts::ALL).state, ProbeState::Attached);
        let without = Parts {
            zfs: false,
            ..Parts::ALL
        };
        assert_eq!(of_phases(&nfs, without).state, ProbeState::Fallback);
        let none = Parts {
            phases: false,
            ..Parts::ALL
        };
        assert_eq!(of_phases(&nfs, none).state, ProbeState::Unsupported);
        let states = |parts| {
            let waits = of_waits(&of_phases(&nfs, parts), parts);
            let states = waits.into_iter().map(|p| (p.program, p.state));
            states.collect::<Vec<_>>()
        };
        let expected = |all: [ProbeState; 4]| {
            let names = ["throttle", "upcall", "recall", "reclaim"];
            let pairs = names.into_iter().zip(all);
            pairs.map(|(n, s)| (n.to_owned(), s)).collect::<Vec<_>>()
        };
        use ProbeState::{Attached, Unsupported};
        assert_eq!(states(Parts::ALL), expected([Attached; 4]));
        assert_eq!(states(none), expected([Unsupported; 4]));
        let some = Parts {
            zfs: false,
            recalls: false,
            ..Parts::ALL
        };
        let mixed = [Unsupported, Attached, Unsupported, Attached];
        assert_eq!(states(some), expected(mixed));
    }
}
