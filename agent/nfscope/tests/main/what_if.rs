//! `nfscope what-if` and `nfscope capacity` on a recording.

use crate::fixture::recorder::Place;
use crate::fixture::recordings::recording;
use crate::fixture::said;
use crate::fixture::tale::{QUIET, Tale, journal};
use nfscope_baseline::store::Store;
use serde_json::Value;
use std::process::Command;

/// Store with a recording of this server, called `friday`.
fn store(word: &str, tale: &Tale) -> Place {
    let place = Place::new(word);
    std::fs::create_dir_all(place.store().parent().unwrap()).unwrap();
    let friday = recording("friday", 5, 30, tale);
    Store::create(&place.store()).unwrap().put(&friday).unwrap();
    place
}

/// Runs a command on that recording. Returns exit status, standard output and standard error.
fn nfscope(command: &str, place: &Place, arguments: &[&str]) -> (i32, String, String) {
    let mut c = Command::new(env!("CARGO_BIN_EXE_nfscope"));
    c.args([command, "friday"]).args(arguments);
    c.arg("--store").arg(place.store());
    said(&c.output().unwrap())
}

#[test]
fn what_if_predicts_the_gain_of_more_threads() {
    let place = store("whatif-threads", &journal());
    let (code, out, err) = nfscope("what-if", &place, &["--threads", "32"]);
    assert_eq!((code, &*err), (0, ""), "{out}");
    for words in [
        "friday on nfs1: what if it had 32 threads?",
        "MEASURED",
        "requests",
        "wait for a thread",
        "WRITE 3",
        "In use then: ",
        "Assumptions:",
        "commits run one after the other",
    ] {
        assert!(out.contains(words), "{words}\n{out}");
    }
    let (_, out, _) = nfscope("what-if", &place, &["--threads", "32", "--json"]);
    let p: Value = serde_json::from_str(&out).unwrap();
    let of = |name: &str| p["rate"][name].as_f64().unwrap();
    // Expected gain: 28 requests instead of 8 share two commits.
    let gain = of("after") / of("before");
    assert!((2.9..3.8).contains(&gain), "{p}");
    assert!(of("low") <= of("after") && of("after") <= of("high"), "{p}");
    assert_eq!(p["threads_by_pool"], serde_json::json!([32]));
}

#[test]
fn what_if_lists_changes_by_their_gain() {
    let place = store("whatif-list", &journal());
    let (code, out, _) = nfscope("what-if", &place, &[]);
    assert_eq!(code, 0);
    let at = |words: &str| out.find(words).unwrap_or_else(|| panic!("{words}\n{out}"));
    assert!(
        at("1. a log device of 100 µs: ") < at("2. 32 threads: "),
        "{out}"
    );
    assert!(at("2. 32 threads: ") < at("3. 8 CPUs: no gain"), "{out}");
    // Gains are intervals with both ends.
    assert!(out.contains(" times as many requests\n"), "{out}");
    assert!(!out.contains("or more"), "{out}");
    let (_, out, _) = nfscope("what-if", &place, &["--json"]);
    let all: Vec<Value> = serde_json::from_str(&out).unwrap();
    let gains = all.iter().map(|p| p["gain_low"].as_f64().unwrap());
    assert!(
        gains.collect::<Vec<_>>().is_sorted_by(|a, b| a >= b),
        "{out}"
    );
}

#[test]
fn a_change_that_cannot_be_predicted_is_an_error_with_its_reason() {
    let place = store("whatif-refused", &journal());
    for (arguments, why) in [
        (["--disk", "1ms"], "no request waited for the disks"),
        (["--write-size", "64k"], "no WRITE was measured"),
    ] {
        let (code, out, err) = nfscope("what-if", &place, &arguments);
        assert_eq!((code, &*out), (1, ""), "{err}");
        assert!(
            err.contains("no prediction: ") && err.contains(why),
            "{err}"
        );
    }
    for wrong in ["0", "5m", "4g", "k"] {
        let (code, _, err) = nfscope("what-if", &place, &["--write-size", wrong]);
        assert_eq!(code, 2, "{wrong}: {err}");
        assert!(err.contains("give 1 to 4m bytes"), "{err}");
    }
}

#[test]
fn capacity_has_the_prediction_for_more_clients() {
    let healthy = Tale {
        requests: 20_000,
        idle: 0.9,
        ..QUIET
    };
    let place = store("whatif-capacity", &healthy);
    let (code, out, err) = nfscope("capacity", &place, &[]);
    assert_eq!((code, &*err), (0, ""));
    let (_, model) = out
        .split_once("By the model of nfscope what-if:\n")
        .unwrap();
    assert!(model.contains("times as many clients"), "{out}");
    assert!(model.contains("saturate next"), "{out}");
    let (_, out, _) = nfscope("capacity", &place, &["--json"]);
    let c: Value = serde_json::from_str(&out).unwrap();
    assert!(c["resources"].is_array(), "{out}");
    let rate = &c["model"]["rate"];
    assert!(
        rate["after"].as_f64().unwrap() > 2.0 * rate["before"].as_f64().unwrap(),
        "{out}"
    );
}
