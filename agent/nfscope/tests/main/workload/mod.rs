//! `nfscope workload` as a user sees it: with the fio of this host, and with a scripted one.

mod fake;
mod record;
mod work_dir;

use crate::fixture::golden;
use nfscope_load::workload::parameters::{self, Set};
use nfscope_load::workload::{SizeName, all};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use work_dir::WorkDir;

fn nfscope(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nfscope"));
    command.arg("workload").args(args);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn list_and_show_print_the_workloads_and_their_job_files() {
    let list = nfscope(&["list"]).output().unwrap();
    golden("workload.list.txt", &text(&list.stdout));
    for w in all() {
        let path = format!(
            "{}/../load/workloads/{}.fio",
            env!("CARGO_MANIFEST_DIR"),
            w.name
        );
        let shown = nfscope(&["show", w.name]).output().unwrap();
        assert_eq!(text(&shown.stdout), std::fs::read_to_string(path).unwrap());
    }
}

#[test]
fn fio_understands_every_job_file() {
    let place = WorkDir::new("parse");
    for w in all() {
        let size = w.size(SizeName::Large).unwrap();
        let file = place.path().join("jobs.fio");
        std::fs::write(&file, w.job_file).unwrap();
        let o = Command::new("fio")
            .arg("--parse-only")
            .arg(&file)
            .env("DIR", place.path())
            .env("RUNTIME", "1s")
            .env("PAGES", place.path().join("page"))
            .envs(parameters::variables(w, &size, &Set::default()).unwrap().0)
            .output()
            .expect("tests/setup/setup.sh build installs fio");
        let said = text(&o.stdout) + &text(&o.stderr);
        assert!(o.status.success() && said.is_empty(), "{}: {said}", w.name);
    }
}

#[test]
fn every_job_file_gives_its_sources_and_explains_each_option() {
    for w in all() {
        let (about, jobs) = w.job_file.split_once("[global]").unwrap();
        assert!(about.lines().all(|l| l.starts_with('#')), "{}", w.name);
        let (head, parameters) = about.split_once("# Parameters:\n").unwrap();
        let (head, source) = head.split_once("# Source:\n").unwrap();
        assert!(source.contains("#   "), "{}", w.name);
        assert!(source.contains("# Differs from it: "), "{}", w.name);
        for word in ["Purpose", "Mix", "Size", "Run"] {
            assert!(head.contains(&format!("# {word}:")), "{}: {word}", w.name);
        }
        let lines = jobs
            .lines()
            .filter(|l| !l.is_empty() && !l.starts_with('['));
        for option in lines.map(|l| l.split('=').next().unwrap()) {
            let words = |c: char| !(c.is_alphanumeric() || c == '_');
            let explained = parameters.split(words).any(|w| w == option);
            assert!(explained, "{}: {option} is not explained", w.name);
        }
    }
}

fn runs(name: &str, jobs: &[(&str, &str)]) {
    runs_with(name, &[], jobs);
}

fn runs_with(name: &str, more: &[&str], jobs: &[(&str, &str)]) -> Value {
    let place = WorkDir::new(&format!("{name}-{}", more.len()));
    let dir = place.path().display().to_string();
    let run = ["run", name, "--dir", &dir, "--size", "small"];
    let short = ["--runtime", "1s", "--repeats", "2", "--json"];
    let o = nfscope(&[&run[..], &short, more].concat())
        .output()
        .unwrap();
    assert!(o.status.success(), "{}", text(&o.stderr));
    let result: Value = serde_json::from_slice(&o.stdout).unwrap();
    assert_eq!(result["workload"], name);
    assert_eq!(result["repeats"], 2);
    assert_eq!(result["runs"].as_array().unwrap().len(), 2);
    assert!(result["filesystem"]["type"].is_string());
    assert!(
        result["warnings"][0]
            .as_str()
            .unwrap()
            .contains("not an NFS mount")
    );
    assert!(result["total"]["iops"]["half_width"].is_number());
    let said = result["jobs"].as_array().unwrap();
    let names: Vec<_> = said
        .iter()
        .map(|j| (j["job"].as_str().unwrap(), j["operation"].as_str().unwrap()))
        .collect();
    assert_eq!(names, jobs);
    for job in said {
        for figure in ["iops", "latency_seconds", "p99_seconds"] {
            assert!(job[figure]["mean"].as_f64().unwrap() > 0.0, "{job}");
        }
        let moves = matches!(job["operation"].as_str().unwrap(), "read" | "write");
        assert_eq!(job["bytes_per_second"].is_object(), moves, "{job}");
    }
    assert_eq!(place.entries(), 0, "its files are removed");
    result
}

#[test]
fn fileserver_runs() {
    let (w, u) = (("write", "write"), ("append", "write"));
    runs("fileserver", &[w, u, ("read", "read"), ("stat", "stat")]);
}

#[test]
fn webhosting_runs() {
    let jobs = [("page", "read"), ("stat", "stat"), ("log", "write")];
    let more = ["--threads", "2", "--set", "FILES=10"];
    let result = runs_with("webhosting", &more, &jobs);
    assert_eq!(result["parameters"]["FILES"], "10");
    // Pages of a hundred files, read one after the other by each of two processes.
    let mean = |v: &Value| v["mean"].as_f64().unwrap();
    let files = mean(&result["jobs"][0]["iops"]);
    let unit = &result["unit"];
    assert_eq!(unit["name"], "page");
    assert!(
        (mean(&unit["per_second"]) / files * 100.0 - 1.0).abs() < 1e-9,
        "{unit}"
    );
    let product = mean(&unit["per_second"]) * mean(&unit["seconds"]);
    // Product of means: for repeats that differ, the mean of the inverse exceeds the inverse of the mean.
    assert!((2.0 - 1e-9..20.0).contains(&product), "{unit}");
    // Resolution of the log: a millisecond. A median of fewer than twenty pages is not reported.
    let p50 = &unit["p50_seconds"];
    if mean(&unit["per_second"]) > 60.0 {
        assert!(mean(p50) < 10.0 * mean(&unit["seconds"]) + 0.002, "{unit}");
    }
    assert!(unit.get("p99_seconds").is_some(), "{unit}");
}

#[test]
fn mail_runs() {
    let jobs = [("deliver", "write"), ("append", "write"), ("read", "read")];
    runs("mail", &jobs);
}

#[test]
fn database_runs() {
    let jobs = [("pages", "read"), ("pages", "write"), ("log", "write")];
    runs("database", &jobs);
}

/// Open loop: the rate of requests does not depend on the speed of their service. The rate here is far below that of any disk.
#[test]
fn a_database_with_an_open_loop_has_its_rate() {
    let jobs = [("pages", "read"), ("pages", "write"), ("log", "write")];
    let more = ["--rate", "100", "--threads", "2"];
    let result = runs_with("database", &more, &jobs);
    assert_eq!(result["parameters"]["DEPTH"], "64");
    let rate: f64 = (0..2)
        .map(|i| result["jobs"][i]["iops"]["mean"].as_f64().unwrap())
        .sum();
    assert!((50.0..200.0).contains(&rate), "{result}");
}

/// Open loop of nfscope itself: each request has its open, write and close.
#[test]
fn workloads_of_small_files_have_open_loops() {
    for (name, jobs) in [
        (
            "fileserver",
            &[
                ("write", "create"),
                ("append", "append"),
                ("read", "read"),
                ("stat", "stat"),
                ("remove", "unlink"),
            ][..],
        ),
        ("webhosting", &[("page", "page"), ("log", "write")]),
    ] {
        let place = WorkDir::new(&format!("{name}-open"));
        let dir = place.path().display().to_string();
        let run = [
            "run", name, "--dir", &dir, "--size", "small", "--rate", "60",
        ];
        let short = ["--runtime", "1s", "--repeats", "2", "--json"];
        let o = nfscope(&[&run[..], &short].concat()).output().unwrap();
        assert!(o.status.success(), "{}", text(&o.stderr));
        let r: Value = serde_json::from_slice(&o.stdout).unwrap();
        let said: Vec<_> = r["jobs"].as_array().unwrap().iter().collect();
        let names: Vec<_> = said
            .iter()
            .map(|j| (j["job"].as_str().unwrap(), j["operation"].as_str().unwrap()))
            .collect();
        assert_eq!(names, jobs);
        if name == "webhosting" {
            let unit = &r["unit"];
            for figure in ["per_second", "seconds", "p50_seconds", "p99_seconds"] {
                assert!(unit[figure]["mean"].as_f64().unwrap() > 0.0, "{unit}");
            }
            let rate = unit["per_second"]["mean"].as_f64().unwrap();
            assert!((30.0..90.0).contains(&rate), "{unit}");
        }
        assert_eq!(place.entries(), 0, "its files are removed");
    }
}

#[test]
fn postmark_runs() {
    let jobs = [("create", "write"), ("append", "write"), ("read", "read")];
    runs("postmark", &jobs);
}

#[test]
fn iozone_runs() {
    let (reads, writes) = (
        ["read", "reread", "backward", "stride", "randomread"],
        "write",
    );
    let mut jobs = vec![("write", writes), ("rewrite", writes)];
    jobs.extend(reads.map(|name| (name, "read")));
    jobs.push(("randomwrite", writes));
    runs_with(
        "iozone",
        &["--set", "RECORD=16k", "--set", "SIZE=1m"],
        &jobs,
    );
}

#[test]
fn a_ramp_runs() {
    let steps = [1, 2, 5, 10, 20, 50].map(|n| format!("processes-{n}"));
    let each = steps.iter().flat_map(|s| [(&**s, "read"), (&**s, "write")]);
    runs("ramp", &each.collect::<Vec<_>>());
    let more = ["--set", "STEPS=1,3"];
    let jobs = ["processes-1", "processes-3"].map(|n| [(n, "read"), (n, "write")]);
    runs_with("ramp", &more, jobs.as_flattened());
}

#[test]
fn streams_run() {
    runs("streams", &[("read", "read"), ("write", "write")]);
}

#[test]
fn metadata_runs() {
    let jobs = [("create", "create"), ("stat", "stat"), ("delete", "unlink")];
    runs("metadata", &jobs);
}

#[test]
fn a_signal_removes_the_files() {
    for (signal, code) in [("TERM", 143), ("INT", 130)] {
        let place = WorkDir::new(signal);
        let dir = place.path().display().to_string();
        let run = ["run", "webhosting", "--dir", &dir, "--size", "small"];
        let mut child = nfscope(&run).stderr(Stdio::null()).spawn().unwrap();
        let (begun, files) = (
            Instant::now(),
            place.path().join("nfscope-workload-webhosting"),
        );
        while !files.join("log.0.0").exists() {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "nothing is laid out"
            );
            sleep(Duration::from_millis(20));
        }
        let id = child.id().to_string();
        let kill = Command::new("kill").args(["-s", signal, &id]).status();
        assert!(kill.unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(code));
        assert_eq!(place.entries(), 0);
    }
}

#[test]
fn kept_files_are_used_again_only_when_asked() {
    let place = WorkDir::new("keep");
    let dir = place.path().display().to_string();
    let run = [
        "run",
        "webhosting",
        "--dir",
        &dir,
        "--size",
        "small",
        "--runtime",
        "1s",
        "--repeats",
        "1",
    ];
    let keep = [&run[..], &["--keep"]].concat();
    assert!(nfscope(&keep).output().unwrap().status.success());
    let refused = nfscope(&run).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("use it with --keep, or rm -r"));
    assert!(nfscope(&keep).output().unwrap().status.success());
    assert_eq!(place.entries(), 1);
}
