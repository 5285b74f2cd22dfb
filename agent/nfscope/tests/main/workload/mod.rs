//! `nfscope workload` as a user meets it: with the fio of this host, and with one that plays parts.

mod fake;
mod work_dir;

use crate::fixture::golden;
use nfscope::workload::{SizeName, all};
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
fn the_list_and_a_job_file() {
    let list = nfscope(&["list"]).output().unwrap();
    golden("workload.list.txt", &text(&list.stdout));
    for w in all() {
        let path = format!("{}/workloads/{}.fio", env!("CARGO_MANIFEST_DIR"), w.name);
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
            .envs(size.variables)
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
    let place = WorkDir::new(name);
    let dir = place.path().display().to_string();
    let run = ["run", name, "--dir", &dir, "--size", "small"];
    let short = ["--runtime", "1s", "--repeats", "2", "--json"];
    let o = nfscope(&[&run[..], &short].concat()).output().unwrap();
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
}

#[test]
fn fileserver_runs() {
    let (w, u) = (("write", "write"), ("update", "write"));
    runs("fileserver", &[w, u, ("read", "read"), ("stat", "stat")]);
}

#[test]
fn webhosting_runs() {
    let jobs = [("page", "read"), ("stat", "stat"), ("log", "write")];
    runs("webhosting", &jobs);
}

#[test]
fn mail_runs() {
    let jobs = [("deliver", "write"), ("update", "write"), ("read", "read")];
    runs("mail", &jobs);
}

#[test]
fn database_runs() {
    let jobs = [("pages", "read"), ("pages", "write"), ("log", "write")];
    runs("database", &jobs);
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
