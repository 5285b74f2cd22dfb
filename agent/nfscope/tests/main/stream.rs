//! `nfscope top` into a pipe: tables and JSON, one window or several.

use crate::fixture::Fake;
use crate::fixture::serve::attached;
use std::process::{Command, Output, Stdio};

fn top(args: &[&str]) -> Output {
    let url = format!("http://{}", attached(Fake::new()));
    Command::new(env!("CARGO_BIN_EXE_nfscope"))
        .args(["top", "--interval", "150ms", "--url", &url])
        .args(args)
        .env("LC_ALL", "C.UTF-8")
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn stdout(o: &Output) -> &str {
    assert!(o.status.success(), "{}", String::from_utf8_lossy(&o.stderr));
    std::str::from_utf8(&o.stdout).unwrap()
}

#[test]
fn once_prints_one_table_without_escape_sequences() {
    let o = top(&["--once"]);
    let text = stdout(&o);
    assert_eq!(text.matches("OPERATION").count(), 1, "{text}");
    assert!(text.starts_with("nfscope  127.0.0.1:"), "{text}");
    assert!(!text.contains('\u{1b}') && text.ends_with('\n'), "{text}");
    assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
}

#[test]
fn count_is_the_number_of_tables() {
    let o = top(&["--count", "3"]);
    assert_eq!(stdout(&o).matches("OPERATION").count(), 3);
    assert_eq!(top(&["--count", "0"]).status.code(), Some(2));
    assert_eq!(top(&["--count", "2", "--once"]).status.code(), Some(2));
}

#[test]
fn json_is_one_object_per_line() {
    for (args, n) in [(&["--once"][..], 1), (&["--count", "2"], 2)] {
        let o = top(&[args, &["--json"]].concat());
        let lines: Vec<_> = stdout(&o).lines().collect();
        assert_eq!(lines.len(), n);
        for line in lines {
            let window: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(window["window_seconds"], 1.0);
            assert_eq!(window["ops"][0]["op"], "write");
            // Phases that the agent does not measure: null, not zero.
            assert!(window["ops"][0]["phases"].is_null());
            assert_eq!(window["not_measured"][0], "clients");
        }
    }
}
