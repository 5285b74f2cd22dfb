//! Verdicts need a variance between recordings: without it a comparison is undecided, and earlier recordings of the same server provide it.

use crate::fixture::recorder::{Place, agent, ask, good, record};
use crate::fixture::recordings::{DISKS, counting, recording, runs, writes};
use crate::fixture::said;
use crate::fixture::tale::Tale;
use nfscope_baseline::recording::Recording;
use nfscope_baseline::store::Store;
use nfscope_model::family as f;
use std::path::Path;

/// Exit code of `--fail-on` without a verdict.
const UNDECIDED: i32 = 6;

fn put(path: &Path, all: impl IntoIterator<Item = Recording>) {
    let mut store = Store::create(path).unwrap();
    for r in all {
        store.put(&r).unwrap();
    }
}

fn compare(path: &Path, more: &[&str]) -> serde_json::Value {
    let words = [&["compare", "before", "after", "--json"][..], more].concat();
    let (_, out, err) = ask(path, &words);
    serde_json::from_str(&out).unwrap_or_else(|_| panic!("{err}"))
}

/// Five runs of one server that differ by 2 %, the earliest first; then two sides, of which the second waits three times as long for its
/// log.
fn history(change: impl Fn(usize, Recording) -> Recording) -> Vec<Recording> {
    let old = runs("old", 1, 5, 0.02, DISKS).into_iter().enumerate();
    let mut all: Vec<_> = old.map(|(i, r)| change(i, r)).collect();
    all.push(recording("before", 200, 120, &writes(DISKS)));
    all.push(recording("after", 201, 120, &writes(3.0 * DISKS)));
    all
}

#[test]
fn one_recording_a_side_is_no_verdict() {
    let place = Place::new("no-verdict");
    let path = place.store();
    put(&path, history(|_, r| r).split_off(5));
    let out = good(&path, &["compare", "before", "after"]);
    let line = out.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = "No verdict: two recordings of an unchanged server may differ by as much";
    assert!(line.starts_with(said), "{line}");
    assert!(
        !line.contains("better") && !line.contains("worse"),
        "{line}"
    );
    let (code, out, err) = ask(&path, &["compare", "before", "after", "--fail-on", "worse"]);
    assert_eq!(code, UNDECIDED, "{out}{err}");
    assert!(err.contains("undecided: "), "{err}");
    // Primary quantity without data: undecided, too.
    let untested = [
        "--between",
        "5%",
        "--primary",
        "read:p99",
        "--fail-on",
        "worse",
    ];
    let words = [&["compare", "after", "before"][..], &untested].concat();
    let (code, out, err) = ask(&path, &words);
    assert_eq!(code, UNDECIDED, "{out}{err}");
    let help = good(&path, &["compare", "--help"]);
    assert!(help.contains("\n  6   --fail-on, and undecided"), "{help}");
}

/// Earlier recordings count as the same server by measured properties. Labels are a note.
#[test]
fn earlier_recordings_count_by_measured_properties_of_the_server() {
    let of = |word: &str, change: &dyn Fn(usize, Recording) -> Recording| {
        let place = Place::new(word);
        put(&place.store(), history(change));
        let c = compare(&place.store(), &[]);
        c["not_judged"].is_null()
    };
    let label = |r: Recording, key: &str, value: String| {
        let mut r = r;
        r.metadata.labels.insert(key.into(), value);
        r
    };
    assert!(of("plain", &|_, r| r));
    assert!(of("labels", &|i, r| label(r, "run", i.to_string())));
    // Other servers: by name, kernel, threads, exports, durability and logs.
    assert!(!of("host", &|_, mut r| {
        r.metadata.host = "nfs2".into();
        r
    }));
    assert!(!of("kernel", &|_, mut r| {
        r.metadata.kernel = Some("5.10.0".into());
        r
    }));
    assert!(!of("threads", &|i, r| {
        let tale = Tale {
            threads: 16.0,
            ..writes(DISKS)
        };
        Recording {
            metadata: r.metadata,
            ..recording("old", 101 + i as u64, 120, &tale)
        }
    }));
    assert!(!of("exports", &|_, r| {
        counting(&r, &f::EXPORT_DEVICE, ["/srv", "sdb"], |_| 1.0)
    }));
    assert!(!of("async", &|_, r| {
        counting(&r, &f::NOT_DURABLE, ["/srv", "async"], |_| 1.0)
    }));
    assert!(!of("log", &|_, mut r| {
        let is = |name: &str| name == f::LOG_WAIT.info.name || name == f::LOG_SEPARATE.info.name;
        let logs = r.series.iter_mut().filter(|k| is(&k.family));
        logs.for_each(|k| k.labels[1] = "nvme0n1".into());
        r
    }));
    // Three that match are too few, whatever the others are.
    assert!(!of("some", &|i, mut r| {
        if i > 2 {
            r.metadata.kernel = Some("5.10.0".into());
        }
        r
    }));
}

/// First example of the help, on both sides: it ends in a verdict.
#[test]
fn repeated_recordings_end_in_a_verdict() {
    let (place, agent) = (Place::new("repeat"), agent());
    let path = place.store();
    let help = good(&path, &["record", "--help"]);
    let first = help.split("Examples:\n").nth(1).unwrap().lines().next();
    let example = "sudo nfscope baseline record before --repeat 3 --every 1h";
    assert!(first.unwrap().contains(example), "{first:?}");
    let mut all = String::new();
    for name in ["before", "after"] {
        let words = [
            name,
            "--duration",
            "1500ms",
            "--repeat",
            "3",
            "--every",
            "3s",
        ];
        let (code, _, err) = said(&record(&path, agent, &words).output().unwrap());
        assert_eq!(code, 0, "{err}");
        all = err;
    }
    let command = "nfscope baseline compare BEFORE after-1,after-2,after-3";
    assert!(all.contains(command), "{all}");
    let words = [
        "compare",
        "before-1,before-2,before-3",
        "after-1,after-2,after-3",
    ];
    let c: serde_json::Value =
        serde_json::from_str(&good(&path, &[&words[..], &["--json"]].concat())).unwrap();
    assert!(c["not_judged"].is_null(), "{}", c["not_judged"]);
    // Checks before the first recording: names, and a pause that is shorter than a recording.
    for (words, why) in [
        (
            &["before", "--repeat", "2", "--every", "1h"][..],
            "before-1",
        ),
        (
            &["x", "--repeat", "3", "--every", "1s", "--duration", "2s"],
            "--every",
        ),
        (&["x", "--every", "1h"], "--repeat"),
        (&["x", "--repeat", "3"], "--every"),
    ] {
        let (code, _, err) = said(&record(&path, agent, words).output().unwrap());
        assert!(code != 0 && err.contains(why), "{words:?}: {err}");
    }
}
