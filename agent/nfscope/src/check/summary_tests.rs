use super::*;
use nfscope_model::host_report::{Fact, Unseen, Verdict};

const NO_SERVER: [&str; 2] = [
    "module nfsd is not loaded",
    "nothing to do: it attaches when that appears",
];
const NO_BTF: [&str; 2] = [
    "no BTF of module jbd2",
    "a kernel with CONFIG_DEBUG_INFO_BTF_MODULES=y",
];

fn program(
    probe: &str,
    program: &str,
    gives: &str,
    state: ProbeState,
    [reason, fix]: [&str; 2],
) -> ProbeStatus {
    ProbeStatus {
        probe: probe.into(),
        program: program.into(),
        hook: "fentry/of_no_interest".into(),
        gives: gives.into(),
        required: false,
        state,
        reason: reason.into(),
        fix: fix.into(),
    }
}

fn fact(name: &str, value: &str, ok: bool, fix: &str) -> Fact {
    Fact {
        name: name.into(),
        value: value.into(),
        ok,
        fix: fix.into(),
    }
}

fn export(path: &str) -> Exported {
    Exported {
        path: path.into(),
        fs: "ext4".into(),
        volume: "sda1".into(),
        log: "on sdb1".into(),
        separate: Some(true),
        ok: true,
        measured: "waits and commits".into(),
        ..Exported::default()
    }
}

#[test]
fn a_good_server_has_a_line_for_each_thing_that_is_measured() {
    let attached = |probe, name| program(probe, name, "something", ProbeState::Attached, ["", ""]);
    let report = Report {
        verdict: Verdict::Full,
        facts: vec![
            fact("kernel", "6.12.0", true, ""),
            fact("BTF", "yes", true, ""),
            fact("kernel memory", "3.7 MB for 2 possible CPUs", true, ""),
        ],
        exports: ["/a", "/b", "/c", "/d", "/e"].map(export).into(),
        probes: vec![
            attached("nfsd", "nfsd_send"),
            attached("nfsd", "nfsd_arrive"),
            attached("nfsd", "nfsd_accept"),
            attached("nfsd", "nfsd_deleg_ask"),
            attached("nfsd", "nfsd_held"),
            attached("jbd2", "jbd2_wait_end"),
            attached("block", "block_issue"),
            program(
                "client",
                "client_wake",
                "slots",
                ProbeState::Unused,
                ["no NFS mount here", ""],
            ),
            attached("sched", "sched_io_end"),
        ],
        unseen: vec![Unseen {
            what: "NFSv2".into(),
            why: "its operations are not timed".into(),
        }],
    };
    assert_eq!(
        render(&report, false),
        "\
ok   NFS operations can be timed, with all details
ok   host        kernel 6.12.0; kernel memory 3.7 MB for 2 possible CPUs
ok   operations  each NFSv3 and NFSv4 operation: count, latency, bytes, errors, client, export
ok   queue       the time from the arrival of a request until a thread takes it
ok   phases      where the time of an operation goes: CPU, run queue, log, disk, other waits
ok   log         /a, /b, /c, 2 more: ext4 on sda1, log on sdb1; waits and commits
ok   disks       time, queue and bytes of requests to block devices
ok   clients     connections of clients, and why they end
ok   state       delegations, layouts, locks of NFSv3, lease clean-up
ok   stuck       requests that hang, with operation, client and file
ok   mounts      NFS mounts of this host, as a client; not in use here [1]
-    not seen    NFSv2 [2]

[1]  no NFS mount here
[2]  its operations are not timed

Each program and fact: `nfscope check --all`
"
    );
    assert!(render(&report, true).starts_with("\x1b[32mok  \x1b[0m NFS operations"));
}

#[test]
fn each_thing_that_will_be_missing_is_said_with_one_reason() {
    let report = Report {
        verdict: Verdict::None,
        facts: vec![
            fact("kernel", "6.12.0", true, ""),
            fact("module nfsd", "not loaded", false, "start the NFS server"),
        ],
        exports: vec![Exported {
            ok: false,
            warnings: vec!["exported async".into()],
            fix: "export /a with the option sync".into(),
            ..export("/a")
        }],
        probes: vec![
            program("nfsd", "nfsd_send", "end", ProbeState::Waiting, NO_SERVER),
            program(
                "nfsd",
                "nfsd_arrive",
                "arrival",
                ProbeState::Waiting,
                NO_SERVER,
            ),
            program(
                "jbd2",
                "jbd2_wait_end",
                "waits for the log",
                ProbeState::Unsupported,
                NO_BTF,
            ),
            program(
                "jbd2",
                "jbd2_wait_begin",
                "waits for the log",
                ProbeState::Unsupported,
                NO_BTF,
            ),
            program(
                "jbd2",
                "jbd2_written",
                "bytes",
                ProbeState::Attached,
                ["", ""],
            ),
            program(
                "block",
                "block_issue",
                "queue",
                ProbeState::Fallback,
                ["no BTF: raw_tp", ""],
            ),
            program(
                "sched",
                "sched_io_end",
                "disk",
                ProbeState::Attached,
                ["", ""],
            ),
            program(
                "sched",
                "sched_reclaim",
                "waits for memory",
                ProbeState::Unsupported,
                ["no tracepoint", ""],
            ),
        ],
        unseen: Vec::new(),
    };
    assert_eq!(
        render(&report, false),
        "\
no   NFS operations cannot be timed
no   host        kernel 6.12.0; module nfsd not loaded [1]
no   operations  each NFSv3 and NFSv4 operation: count, latency, bytes, errors, client, export; not measured
                 (waiting for the server) [2]
no   queue       the time from the arrival of a request until a thread takes it; not measured (waiting for the
                 server) [2]
part phases      where the time of an operation goes: CPU, run queue, log, disk, other waits; without: waits
                 for memory [3]
part log         /a: ext4 on sda1, log on sdb1; waits and commits; exported async [4]; unsupported: waits for
                 the log [5]
part disks       time, queue and bytes of requests to block devices; by a fallback [6]

[1]  fix: start the NFS server
[2]  module nfsd is not loaded
[3]  no tracepoint
[4]  fix: export /a with the option sync
[5]  why: no BTF of module jbd2; fix: a kernel with CONFIG_DEBUG_INFO_BTF_MODULES=y
[6]  no BTF: raw_tp

Each program and fact: `nfscope check --all`
"
    );
}

#[test]
fn a_topic_without_a_required_program_is_not_measured() {
    let shown = |states: [ProbeState; 2]| {
        let [first, second] = states.map(|state| {
            let why = if state == ProbeState::Attached {
                ["", ""]
            } else {
                ["reason", ""]
            };
            program("nfsd", "nfsd_send", "its end", state, why)
        });
        let report = Report {
            verdict: Verdict::None,
            facts: Vec::new(),
            exports: Vec::new(),
            probes: vec![
                ProbeStatus {
                    required: true,
                    ..first
                },
                second,
            ],
            unseen: Vec::new(),
        };
        render(&report, false).lines().nth(1).unwrap().to_owned()
    };
    for state in [
        ProbeState::Unsupported,
        ProbeState::Waiting,
        ProbeState::Detached,
    ] {
        let line = shown([state, ProbeState::Attached]);
        assert!(line.starts_with("no   operations"), "{line}");
        // A topic without any measuring program is not measured.
        let line = shown([state, state]);
        assert!(
            line.starts_with("no   operations") && line.contains("not measured"),
            "{line}"
        );
        let line = shown([ProbeState::Attached, state]);
        assert!(line.starts_with("part operations"), "{line}");
    }
}

/// Programs of the nfsd probe with another topic must be named in [`topic`]. Only these belong to the operations.
#[test]
fn each_program_has_the_topic_that_an_admin_looks_for() {
    let table = include_str!("../../../../docs/kernels.md");
    let rows = table.lines().filter(|l| l.starts_with("| nfsd |"));
    let names = rows.flat_map(|l| l.split('`').skip(1).step_by(2));
    let mut of_operations: Vec<_> = names
        .filter(|n| topic("nfsd", n) == Topic::Operations)
        .collect();
    of_operations.sort_unstable();
    assert_eq!(
        of_operations,
        [
            "nfsd_defer",
            "nfsd_drop",
            "nfsd_exit",
            "nfsd_idle",
            "nfsd_op_end",
            "nfsd_ops_begin",
            "nfsd_read_done",
            "nfsd_reply",
            "nfsd_run",
            "nfsd_send",
            "nfsd_write_done"
        ]
    );
}
