//! Unknown values are not rendered as zero, by any renderer.
//!
//! Every renderer prints recorded windows of the lab, with one family removed at a time, as on a host that cannot measure it. The output
//! may then have less, and unknown values. It must not have a zero, a "no", or a number that the output of the whole window does not have.

use crate::report::text as report_text;
use nfscope_api::live_window::LiveWindow;
use nfscope_diagnose::{evaluate, render};
use nfscope_model::finding::Kind;
use nfscope_model::{Snapshot, Window};
use nfscope_serve::exposition::{Format, encode};
use nfscope_tui::{TerminalStyle, View, WIDE, plain};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Scenarios that together have families of every kind.
const WINDOWS: [&str; 12] = [
    "log-8ms",
    "disk-flooded-locally",
    "healthy-balanced",
    "healthy-delegations",
    "mount-distant",
    "recall-distant",
    "reply-300ms",
    "slots-four",
    "storm-leases",
    "stuck-one-of-many",
    "throttle-zfs",
    "upcall-felt",
];

/// Window as its file has it.
#[derive(Deserialize)]
struct Recorded {
    length: Duration,
    delta: Value,
}

fn recorded(name: &str) -> Recorded {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("../../tests/windows/6.12/{name}.json.gz"));
    let file = File::open(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    serde_json::from_reader(flate2::read::GzDecoder::new(file)).unwrap()
}

impl Recorded {
    fn window(&self) -> Window {
        Window {
            length: self.length,
            delta: Snapshot::deserialize(&self.delta).unwrap(),
        }
    }

    fn without(&mut self, family: &str) -> Window {
        let families = self.delta["families"].as_object_mut().unwrap();
        let removed = families.remove(family).unwrap();
        let window = self.window();
        let families = self.delta["families"].as_object_mut().unwrap();
        families.insert(family.to_owned(), removed);
        window
    }
}

/// Numbers and texts of a JSON document by their paths. Elements of lists are named by their keys.
fn leaves(at: &str, v: &Value, into: &mut BTreeMap<String, Value>) {
    match v {
        Value::Object(all) => {
            for (name, v) in all {
                leaves(&format!("{at}.{name}"), v, into);
            }
        }
        Value::Array(all) => {
            for (i, v) in all.iter().enumerate() {
                let names = [
                    "version", "op", "name", "client", "pool", "device", "fs", "volume", "kind",
                    "mount", "export", "program", "resource", "thread",
                ];
                let named: Vec<_> = names
                    .iter()
                    .filter(|n| !v[**n].is_null())
                    .map(|n| v[*n].to_string())
                    .collect();
                let key = match named.is_empty() {
                    true => i.to_string(),
                    false => named.join(" "),
                };
                leaves(&format!("{at}[{key}]"), v, into);
            }
        }
        leaf => {
            into.insert(at.to_owned(), leaf.clone());
        }
    }
}

/// JSON documents: `nfscope top --json`, the page's window, and the findings.
fn documents(w: &Window) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    let top = serde_json::to_value(View::of(w, "nfs1")).unwrap();
    leaves("top", &top, &mut all);
    let page = serde_json::to_value(LiveWindow::of(w, 1e9, std::iter::empty())).unwrap();
    leaves("page", &page, &mut all);
    let found = serde_json::to_value(evaluate(w, &[])).unwrap();
    leaves("findings", &found["headroom"], &mut all);
    // Findings are compared by their shares: a kind that is found in one window may be ruled out in the other.
    for list in ["findings", "ruled_out"] {
        for one in found[list].as_array().unwrap() {
            let path = format!("findings.share[{}]", one["kind"].as_str().unwrap());
            all.insert(path, one["share"].clone());
        }
    }
    all
}

/// Texts for people.
fn pages(w: &Window) -> [(&'static str, String); 3] {
    let style = TerminalStyle {
        color: false,
        utf8: true,
    };
    let d = evaluate(w, &[]);
    let live = serde_json::to_value(LiveWindow::of(w, 1e9, std::iter::empty())).unwrap();
    let report = json!({
        "windows": {"host": "nfs1", "kernel": "6.12", "version": "1", "edges": [], "windows": [live]},
        "findings": {"active": [], "history": [], "last_window": d},
        "probes": {"times_operations": true, "reason": "", "probes": []},
        "note": null,
    });
    [
        ("top", plain(&View::of(w, "nfs1"), WIDE, style)),
        ("report", report_text::write(&report, false)),
        ("diagnose", render(&d, "nfs1", false)),
    ]
}

/// Families whose absence is not an unknown number. A server without failed operations has no series of them. An agent that times nothing
/// reports this by its probes.
const ELSEWHERE: [&str; 2] = ["nfscope_op_errors_total", "nfscope_op_duration_seconds"];

/// Phrases with a zero word that are true of any window, or that state that something is not known. Only the phrase is left out; the rest
/// of its line is checked.
const NOT_MEANT: [&str; 7] = [
    "no phases",
    "--min-latency 0ms",
    "0 COMMITs/s",
    "have no complete time line",
    "no bottleneck found",
    "0/8 threads busy, 0 % used",
    "no NFS operations are known of",
];

/// Words of a text without the punctuation around them.
fn bare_words(text: &str) -> Vec<&str> {
    let marks = |c: char| matches!(c, ',' | ';' | ':' | '.' | '(' | ')');
    let words = text.split_whitespace();
    words.map(|w| w.trim_matches(marks)).collect()
}

/// Words that are the number zero, or a word such as "none".
fn zeros(line: &str) -> Vec<&str> {
    let mut words = bare_words(line);
    // Compares whole words: "10 COMMITs/s" does not contain "0 COMMITs/s", and "0.0 COMMITs/s" is another phrase.
    for phrase in NOT_MEANT.map(bare_words) {
        while let Some(at) = words.windows(phrase.len()).position(|w| *w == phrase[..]) {
            words.drain(at..at + phrase.len());
        }
    }
    words.retain(|w| {
        let digits = w.strip_suffix("/s").unwrap_or(w);
        let digits = digits.trim_end_matches(|c: char| c.is_alphabetic() || matches!(c, '%' | 'µ'));
        digits.parse::<f64>().is_ok_and(|n| n == 0.0) || matches!(*w, "no" | "none" | "nothing")
    });
    words
}

#[test]
fn a_phrase_hides_no_other_zero_of_its_line() {
    for (line, expected) in [
        (
            "12 stable WRITEs/s and 0 COMMITs/s, with 12 WRITEs/s",
            &[][..],
        ),
        ("0 stable WRITEs/s and 0 COMMITs/s, with 3 WRITEs/s", &["0"]),
        ("0/8 threads busy, 0 % used, queue p99 3 ms", &[]),
        ("0/8 threads busy, 0 % used, queue p99 0.0 ms", &["0.0"]),
        ("10 COMMITs/s", &[]),
        ("0.0 COMMITs/s", &["0.0"]),
        ("Healthy: no bottleneck found. No disk: none", &["none"]),
    ] {
        assert_eq!(zeros(line), expected, "{line}");
    }
}

#[test]
fn shares_of_kinds_that_are_ruled_out_are_compared() {
    let all = documents(&recorded("log-8ms").window());
    let shares = all
        .keys()
        .filter(|path| path.starts_with("findings.share["));
    assert_eq!(shares.count(), Kind::ALL.len());
}

/// Lines of the partial page that the whole page lacks, and that have a zero word which occurs more often than in the whole page.
fn wrong_lines(whole: &str, partial: &str) -> Vec<String> {
    let known: BTreeSet<_> = whole.lines().map(str::trim).collect();
    let said = |page: &str| {
        let mut all: BTreeMap<String, usize> = BTreeMap::new();
        for word in page.lines().flat_map(zeros) {
            *all.entry(word.to_owned()).or_default() += 1;
        }
        all
    };
    let (before, after) = (said(whole), said(partial));
    let more = after
        .into_iter()
        .filter(|(word, n)| before.get(word).is_none_or(|known| n > known));
    let more: BTreeSet<_> = more.map(|(word, _)| word).collect();
    let lines = partial.lines().map(str::trim);
    lines
        .filter(|line| !known.contains(line) && zeros(line).iter().any(|w| more.contains(*w)))
        .map(str::to_owned)
        .collect()
}

#[test]
fn what_a_host_cannot_measure_is_no_zero_in_any_renderer() {
    let mut wrong = BTreeSet::new();
    for name in WINDOWS {
        let mut recorded = recorded(name);
        let whole = recorded.window();
        let (documents_of_whole, pages_of_whole) = (documents(&whole), pages(&whole));
        let families: Vec<_> = whole.delta.all().map(|(n, _)| n.to_owned()).collect();
        for family in families {
            if ELSEWHERE.contains(&family.as_str()) {
                continue;
            }
            let partial = recorded.without(&family);
            let text = encode(&Arc::new(partial.delta.clone()), Format::Plain).unwrap();
            let text = String::from_utf8(text).unwrap();
            let sample = |line: &str| {
                let rest = line.strip_prefix(&family);
                rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
            };
            if text.lines().any(sample) {
                wrong.insert(format!("/metrics has {family}"));
            }
            for (path, leaf) in documents(&partial) {
                let before = documents_of_whole.get(&path);
                let is_zero = leaf == json!(0.0) || leaf == json!(0) || leaf == json!(false);
                let was_zero = before.is_some_and(|b| *b == json!(0.0) || *b == leaf);
                if is_zero && !was_zero {
                    wrong.insert(format!(
                        "{family}: {path} is {leaf}, and was {before:?} ({name})"
                    ));
                }
            }
            for ((page, whole), (_, partial)) in pages_of_whole.iter().zip(pages(&partial)) {
                for line in wrong_lines(whole, &partial) {
                    wrong.insert(format!("{family}: {page} says: {line} ({name})"));
                }
            }
        }
    }
    let all: Vec<_> = wrong.into_iter().collect();
    assert!(all.is_empty(), "{}:\n{}", all.len(), all.join("\n"));
}
