//! Claims need evidence: recordings that differ by chance, and writes that are not durable.

use crate::fixture::chance;
use crate::fixture::recorder::{Place, ask, good};
use crate::fixture::recordings::{
    DISKS, FLASH, by_the_hour, compare_all, compare_two, counting, recording, series_set, writes,
};
use crate::fixture::tale::Tale;
use crate::fixture::work::{RISK, Runs, at_risk, is_op, row, with_values, without};
use nfscope_baseline::compare::result::{Comparison, Quantity, Verdict};
use nfscope_baseline::compare::{Options, Sides, compare_sides, html, text};
use nfscope_baseline::durability::Direction;
use nfscope_baseline::recording::Recording;
use nfscope_baseline::store::Store;
use nfscope_baseline::target_metric;
use nfscope_model::family as f;
use rand::SeedableRng;
use rand::rngs::SmallRng;

const P99: Quantity = Quantity::Quantile { percent: 99 };

fn verdicts(c: &Comparison) -> usize {
    c.rows.iter().filter(|r| r.verdict.is_change()).count()
}

fn with_earlier(
    before: &Recording,
    after: &Recording,
    earlier: &[Recording],
    options: &Options,
) -> Comparison {
    let [before, after] = [before, after].map(|r| [series_set(r)]);
    let sides = Sides {
        before: &before,
        after: &after,
        earlier: &[earlier.iter().map(series_set).collect()],
    };
    compare_sides(&sides, options)
}

/// Unchanged servers whose recordings differ by 5 % get a verdict no more often than nominal, and a change by 30 % is found.
#[test]
fn differences_between_recordings_of_one_server_are_no_change() {
    let mut runs = Runs(SmallRng::seed_from_u64(8), 0);
    let tries = chance::tries(60) as usize;
    let primary = Options {
        primary: Some(target_metric::parse("write:mean").unwrap()),
        ..Options::default()
    };
    let plain = Options::default();
    let (mut wrong, mut found, mut found_first) = ([0; 3], [0; 2], [0; 2]);
    for _ in 0..tries {
        let (before, after) = (runs.some(3, 1.0), runs.some(3, 1.0));
        let earlier = runs.some(5, 1.0);
        let slower = runs.some(3, 1.3);
        let count = |c: &Comparison| usize::from(verdicts(c) > 0);
        wrong[0] += count(&compare_all(&before[..1], &after[..1], &plain));
        wrong[1] += count(&with_earlier(&before[0], &after[0], &earlier, &plain));
        wrong[2] += count(&compare_all(&before, &after, &plain));
        let worse = |c: &Comparison| {
            usize::from(row(c, is_op("write"), &Quantity::Mean).verdict == Verdict::Worse)
        };
        found[0] += worse(&with_earlier(&before[0], &slower[0], &earlier, &plain));
        found[1] += worse(&compare_all(&before, &slower, &plain));
        found_first[0] += worse(&with_earlier(&before[0], &slower[0], &earlier, &primary));
        found_first[1] += worse(&compare_all(&before, &slower, &primary));
    }
    println!(
        "of {tries} unchanged servers any verdict: one a side {}, with five earlier {}, three a side {}; a change by 30 % is found with \
         five earlier {} (first {}), three a side {} (first {})",
        wrong[0], wrong[1], wrong[2], found[0], found_first[0], found[1], found_first[1]
    );
    assert_eq!(wrong[0], 0);
    // Binomial bound: sixty comparisons with a chance of 5 % each give more than 9 verdicts once in a thousand times.
    let most = chance::most(tries as u64, 0.05) as usize;
    assert!(wrong[1] <= most && wrong[2] <= most, "{wrong:?}");
    for found in [found, found_first] {
        let enough = [found[0] * 60 >= 27 * tries, found[1] * 60 >= 54 * tries];
        assert_eq!(enough, [true; 2], "{found:?}");
    }
}

/// A comparison that is not judged is shown. Its exit code with `--fail-on` is not that of a server that is no worse.
#[test]
fn one_recording_a_side_is_shown_and_not_judged() {
    let place = Place::new("unjudged");
    let path = place.store();
    let mut store = Store::create(&path).unwrap();
    for (name, seed, log) in [
        ("before", 30, DISKS),
        ("after", 31, FLASH),
        ("slow", 32, 3.0 * DISKS),
    ] {
        store.put(&recording(name, seed, 60, &writes(log))).unwrap();
    }
    let out = good(&path, &["compare", "before", "after"]);
    assert!(
        out.starts_with("No verdict: two recordings of an unchanged server may differ"),
        "{out}"
    );
    assert!(
        out.contains("WRITE 3 p99: 14.3 ms before, 1.07 ms after (1/13)."),
        "{out}"
    );
    let one_line = out.split_whitespace().collect::<Vec<_>>().join(" ");
    let command = "compare before-1,before-2,before-3 after-1,after-2,after-3";
    assert!(one_line.contains(command), "{one_line}");
    assert!(
        !out.contains("better") && out.contains("no verdict"),
        "{out}"
    );
    for after in ["after", "slow"] {
        let (code, _, err) = ask(&path, &["compare", "before", after, "--fail-on", "worse"]);
        assert!(
            code == 6 && err.contains("undecided: nothing was judged: one recording"),
            "{code} {err}"
        );
    }
    let worse = [
        "compare",
        "before",
        "slow",
        "--between",
        "5%",
        "--fail-on",
        "worse",
    ];
    assert_eq!(ask(&path, &worse).0, 4);
    // Copies of one recording have no variance, on a side and among earlier recordings.
    for i in 0..6u64 {
        let mut copy = recording(&format!("copy-{i}"), 20, 60, &writes(DISKS));
        copy.metadata.began_ms += i as i64 * 1000;
        store.put(&copy).unwrap();
    }
    let sides = ["compare", "copy-0,copy-1,copy-2", "after", "--json"];
    for words in [&["compare", "before", "after", "--json"][..], &sides] {
        let json: serde_json::Value = serde_json::from_str(&good(&path, words)).unwrap();
        assert!(
            json["not_judged"].is_string(),
            "{words:?}: {}",
            json["caveats"]
        );
        assert!(
            json["rows"]
                .as_array()
                .unwrap()
                .iter()
                .all(|r| r["p"].is_null())
        );
    }
    // Earlier recordings without a label count, like those of the first example in the help. Recordings of another host do not.
    for i in 0..5 {
        let mut other = recording(&format!("other-{i}"), 1 + i, 60, &writes(DISKS));
        other.metadata.host = "nfs2".into();
        store.put(&other).unwrap();
    }
    let words = ["compare", "before", "slow", "--fail-on", "worse"];
    assert_eq!(ask(&path, &words).0, 6);
    for i in 0..5 {
        let log = DISKS * (1.0 + 0.02 * i as f64);
        let old = recording(&format!("old-{i}"), 10 + i, 600, &writes(log));
        store.put(&old).unwrap();
    }
    let (code, out, err) = ask(&path, &words);
    assert_eq!(code, 4, "{out}{err}");
    let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        out.contains("known from earlier ones: old-0, old-1, old-2, old-3, old-4, copy-0."),
        "{out}"
    );
    drop(store);
}

/// Earlier recordings with windows too long or too late for the compared length are left out. Recordings that follow each other directly
/// are not copies.
#[test]
fn earlier_recordings_are_those_with_windows_of_their_own() {
    let place = Place::new("earlier");
    let path = place.store();
    let mut store = Store::create(&path).unwrap();
    let began = |mut r: Recording, at: i64| {
        let by = at - r.metadata.began_ms;
        r.metadata.began_ms = at;
        r.windows.iter_mut().for_each(|w| w.began_ms += by);
        r
    };
    // Recordings of ten minutes, each of which overlaps the one before by 50 ms.
    let (first, length, delay) = (1_795_254_420_000, 600_000, 50);
    let at = |n: i64| first + n * (length - delay);
    for (name, log, n) in [("before", DISKS, 5), ("after", 3.0 * DISKS, 6)] {
        let r = recording(name, n as u64, 60, &writes(log));
        store.put(&began(r, at(n))).unwrap();
    }
    // Windows that are longer than the compared recordings, and windows that begin only after that length.
    for i in 1..=6 {
        let long = by_the_hour(&format!("long-{i}"), i, 30, 1200, |_| 5e-3);
        store.put(&began(long, at(-(60 * i as i64)))).unwrap();
        let mut late = recording(&format!("late-{i}"), i, 90, &writes(DISKS));
        late = began(late, at(-400 - 3 * i as i64));
        late.windows.iter_mut().for_each(|w| w.began_ms += length);
        store.put(&late).unwrap();
    }
    let compare = || {
        let json = good(&path, &["compare", "before", "after", "--json"]);
        serde_json::from_str::<serde_json::Value>(&json).unwrap()
    };
    assert!(compare()["not_judged"].is_string());
    for n in 0..5 {
        let log = DISKS * (1.0 + 0.02 * n as f64);
        let old = recording(&format!("old-{n}"), 10 + n as u64, 60, &writes(log));
        store.put(&began(old, at(n))).unwrap();
    }
    let c = compare();
    assert!(c["not_judged"].is_null(), "{}", c["not_judged"]);
    let method = c["method"][0].as_str().unwrap();
    let all = "earlier ones: old-0, old-1, old-2, old-3, old-4.";
    assert!(method.ends_with(all), "{method}");
}

fn first_line(c: &Comparison) -> String {
    let out = text::render(c, false);
    out.split("\n\n").next().unwrap().replace('\n', " ")
}

/// A server that stopped waiting for its disks is fast. The loss of durability comes first, whatever its reason, and nothing is called
/// better.
#[test]
fn speed_without_durability_is_not_better() {
    let before = recording("before", 1, 150, &writes(DISKS));
    let fast = recording("after", 2, 150, &writes(FLASH));
    // Number above the WRITEs of any window: all of them are at risk.
    let n = 600.0;
    let counted = [f::DURABLE_WRITES.info.name, f::UNSAFE_WRITES.info.name];
    let flushing = |r: &Recording, flushes: f64| {
        let r = counting(r, &f::BLOCK_FUA, ["sda"], |_| flushes);
        with_values(&r, &f::BLOCK_DEVICE, ["sda", "write"], 1e-3)
    };
    let tmpfs = at_risk(
        &without(&fast, &[f::OP_PHASE.info.name]),
        None,
        "no_wait",
        0.0,
    );
    let uncounted = without(&before, &counted);
    for (name, before, after, direction, said) in [
        (
            "async",
            before.clone(),
            at_risk(&fast, Some(RISK), "async", n),
            Direction::Less,
            "/run/exp is exported async",
        ),
        (
            "sync=disabled",
            before.clone(),
            at_risk(
                &fast,
                Some(["/tank/a", "sync_disabled"]),
                "sync_disabled",
                n,
            ),
            Direction::Less,
            "the dataset of /tank/a has sync=disabled",
        ),
        (
            "no wait",
            before.clone(),
            at_risk(&fast, None, "no_wait", n),
            Direction::Less,
            "wait for no log and no disk",
        ),
        // Kernel 5.10: writes are counted neither as durable nor as unsafe. Exports that are not durable are known.
        (
            "5.10",
            uncounted.clone(),
            counting(&without(&fast, &counted), &f::NOT_DURABLE, RISK, |_| 1.0),
            Direction::Less,
            "how many writes that concerns was not counted",
        ),
        (
            "no flush",
            flushing(&before, 50.0),
            flushing(&fast, 0.0),
            Direction::Less,
            "sda is never asked to flush",
        ),
        (
            "one in twenty",
            before.clone(),
            at_risk(&fast, Some(RISK), "async", n / 20.0),
            Direction::Less,
            "/run/exp is exported async",
        ),
        (
            "tmpfs",
            before.clone(),
            tmpfs,
            Direction::Unknown,
            "no write waited for a log or a disk",
        ),
        (
            "kernel",
            before.clone(),
            without(&fast, &counted),
            Direction::Unknown,
            "did not count",
        ),
    ] {
        let c = compare_two(&before, &after);
        let d = c.durability.clone().unwrap_or_else(|| panic!("{name}"));
        assert_eq!(d.direction, direction, "{name}: {d:?}");
        assert!(d.text.contains(said), "{name}: {}", d.text);
        assert!(
            first_line(&c).starts_with("Durability "),
            "{name}: {}",
            first_line(&c)
        );
        assert!(html::page(&c).contains("<strong>Durability "), "{name}");
        // Writes that a volatile cache loses are not counted: the text has no share.
        if name == "no flush" {
            assert!(d.text.starts_with("Durability may differ: after, "));
            assert!(
                !d.text.contains('%') && d.at_risk == [Some(0.0), None],
                "{d:?}"
            );
        }
        assert!(
            !c.rows.iter().any(|r| r.verdict == Verdict::Better),
            "{name}: {:?}",
            c.rows
        );
        let mean = row(&c, is_op("write"), &Quantity::Mean);
        assert_eq!(mean.verdict, Verdict::NotComparable, "{name}");
        assert!(!c.headline.contains("fell from"), "{name}: {}", c.headline);
        // Slower server: worse, although its durability has changed, too.
        let slower = compare_two(
            &after,
            &at_risk(
                &recording("s", 3, 150, &writes(3.0 * DISKS)),
                Some(RISK),
                "async",
                n,
            ),
        );
        assert_eq!(
            row(&slower, is_op("write"), &P99).verdict,
            Verdict::Worse,
            "{name}"
        );
        // Reverse comparison: the time is the price of durability.
        let back = compare_two(&after, &before);
        let mean = row(&back, is_op("write"), &Quantity::Mean);
        assert_eq!(mean.verdict, Verdict::Worse, "{name}");
        if direction == Direction::Less {
            let d = back.durability.as_ref().unwrap();
            assert_eq!(d.direction, Direction::More, "{name}");
            assert_eq!(
                d.text.contains('%'),
                name != "no flush" && name != "5.10",
                "{}",
                d.text
            );
            assert!(d.text.contains("the price of durability"), "{}", d.text);
            assert!(
                mean.why.as_ref().unwrap().contains("price of"),
                "{name}: {mean:?}"
            );
        }
    }
    // Equal durability withdraws no verdict. A comparison says if durability is not known.
    let c = compare_two(&before, &fast);
    assert!(
        c.durability.is_none() && c.caveats.is_empty(),
        "{:?}",
        c.caveats
    );
    let c = compare_two(&uncounted, &without(&fast, &counted));
    assert!(
        c.caveats[0]
            .text
            .starts_with("it is not known whether acknowledged writes were durable")
    );
    assert_eq!(row(&c, is_op("write"), &P99).verdict, Verdict::Better);
    let both = [&before, &fast].map(|r| at_risk(r, Some(RISK), "async", n));
    let c = compare_two(&both[0], &both[1]);
    assert!(
        c.durability.is_none()
            && c.caveats[0]
                .text
                .contains("on both sides: /run/exp is exported async"),
        "{:?}",
        c.caveats
    );
    // READs alone: no write can be lost.
    let reads = |name: &str, seed, log| {
        let tale = Tale {
            op: "read",
            disk: log,
            log: 0.0,
            ..writes(DISKS)
        };
        recording(name, seed, 150, &tale)
    };
    let c = compare_two(&reads("a", 4, DISKS), &reads("b", 5, FLASH));
    assert!(
        c.durability.is_none() && c.caveats.is_empty(),
        "{:?}",
        c.caveats
    );
}

/// Lost durability has exit code 5, whatever options are given.
#[test]
fn lost_durability_has_an_exit_code_of_its_own() {
    let place = Place::new("durability");
    let path = place.store();
    let mut store = Store::create(&path).unwrap();
    let safe = recording("safe", 1, 60, &writes(DISKS));
    let mut lossy = at_risk(
        &recording("lossy", 2, 60, &writes(FLASH)),
        Some(RISK),
        "async",
        600.0,
    );
    lossy.metadata.name = "lossy".into();
    store.put(&safe).unwrap();
    store.put(&lossy).unwrap();
    drop(store);
    for more in [
        &[][..],
        &["--between", "5%"],
        &["--between", "5%", "--fail-on", "worse"],
        &["--json"],
    ] {
        let (code, out, err) = ask(&path, &[&["compare", "safe", "lossy"][..], more].concat());
        assert_eq!(code, 5, "{more:?}: {err}");
        assert!(out.contains("exported async"), "{out}");
    }
    let back = ["compare", "lossy", "safe", "--between", "5%"];
    assert_eq!(ask(&path, &back).0, 0);
    assert_eq!(
        ask(&path, &[&back[..], &["--fail-on", "worse"]].concat()).0,
        4
    );
}
