//! `nfscope baseline record`, and the commands that show recordings.

use crate::fixture::recorder::{
    Place, agent, good, record, record_by, refused, show, signal, wait,
};
use crate::fixture::said;
use crate::fixture::serve::serve;
use crate::fixture::ticking_agent::{KERNEL, OPERATIONS, TickingAgent, door};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::time::Duration;

#[test]
fn recordings_are_listed_shown_and_removed() {
    let (place, agent) = (Place::new("life"), agent());
    let store = place.store();
    let labels = [
        "before",
        "--for",
        "4s",
        "--label",
        "disks=hdd",
        "--label",
        "n=1",
    ];
    let (code, out, err) = said(&record(&store, agent, &labels).output().unwrap());
    assert_eq!((code, &*out), (0, ""), "{err}");
    assert!(err.contains("nfscope: recorded `before`: "), "{err}");
    assert!(err.contains("nothing is missing"), "{err}");
    let list = good(&store, &["list"]);
    assert!(
        list.contains("before") && list.contains("disks=hdd n=1"),
        "{list}"
    );
    // Host and kernel as the agent reports them, not as its URL has them.
    assert!(list.contains(KERNEL) && list.contains(" nfs7 "), "{list}");
    let s = show(&store, "before");
    assert_eq!(
        (&s["state"], &s["kernel"]),
        (&"complete".into(), &KERNEL.into())
    );
    assert_eq!(
        s["agent"],
        format!(
            "{} ({})",
            nfscope_api::build_info::VERSION,
            nfscope_api::build_info::REVISION
        )
    );
    assert_eq!(s["gaps"], serde_json::json!([]));
    // Other clients may read the agent meanwhile: operations are those of whole readings, and none is missing.
    let (windows, operations) = (
        s["windows"].as_u64().unwrap(),
        s["operations"].as_f64().unwrap(),
    );
    assert!(
        windows >= 3 && operations as u64 >= windows * OPERATIONS,
        "{s}"
    );
    assert_eq!(operations as u64 % OPERATIONS, 0, "{s}");
    let first = &s["ops"][0];
    assert_eq!(first["op"], "write");
    let mean = first["mean"]["value"].as_f64().unwrap();
    assert!(
        (mean - (90.0 * 0.004 + 10.0 * 0.031_25) / 100.0).abs() < 1e-9,
        "{mean}"
    );
    let page = good(&store, &["show", "before"]);
    assert!(
        page.contains("OPERATION") && page.contains("getattr"),
        "{page}"
    );
    // Names are unique.
    let (code, _, err) = said(&record(&store, agent, &["before"]).output().unwrap());
    assert_eq!(code, 1);
    assert!(err.contains("nfscope baseline rm before"), "{err}");
    assert!(refused(&store, &["rm", "befor"]).contains("did you mean `before`?"));
    assert!(refused(&store, &["rm", "before", "other"]).contains("no baseline is called `other`"));
    assert!(good(&store, &["list"]).contains("before"));
    good(&store, &["rm", "before"]);
    assert!(!good(&store, &["list"]).contains("before"));
}

#[test]
fn a_refused_recording_has_a_reason_and_takes_no_name() {
    let (place, agent) = (Place::new("refused"), agent());
    let store = place.store();
    for (arguments, why) in [
        (&["a b"][..], "letters, digits"),
        (&["a", "--for", "7w"], "give a duration such as"),
        (&["a", "--for", "50ms"], "shorter than one window"),
        (&["a", "--metric", "wirte"], "did you mean `write`?"),
        (&["a", "--metric", "write:p98"], "did you mean write:p9"),
        (&["a", "--at-most", "1h"], "--until-ci"),
        (
            &["a", "--until-ci", "5%", "--at-most", "2s"],
            "give --max-duration 5300ms",
        ),
        (
            &["a", "--for", "1h", "--until-ci", "5%"],
            "cannot be used with",
        ),
        (&["a", "--label", "x"], "KEY=VALUE"),
    ] {
        let (code, _, err) = said(&record(&store, agent, arguments).output().unwrap());
        assert!(
            code != 0 && err.contains(why),
            "{arguments:?}: {code} {err}"
        );
    }
    let nobody = "127.0.0.1:1".parse().unwrap();
    let (code, _, err) = said(&record(&store, nobody, &["a"]).output().unwrap());
    assert!(code == 1 && err.contains("no agent at"), "{err}");
    // Refused recordings do not take the name.
    assert_eq!(good(&store, &["list", "--json"]), "[]\n");
    let blind = serve(|| {
        let mut live = TickingAgent::new();
        live.probes = vec![crate::fixture::status(
            "nfsd_op_end",
            true,
            nfscope_model::ProbeState::Unsupported,
            "no BTF",
        )];
        Ok(Box::new(live))
    });
    let (code, _, err) = said(&record(&store, blind, &["a"]).output().unwrap());
    assert!(
        code == 1 && err.contains("NFS operations are not timed"),
        "{err}"
    );
    let (code, _, err) = said(
        &record(Path::new("/proc/x/y.db"), agent, &["a"])
            .output()
            .unwrap(),
    );
    assert!(code == 1 && err.contains("--store FILE"), "{err}");
}

#[test]
fn a_recording_waits_until_its_long_windows_have_ended() {
    let (place, agent) = (Place::new("long"), agent());
    let store = place.store();
    let mut c = record_by("3s", &store, agent, &["two", "--for", "6s"]);
    let (code, _, err) = said(&c.output().unwrap());
    assert_eq!(code, 0, "{err}");
    let s = show(&store, "two");
    assert_eq!(
        (&s["windows"], &s["state"]),
        (&2.into(), &"complete".into()),
        "{err}"
    );
}

#[test]
fn a_signal_ends_waiting_for_a_locked_store() {
    let (place, agent) = (Place::new("locked"), agent());
    let store = place.store();
    let mut c = record(&store, agent, &["locked"]);
    let mut child = c.stderr(Stdio::piped()).spawn().unwrap();
    wait(&store, "locked", 2);
    let other = rusqlite::Connection::open(&store).unwrap();
    other.busy_timeout(Duration::from_secs(10)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    assert!(
        first.contains("locked") && first.ends_with("; waiting"),
        "{first}"
    );
    signal(&child, libc::SIGINT);
    let end = lines.next().unwrap().unwrap();
    assert!(end.contains("are kept and can be used"), "{end}");
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn windows_that_waited_for_a_locked_store_are_kept() {
    let (place, agent) = (Place::new("backlog"), agent());
    let store = place.store();
    let mut c = record(&store, agent, &["all", "--for", "4s"]);
    let child = c.stderr(Stdio::piped()).spawn().unwrap();
    wait(&store, "all", 2);
    let other = rusqlite::Connection::open(&store).unwrap();
    other.busy_timeout(Duration::from_secs(10)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    std::thread::sleep(Duration::from_millis(4500));
    other.execute_batch("ROLLBACK").unwrap();
    let (code, _, err) = said(&child.wait_with_output().unwrap());
    assert_eq!(code, 0, "{err}");
    let s = show(&store, "all");
    // Windows that had not ended when the recording ended may be missing, and no other ones.
    assert!((3.5..4.1).contains(&s["seconds"].as_f64().unwrap()), "{s}");
    assert_eq!(s["gaps"], serde_json::json!([]), "{s}");
}

#[test]
fn a_signal_keeps_finished_windows() {
    let (place, agent) = (Place::new("signal"), agent());
    let store = place.store();
    for (name, number) in [("c", libc::SIGINT), ("term", libc::SIGTERM)] {
        let mut c = record(&store, agent, &[name]);
        let child = c.stderr(Stdio::piped()).spawn().unwrap();
        wait(&store, name, 2);
        assert!(good(&store, &["list"]).contains("(being recorded)"));
        let err = refused(&store, &["rm", name]);
        assert!(err.contains(&format!("kill {}", child.id())), "{err}");
        signal(&child, number);
        let (code, _, err) = said(&child.wait_with_output().unwrap());
        assert_eq!(code, 0, "{err}");
        assert!(
            err.contains("was stopped after") && err.contains("is kept"),
            "{err}"
        );
        assert_eq!(show(&store, name)["state"], "stopped");
    }
}

#[test]
fn kill_9_loses_no_finished_window() {
    let (place, agent) = (Place::new("kill"), agent());
    let store = place.store();
    let mut child = record(&store, agent, &["cut"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait(&store, "cut", 4);
    signal(&child, libc::SIGKILL);
    child.wait().unwrap();
    assert!(good(&store, &["list"]).contains("(interrupted)"));
    let s = show(&store, "cut");
    assert_eq!(s["state"], "interrupted");
    assert!(s["windows"].as_u64().unwrap() >= 4, "{s}");
    assert!(
        s["operations"].as_u64() >= Some(4 * OPERATIONS)
            || s["operations"].as_f64() >= Some(4.0 * OPERATIONS as f64)
    );
    good(&store, &["rm", "cut"]);
}

#[test]
fn two_recorders_share_a_store() {
    let (place, agent) = (Place::new("two"), agent());
    let store = place.store();
    // Both recorders find no store and create it.
    let start = |name| {
        let mut c = record(&store, agent, &[name, "--for", "6s"]);
        c.stderr(Stdio::piped()).spawn().unwrap()
    };
    let children = [start("a"), start("b")];
    wait(&store, "a", 1);
    let (code, _, err) = said(&record(&store, agent, &["a"]).output().unwrap());
    assert!(
        code == 1 && err.contains("there is a baseline `a` already"),
        "{err}"
    );
    for (child, name) in children.into_iter().zip(["a", "b"]) {
        let (code, _, err) = said(&child.wait_with_output().unwrap());
        assert_eq!(code, 0, "{err}");
        let s = show(&store, name);
        assert_eq!(
            (&s["state"], &s["gaps"]),
            (&"complete".into(), &serde_json::json!([]))
        );
        let windows = s["windows"].as_u64().unwrap();
        assert!(err.contains(&format!("{windows} finished window")), "{err}");
    }
    // Two recorders with the same name at once: one of them is refused.
    let both = [start("same"), start("same")].map(|c| said(&c.wait_with_output().unwrap()));
    let mut codes = both.each_ref().map(|b| b.0);
    codes.sort_unstable();
    assert_eq!(codes, [0, 1], "{both:?}");
}

#[test]
fn windows_are_missing_while_the_agent_is_gone() {
    let (place, agent) = (Place::new("gone"), agent());
    let store = place.store();
    let (address, open) = door(agent);
    let mut c = record(&store, address, &["gap"]);
    let mut child = c.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut line = |wanted: &str| {
        lines
            .find(|l| l.as_ref().unwrap().contains(wanted))
            .unwrap()
    };
    wait(&store, "gap", 2);
    open.store(false, Ordering::SeqCst);
    line("waiting for it, windows are missing").unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    open.store(true, Ordering::SeqCst);
    line("the agent answers again, after").unwrap();
    let before = show(&store, "gap")["windows"].as_u64().unwrap();
    wait(&store, "gap", before + 2);
    signal(&child, libc::SIGTERM);
    let end = line("is kept").unwrap();
    assert!(end.contains("s are missing"), "{end}");
    assert!(child.wait().unwrap().success());
    let gaps = &show(&store, "gap")["gaps"];
    assert_eq!(gaps.as_array().unwrap().len(), 1, "{gaps}");
    assert!(gaps[0]["seconds"].as_f64().unwrap() > 1.4, "{gaps}");
    assert!(good(&store, &["show", "gap"]).contains("missing "));
}

#[test]
fn until_ci_ends_at_a_narrow_interval_or_has_exit_code_3() {
    let (place, agent) = (Place::new("ci"), agent());
    let store = place.store();
    let steady = ["steady", "--until-ci", "5%", "--metric", "write:mean"];
    let (code, _, err) = said(&record(&store, agent, &steady).output().unwrap());
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("write mean "), "{err}");
    let s = show(&store, "steady");
    assert!(s["windows"].as_u64().unwrap() >= 53, "{s}");
    assert!(
        s["ops"][0]["p99"]["low"].is_f64() && s["state"] == "complete",
        "{s}"
    );
    // Distribution that does not vary: its p99 cannot be known better than the width of its bucket.
    let alike = [
        "alike",
        "--until-ci",
        "5%",
        "--at-most",
        "6s",
        "--metric",
        "write",
    ];
    let (code, _, err) = said(&record(&store, agent, &alike).output().unwrap());
    assert_eq!(code, 3, "{err}");
    assert!(
        err.contains("write p99 ") && err.contains("--metric write:mean"),
        "{err}"
    );
    let short = [
        "short",
        "--until-ci",
        "0.1%",
        "--at-most",
        "6s",
        "--metric",
        "read:mean",
    ];
    let (code, _, err) = said(&record(&store, agent, &short).output().unwrap());
    assert_eq!(code, 3, "{err}");
    assert!(
        err.contains("was not reached within 6 s") && err.contains("`short` is kept"),
        "{err}"
    );
    assert_eq!(show(&store, "short")["state"], "unreached");
}
