//! Capacity of simulated servers with a known limit, from recordings under several loads.

use crate::fixture::closed_network::Network;
use crate::fixture::golden;
use crate::fixture::recorder::Place;
use crate::fixture::recordings::{counting, series_set};
use crate::fixture::said;
use nfscope_baseline::capacity::{Law, Limit, Loads, capacity, render, render_several, several};
use nfscope_baseline::series::SeriesSet;
use nfscope_baseline::store::Store;
use nfscope_model::family as f;
use nfscope_stats::Scalability;
use std::process::Command;

const SERVER: Network = Network {
    clients: 64,
    threads: 8,
    think: 1.0,
    cpu: 0.1e-3,
    lock: 0.01e-3,
    commit: 8e-3,
    group: true,
};

/// Results for the server under these shares of its largest load, and that load in requests per second.
fn under(server: Network, parts: &[f64]) -> (Loads, f64) {
    let truth = Network {
        think: 1e-4,
        ..server
    }
    .rate(1, 60);
    let recordings: Vec<_> = parts
        .iter()
        .zip(2..)
        .map(|(part, seed)| {
            let load = Network {
                think: server.clients as f64 / (part * truth),
                ..server
            };
            series_set(&load.record(&format!("load-{}", seed - 1), seed, 120))
        })
        .collect();
    (several(&recordings).unwrap(), truth)
}

/// Threads and a measured log: the law of the bottleneck finds the limit from half of it.
#[test]
fn the_limit_of_threads_and_log_is_found_from_half_of_it() {
    for group in [false, true] {
        for threads in [1, 2, 4, 8, 32] {
            let server = Network {
                threads,
                group,
                ..SERVER
            };
            let (found, truth) = under(server, &[0.1, 0.2, 0.35, 0.5]);
            let limit = found.limit.unwrap();
            println!("{threads} threads, group commit {group}: {limit:.0?}, {truth:.0} in truth");
            assert!(limit.is_known(), "{threads} {group}: {limit:?}");
            assert!((limit.most / truth - 1.0).abs() < 0.1, "{threads} {group}");
        }
    }
}

/// Lock without a resource in the table: only the Universal Scalability Law sees it.
#[test]
fn a_limit_that_is_not_measured_shows_in_the_loads() {
    let server = Network {
        threads: 64,
        lock: 1e-3,
        cpu: 0.2e-3,
        commit: 0.0,
        ..SERVER
    };
    let (found, truth) = under(server, &[0.3, 0.5, 0.65, 0.8, 0.9]);
    println!("{found:?}");
    let limit = found.limit.unwrap();
    println!("{limit:?}, {truth:.0} in truth: {found:?}");
    assert!(limit.law == Law::Scalability && limit.is_known());
    assert!((limit.most / truth - 1.0).abs() < 0.1);
    let [low, high] = found.without_one.unwrap();
    assert!(low <= limit.most && limit.most <= high && high < 1.3 * low);
    assert!(found.bottleneck.first().unwrap().max_rate > 1.5 * truth);
    golden("capacity.several.txt", &render_several(&found));
}

/// Recordings of one client, which say nothing about the log with many clients. Both ends of its range are compared with the other law, and
/// the lower end is always kept.
#[test]
fn a_log_that_may_be_the_limit_is_named_beside_another_law() {
    let alone = |think: f64| Network {
        clients: 1,
        think,
        ..SERVER
    };
    let parts = [80e-3, 40e-3, 20e-3].map(alone);
    let all: Vec<_> = (parts.iter().zip(40..))
        .map(|(load, seed)| series_set(&load.record(&format!("load-{seed}"), seed, 60)))
        .collect();
    let found = several(&all).unwrap();
    let range = found.bottleneck.first().unwrap();
    let (least, most) = (range.least(), range.max_rate);
    assert!((most / least - 4.0).abs() < 0.01, "{range:?}");
    // Limit by the other law, put below, between and above both ends in place of the fitted one.
    let by_law = |max: Option<f64>| {
        let mut found = found.clone();
        found.scalability = max.map(|max| Scalability {
            one: 100.0,
            contention: 100.0 / max,
            coherency: 0.0,
            max_rate: Some(max),
            peak: None,
        });
        found.without_one = None;
        found.limit = Limit::smaller(&found.bottleneck, max);
        let limit = found.limit.unwrap();
        ([limit.least, limit.most], limit.law, render_several(&found))
    };
    let (limit, law, text) = by_law(Some(least / 2.0));
    assert_eq!((limit, law), ([least / 2.0; 2], Law::Scalability));
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(one_line(&text).contains("counts: about 62"), "{text}");
    let (limit, law, text) = by_law(Some(least * 2.0));
    assert_eq!((limit, law), ([least, least * 2.0], Law::Scalability));
    let both = "by the Universal Scalability Law, and 125 if a commit of the log of";
    assert!(one_line(&text).contains(both), "{text}");
    for (limit, law, text) in [by_law(Some(most * 2.0)), by_law(None)] {
        assert_eq!((limit, law), ([least, most], Law::Bottleneck));
        let both = "by the law of the bottleneck, and 125 if a commit of the log of";
        assert!(one_line(&text).contains(both), "{text}");
    }
}

#[test]
fn loads_that_fit_no_law_are_caveats() {
    let of = |servers: &[Network]| {
        let all: Vec<_> = servers
            .iter()
            .zip(10..)
            .map(|(s, seed)| series_set(&s.record("x", seed, 60)))
            .collect();
        several(&all).unwrap()
    };
    let at = |think, threads| Network {
        think,
        threads,
        ..SERVER
    };
    let two = of(&[at(2.0, 8), at(1.0, 8)]);
    assert_eq!(two.scalability, None);
    let caveat = |l: &Loads, part: &str| l.caveats.iter().any(|c| c.contains(part));
    assert!(caveat(&two, "needs 3 recordings"), "{:?}", two.caveats);
    assert!(!caveat(&two, "threads differs"));
    let other = of(&[at(2.0, 8), at(1.0, 16), at(0.5, 8)]);
    assert!(
        caveat(&other, "number of threads differs"),
        "{:?}",
        other.caveats
    );
    let light = of(&[at(60.0, 8), at(30.0, 8), at(15.0, 8)]);
    assert!(
        caveat(&light, "more than 2 times the highest rate"),
        "{:?}",
        light.caveats
    );
}

#[test]
fn capacity_takes_several_names() {
    let place = Place::new("loads");
    let path = place.store();
    let mut store = Store::create(&path).unwrap();
    for (i, think) in [2.0, 1.0, 0.5].into_iter().enumerate() {
        let load = Network { think, ..SERVER };
        let r = load.record(&format!("load-{i}"), 20 + i as u64, 30);
        store.put(&r).unwrap();
    }
    drop(store);
    let ask = |arguments: &[&str]| {
        let mut c = Command::new(env!("CARGO_BIN_EXE_nfscope"));
        c.arg("capacity").args(arguments).arg("--store").arg(&path);
        said(&c.output().unwrap())
    };
    let (code, out, err) = ask(&["load-2", "load-0", "load-1"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("---- the data end here ----"), "{out}");
    let at = |name: &str| out.find(name).unwrap();
    assert!(
        at("load-0") < at("load-1") && at("load-1") < at("load-2"),
        "{out}"
    );
    let (_, out, _) = ask(&["load-0", "load-1", "load-2", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["points"].as_array().unwrap().len(), 3, "{json}");
    assert!(
        json["limit"]["most"].is_f64() && json["bottleneck"]["resources"].is_array(),
        "{json}"
    );
    let (code, _, err) = ask(&["load-0", "load-0"]);
    assert!(code == 1 && err.contains("named twice"), "{err}");
    let (code, _, err) = ask(&[]);
    assert!(code != 0 && err.contains("<NAME>"), "{err}");
}

/// Single client that waits for each reply: its commits have no other request, and the recording does not show the log with many clients.
#[test]
fn a_limit_from_a_single_client_is_a_range() {
    let of = |clients: usize, think: f64| {
        let load = Network {
            clients,
            think,
            ..SERVER
        };
        let found = capacity(&series_set(&load.record("x", 30, 60))).unwrap();
        let told = found.caveats.iter().any(|c| c.contains("extrapolated"));
        (found, told)
    };
    let (found, told) = of(1, 20e-3);
    let alone = found.first().unwrap();
    assert!(alone.name.starts_with("log of") && told, "{alone:?}");
    // Range: one request, or half of 8 threads, in each commit of 8 ms.
    let least = alone.max_rate_at_least.unwrap();
    assert!((least / 125.0 - 1.0).abs() < 0.02, "{alone:?}");
    assert!((alone.max_rate / least - 4.0).abs() < 0.01, "{alone:?}");
    let load = Network {
        clients: 1,
        think: 20e-3,
        ..SERVER
    };
    let metadata = load.record("journal", 30, 1).metadata;
    golden("capacity.range.txt", &render(&found, &metadata));
    let json = serde_json::to_value(&found).unwrap();
    assert!(json["resources"][0]["max_rate_at_least"].is_f64(), "{json}");
    let (found, told) = of(64, 0.2);
    let crowd = found.first().unwrap();
    assert!(!told && crowd.max_rate_at_least.is_none(), "{crowd:?}");
}

#[test]
fn limits_from_few_windows_have_a_caveat() {
    let of = |windows: usize| capacity(&series_set(&SERVER.record("x", 31, windows))).unwrap();
    for (windows, told) in [(1, "has 1 window,"), (9, "has 9 windows,")] {
        let found = of(windows);
        assert!(found.resources.iter().all(|r| r.interval.is_none()));
        let caveat = &found.caveats[0];
        assert!(
            caveat.contains(told) && caveat.contains("record longer"),
            "{caveat}"
        );
    }
    let said = |c: &String| c.contains("record longer");
    assert!(!of(60).caveats.iter().any(said));
}

/// Recording of this server whose log is on this file system, with a device that was busy for this part of the time.
fn with_device(server: Network, seed: u64, fs: &str, busy: f64) -> SeriesSet {
    let mut r = server.record("busy", seed, 60);
    for key in &mut r.series {
        if key.labels.len() == 2 {
            key.labels[0] = fs.into();
        }
    }
    series_set(&counting(&r, &f::BLOCK_BUSY, ["nvme0n1"], |_| busy))
}

/// The log is at its limit, or nearly so. It is the first row on every file system, and a busy device beside it is not.
#[test]
fn the_first_row_is_the_resource_that_limits_the_server() {
    for (clients, threads) in [(3, 8), (8, 8), (64, 8), (64, 32)] {
        for fs in ["ext4", "xfs", "zfs"] {
            for think in [0.1e-3, 2e-3] {
                let server = Network {
                    clients,
                    threads,
                    group: false,
                    commit: 5e-3,
                    think,
                    ..SERVER
                };
                // Sequential commits with one request each, whatever the number of waiters.
                let truth = 1.0 / server.commit;
                let c = with_device(server, 50, fs, 0.99);
                let found = capacity(&c).unwrap();
                assert!(found.rate > 0.95 * truth, "{server:?}: {}", found.rate);
                let first = &found.resources[0];
                assert!(first.name.starts_with("log of"), "{server:?}: {found:?}");
                assert!((first.max_rate / truth - 1.0).abs() < 0.05, "{first:?}");
                assert_eq!(found.first(), Some(first));
                let said = |c: &String| c.contains("nvme0n1 was busy for 99 % of the time");
                assert!(found.caveats.iter().any(said), "{:?}", found.caveats);
            }
        }
    }
    // Busy device: by its utilization it ends at a ninth of the server's real limit.
    let light = Network {
        think: 1.5,
        ..SERVER
    };
    let found = capacity(&with_device(light, 51, "ext4", 0.75)).unwrap();
    let device = found.resources.last().unwrap();
    assert!(device.name.contains("nvme0n1") && device.note.is_some());
    let first = &found.resources[0];
    assert!(first.note.is_none() && device.max_rate < first.max_rate / 5.0);
    let text = render(&found, &light.record("x", 51, 1).metadata);
    assert!(
        text.contains("nvme0n1") && text.contains("may serve more than that"),
        "{text}"
    );
}

/// A limit of more than three times the observed load is marked, in the table, in the sentence and for programs.
#[test]
fn limits_far_beyond_the_data_are_marked() {
    for (part, far) in [(0.1, true), (0.25, true), (0.45, false), (0.9, false)] {
        let (found, truth) = under(SERVER, &[part]);
        let first = found.bottleneck.first().unwrap();
        assert_eq!(
            first.max_rate > 3.0 * found.bottleneck.rate,
            far,
            "{truth}: {first:?}"
        );
        assert!(first.extrapolated || !far, "{first:?}");
        let metadata = SERVER.record("x", 1, 1).metadata;
        let text = render(&found.bottleneck, &metadata);
        let row = text.lines().find(|l| l.starts_with(&first.name)).unwrap();
        assert_eq!(row.ends_with(" !"), far, "{row}");
        let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let sentence = one_line(&text).contains("times the observed rate (extrapolated)");
        assert_eq!(sentence, far, "{text}");
        let several = one_line(&render_several(&found));
        assert_eq!(
            several.contains("per second (extrapolated): then its"),
            far,
            "{several}"
        );
    }
}
