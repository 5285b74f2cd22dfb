//! `nfscope experiment` from its plan to its effects, with recordings of known effects.

use crate::fixture::recorder::{self, Place, agent};
use crate::fixture::recordings::{recording, writes};
use crate::fixture::said;
use crate::fixture::tale::Tale;
use nfscope_baseline::store::Store;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn ask(store: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut c = Command::new(env!("CARGO_BIN_EXE_nfscope"));
    c.arg("experiment")
        .args(arguments)
        .arg("--store")
        .arg(store);
    said(&c.output().unwrap())
}

fn good(store: &Path, arguments: &[&str]) -> String {
    let (code, out, err) = ask(store, arguments);
    assert_eq!(code, 0, "{arguments:?}: {err}");
    out
}

/// Value of a label in the command of a run.
fn label(next: &str, name: &str) -> String {
    let (_, rest) = next.split_once(&format!("--label {name}=")).unwrap();
    rest.split_whitespace().next().unwrap().to_owned()
}

/// Known effects: a separate log makes WRITEs ten times as fast, sync=always makes them twice as slow, threads have none.
#[test]
fn an_experiment_finds_the_known_effects_of_its_factors() {
    let place = Place::new("experiment");
    let path = place.store();
    let plan = good(
        &path,
        &[
            "plan",
            "slog",
            "--factor",
            "log=disk,slog",
            "--factor",
            "threads=8,16",
            "--factor",
            "sync=standard,always",
            "--replicates",
            "2",
            "--seed",
            "7",
        ],
    );
    assert!(
        plan.contains("16 runs: 8 combinations, 2 of each"),
        "{plan}"
    );
    assert!(plan.contains("8h of recording, 30m each"), "{plan}");
    assert!(plan.contains("no effect is an alias"), "{plan}");
    let mut store = Store::create(&path).unwrap();
    for run in 1..=16 {
        let next = good(&path, &["next", "slog"]);
        assert!(
            next.starts_with(&format!("run {run} of 16: set log=")),
            "{next}"
        );
        assert!(next.contains(&format!("--label run={run}")), "{next}");
        let high = |level: &str| next.contains(level);
        let log = 10e-3
            * if high("log=slog") { 0.1 } else { 1.0 }
            * if high("sync=always") { 2.0 } else { 1.0 };
        let mut r = recording(&format!("slog-{run}"), 200 + run, 20, &writes(log));
        r.metadata.labels = [
            ("experiment".to_owned(), "slog".to_owned()),
            ("run".to_owned(), run.to_string()),
            ("levels".to_owned(), label(&next, "levels")),
        ]
        .into();
        let (code, _, err) = ask(&path, &["analyse", "slog", "--metric", "write:mean"]);
        assert!(
            code == 1 && err.contains(&format!("{} of 16 runs", run - 1)),
            "{err}"
        );
        let incomplete = ["analyse", "slog", "--metric", "write:mean", "--incomplete"];
        if run == 4 {
            let (code, _, err) = ask(&path, &incomplete);
            assert!(
                code == 1
                    && err.contains(" is recorded, and the effect of ")
                    && err.contains(" x ")
                    && err.contains(" cannot be told without; fix: `nfscope experiment next slog`"),
                "{err}"
            );
        }
        if run == 16 {
            let text = good(&path, &incomplete);
            assert!(
                text.contains("log *") && text.contains("1 of 16 runs are missing (16)"),
                "{text}"
            );
        }
        store.put(&r).unwrap();
    }
    assert!(good(&path, &["next", "slog"]).contains("all 16 runs are recorded"));
    assert_eq!(good(&path, &["list"]), "slog: 16 of 16 runs recorded\n");
    let json = good(
        &path,
        &["analyse", "slog", "--metric", "write:mean", "--json"],
    );
    let a: Value = serde_json::from_str(&json).unwrap();
    let effect = |word: &str| {
        let all = a["effects"].as_array().unwrap();
        all.iter().find(|e| e["word"] == word).unwrap().clone()
    };
    let value = |word: &str| effect(word)["effect"].as_f64().unwrap();
    assert!((value("A") - 0.11).abs() < 0.02, "{a}");
    assert!((value("C") - 1.95).abs() < 0.15, "{a}");
    assert_eq!(effect("A")["found"], true);
    assert_eq!(effect("C")["found"], true);
    assert_eq!(effect("B")["found"], false);
    assert_eq!(a["effects"][0]["factors"], "log");
    // Wait for the log: a response of its own with the full effect.
    let row = ["analyse", "slog", "--response", "WRITE 3 in log", "--json"];
    let row: Value = serde_json::from_str(&good(&path, &row)).unwrap();
    assert_eq!(
        (&row["response"], &row["unit"]),
        (&"WRITE 3 in log".into(), &"seconds".into())
    );
    let of_log = row["effects"][0]["effect"].as_f64().unwrap();
    assert!((of_log - 0.1).abs() < 0.02, "{row}");
    let text = good(&path, &["analyse", "slog", "--metric", "write:mean"]);
    // Replicates give an interval, so there is no half-normal plot.
    assert!(!text.contains("half-normal") && a["half_normal"].is_null());
    assert!(
        text.contains("log *") && text.contains("threads x sync"),
        "{text}"
    );
    several_responses_and_a_page(&path);
    pilots(&path);
    let (code, _, err) = ask(&path, &["plan", "slog", "--factor", "a=1,2"]);
    assert!(
        code == 1 && err.contains("there is an experiment `slog` already"),
        "{err}"
    );
    good(&path, &["rm", "slog"]);
    let (code, _, err) = ask(&path, &["next", "slog"]);
    assert!(code == 1 && err.contains("no experiment `slog`"), "{err}");
    // Recordings that stay: in the order of a new plan they would be runs with other levels.
    let again = ["plan", "slog", "--factor", "log=disk,slog", "--seed", "9"];
    let (code, _, err) = ask(&path, &again);
    assert!(
        code == 1 && err.contains("baselines of an earlier experiment `slog`"),
        "{err}"
    );
}

/// Correction over the effects on all responses: no p value is smaller than for one response alone.
fn several_responses_and_a_page(path: &Path) {
    let page = path.with_extension("html");
    let file = page.display().to_string();
    let two = ["--metric", "write:mean", "--metric", "write:rate"];
    let analyse = [&["analyse", "slog"], &two[..], &["--json", "--html", &file]].concat();
    let both: Value = serde_json::from_str(&good(path, &analyse)).unwrap();
    let alone = ["analyse", "slog", "--metric", "write:mean", "--json"];
    let alone: Value = serde_json::from_str(&good(path, &alone)).unwrap();
    let p = |a: &Value, i: usize| a["effects"][i]["p"].as_f64().unwrap();
    assert!((0..7).all(|i| p(&both[0], i) >= p(&alone, i)), "{both}");
    assert_eq!(both[1]["response"], "write rate");
    assert_eq!(alone["runs"].as_array().unwrap().len(), 16);
    let html = std::fs::read_to_string(&page).unwrap();
    for part in [
        "Effects on write mean",
        "Effects on write rate",
        "Interactions",
        "Mean response at each corner",
        "Residuals in the order of the runs",
        "Residuals by the mean of the combination",
        "Full design: no effect is an alias of another.",
        "Load: ",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert!(!html.contains("<script") && !html.contains("http"));
    let (code, _, err) = ask(
        path,
        &[
            "analyse",
            "slog",
            "--metric",
            "write",
            "--metric",
            "write:p99",
        ],
    );
    assert!(code == 1 && err.contains("given twice"), "{err}");
}

fn pilots(path: &Path) {
    let plan = [
        "plan",
        "next",
        "--factor",
        "a=1,2",
        "--factor",
        "b=1,2",
        "--replicates",
        "3",
    ];
    let of = ["--pilot", "slog-1,slog-2,slog-3", "--metric", "write:mean"];
    let text = good(path, &[&plan[..], &of].concat());
    assert!(text.contains("by what the pilots differ by"), "{text}");
    assert!(text.contains("an effect by a factor of"), "{text}");
    let (code, _, err) = ask(
        path,
        &[
            "plan", "x", "--factor", "a=1,2", "--pilot", "gone", "--metric", "write",
        ],
    );
    assert!(code != 0 && err.contains("gone"), "{err}");
    good(path, &["rm", "next"]);
}

/// A recording without operations is no measurement of its levels, and is refused with that reason.
#[test]
fn a_run_without_operations_is_refused_with_its_name() {
    let place = Place::new("no-load");
    let path = place.store();
    good(
        &path,
        &[
            "plan",
            "idle",
            "--factor",
            "log=disk,slog",
            "--replicates",
            "2",
        ],
    );
    let mut store = Store::create(&path).unwrap();
    for run in 1..=4 {
        let next = good(&path, &["next", "idle"]);
        let mut r = recording(&format!("idle-{run}"), 400 + run, 20, &writes(1e-3));
        if run == 3 {
            r.windows.iter_mut().for_each(|w| w.samples.clear());
        }
        let labels = [
            ("experiment", "idle".to_owned()),
            ("run", run.to_string()),
            ("levels", label(&next, "levels")),
        ];
        r.metadata.labels = labels.map(|(k, v)| (k.to_owned(), v)).into();
        store.put(&r).unwrap();
    }
    drop(store);
    let (code, _, err) = ask(&path, &["analyse", "idle", "--metric", "write:mean"]);
    assert!(
        code == 1 && err.contains("`idle-3` has no operations: its load did not reach the server; fix: nfscope baseline rm idle-3"),
        "{err}"
    );
}

/// Fifteen of sixteen runs: they estimate all effects, if the interaction of all four factors is taken for zero.
#[test]
fn a_missing_combination_leaves_all_effects_but_the_highest_interaction() {
    let place = Place::new("fifteen");
    let path = place.store();
    let factors = [
        "log=disk,slog",
        "threads=8,16",
        "sync=standard,always",
        "atime=on,off",
    ];
    let factors = factors.iter().flat_map(|f| ["--factor", f]);
    good(
        &path,
        &["plan", "most"]
            .into_iter()
            .chain(factors)
            .collect::<Vec<_>>(),
    );
    let mut store = Store::create(&path).unwrap();
    for run in 1..=15 {
        let next = good(&path, &["next", "most"]);
        let log = if next.contains("log=slog") {
            1e-3
        } else {
            10e-3
        };
        let mut r = recording(&format!("most-{run}"), 500 + run, 20, &writes(log));
        let labels = [
            ("experiment", "most".to_owned()),
            ("run", run.to_string()),
            ("levels", label(&next, "levels")),
        ];
        r.metadata.labels = labels.map(|(k, v)| (k.to_owned(), v)).into();
        store.put(&r).unwrap();
    }
    drop(store);
    let text = good(
        &path,
        &["analyse", "most", "--metric", "write:mean", "--incomplete"],
    );
    assert!(
        text.contains("log *")
            && text.contains("the effect of log x threads x sync x atime is taken for none"),
        "{text}"
    );
}

/// READ_PLUS of NFSv4.2 reads, too. Reads at both levels are one response, whatever operation the client uses.
#[test]
fn read_plus_and_read_are_one_response() {
    let place = Place::new("read-plus");
    let path = place.store();
    let factor = ["plan", "version", "--factor", "version=4.1,4.2"];
    good(&path, &[&factor[..], &["--replicates", "2"]].concat());
    let mut store = Store::create(&path).unwrap();
    for run in 1..=4 {
        let next = good(&path, &["next", "version"]);
        let is_new = next.contains("version=4.2");
        let tale = Tale {
            op: if is_new { "read_plus" } else { "read" },
            disk: if is_new { 2e-3 } else { 4e-3 },
            ..writes(0.0)
        };
        let mut r = recording(&format!("version-{run}"), 300 + run, 20, &tale);
        let labels = [("experiment", "version".to_owned())];
        let own = [("run", run.to_string()), ("levels", label(&next, "levels"))];
        let labels = labels.into_iter().chain(own);
        r.metadata.labels = labels.map(|(k, v)| (k.to_owned(), v)).collect();
        store.put(&r).unwrap();
    }
    drop(store);
    let json = ["analyse", "version", "--metric", "read:mean", "--json"];
    let a: Value = serde_json::from_str(&good(&path, &json)).unwrap();
    let effect = a["effects"][0]["effect"].as_f64().unwrap();
    assert!((effect - 0.5).abs() < 0.1, "{a}");
}

#[test]
fn a_plan_cannot_be_removed_while_a_run_of_it_is_made() {
    let place = Place::new("held");
    let path = place.store();
    good(&path, &["plan", "two", "--factor", "log=disk,slog"]);
    let lock = path.parent().unwrap().join("experiments/two.lock");
    let held = std::fs::File::create(&lock).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    for command in [&["rm", "two"][..], &["record", "two"]] {
        let (code, _, err) = ask(&path, command);
        assert!(code == 1 && err.contains("is being run already"), "{err}");
    }
    // Explicit unlock: a child that another test forks at this moment may have inherited the descriptor.
    rustix::fs::flock(&held, rustix::fs::FlockOperation::Unlock).unwrap();
    good(&path, &["rm", "two"]);
}

#[test]
fn runs_of_an_experiment_are_recorded_in_its_store() {
    let (place, agent) = (Place::new("runs"), agent());
    let path = place.store();
    good(&path, &["plan", "two", "--factor", "log=disk,slog"]);
    let url = format!("http://{agent}");
    let record = [
        "record",
        "two",
        "--duration",
        "1s",
        "--interval",
        "100ms",
        "--url",
        &url,
    ];
    for run in 1..=2 {
        let (code, _, err) = ask(&path, &record);
        assert_eq!(code, 0, "{err}");
        assert!(
            err.contains(&format!("run {run} of 2: recording with log=")),
            "{err}"
        );
    }
    let (code, _, err) = ask(&path, &record);
    assert!(
        code == 1 && err.contains("all runs of `two` are recorded"),
        "{err}"
    );
    assert_eq!(good(&path, &["list"]), "two: 2 of 2 runs recorded\n");
    let text = good(&path, &["analyse", "two", "--metric", "write:mean"]);
    assert!(
        text.contains("too few runs: effects cannot be told from noise"),
        "{text}"
    );
}

/// Rules of names on the command line are those of plan files.
#[test]
fn a_plan_whose_runs_have_no_names_is_refused() {
    let place = Place::new("unnamed");
    let path = place.store();
    let long = "x".repeat(99);
    let factors = |name: &str, second: &str| {
        let (code, _, err) = ask(
            &path,
            &["plan", name, "--factor", "a=1,2", "--factor", second],
        );
        assert_eq!(code, 1, "{err}");
        err
    };
    assert!(factors(&long, "b=1,2").contains("fix: choose a shorter name"));
    assert!(factors("twice", "a=3,4").contains("two factors have this name"));
    assert!(factors("steers", "b=1,\u{9b}2").contains("control characters"));
}

/// Labels of a foreign recording: JSON on a terminal moves no cursor and reverses no text.
#[test]
fn json_of_a_foreign_recording_steers_no_terminal() {
    let place = Place::new("foreign");
    let path = place.store();
    let mut foreign = recording("foreign", 1, 20, &writes(1e-3));
    foreign.metadata.host = "nfs1\u{202e}\u{7f}".to_owned();
    foreign.metadata.labels = [("a\u{9b}31m".to_owned(), "b\u{2066}".to_owned())].into();
    let mut store = Store::create(&path).unwrap();
    store.put(&foreign).unwrap();
    store.put(&recording("own", 2, 20, &writes(1e-3))).unwrap();
    drop(store);
    let steers = |c: char| nfscope_text::console::steers(c) && c != '\n';
    for words in [
        &["list"][..],
        &["show", "foreign"],
        &["compare", "foreign", "own"],
        &["changes", "foreign"],
    ] {
        let out = recorder::good(&path, &[words, &["--json"]].concat());
        assert!(!out.contains(steers), "{words:?}: {out:?}");
        let _: Value = serde_json::from_str(&out).unwrap();
    }
    let list: Value = serde_json::from_str(&recorder::good(&path, &["list", "--json"])).unwrap();
    let labels = list.as_array().unwrap().iter().map(|e| &e["labels"]);
    let mut values = labels.filter_map(|l| l["a\u{9b}31m"].as_str());
    assert_eq!(values.next(), Some("b\u{2066}"), "{list}");
}

#[test]
fn a_fraction_prints_its_aliases() {
    let place = Place::new("fraction");
    let path = place.store();
    let mut arguments = vec!["plan", "half", "--fraction", "1/2"];
    for factor in ["a=1,2", "b=1,2", "c=1,2", "d=1,2"] {
        arguments.extend(["--factor", factor]);
    }
    let text = good(&path, &arguments);
    assert!(
        text.contains("Resolution 4; defining relation I = ABCD"),
        "{text}"
    );
    assert!(text.contains("AB = CD"), "{text}");
    let (code, _, err) = ask(
        &path,
        &[
            "plan",
            "bad",
            "--factor",
            "a=1,2",
            "--factor",
            "b=1,2",
            "--fraction",
            "1/2",
        ],
    );
    assert!(code == 1 && err.contains("no standard design"), "{err}");
}

/// Each combination once: the real effect stands out of the half-normal plot, and noise lies along the line of noise.
#[test]
fn effects_without_replicates_are_drawn_against_noise() {
    let place = Place::new("drawn");
    let path = place.store();
    let mut plan = vec!["plan", "once", "--seed", "5"];
    for factor in [
        "log=disk,slog",
        "threads=8,16",
        "sync=standard,always",
        "atime=on,off",
    ] {
        plan.extend(["--factor", factor]);
    }
    good(&path, &plan);
    let mut store = Store::create(&path).unwrap();
    for run in 1..=16 {
        let next = good(&path, &["next", "once"]);
        let log = if next.contains("log=slog") {
            1e-3
        } else {
            10e-3
        };
        let mut r = recording(&format!("once-{run}"), 300 + run, 20, &writes(log));
        r.metadata.labels = [
            ("experiment".to_owned(), "once".to_owned()),
            ("run".to_owned(), run.to_string()),
            ("levels".to_owned(), label(&next, "levels")),
        ]
        .into();
        store.put(&r).unwrap();
    }
    let analyse = ["analyse", "once", "--metric", "write:mean"];
    let text = good(&path, &analyse);
    let drawn = text.split_once("half-normal drawing").unwrap().1;
    let lines: Vec<_> = drawn.lines().skip(1).take(15).collect();
    let column = |line: &str, of: char| line.rfind(of);
    // Margin of error: the largest effect is beyond it, and all others are within.
    assert!(lines[0].trim_start().starts_with("log "), "{text}");
    let margin = column(lines[0], '|').unwrap();
    assert!(column(lines[0], 'o').unwrap() > margin + 20, "{text}");
    for line in &lines[1..] {
        assert!(column(line, 'o').unwrap() <= margin, "{text}");
    }
    let json: Value =
        serde_json::from_str(&good(&path, &[&analyse[..], &["--json"]].concat())).unwrap();
    let h = &json["half_normal"];
    let sizes = h["sizes"].as_array().unwrap();
    assert_eq!((sizes.len(), &sizes[0]["factors"]), (15, &"log".into()));
    // Factor of ten, as half of its natural logarithm.
    assert!(
        (sizes[0]["size"].as_f64().unwrap() - 1.15).abs() < 0.1,
        "{h}"
    );
    assert!(h["margin"].as_f64().unwrap() > h["error"].as_f64().unwrap());
    let expected = |i: usize| sizes[i]["of_noise"].as_f64().unwrap();
    assert!((1..15).all(|i| expected(i) < expected(i - 1)), "{h}");
}
