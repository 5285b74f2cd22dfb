//! `nfscope detach` and `attach` against an agent in the process of the test.

use crate::fixture::Fake;
use crate::fixture::recordings::{DISKS, recording, writes};
use crate::fixture::serve::{attached, control_directory, serve};
use nfscope::agent::replay::Replay;
use nfscope_agent_client::control;
use nfscope_api::probe_change::Change;
use nfscope_api::probe_change::socket;
use nfscope_baseline::store::Store;
use nfscope_serve::service::control as service;
use nfscope_serve::service::source_thread::SourceHandle;
use std::os::unix::net::UnixListener;
use std::process::Command;

fn ask(change: Change, probes: &[&'static str], url: &str) -> anyhow::Result<String> {
    control::ask(change, probes, Some(url), &control_directory())
}

#[test]
fn attach_and_detach_return_the_result_for_each_probe() {
    let url = format!("http://{}", attached(Fake::new()));
    let said = ask(Change::Detach, &["xfs", "btrfs"], &url).unwrap();
    assert_eq!(said, "xfs: detached\nbtrfs: detached\n");
    let said = ask(Change::Attach, &["xfs"], &url).unwrap();
    assert_eq!(said, "xfs: 1 of 1 programs attached\n");
    let e = ask(Change::Attach, &["sched"], &url).unwrap_err();
    assert_eq!(e.to_string(), "not this one");
    let e = ask(Change::Detach, &["bogus"], &url).unwrap_err();
    assert_eq!(e.to_string(), "this agent has no probe `bogus`");
}

#[test]
fn the_command_line_detaches_probes_of_an_agent() {
    let url = format!("http://{}", attached(Fake::new()));
    let run = |args: &[&str]| {
        let o = Command::new(env!("CARGO_BIN_EXE_nfscope"))
            .args(args)
            .env("RUNTIME_DIRECTORY", control_directory())
            .output()
            .unwrap();
        let text = |b: &[u8]| String::from_utf8(b.to_vec()).unwrap();
        (o.status.code(), text(&o.stdout), text(&o.stderr))
    };
    let (code, out, err) = run(&["detach", "btrfs", "--url", &url]);
    assert_eq!(
        (code, out.as_str(), err.as_str()),
        (Some(0), "btrfs: detached\n", "")
    );
    let (code, out, err) = run(&["detach", "all", "--url", &url]);
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(out.lines().count(), nfscope_source::words().count());
    let (code, _, err) = run(&["attach", "--url", &url]);
    assert_eq!((code, err.as_str()), (Some(1), "error: not this one\n"));
    let (code, _, err) = run(&["detach", "btrs", "--url", &url]);
    assert_eq!(code, Some(2));
    assert!(err.contains("did you mean `btrfs`?"), "{err}");
    let (code, _, err) = run(&["detach", "--url", &url]);
    assert_eq!(code, Some(2), "{err}");
    let (code, _, err) = run(&["detach", "xfs", "--url", "http://127.0.0.1:1"]);
    assert_eq!(code, Some(1));
    assert!(err.contains("no agent that serves on port 1"), "{err}");
}

/// Attach and detach have no effect on a played recording, and report that.
#[test]
fn an_agent_that_plays_a_recording_has_nothing_to_detach() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("played.db");
    let played = recording("played", 1, 3, &writes(DISKS));
    Store::create(&file).unwrap().put(&played).unwrap();
    let url = format!("http://{}", attached(Replay::open(&file).unwrap()));
    for (change, word) in [(Change::Detach, "detach"), (Change::Attach, "attach")] {
        let e = ask(change, &["jbd2"], &url).unwrap_err().to_string();
        assert!(e.starts_with(&format!("nothing to {word}: ")), "{e}");
    }
}

#[test]
fn an_attaching_agent_refuses_to_detach_for_now() {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let address = serve(move || {
        let _ = wait.recv();
        Ok(Box::new(Fake::new()))
    });
    let e = ask(Change::Detach, &["xfs"], &format!("http://{address}")).unwrap_err();
    assert!(e.to_string().contains("still attaching"), "{e}");
    drop(go);
}

#[test]
fn every_port_reaches_the_agent_and_the_only_agent_needs_no_url() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let (source, started) = SourceHandle::spawn(|| Ok(Box::new(Fake::new()))).unwrap();
    started.blocking_recv().unwrap().unwrap();
    // Sockets of agents that have ended.
    let path = |port| socket(dir.path(), port);
    drop(UnixListener::bind(path(2)).unwrap());
    drop(UnixListener::bind(path(5)).unwrap());
    let bound = service::listen(dir.path(), &[3, 2, 3]);
    assert!(bound.is_some());
    // Port of another agent, which listens on another address: its socket stays, and no new one is left behind.
    assert!(service::listen(dir.path(), &[7, 2]).is_none());
    assert!(!path(7).exists() && path(2).exists() && path(3).exists());
    let mode = std::fs::metadata(path(3)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let serving = std::thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                never = service::serve(bound, source.into()) => { never.unwrap(); }
                _ = ended => {}
            }
        });
    });
    let detach = |url: Option<&str>| control::ask(Change::Detach, &["xfs"], url, dir.path());
    for url in [None, Some("http://a:3"), Some("http://127.0.0.1:2")] {
        assert_eq!(detach(url).unwrap(), "xfs: detached\n");
    }
    for port in [4, 5] {
        let why = detach(Some(&format!("http://a:{port}")))
            .unwrap_err()
            .to_string();
        assert!(
            why.contains("agents of this host serve on port 3: name one"),
            "{why}"
        );
    }
    drop(end);
    serving.join().unwrap();
    assert!(!path(2).exists() && !path(3).exists());
    // Directory that other users can write to: they could put a socket of their own there.
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777)).unwrap();
    assert!(service::listen(dir.path(), &[3]).is_none());
}
