//! Results that nfscope computes from reports of a scripted fio.

use super::work_dir::WorkDir;
use super::{nfscope, text};
use crate::fixture::golden;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

/// Script in place of fio: it runs FAKE_SCRIPT, and reports as many reads a second as the next word of FAKE_IOPS says. The last word is
/// repeated.
const FIO: &str = r#"#!/bin/sh
case "$*" in
*--version*) echo fio-9.9; exit ;;
*--create_only*) cat >/dev/null; echo '{"jobs":[]}'; exit ;;
esac
cat >/dev/null
eval "$FAKE_SCRIPT"
set -- $FAKE_IOPS
n=$(cat "$FAKE_STATE" 2>/dev/null || echo 0)
echo $((n + 1)) >"$FAKE_STATE"
while [ "$n" -gt 0 ] && [ $# -gt 1 ]; do shift; n=$((n - 1)); done
cat <<END
note: a job said something first
{"fio version": "fio-9.9", "jobs": [{"jobname": "page", "groupid": 0, "error": 0,
  "job options": {"rw": "read"},
  "read": {"total_ios": $1, "io_bytes": 1048576, "runtime": 1000,
    "clat_ns": {"mean": 2000000.0, "bins": {"1000000": $(($1 - 1)), "9000000": 1}}},
  "write": {"total_ios": 0, "io_bytes": 0, "runtime": 0, "clat_ns": {"mean": 0.0}}}]}
END
"#;

fn run(name: &str, iops: &str, script: &str, more: &[&str]) -> (Output, WorkDir) {
    let place = WorkDir::new(name);
    let bin = place.path().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("fio"), FIO).unwrap();
    fs::set_permissions(bin.join("fio"), fs::Permissions::from_mode(0o755)).unwrap();
    // Link without a colon in its path: a colon separates directories in PATH.
    let short = std::env::temp_dir().join(format!("nfscope-fio-{name}-{}", std::process::id()));
    let _ = fs::remove_file(&short);
    std::os::unix::fs::symlink(&bin, &short).unwrap();
    let path = format!("{}:{}", short.display(), std::env::var("PATH").unwrap());
    let work = place.path().join("work");
    fs::create_dir(&work).unwrap();
    let dir = work.display().to_string();
    let args = ["run", "mail", "--size", "small", "--dir", &dir];
    let output = nfscope(&[&args[..], more].concat())
        .env("PATH", path)
        .env("FAKE_IOPS", iops)
        .env("FAKE_SCRIPT", script)
        .env("FAKE_STATE", place.path().join("state"))
        .output()
        .unwrap();
    fs::remove_file(&short).unwrap();
    assert_eq!(fs::read_dir(&work).unwrap().count(), 0, "files are left");
    (output, place)
}

fn json(o: &Output) -> Value {
    serde_json::from_slice(&o.stdout).unwrap()
}

#[test]
fn repeats_go_on_until_the_interval_is_narrow() {
    // Warm-up: the first repeat, far off. The first of the five that count is off as well.
    let iops = "10 700 1000 1000 1001 999 1000";
    let (o, _) = run("narrow", iops, "", &["--until-ci", "10%", "--json"]);
    assert_eq!(o.status.code(), Some(0), "{}", text(&o.stderr));
    let r = json(&o);
    assert_eq!((&r["reached"], &r["until_ci"]), (&true.into(), &0.1.into()));
    let n = r["repeats"].as_u64().unwrap();
    assert!(n > 5, "{r}");
    let total = &r["total"]["iops"];
    let (mean, half) = (
        total["mean"].as_f64().unwrap(),
        total["half_width"].as_f64().unwrap(),
    );
    assert!(half / mean <= 0.1, "{r}");
    assert_eq!(r["runs"][0]["iops"], 700.0);
    let progress = text(&o.stderr);
    assert!(
        progress.contains("warm-up: 10.0 ops/s, not counted"),
        "{progress}"
    );
    assert!(
        progress.contains("repeat 1: 700 ops/s, mean ± -\n"),
        "{progress}"
    );
}

#[test]
fn a_wide_interval_at_the_time_limit_has_exit_code_3() {
    let more = ["--until-ci", "1%", "--at-most", "1s", "--json"];
    let (o, _) = run("time", "10 10 1000 10 1000 10", "sleep 0.3", &more);
    assert_eq!(o.status.code(), Some(3), "{}", text(&o.stderr));
    assert_eq!(json(&o)["reached"], false);
}

#[test]
fn repeats_that_drift_have_a_warning() {
    let drift = "9 100 110 120 130 140 150 160 170 180 190";
    let (o, _) = run("drift", drift, "", &["--repeats", "10", "--json"]);
    let r = json(&o);
    assert!(r["autocorrelation"].as_f64().unwrap() > 0.3, "{r}");
    let warned = |r: &Value| r["warnings"].to_string().contains("repeats are correlated");
    assert!(warned(&r), "{r}");
    let steady = "9 100 110 100 110 100 110 100 110 100 110";
    let (o, _) = run("steady", steady, "", &["--repeats", "10", "--json"]);
    assert!(!warned(&json(&o)), "{}", json(&o));
}

#[test]
fn the_page_of_a_run_is_the_golden_file() {
    let (o, place) = run("page", "10 100 110 105", "", &["--repeats", "3"]);
    // First and last line: they name this host's disks, and are left out of the golden file.
    let page = text(&o.stdout).replace(&place.path().display().to_string(), "PLACE");
    let mut lines: Vec<_> = page.lines().collect();
    assert!(
        lines[0].starts_with("mail (small) in PLACE/work on "),
        "{page}"
    );
    assert!(lines[0].ends_with(", fio-9.9"), "{page}");
    lines.remove(0);
    let last = lines.pop().unwrap();
    assert!(last.starts_with("warning: PLACE/work is "), "{page}");
    golden("workload.run.txt", &(lines.join("\n") + "\n"));
}

#[test]
fn errors_of_fio_are_printed() {
    let script =
        "echo 'fio: pid=1, err=28, error=No space left' ; echo 'fio: disk is full' >&2; exit 1";
    let (o, _) = run("fails", "1", script, &[]);
    assert_eq!(o.status.code(), Some(1));
    let why = text(&o.stderr);
    assert!(why.contains("error: fio failed (exit status: 1):"), "{why}");
    assert!(
        why.contains("disk is full") && why.contains("err=28"),
        "{why}"
    );
}

#[test]
fn an_unreadable_report_of_fio_is_an_error() {
    let (o, _) = run("nonsense", "1", "echo '{\"jobs\": 7}'; exit", &[]);
    assert_eq!(o.status.code(), Some(1));
    let why = text(&o.stderr);
    assert!(why.contains("cannot read fio's report"), "{why}");
    let (o, _) = run("silence", "1", "echo hello; exit", &[]);
    assert!(text(&o.stderr).contains("fio reported nothing:\n  hello"));
}

#[test]
fn a_missing_fio_is_an_error_with_a_fix() {
    let o = nfscope(&["run", "mail", "--dir", "/tmp"])
        .env("PATH", "/nonexistent")
        .output()
        .unwrap();
    assert_eq!(o.status.code(), Some(1));
    assert_eq!(
        text(&o.stderr),
        "error: fio is not installed; fix: apt-get install fio\n"
    );
}
