//! `nfscope diagnose` and `/findings` as a user sees them: the program runs against an agent in the process of the test.

use crate::fixture::histogram;
use crate::fixture::said;
use crate::fixture::serve::{attached, get};
use crate::fixture::tale::{QUIET, Tale, journal, slow_log};
use nfscope_model::breakdown::Moved;
use nfscope_model::finding::{Diagnosis, Kind};
use nfscope_model::{BreakdownBatch, BreakdownRow, BreakdownWant, Dimension, Scheme};
use nfscope_model::{ProbeStatus, SlowBatch, SlowFilter, Snapshot};
use nfscope_source::Source;
use std::net::SocketAddr;
use std::process::Command;

/// Source that repeats one synthetic window.
struct Synthetic {
    tale: Tale,
    times: u64,
    slow: SlowBatch,
    /// Operations of each second: client, export, operation, version, user and file; their seconds, and their number. `None` for a source
    /// without break-downs.
    breakdown: Option<Vec<([&'static str; 6], f64, u64)>>,
    by: Vec<Dimension>,
}

impl Source for Synthetic {
    fn snapshot(&mut self) -> Snapshot {
        self.times += 1;
        let mut s = self.tale.snapshot(self.times);
        s.probes = self.probes();
        s
    }

    fn probes(&self) -> Vec<ProbeStatus> {
        vec![crate::fixture::status(
            "nfsd_op_end",
            true,
            self.tale.state(),
            "",
        )]
    }

    fn poll(&mut self) {}

    fn watch_slow(&mut self, _: Option<&SlowFilter>) -> anyhow::Result<()> {
        Ok(())
    }

    fn take_slow(&mut self) -> SlowBatch {
        std::mem::take(&mut self.slow)
    }

    fn watch_breakdown(&mut self, want: Option<&BreakdownWant>) -> anyhow::Result<BreakdownBatch> {
        anyhow::ensure!(self.breakdown.is_some(), "nothing is broken down here");
        self.by = want.map_or(Vec::new(), |w| w.by.iter().copied().collect());
        Ok(BreakdownBatch::default())
    }

    fn take_breakdown(&mut self) -> BreakdownBatch {
        let mut batch = BreakdownBatch::default();
        for (keys, each, count) in self.breakdown.iter().flatten() {
            let mut told = keys.map(str::to_owned);
            for d in Dimension::ALL.into_iter().filter(|d| !self.by.contains(d)) {
                told[d as usize].clear();
            }
            batch.rows.push(BreakdownRow {
                keys: told,
                times: histogram(Scheme::TIME, &[(*each, *count)]),
                moved: Moved::default(),
            });
        }
        batch
    }
}

/// Agent in the process of the test, with such a source.
fn agent(tale: Tale, slow: SlowBatch) -> SocketAddr {
    attached(Synthetic {
        tale,
        times: 0,
        slow,
        breakdown: None,
        by: Vec::new(),
    })
}

/// Runs `nfscope diagnose` against such an agent. Returns exit status, standard output and standard error.
fn program(tale: Tale, arguments: &[&str]) -> (i32, String, String) {
    let ops = vec![crate::fixture::slow_op("write", 12); 20];
    diagnose(agent(tale, SlowBatch { ops, left_out: 0 }), arguments)
}

fn diagnose(agent: SocketAddr, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_nfscope"))
        .args([
            "diagnose",
            "--for",
            "300ms",
            "--url",
            &format!("http://{agent}"),
        ])
        .args(arguments)
        .output()
        .unwrap();
    said(&output)
}

#[test]
fn diagnose_prints_findings_and_has_an_exit_code_for_them() {
    let (code, out, err) = program(slow_log(), &[]);
    assert_eq!((code, &*err), (2, ""), "{out}");
    assert!(
        out.contains("1. CRITICAL  Slow journal or intent log"),
        "{out}"
    );
    assert!(
        out.replace("\n     ", " ")
            .contains("20 sampled operations, 100 % came from 192.0.2.7"),
        "{out}"
    );
    let why = "who and what, but for a sample of single operations: the agent at";
    assert!(
        out.replace("\n    ", " ")
            .contains(&format!("\nNot known:\n  - {why}")),
        "{out}"
    );
    let (code, out, _) = program(slow_log(), &["--json"]);
    let d: Diagnosis = serde_json::from_str(&out).unwrap();
    assert_eq!((code, d.findings[0].kind), (2, Kind::SlowIntentLog));
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let not_known = json["not_known"][0].as_str().unwrap();
    assert!(
        not_known.starts_with(why) && not_known.ends_with("nothing is broken down here"),
        "{out}"
    );
    let (code, out, _) = program(QUIET, &[]);
    assert_eq!(code, 0, "{out}");
    // Source whose operations are not timed.
    let (code, out, err) = program(
        Tale {
            threads: 0.0,
            ..QUIET
        },
        &[],
    );
    assert_eq!((code, &*out), (1, ""));
    assert!(err.contains("NFS operations are not timed"), "{err}");
}

#[test]
fn clients_and_files_of_a_finding_have_the_shares_of_the_break_down() {
    // Lock waits of 5 ms in 64 threads.
    let contended = Tale {
        lock: 5e-3,
        threads: 64.0,
        ..QUIET
    };
    let rows = vec![
        (["192.0.2.7", "/a", "write", "3", "1000", "12"], 0.8, 75),
        (["192.0.2.8", "/a", "write", "3", "1001", "13"], 0.8, 25),
        // GETATTRs: they wait for no lock.
        (["192.0.2.9", "/b", "getattr", "3", "1001", "14"], 80.0, 100),
    ];
    let agent = || {
        attached(Synthetic {
            tale: contended.clone(),
            times: 0,
            slow: SlowBatch::default(),
            breakdown: Some(rows.clone()),
            by: Vec::new(),
        })
    };
    let (code, out, err) = diagnose(agent(), &[]);
    assert_eq!((code, &*err), (2, ""), "{out}");
    let text = out.replace("\n     ", " ");
    assert!(
        text.contains("Changes wait for the lock of a directory or file"),
        "{out}"
    );
    assert!(
        text.contains("client 192.0.2.7 has 75 % of the ") && text.contains(", export /a 100 %"),
        "{out}"
    );
    assert!(
        text.contains("the file or directory with inode 12 of export /a has 75 % of the "),
        "{out}"
    );
    assert!(
        !out.contains("Not known") && !out.contains("sampled"),
        "{out}"
    );
    let (_, out, _) = diagnose(agent(), &["--json"]);
    let d: Diagnosis = serde_json::from_str(&out).unwrap();
    let evidence = &d.finding(Kind::LockContention).unwrap().evidence;
    let of = |words: &str| {
        evidence
            .iter()
            .find(|e| e.text.contains(words))
            .map(|e| (e.value * 100.0).round())
    };
    assert_eq!(
        (of("client 192.0.2.7 has"), of("with inode 12")),
        (Some(75.0), Some(75.0)),
        "{out}"
    );
    assert!(!out.contains("not_known"), "{out}");
}

/// WRITEs that wait as long as those of the test before, spread evenly over eight files.
#[test]
fn waits_that_no_file_explains_are_of_unknown_kind() {
    let waits = Tale {
        lock: 5e-3,
        threads: 64.0,
        ..QUIET
    };
    const FILES: [&str; 8] = ["11", "12", "13", "14", "15", "16", "17", "18"];
    let rows = FILES.map(|file| {
        let keys = ["192.0.2.7", "/a", "write", "3", "1000", file];
        (keys, 5e-3, 10)
    });
    let agent = attached(Synthetic {
        tale: waits,
        times: 0,
        slow: SlowBatch::default(),
        breakdown: Some(rows.into()),
        by: Vec::new(),
    });
    let (code, out, err) = diagnose(agent, &[]);
    assert_eq!((code, &*err), (2, ""), "{out}");
    let text = out.replace("\n     ", " ");
    assert!(
        text.contains("Waits of unknown kind (unknown_waits, "),
        "{out}"
    );
    assert!(!text.contains("spread"), "{out}");
    // Stacks were looked at during the window, and this process has no thread of nfsd: the advice to run as root is left out.
    assert!(!text.contains("run nfscope diagnose as root"), "{out}");
    assert!(
        text.contains("looks no operation was seen in such a wait"),
        "{out}"
    );
}

#[test]
fn changes_are_listed_by_their_predicted_gain() {
    let (code, out, err) = program(journal(), &[]);
    assert_eq!((code, &*err), (2, ""), "{out}");
    let (findings, list) = out
        .split_once("\nWhat a change would be worth (nfscope what-if):\n")
        .unwrap_or_else(|| panic!("{out}"));
    let lines: Vec<_> = list.lines().collect();
    assert!(
        lines[0].starts_with("  - a log device of 100 µs: "),
        "{list}"
    );
    assert!(lines[1].starts_with("  - 32 threads: "), "{list}");
    assert_eq!(lines[2], "  - 8 CPUs: no gain");
    // Actions of a finding begin with the most valuable change.
    let (_, advice) = findings.split_once("Recommended actions:\n").unwrap();
    let first = advice.lines().next().unwrap();
    assert!(first.contains("a log device of 100 µs: "), "{findings}");
    let (_, out, _) = program(journal(), &["--json"]);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["worth"].as_array().unwrap().len(), 3, "{out}");
    let first = json["findings"][0]["advice"][0].as_str().unwrap();
    assert!(first.ends_with("(nfscope what-if)"), "{first}");
    // Server that the model of one log and one device does not fit: the section is printed all the same.
    let (_, out, _) = program(slow_log(), &[]);
    assert!(out.contains("What a change would be worth"), "{out}");
    let (_, out, _) = program(QUIET, &[]);
    assert!(!out.contains("What a change would be worth"), "{out}");
}

#[test]
fn the_agent_serves_findings_and_a_metric_for_each_kind() {
    let agent = agent(slow_log(), SlowBatch::default());
    let answer = get(agent, "/findings", "");
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(answer.contains("application/json"), "{answer}");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let json: serde_json::Value = serde_json::from_str(body).unwrap();
    // No finding before the end of the first window.
    assert_eq!(
        json,
        serde_json::json!({"active": [], "history": [], "last_window": null})
    );
    let metrics = get(agent, "/metrics", "");
    for kind in Kind::ALL {
        let line = format!("nfscope_bottleneck_active{{kind=\"{}\"}} 0", kind.as_str());
        assert!(metrics.contains(&line), "{line}");
    }
}
