//! `nfscope detach` and `attach` against an agent in this process.

use crate::fixture::Fake;
use crate::fixture::serve::{attached, serve};
use nfscope::api::probe_change::Change;
use nfscope::client::control::ask;
use std::process::Command;

#[test]
fn the_agent_does_as_it_is_told_and_says_what_became_of_it() {
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
fn the_command_line_reaches_it() {
    let url = format!("http://{}", attached(Fake::new()));
    let run = |args: &[&str]| {
        let o = Command::new(env!("CARGO_BIN_EXE_nfscope"))
            .args(args)
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

#[test]
fn while_it_attaches_it_asks_for_patience() {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let address = serve(move || {
        let _ = wait.recv();
        Ok(Box::new(Fake::new()))
    });
    let e = ask(Change::Detach, &["xfs"], &format!("http://{address}")).unwrap_err();
    assert!(e.to_string().contains("still attaching"), "{e}");
    drop(go);
}
