//! Sequence of bottlenecks from DTrace's data alone: WRITEs wait for a slow log, then for a fast one, then for threads, and at last one
//! waits for a log that hangs. The diagnosis and the comparison of baselines report them.

use super::emulator::Emulator;
use super::tools::{Agent, Dir};
use crate::fixture::said;
use nfscope_model::Snapshot;
use nfscope_model::family as f;
use serde_json::Value;
use std::process::{Child, Command, Stdio};

fn json(agent: &Agent, words: &[&str]) -> (i32, Value) {
    let (code, out, error) = said(&agent.ask(words));
    let value = serde_json::from_str(&out);
    (
        code,
        value.unwrap_or_else(|e| panic!("{words:?}: {e}: {out}{error}")),
    )
}

fn record(agent: &Agent, name: &str, store: &str) -> Child {
    let url = format!("http://{}", agent.address);
    let mut record = Command::new(env!("CARGO_BIN_EXE_nfscope"));
    record.args(["baseline", "record", name, "--url", &url, "--store", store]);
    // Windows of an emulated server resemble each other: a verdict needs many of them.
    record.args(["--interval", "1s", "--duration", "45s"]);
    record.stdout(Stdio::piped()).stderr(Stdio::piped());
    record.spawn().unwrap()
}

fn recorded(recording: Child) {
    let out = recording.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{error}");
}

fn found<'a>(d: &'a Value, kind: &str) -> Option<&'a Value> {
    let all = d["findings"].as_array().unwrap();
    all.iter().find(|f| f["kind"] == kind)
}

/// Kinds of findings without a probe on illumos: locks of NFSv3, TCP connections, the durability of acknowledged writes, this host's own
/// mounts.
const NOT_JUDGED: [&str; 5] = [
    "retry_later",
    "connection_limit",
    "unacknowledged_replies",
    "unsafe_writes",
    "slow_mount",
];

/// Asserts that every other kind of finding is judged, except for those in `untold`.
pub fn judged(d: &Value, untold: &[&str]) {
    for kind in d["ruled_out"].as_array().unwrap() {
        let mut open = NOT_JUDGED.iter().chain(untold);
        let is_open = open.any(|k| kind["kind"] == *k);
        assert_eq!(kind["share"].is_null(), is_open, "{kind}");
    }
}

fn without_a_free_thread(s: &Snapshot) -> f64 {
    s.value(&f::THREADS_SATURATED, ["1"]).unwrap()
}

pub fn told(agent: &Agent, emulator: &mut Emulator, dir: &Dir) {
    let store = dir.path("store");
    let store = store.to_str().unwrap();
    slow_log(agent, emulator, store);
    fast_log(agent, emulator, store);
    let mut compare = Command::new(env!("CARGO_BIN_EXE_nfscope"));
    let compared = ["baseline", "compare", "before", "after", "--between", "5%"];
    compare.args(compared).args(["--store", store]);
    let (code, text, error) = said(&compare.output().unwrap());
    assert!(code == 0 || code == 2, "{code}: {error}");
    // Quantities with enough independent windows: on a host that is busy for seconds some have too few.
    let verdicts = |names: &[&str]| -> Vec<&str> {
        let is_of = |l: &&str| names.iter().any(|name| l.trim_start().starts_with(name));
        let lines = text.lines().filter(is_of);
        lines.filter_map(|l| l.split_whitespace().last()).collect()
    };
    for names in [&["mean", "p50", "p90"][..], &["in log"]] {
        let all = verdicts(names);
        assert!(all.contains(&"better"), "{names:?}: {all:?}\n{text}");
    }
    few_threads(agent, emulator);
    one_that_hangs(agent, emulator);
}

fn slow_log(agent: &Agent, emulator: &mut Emulator, store: &str) {
    let before = without_a_free_thread(&agent.snapshot());
    emulator.told("serve 9000 0 0");
    let recording = record(agent, "before", store);
    let (code, d) = json(agent, &["diagnose", "--json", "--duration", "10s"]);
    assert_eq!(
        (code, &d["findings"][0]["kind"]),
        (2, &"slow_intent_log".into()),
        "{d}"
    );
    assert!(d["findings"][0]["share"].as_f64() > Some(0.5), "{d}");
    judged(&d, &[]);
    let (code, top) = json(agent, &["top", "--once", "--json", "--interval", "3s"]);
    assert_eq!((code, &top["ops"][0]["op"]), (0, &"write".into()), "{top}");
    let phases = &top["ops"][0]["phases"];
    let part = phases["log"].as_f64().unwrap() / top["ops"][0]["seconds"].as_f64().unwrap();
    assert!(part > 0.5, "{top}");
    assert_eq!(
        (&top["logs"][0]["volume"], &top["logs"][0]["separate"]),
        (&"tank".into(), &false.into()),
        "{top}"
    );
    recorded(recording);
    let truth = emulator.told("stop");
    let [full, all] = truth.of::<0>("full")[0].1[..] else {
        panic!("full and all")
    };
    let saw = without_a_free_thread(&agent.snapshot()) - before;
    eprintln!(
        "without a free thread: {saw:.3} s, in truth {:.3} of {:.3}",
        full / 1e9,
        all / 1e9
    );
    assert!(
        (saw - full / 1e9).abs() < 0.05 * all / 1e9,
        "{saw} of {full} and {all} ns"
    );
}

fn fast_log(agent: &Agent, emulator: &mut Emulator, store: &str) {
    emulator.told("serve 300 2000 0");
    let recording = record(agent, "after", store);
    let (_, d) = json(agent, &["diagnose", "--json", "--duration", "10s"]);
    // Findings about CPUs are not checked: other tests may keep the machine busy.
    for kind in ["slow_intent_log", "thread_starvation", "stuck_requests"] {
        assert!(found(&d, kind).is_none(), "{d}");
    }
    judged(&d, &[]);
    recorded(recording);
    emulator.told("stop");
    assert!(
        agent
            .get("/metrics")
            .contains("nfscope_log_separate{fs=\"zfs\",volume=\"tank\"} 1")
    );
}

/// Threads are never free: the next request of each arrives as it takes one.
fn few_threads(agent: &Agent, emulator: &mut Emulator) {
    emulator.told("serve 9000 0 1");
    let (code, d) = json(agent, &["diagnose", "--json", "--duration", "5s"]);
    let finding = found(&d, "thread_starvation");
    assert!(code == 2 && finding.is_some(), "{d}");
    let advice = finding.unwrap()["advice"].to_string();
    // Threads: four run, and the pool may have sixteen.
    assert!(
        advice.contains("up to 16 threads") && advice.contains("svcs -xv"),
        "{advice}"
    );
    emulator.told("stop");
}

fn one_that_hangs(agent: &Agent, emulator: &mut Emulator) {
    emulator.told("hang");
    let stuck = |s: &Snapshot| s.value(&f::STUCK_REQUESTS, ["log"]);
    let s = agent.until("stuck", |s| stuck(s) == Some(1.0));
    let [r] = &s.held[..] else {
        panic!("{:?}", s.held)
    };
    assert_eq!((&*r.version, &*r.op, &*r.wait), ("3", "write", "log"));
    assert!(r.seconds >= 1.0);
    let (code, d) = json(agent, &["diagnose", "--json", "--duration", "3s"]);
    let finding = found(&d, "stuck_requests");
    assert!(code == 2 && finding.is_some(), "{d}");
    let advice = finding.unwrap()["advice"].to_string();
    assert!(
        advice.contains("zpool status") && !advice.contains("/proc/"),
        "{advice}"
    );
    emulator.told("release");
    let s = agent.until("free", |s| stuck(s) == Some(0.0));
    assert_eq!(s.held, []);
}
