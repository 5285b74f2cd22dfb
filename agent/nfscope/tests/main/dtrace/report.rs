//! `nfscope check --report` with a real D compiler, and with scripted programs.

use super::emulator::{Emulator, System};
use super::played::Played;
use super::tools::{Compiler, Dir, nfscope, run};
use crate::fixture::said;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn report(dtrace: &Path, kstat: &Path, file: &Path) -> (String, Value) {
    let mut check = nfscope(dtrace, kstat);
    let check = check.args(["check", "--report"]).arg(file);
    let (code, out, error) = said(&check.output().unwrap());
    assert_eq!(code, 0, "{out}{error}");
    let text = std::fs::read_to_string(file).unwrap();
    (out, serde_json::from_str(&text).unwrap())
}

#[test]
fn a_real_compiler_takes_every_script() {
    let Some(compiler) = Compiler::find() else {
        return;
    };
    let dir = Dir::new();
    let _emulator = Emulator::start(&compiler, &dir);
    let system = System::new(&compiler, &dir);
    std::fs::write(
        &system.counts,
        "nfs:0:rfsproccnt_v3:read\t1\nsd:0:sd0:rtime\t1\nsd:1:sd1:rtime\t1\n",
    )
    .unwrap();
    let file = dir.path("report.json");
    let (out, report) = report(&system.dtrace, &system.kstat, &file);
    assert_eq!(
        out,
        format!("{}: 6 of 6 scripts compile here\n", file.display()),
        "{report}"
    );
    assert_eq!(report["verdict"], "full", "{report}");
    // Probes of this machine, and probes of illumos that the emulator does not have.
    assert_eq!(report["probes"]["syscall::kill:entry"], true, "{report}");
    assert_eq!(
        report["probes"]["fbt:zfs:zil_commit:entry"], false,
        "{report}"
    );
    assert_eq!(report["statistics"]["sd:rtime"], 2);
    assert_eq!(report["statistics"]["nfs:rfsproccnt_v3"], 1);
}

/// Linux keeps the events of a dtrace that was killed. Their names have its process ID.
#[test]
fn events_of_a_killed_dtrace_do_not_block_the_next_one() {
    let Some(compiler) = Compiler::find() else {
        return;
    };
    // Events of a killed dtrace, renamed to those of the next one: that has the process ID of the shell, which executes it.
    let script = format!(
        "set -e
        mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug
        tracing=/sys/kernel/debug/tracing
        mountpoint -q $tracing || mount -t tracefs none $tracing
        events=$tracing/uprobe_events
        dtrace={}
        coproc exec $dtrace -x quiet -n 'BEGIN {{ printf(\"begun\\n\"); }}'
        pid=$COPROC_PID
        trap 'kill -KILL $pid' EXIT
        read -r line <&${{COPROC[0]}}
        [ \"$line\" = begun ]
        kill -KILL $pid
        killed=dt_${{pid}}_
        wait $pid || true
        grep $killed $events | sed s/$killed/dt_$$_/ | while read -r event; do echo \"$event\" >>$events; done
        for event in $(grep -o \"\\b$killed[^ ]*\" $events); do echo -:$event >>$events; done
        grep -c dt_$$_ $events
        exec $dtrace -x quiet -n 'BEGIN {{ printf(\"begun\"); exit(0); }}'",
        compiler.path.display()
    );
    let mut shell = Command::new("unshare");
    shell.args(["-m", "--propagation", "private", "bash", "-c", &script]);
    assert_eq!(run(&mut shell).trim(), "2\nbegun");
}

#[test]
fn a_report_has_all_errors_and_nothing_private() {
    let played = Played::new();
    let missing = "dtrace: failed to compile script /dev/stdin: line 9: probe description fbt:rpcmod:svc_getreq:entry does not match any probes";
    for name in ["rpc.refuse", "rpc.compile"] {
        played.says(name, &format!("{missing}\n"));
    }
    played.says(
        "io.refuse",
        "dtrace: cannot open /rpool/secret for 192.0.2.7: no\n",
    );
    played.says(
        "list",
        "   ID   PROVIDER            MODULE                          FUNCTION NAME\n  812      nfsv3            nfssrv                        rfs3_read op-read-done\n 9001      nfsv4            nfssrv                 rfs4_op_sequence op-sequence-done\n  900        fbt               zfs                        zil_commit entry\n",
    );
    let file = played.dir.path("report.json");
    let (out, report) = report(&played.dtrace, &played.kstat, &file);
    assert!(out.ends_with("5 of 6 scripts compile here\n"), "{out}");
    let state = |program: &str| {
        let all = report["states"].as_array().unwrap();
        all.iter()
            .find(|p| p["program"] == program)
            .unwrap()
            .clone()
    };
    assert_eq!(report["verdict"], "degraded");
    assert_eq!(state("rpc")["reason"], missing);
    assert_eq!(
        state("io")["reason"],
        "dtrace: cannot open <path> for <address>: no"
    );
    let scripts = report["scripts"].as_array().unwrap();
    let rpc = scripts.iter().find(|s| s["name"] == "rpc").unwrap();
    assert_eq!(rpc["said"][0], missing);
    assert_eq!(report["probes"]["fbt:zfs:zil_commit:entry"], true);
    assert_eq!(report["probes"]["fbt:zfs:zil_commit:return"], false);
    assert_eq!(report["probes"]["nfsv3*:::op-read-done"], true);
    assert_eq!(report["operations"][1], "nfsv4:op-sequence-done");
    let text = std::fs::read_to_string(&file).unwrap();
    let host = rustix::system::uname();
    for word in [
        "secret",
        "192.0.2",
        host.nodename().to_str().unwrap(),
        played.dir.0.to_str().unwrap(),
    ] {
        assert!(!text.contains(word), "{word}: {text}");
    }
    // Missing directory of the report.
    let mut check = nfscope(&played.dtrace, &played.kstat);
    let check = check.args(["check", "--report", "/none/report.json"]);
    let (code, _, error) = said(&check.output().unwrap());
    assert_eq!(code, 1);
    assert!(error.contains("cannot write /none/report.json"), "{error}");
}
