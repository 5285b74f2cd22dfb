//! Pages and commands of the whole program, from frames of scripts with known contents.

use super::played::Played;
use super::tools::{Agent, nfscope};
use crate::fixture::said;
use serde_json::Value;
use std::process::{Command, Stdio};

/// Server whose synchronous WRITEs wait for the log. Times are microseconds of one WRITE.
struct Server {
    /// Bucket of `time_edges.rs`: 27 for 0.1 ms, 54 for 10 ms.
    write_bucket: u32,
    write_us: u64,
    log_us: u64,
}

const SLOW_LOG: Server = Server {
    write_bucket: 54,
    write_us: 9_500,
    log_us: 9_000,
};
const FAST_LOG: Server = Server {
    write_bucket: 31,
    write_us: 180,
    log_us: 90,
};

impl Server {
    /// Writes frames of twenty WRITEs and five READs, from two clients.
    fn play(&self, played: &Played) {
        let (bucket, ns, log) = (self.write_bucket, self.write_us * 1000, self.log_us * 1000);
        let cpu = 50_000;
        let lock = ns - log - cpu;
        let line = |text: String| text;
        let nfs = [
            line(format!("@h|op|3|op-write-done| = {bucket}:%20")),
            line(format!("@c|op_ns|3|op-write-done|%{}", 20 * ns)),
            line("@c|runqueue_ns|3|op-write-done|0".into()),
            line(format!("@c|log_ns|3|op-write-done|%{}", 20 * log)),
            line("@c|disk_ns|3|op-write-done|0".into()),
            line(format!("@c|lock_ns|3|op-write-done|%{}", 20 * lock)),
            line("@h|op|42|op-read-done| = 20:%5".into()),
            line("@c|op_ns|42|op-read-done|%125000".into()),
            line("@c|runqueue_ns|42|op-read-done|0".into()),
            line("@c|log_ns|42|op-read-done|0".into()),
            line("@c|disk_ns|42|op-read-done|0".into()),
            line("@c|lock_ns|42|op-read-done|0".into()),
            line("@c|error|3|op-write-done|28|%1".into()),
            line("@c|stable|3|2|%20".into()),
            line("@c|stable_bytes|3|2|%2621440".into()),
            line("@h|size|3|1| = 17:%20".into()),
            line("@c|bytes|3|1|%2621440".into()),
            line("@c|client_ops|10.0.0.1|%20".into()),
            line(format!("@c|client_ns|10.0.0.1|%{}", 20 * ns)),
            line("@c|client_ops|fe80::3|%5".into()),
            line("@c|client_ns|fe80::3|%125000".into()),
            line("@c|export_ops|/export/with space|%25".into()),
            line(format!(
                "@c|export_ns|/export/with space|%{}",
                20 * ns + 125_000
            )),
        ];
        let rpc = [
            format!("@h|rpc|3| = {bucket}:%20"),
            format!("@c|rpc_ns|3|%{}", 20 * ns + 2_000_000),
            "@h|queue| = 10:%20".into(),
            "@c|queue_ns|3|%200000".into(),
            "@c|receive_ns|3|%200000".into(),
            "@c|asking_ns|3|0".into(),
            "@c|reply_ns|3|%200000".into(),
            "@g|hand|7|12|1600004".into(),
            "@g|full|0".into(),
            "@g|busy|1".into(),
            format!("@c|busy_ns|%{}", 20 * ns),
            "@g|threads|16".into(),
            "@g|limit|256".into(),
        ];
        let zil = [
            format!("@h|wait|tank| = {bucket}:%20"),
            format!("@c|wait_ns|tank|%{}", 20 * log),
            "@c|commits|tank|0|%20".into(),
            "@c|lwb_bytes|tank|0|%163840".into(),
            "@g|separate|tank|123456".into(),
            format!("@h|block|tank| = {bucket}:%20"),
            format!("@c|block_ns|tank|%{}", 20 * log),
        ];
        let io = [
            "@h|device|sd0|0| = 45:%3".to_owned(),
            "@c|device_ns|sd0|0|%7000000".into(),
            "@c|bytes|sd0|0|%12288".into(),
        ];
        for (script, lines) in [("nfs", &nfs[..]), ("rpc", &rpc), ("zil", &zil), ("io", &io)] {
            let lines: Vec<_> = lines.iter().map(String::as_str).collect();
            played.frame(script, &lines);
        }
    }

    /// Agent of this server, once all its scripts have printed.
    fn agent(&self, played: &Played) -> Agent {
        self.play(played);
        let agent = Agent::start(&played.dtrace, &played.kstat);
        agent.until("up", |s| {
            let up = |p: &nfscope_model::ProbeStatus| p.state.measures();
            s.probes.iter().all(up) && s.filled().count() > 20
        });
        agent
    }
}

fn json(agent: &Agent, words: &[&str], expected_code: i32) -> Value {
    let (code, out, error) = said(&agent.ask(words));
    assert_eq!(code, expected_code, "{words:?}: {out}{error}");
    serde_json::from_str(&out).unwrap_or_else(|e| panic!("{words:?}: {e}: {out}"))
}

#[test]
fn frames_reach_every_view() {
    let played = Played::new();
    let agent = SLOW_LOG.agent(&played);
    let top = json(&agent, &["top", "--once", "--json", "--interval", "2s"], 0);
    let op = &top["ops"][0];
    assert_eq!((&op["version"], &op["op"]), (&"3".into(), &"write".into()));
    let number = |v: &Value| v.as_f64().unwrap_or_else(|| panic!("{v} in {top}"));
    // Ratios of values in a frame, which do not depend on its length: means, and parts of the whole.
    let close = |got: f64, expected: f64| {
        assert!((got / expected - 1.0).abs() < 1e-6, "{got} for {expected}")
    };
    let (n, seconds) = (
        number(&op["rate"]) * number(&top["window_seconds"]),
        number(&op["seconds"]),
    );
    close(seconds / n, 0.0095);
    let log = number(&op["phases"]["log"]);
    close(log / seconds, 9.0 / 9.5);
    close(number(&op["phases"]["cpu"]) / seconds, 0.05 / 9.5);
    close(
        number(&op["errors_per_s"]) / number(&op["rate"]),
        1.0 / 20.0,
    );
    let read = &top["ops"][1];
    assert_eq!(
        (&read["version"], &read["op"]),
        (&"4.2".into(), &"read".into())
    );
    close(number(&read["rate"]) / number(&op["rate"]), 5.0 / 20.0);
    assert_eq!(top["logs"][0]["fs"], "zfs");
    assert_eq!(top["logs"][0]["volume"], "tank");
    assert_eq!(top["logs"][0]["separate"], false);
    assert_eq!(top["disks"][0]["device"], "sd0");
    assert_eq!(top["clients"][0]["client"], "10.0.0.1");
    assert_eq!(top["exports"][0]["export"], "/export/with space");
    assert_eq!(top["pools"][0]["threads"], 16.0);
    assert_eq!(top["pools"][0]["limit"], 256.0);
    assert_eq!(top["rpc"][0]["version"], "3");
    let metrics = agent.get("/metrics");
    for line in [
        "nfscope_threads{pool=\"1\"} 16",
        "nfscope_log_separate{fs=\"zfs\",volume=\"tank\"} 0",
        "nfscope_cpus 2",
        "nfscope_cpu_idle_seconds_total 1.5",
        "nfscope_events_lost_total{probe=\"nfsd\",reason=\"unreadable\"} 0",
        "nfscope_probe_attached{probe=\"sched\",program=\"all\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}:\n{metrics}");
    }
}

#[test]
fn check_says_that_every_script_runs() {
    let played = Played::new();
    SLOW_LOG.play(&played);
    let mut check = nfscope(&played.dtrace, &played.kstat);
    let (code, out, error) = said(&check.args(["check", "--json"]).output().unwrap());
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (code, &report["verdict"]),
        (0, &"full".into()),
        "{out}{error}"
    );
    let programs = report["probes"].as_array().unwrap().iter();
    let programs: Vec<_> = programs.map(|p| p["program"].as_str().unwrap()).collect();
    assert_eq!(
        programs,
        [
            "nfs", "phases", "throttle", "upcall", "recall", "reclaim", "rpc", "zil", "txg", "io",
            "kstat"
        ]
    );
    // Missing programs: their paths are in the output.
    let none = played.dir.path("none");
    let (code, out, _) = said(
        &nfscope(&none, &none)
            .args(["check", "--all"])
            .output()
            .unwrap(),
    );
    assert_eq!(code, 1);
    let missing = format!(
        "no   dtrace            {}\n      fix: install it",
        none.display()
    );
    assert!(out.contains(&missing), "{out}");
    assert!(out.contains("No such file or directory"), "{out}");
}

#[test]
fn a_faster_log_shows_in_the_diagnosis_and_in_the_comparison() {
    let (slow, fast) = (Played::new(), Played::new());
    let agents = [SLOW_LOG.agent(&slow), FAST_LOG.agent(&fast)];
    let store = slow.dir.path("store");
    let store = store.to_str().unwrap();
    let record = |agent: &Agent, name: &str| {
        let url = format!("http://{}", agent.address);
        let mut record = Command::new(env!("CARGO_BIN_EXE_nfscope"));
        record.args(["baseline", "record", name, "--url", &url, "--store", store]);
        record.args(["--interval", "500ms", "--duration", "20s"]);
        record
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let recordings = [record(&agents[0], "before"), record(&agents[1], "after")];
    let found = json(&agents[0], &["diagnose", "--json", "--duration", "5s"], 2);
    assert_eq!(found["findings"][0]["kind"], "slow_intent_log", "{found}");
    assert!(
        found["findings"][0]["share"].as_f64() > Some(0.85),
        "{found}"
    );
    // Fast log: no finding, and no kind of finding is left open.
    let healthy = json(&agents[1], &["diagnose", "--json", "--duration", "5s"], 0);
    assert_eq!(healthy["verdict"], "healthy", "{healthy}");
    assert_eq!(healthy["findings"], Value::Array(Vec::new()), "{healthy}");
    // Statistics of the scripted kstat: they have no refused calls.
    super::tale::judged(&healthy, &["bad_rpcs"]);
    for recording in recordings {
        let out = recording.wait_with_output().unwrap();
        assert!(
            out.status.success(),
            "{}",
            String::from_utf8_lossy(&out.stderr)
        );
    }
    let mut compare = Command::new(env!("CARGO_BIN_EXE_nfscope"));
    let compared = ["baseline", "compare", "before", "after", "--between", "5%"];
    compare.args(compared).args(["--store", store]);
    let (code, text, error) = said(&compare.output().unwrap());
    assert!(code == 0 || code == 2, "{code}: {error}");
    let row = |name: &str| {
        let line = text.lines().find(|l| l.trim_start().starts_with(name));
        line.unwrap_or_else(|| panic!("no row {name}:\n{text}"))
            .to_owned()
    };
    assert!(row("mean").ends_with("better"), "{text}");
    assert!(row("in log").ends_with("better"), "{text}");
}
