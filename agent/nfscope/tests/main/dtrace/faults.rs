//! Faults of the child processes, by scripted ones: the agent continues, and reports what is missing.

use super::played::Played;
use super::tools::{Agent, nfscope};
use crate::fixture::serve::HANG;
use nfscope_model::family as f;
use nfscope_model::{ProbeState, ProbeStatus, Snapshot};

const WRITES: [&str; 6] = [
    "@h|op|3|op-write-done| = 45:7",
    "@c|op_ns|3|op-write-done|14000000",
    "@c|runqueue_ns|3|op-write-done|1000000",
    "@c|log_ns|3|op-write-done|9000000",
    "@c|disk_ns|3|op-write-done|0",
    "@c|lock_ns|3|op-write-done|0",
];

fn probe<'a>(s: &'a Snapshot, program: &str) -> &'a ProbeStatus {
    s.probes.iter().find(|p| p.program == program).unwrap()
}

fn writes(s: &Snapshot) -> u64 {
    s.hist(&f::OP_DURATION, ["3", "write"])
        .map_or(0, |h| h.count())
}

#[test]
fn missing_privileges_of_dtrace_are_named() {
    let played = Played::new();
    for script in ["nfs", "rpc", "zil", "txg", "io"] {
        played.says(
            &format!("{script}.refuse"),
            "dtrace: failed to initialize dtrace: DTrace requires additional privileges\n",
        );
    }
    let mut agent = nfscope(&played.dtrace, &played.kstat);
    let out = agent
        .args(["agent", "--web.listen-address", "127.0.0.1:0"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(
        said.contains("DTrace requires additional privileges"),
        "{said}"
    );
    assert!(
        said.contains("dtrace_kernel, dtrace_proc and dtrace_user"),
        "{said}"
    );
    let out = nfscope(&played.dtrace, &played.kstat)
        .args(["check", "--json"])
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(report["verdict"], "none");
    assert_eq!(report["probes"][0]["state"], "unsupported");
}

#[test]
fn probes_that_are_missing_are_waited_for() {
    let played = Played::new();
    played.frame("nfs", &WRITES);
    let missing = "dtrace: failed to compile script /dev/stdin: line 9: probe description nfsv3*:::op-read-done does not match any probes\n";
    played.says("nfs.refuse", missing);
    played.says(
        "zil.refuse",
        "dtrace: failed to compile script /dev/stdin: line 9: probe description fbt:zfs:zil_commit:entry does not match any probes\n",
    );
    let agent = Agent::start(&played.dtrace, &played.kstat);
    let s = agent.until("waiting", |s| {
        s.probes
            .iter()
            .any(|p| p.program == "kstat" && p.state == ProbeState::Attached)
    });
    let nfs = probe(&s, "nfs");
    assert_eq!(nfs.state, ProbeState::Waiting, "{nfs:?}");
    assert!(nfs.reason.contains("does not match any probes"), "{nfs:?}");
    assert!(
        agent.get("/healthz").contains("not timed"),
        "{}",
        agent.get("/healthz")
    );
    // Start of the NFS server.
    std::fs::remove_file(played.dir.path("nfs.refuse")).unwrap();
    let s = agent.until("timed", |s| writes(s) == 7);
    assert_eq!(probe(&s, "nfs").state, ProbeState::Attached);
    // Health: the agent evaluates it once a second.
    agent.until("healthy", |_| agent.get("/healthz") == "ok\n");
    // Missing script: its families have no series.
    assert_eq!(probe(&s, "zil").state, ProbeState::Waiting);
    assert!(s.series(&f::LOG_WAIT.info).is_empty());
}

#[test]
fn a_script_runs_without_the_parts_that_the_host_lacks() {
    let played = Played::new();
    played.frame("nfs", &WRITES);
    played.says(
        "nfs.refuse",
        "dtrace: failed to compile script /dev/stdin: line 70: probe description fbt:zfs:zio_wait:entry does not match any probes\n",
    );
    played.says("nfs.only", "fbt:zfs");
    let agent = Agent::start(&played.dtrace, &played.kstat);
    let s = agent.until("timed", |s| writes(s) == 7);
    let phases = probe(&s, "phases");
    assert_eq!(phases.state, ProbeState::Fallback);
    assert!(phases.reason.contains("count as lock"), "{phases:?}");
    assert_eq!(s.value(&f::OP_PHASE, ["3", "write", "log"]), None);
    assert_eq!(s.value(&f::OP_PHASE, ["3", "write", "cpu"]), Some(0.004));
    drop(agent);
    played.says(
        "nfs.refuse",
        "dtrace: failed to compile script /dev/stdin: line 200: noi_shrpath is not a member of nfsv3opinfo_t\n",
    );
    played.says("nfs.only", "noi_shrpath");
    let agent = Agent::start(&played.dtrace, &played.kstat);
    let s = agent.until("timed", |s| writes(s) == 7);
    assert_eq!(probe(&s, "nfs").state, ProbeState::Fallback);
    assert!(s.series(&f::EXPORT_OPS.info).is_empty());
    assert_eq!(s.value(&f::OP_PHASE, ["3", "write", "log"]), Some(0.009));
    assert!(!played.read("nfs.script").contains("noi_shrpath"));
}

#[test]
fn counts_continue_after_a_child_that_dies_within_a_frame() {
    let played = Played::new();
    played.frame("nfs", &WRITES);
    let mut agent = Agent::start(&played.dtrace, &played.kstat);
    agent.until("timed", |s| writes(s) == 7);
    // Larger counts in a frame that never ends: they are discarded.
    played.says(
        "nfs.half",
        "@h\top\t3\top-write-done\t\n  45 |@@ 1000\n@c\top_ns\t3\top-wri",
    );
    let s = agent.until("back", |s| {
        writes(s) > 7 && probe(s, "nfs").state == ProbeState::Attached
    });
    assert_eq!(writes(&s), 2 * 7);
    assert_eq!(s.value(&f::OP_PHASE, ["3", "write", "log"]), Some(0.018));
    assert_eq!(agent.end(), Some(0));
}

#[test]
fn drops_of_dtrace_are_counted_as_lost_events() {
    let played = Played::new();
    played.frame("nfs", &WRITES);
    played.says(
        "nfs.say",
        "dtrace: [DTRACEDROP_AGGREGATION] 7 aggregation drops on CPU 0\ndtrace: 40 dynamic variable drops with non-empty dirty list\n",
    );
    played.says("io.say", "dtrace: 3 drops on CPU 1\n");
    let agent = Agent::start(&played.dtrace, &played.kstat);
    let s = agent.until("dropped", |s| {
        let lost = |labels| s.value(&f::EVENTS_LOST, labels) > Some(0.0);
        lost(["nfsd", "dynamic_variable_drops"]) && lost(["block", "drops"])
    });
    assert_eq!(
        s.value(&f::EVENTS_LOST, ["nfsd", "aggregation_drops"]),
        Some(7.0)
    );
    assert_eq!(
        s.value(&f::EVENTS_LOST, ["nfsd", "dynamic_variable_drops"]),
        Some(40.0)
    );
    assert_eq!(s.value(&f::EVENTS_LOST, ["block", "drops"]), Some(3.0));
    assert_eq!(s.value(&f::EVENTS_LOST, ["nfsd", "unreadable"]), Some(0.0));
    let options = played.read("arguments");
    assert!(
        options.contains("-x switchrate=1hz") && options.ends_with("-s /dev/stdin\n"),
        "{options}"
    );
}

/// Children end by themselves, however the agent ends: they write to a pipe without a reader.
#[test]
fn no_child_outlives_the_agent() {
    for kill in [false, true] {
        let played = Played::new();
        played.frame("nfs", &WRITES);
        let mut agent = Agent::start(&played.dtrace, &played.kstat);
        agent.until("timed", |s| {
            writes(s) == 7 && s.probes.iter().all(|p| p.state.measures())
        });
        let children = ["nfs", "rpc", "zil", "txg", "io"].map(|name| {
            let id = played.read(&format!("{name}.pid"));
            std::path::Path::new("/proc").join(id.trim())
        });
        assert!(children.iter().all(|child| child.exists()));
        if kill {
            agent.process.kill().unwrap();
            agent.process.wait().unwrap();
        } else {
            assert_eq!(agent.end(), Some(0));
        }
        let begun = std::time::Instant::now();
        while children.iter().any(|child| child.exists()) {
            assert!(begun.elapsed() < HANG, "a child goes on");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}
