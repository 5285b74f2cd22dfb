//! `--at`: the clients of a time in the past, from the history on the disk.

use crate::fixture::said;
use nfscope_baseline::recording::Metadata;
use nfscope_baseline::store::{RecordingWriter, State, Store};
use nfscope_model::{Histogram, Scheme, Snapshot, Window, family as f};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Time of the first window: 2023-11-14T22:13:20Z, in milliseconds since 1970.
const BEGAN: i64 = 1_700_000_000_000;

/// Window of ten seconds, in which one client of three writes most.
fn window(n: i64) -> Window {
    let mut delta = Snapshot::new(Duration::from_secs(100 + n.unsigned_abs()));
    let mut h = Histogram::new(Scheme::TIME);
    h.counts[40] = 100;
    h.sum = 0.1;
    delta.histogram(&f::OP_DURATION, ["4.2", "write"], h);
    for (client, ops, seconds, written) in [
        ("10.9.0.1", 10.0, 0.01, 100e3),
        ("10.9.0.2", 80.0, 0.05, 800e3),
        ("10.9.0.3", 10.0, 0.04, 100e3),
    ] {
        delta.counter(&f::CLIENT_OPS, [client], ops);
        delta.counter(&f::CLIENT_OP_SECONDS, [client], seconds);
        delta.counter(&f::CLIENT_IO_BYTES, [client, "write"], written);
    }
    delta.counter(&f::EXPORT_OPS, ["/srv"], 100.0);
    delta.counter(&f::EXPORT_OP_SECONDS, ["/srv"], 0.1);
    delta.counter(&f::EXPORT_IO_BYTES, ["/srv", "write"], 1e6);
    let length = Duration::from_secs(10);
    Window { length, delta }
}

/// History as the agent keeps it: two recordings that follow each other, with half a minute without an agent in the second.
fn history(directory: &Path) {
    let path = directory.join("history-9943.db");
    for (first, windows) in [(0, vec![0, 10, 20]), (30, vec![30, 40, 80, 90])] {
        let metadata = Metadata {
            name: format!("history-{first}"),
            began_ms: BEGAN + 1000 * first,
            host: "nfs7".to_owned(),
            kernel: None,
            agent: String::new(),
            interval: Duration::from_secs(10),
            labels: BTreeMap::new(),
        };
        let store = Store::create(&path).unwrap();
        let mut writer = RecordingWriter::begin(store, &metadata).unwrap();
        for at in windows {
            writer.add(BEGAN + 1000 * at, &window(at)).unwrap();
        }
        writer.end(State::Complete).unwrap();
    }
}

fn program(directory: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_nfscope"))
        .args(arguments)
        .arg("--history")
        .arg(directory)
        .env("TZ", "UTC")
        .output();
    said(&output.unwrap())
}

fn json(directory: &Path, arguments: &[&str]) -> serde_json::Value {
    let (_, out, err) = program(directory, arguments);
    serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out} {err}"))
}

#[test]
fn diagnose_names_the_clients_of_a_past_time() {
    let dir = tempfile::tempdir().unwrap();
    history(dir.path());
    // Window that contains this time: the first one. The default minute spans both recordings and reaches into the gap.
    let at = ["diagnose", "--at", "2023-11-14 22:13:25"];
    let (_, text, err) = program(dir.path(), &at);
    let told = [
        "nfs7, 2023-11-14 22:13:20 to 22:14:10: 50 s, ",
        "Who used the server from 2023-11-14 22:13:20 to 22:14:10:\n",
        "  - client 10.9.0.2: 50.0 % of the time of operations, 80.0 % of the bytes (80.0 kB/s)\n",
        "  - export /srv: 100.0 % of the time of operations, 100.0 % of the bytes (100 kB/s)\n",
        "users, files and single operations: the history has clients",
    ];
    for part in told {
        assert!(text.contains(part), "{part}: {text} {err}");
    }
    let json = json(dir.path(), &[&at[..], &["--json"]].concat());
    assert_eq!(json["from"], "2023-11-14T22:13:20.000000Z");
    assert_eq!(json["to"], "2023-11-14T22:14:10.000000Z");
    assert_eq!(json["window_seconds"], 50.0);
    let who = &json["who"][0];
    assert_eq!(
        (&who["of"], &who["bytes"]),
        (&"10.9.0.2".into(), &4_000_000.into())
    );
    assert_eq!(who["share_of_bytes"], 0.8);
}

#[test]
fn a_gap_in_the_requested_time_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    history(dir.path());
    let at = [
        "diagnose",
        "--at",
        "2023-11-14 22:14:05",
        "--duration",
        "50s",
    ];
    let (_, text, _) = program(dir.path(), &at);
    let when = "2023-11-14 22:14:00 to 22:15:00, without windows for 30 s";
    assert!(text.contains(when), "{text}");
    let nothing = [
        "diagnose",
        "--at",
        "2023-11-14 22:14:15",
        "--duration",
        "10s",
    ];
    let (code, _, err) = program(dir.path(), &nothing);
    assert_eq!(code, 1);
    assert!(err.contains("has no window at 2023-11-14 22:14:15; it goes from 2023-11-14 22:13:20 to 2023-11-14 22:15:00"), "{err}");
    assert!(err.contains("the agent did not run"), "{err}");
}

#[test]
fn top_shows_a_table_of_a_past_time() {
    let dir = tempfile::tempdir().unwrap();
    history(dir.path());
    let at = ["top", "--at", "2023-11-14 22:13:45", "--interval", "20s"];
    let (code, text, err) = program(dir.path(), &at);
    assert_eq!(code, 0, "{err}");
    assert!(
        text.starts_with("2023-11-14 22:13:40 to 22:14:10\n"),
        "{text}"
    );
    assert!(
        text.contains("write") && text.contains("10.9.0.2"),
        "{text}"
    );
    let json = json(dir.path(), &[&at[..], &["--json"]].concat());
    assert_eq!(json["window_seconds"], 30.0);
    assert_eq!(json["clients"][0]["client"], "10.9.0.2");
    assert_eq!(json["clients"][0]["written_per_s"], 80_000.0);
    assert_eq!(json["timed"], true);
}

#[test]
fn a_history_that_cannot_be_read_is_an_error_with_a_fix() {
    let dir = tempfile::tempdir().unwrap();
    let at = ["top", "--at", "03:10"];
    let (code, _, err) = program(dir.path(), &at);
    assert_eq!(code, 1);
    assert!(
        err.contains("an agent keeps one with --history-directory"),
        "{err}"
    );
    let (code, _, err) = program(&dir.path().join("none"), &at);
    assert!(
        code == 1 && err.contains("or root alone may read it"),
        "{err}"
    );
    std::fs::write(dir.path().join("history-1.db"), "").unwrap();
    std::fs::write(dir.path().join("history-2.db"), "").unwrap();
    let (code, _, err) = program(dir.path(), &at);
    assert!(
        code == 1 && err.contains("fix: --history with one of"),
        "{err}"
    );
    let (code, _, err) = program(dir.path(), &["top", "--at", "noon"]);
    assert!(
        code == 2 && err.contains("give a time such as 03:10"),
        "{err}"
    );
}
