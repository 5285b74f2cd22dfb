use super::*;
use crate::demo::day::{Scene, Tape};
use crate::report::text;
use nfscope_api::live_window::{Greeting, LiveWindow};
use nfscope_baseline::window::Merger;
use nfscope_diagnose::evaluate;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

/// Collects all strings and keys.
fn texts(value: &Value, to: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            to.insert(text.clone());
        }
        Value::Array(all) => all.iter().for_each(|v| texts(v, to)),
        Value::Object(all) => {
            for (key, v) in all {
                to.insert(key.clone());
                texts(v, to);
            }
        }
        _ => {}
    }
}

/// Checks that an anonymous report and its text contain none of these names, and that each name has one pseudonym.
fn check(data: &Value, names: &[&str]) -> Value {
    let done = anonymous(data);
    let mut all = BTreeSet::new();
    texts(&done, &mut all);
    all.insert(text::write(&done, true));
    for name in names {
        let found: Vec<_> = all.iter().filter(|text| text.contains(name)).collect();
        assert!(found.is_empty(), "{name} is in {found:?}");
    }
    assert_eq!(done, anonymous(data), "the same each time");
    done
}

/// Answer with names in every sentence, and in every member that can have one.
fn with_names_everywhere() -> Value {
    let sentence = "client 192.0.2.7 (db1.corp) and [2001:db8::7]:700 of nfs1.corp, http://nfs1.corp:9943, \
                    nfs1.corp:/home/alice, /srv/home/alice/Secret, vg-alice, user alice";
    let finding = json!({
        "kind": "slow_disk", "severity": "critical", "share": 0.5, "summary": sentence, "advice": [sentence, sentence],
        "evidence": [{"text": sentence, "metric": "nfscope_x", "value": 3, "limit": null}],
    });
    let episode = json!({"began": 1.0, "ended": null, "worst_share": 0.6, "finding": finding});
    json!({
        "windows": {
            "host": "nfs1.corp", "kernel": "6.12.0-alice", "version": "0.1.0", "edges": [0.1, 1.0], "phases": ["cpu"],
            "rpc_phases": ["queue"], "replay": false, "since": "alice.3", "more": false, "alice": 3,
            "windows": [{
                "at": 100.0, "seconds": 10.0, "lost": 0.0,
                "ops": [{"version": "4.2", "op": "write", "times": {"count": 3, "sum": 0.5, "buckets": [[1, 3]]}, "errors": 0.0,
                         "phases": [0.1, 0.2]}],
                "clients": [
                    {"name": "192.0.2.7", "called": "db1.corp", "ops": 3, "seconds": 1.0, "moved": {"read": 1, "written": 2}},
                    {"name": "192.0.2.7:700", "ops": 3}, {"name": "2001:db8::7", "ops": 3}, {"name": "db1.corp", "ops": 1},
                    {"name": "local", "ops": 1}, {"name": "other", "ops": 1}
                ],
                "exports": [{"name": "/srv/home", "ops": 2}, {"name": "/srv/home/alice", "ops": 1}, {"name": "none", "ops": 1}],
                "logs": [{"fs": "ext4", "volume": "sda1"}, {"fs": "xfs", "volume": "vg-alice"}],
                "disks": [{"device": "sda1", "op": "read"}, {"device": "vg-alice", "op": "read"}],
                "pools": [{"pool": "0", "threads": 8, "busy": 1.0}],
                "coverage": {"4.2": 1.0, "192.0.2.7": 1.0}, "findings": {"slow_disk": 0.5, "alice": 1.0},
                "called": sentence,
            }]
        },
        "findings": {
            "active": [episode], "history": [episode],
            "last_window": {
                "verdict": "unknown", "reason": sentence, "incomplete": sentence, "findings": [finding],
                "ruled_out": [{"kind": "slow_log", "share": 0.1, "why": sentence}],
                "headroom": [{"resource": sentence, "utilization": 0.5}],
                "warnings": [sentence], "outside": [sentence], "unseen": [sentence],
            },
            "worth": [{"change": sentence}], "worth_unknown": sentence, "names": {"192.0.2.7": "db1.corp"},
        },
        "probes": {"times_operations": false, "reason": sentence, "probes": [
            {"probe": "nfsd", "program": "nfsd_send", "hook": sentence, "gives": sentence, "required": true,
             "state": "unsupported", "reason": sentence, "fix": sentence}
        ]},
        "note": sentence,
    })
}

#[test]
fn no_name_and_no_sentence_of_an_answer_is_in_an_anonymous_report() {
    let done = check(
        &with_names_everywhere(),
        &[
            "192.0.2.7",
            "2001:db8",
            "700",
            "db1",
            "corp",
            "nfs1",
            "9943",
            "alice",
            "/home",
            "/srv",
            "Secret",
            "vg-",
            "user",
        ],
    );
    let window = &done["windows"]["windows"][0];
    let names = |kind: &str| -> Vec<_> {
        let rows = window[kind].as_array().unwrap().iter();
        rows.map(|r| r["name"].as_str().unwrap().to_owned())
            .collect()
    };
    // An address, the same address with a port, and a host name are three clients.
    assert_eq!(
        names("clients"),
        [
            "client-1", "client-2", "client-3", "client-4", "local", "other"
        ]
    );
    assert_eq!(names("exports"), ["/export-1", "/export-2", "none"]);
    assert_eq!(window["clients"][0]["called"], "name-1");
    // Kernel names stay, and a volume has the same pseudonym everywhere.
    assert_eq!(window["logs"][0]["volume"], "sda1");
    assert_eq!(window["logs"][1]["volume"], "volume-1");
    assert_eq!(window["disks"][1]["device"], "volume-1");
    let finding = &done["findings"]["active"][0]["finding"];
    assert_eq!(
        finding,
        &json!({
            "kind": "slow_disk", "severity": "critical", "share": 0.5, "summary": LEFT_OUT, "advice": [LEFT_OUT], "evidence": [],
        })
    );
    assert_eq!(done["windows"]["kernel"], "6.12.0");
    assert_eq!(window["coverage"], json!({"4.2": 1.0}));
    assert_eq!(window["findings"], json!({"slow_disk": 0.5}));
}

#[test]
fn the_demonstration_without_names_has_all_that_is_no_name() {
    let mut tape = Tape::read().unwrap();
    let minute = Duration::from_secs(60);
    let told = tape
        .recording("day", 0, minute, |at| {
            (at < 60_000).then_some(Scene::SlowLog)
        })
        .unwrap();
    let mut merger = Merger::new(told.series, |_| true);
    told.windows.iter().for_each(|w| merger.add(w));
    let whole = merger.take().unwrap();
    let live = LiveWindow::of(&whole, 60.0, [("slow_intent_log", 0.5)].into_iter())
        .naming(|address| Some(format!("{address}.corp")));
    let mut data = json!({
        "windows": Greeting::new("nfs-demo", "6.12.0"),
        "findings": {"active": [], "history": [], "last_window": evaluate(&whole, &[])},
        "probes": {"times_operations": true, "reason": "", "probes": []},
        "note": null,
    });
    data["windows"]["windows"] = json!([live]);
    let window = &data["windows"]["windows"][0];
    let rows = ["clients", "exports"].map(|kind| window[kind].as_array().unwrap().iter());
    let names = rows
        .into_iter()
        .flatten()
        .filter_map(|r| r["name"].as_str());
    let names: Vec<&str> = names
        .filter(|n| n.len() > 1 && !NOBODY.contains(n))
        .collect();
    assert!(names.len() > 1, "{names:?}");
    let done = check(&data, &[&names[..], &["nfs-demo", "corp"]].concat());
    // Every member of a window is kept, with all of its numbers.
    let anonymous = &done["windows"]["windows"][0];
    for (member, value) in window.as_object().unwrap() {
        let same_but_for_names = ["clients", "exports", "logs", "disks"].contains(&member.as_str());
        if !same_but_for_names {
            assert!(anonymous[member] == *value, "{member}");
        } else {
            let rows = |v: &Value| v.as_array().unwrap().clone();
            for (row, old) in rows(&anonymous[member]).iter().zip(rows(value)) {
                for (m, v) in old.as_object().unwrap() {
                    let is_name = ["name", "called", "volume", "device"].contains(&m.as_str());
                    assert!(is_name || row[m] == *v, "{member}: {m}");
                }
            }
        }
    }
    let diagnosis = &data["findings"]["last_window"];
    for member in diagnosis.as_object().unwrap().keys() {
        assert!(
            done["findings"]["last_window"].get(member).is_some(),
            "{member}"
        );
    }
}

/// Before OpenZFS 2.2, metrics of all pools have the volume `all`. A pool may have a name like a disk's.
#[test]
fn every_zfs_pool_has_a_pseudonym_but_all_pools_together() {
    let data = json!({"windows": {"windows": [{
        "disks": [{"device": "hdd", "op": "read"}, {"device": "sdb", "op": "read"}],
        "logs": [{"fs": "zfs", "volume": "hdd"}, {"fs": "zfs", "volume": "all"}, {"fs": "ext4", "volume": "sdc"}],
    }]}});
    let done = anonymous(&data);
    let window = &done["windows"]["windows"][0];
    let volumes = ["logs", "disks"].map(|kind| {
        let rows = window[kind].as_array().unwrap().iter();
        let name = |r: &Value| r.get("volume").or(r.get("device")).cloned();
        rows.map(|r| name(r).unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(
        json!(volumes),
        json!([["volume-1", "all", "sdc"], ["volume-1", "sdb"]])
    );
}

#[test]
fn names_of_the_kernel_are_told_from_names_of_people() {
    for device in ["sda", "sdab12", "vdb", "nvme0n1p2", "dm-3", "md127", "zd16"] {
        assert!(is_of_the_kernel(device), "{device}");
    }
    for name in [
        "",
        "alice",
        "sdalice",
        "vg-alice",
        "dm-alice",
        "nvmealice",
        "mdata",
        "sd",
        "nvme",
        "tank/home",
    ] {
        assert!(!is_of_the_kernel(name), "{name}");
    }
    for text in ["", "192.0.2.7", "/srv", "two words", "Alice", "2001:db8::7"] {
        assert!(!is_word(text), "{text}");
    }
}
