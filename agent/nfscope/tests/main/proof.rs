//! No praise without proof: recordings that differ by chance, another mix of work, and writes that are not durable.

use crate::fixture::recorder::{Place, ask, good};
use crate::fixture::recordings::{
    DISKS, FLASH, by_the_hour, compare_all, compare_two, counting, metadata, recording, series_set,
    writes,
};
use crate::fixture::tale::Tale;
use nfscope_baseline::compare::result::{Comparison, Quantity, Row, Subject, Verdict};
use nfscope_baseline::compare::{Options, Sides, compare_sides, html, text};
use nfscope_baseline::durability::Direction;
use nfscope_baseline::recording::{RecordedWindow, Recording, Sample, SeriesKey};
use nfscope_baseline::store::Store;
use nfscope_baseline::target_metric;
use nfscope_model::{Histogram, Scheme, family as f};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::time::Duration;

const P99: Quantity = Quantity::Quantile { percent: 99 };

fn verdicts(c: &Comparison) -> usize {
    c.rows.iter().filter(|r| r.verdict.is_change()).count()
}

fn row<'a>(c: &'a Comparison, is: impl Fn(&Subject) -> bool, quantity: &Quantity) -> &'a Row {
    let mut rows = c.rows.iter();
    rows.find(|r| is(&r.subject) && r.quantity == *quantity)
        .unwrap_or_else(|| panic!("no {quantity:?}: {:?}", c.rows))
}

fn is_op(op: &str) -> impl Fn(&Subject) -> bool {
    move |s| matches!(s, Subject::Op { op: o, .. } if o == op)
}

fn is_requests(s: &Subject) -> bool {
    matches!(s, Subject::Requests { .. })
}

/// Recordings of one server whose means differ from run to run by 5 % (standard deviation).
struct Runs(SmallRng, u64);

impl Runs {
    fn next(&mut self, slower: f64) -> Recording {
        // A sum of twelve uniform variables is close to a normal one.
        let z: f64 = (0..12).map(|_| self.0.random_range(-0.5..0.5)).sum();
        self.1 += 1;
        by_the_hour("run", self.1, 60, 10, move |_| {
            5e-3 * slower * (0.05 * z).exp()
        })
    }

    fn some(&mut self, n: usize, slower: f64) -> Vec<Recording> {
        (0..n).map(|_| self.next(slower)).collect()
    }
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

/// Comparisons of an unchanged server whose recordings differ by 5 % have a verdict no more often than nominal. A change by 30 % is found.
#[test]
fn differences_between_recordings_are_no_change() {
    let mut runs = Runs(SmallRng::seed_from_u64(8), 0);
    let tries = 60;
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
    // Sixty comparisons with a chance of 5 % each give more than 9 verdicts once in a thousand times.
    assert!(wrong[1] <= 9 && wrong[2] <= 9, "{wrong:?}");
    assert!(
        found_first[0] >= 27 && found_first[1] >= 54,
        "{found_first:?}"
    );
}

/// A comparison that is not judged is shown, and a script does not take the server for one that is no worse.
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
        out.starts_with("Not judged: one recording on each side"),
        "{out}"
    );
    assert!(
        out.contains("WRITE 3 p99: 14.3 ms before, 1.07 ms after (1/13)."),
        "{out}"
    );
    let one_line = out.split_whitespace().collect::<Vec<_>>().join(" ");
    let command = "nfscope baseline compare before,before-2,before-3 after,after-2,after-3";
    assert!(one_line.contains(command), "{one_line}");
    assert!(
        !out.contains("better") && out.contains("not judged"),
        "{out}"
    );
    for after in ["after", "slow"] {
        let (code, _, err) = ask(&path, &["compare", "before", after, "--fail-on", "worse"]);
        assert!(
            code == 1 && err.contains("nothing was judged: one recording"),
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
    // Copies of one recording differ by nothing, on a side and among earlier ones.
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
    // Earlier ones without a label count, as those of the first example of the help have none. Another host's do not.
    for i in 0..5 {
        let mut other = recording(&format!("other-{i}"), 1 + i, 60, &writes(DISKS));
        other.metadata.host = "nfs2".into();
        store.put(&other).unwrap();
    }
    let words = ["compare", "before", "slow", "--fail-on", "worse"];
    assert_eq!(ask(&path, &words).0, 1);
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

/// Earlier recordings that cannot tell of as short a time are left out, and those that follow each other at once are not copies.
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
    // Ten minutes each, and so many milliseconds that each has in common with the one before.
    let (first, length, delay) = (1_795_254_420_000, 600_000, 50);
    let at = |n: i64| first + n * (length - delay);
    for (name, log, n) in [("before", DISKS, 5), ("after", 3.0 * DISKS, 6)] {
        let r = recording(name, n as u64, 60, &writes(log));
        store.put(&began(r, at(n))).unwrap();
    }
    // Windows that are longer than the compared recordings, and windows that begin after as long a time.
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

const RISK: [&str; 2] = ["/run/exp", "async"];

/// Returns a recording whose writes that clients take for durable are all acknowledged too early, for this reason.
fn at_risk(r: &Recording, export: Option<[&str; 2]>, reason: &'static str, each: f64) -> Recording {
    let r = counting(r, &f::UNSAFE_WRITES, [reason], |_| each);
    match export {
        Some(labels) => counting(&r, &f::NOT_DURABLE, labels, |_| 1.0),
        None => r,
    }
}

/// Returns a recording without the series of these families.
fn without(r: &Recording, names: &[&str]) -> Recording {
    let mut r = r.clone();
    r.series.retain(|k| !names.contains(&&*k.family));
    let ids: Vec<u32> = r.series.iter().map(|k| k.id).collect();
    for w in &mut r.windows {
        w.samples.retain(|(id, _)| ids.contains(id));
    }
    r
}

fn first_line(c: &Comparison) -> String {
    let out = text::render(c, false);
    out.split("\n\n").next().unwrap().replace('\n', " ")
}

/// A server that stopped to wait for its disks is fast. Whatever the reason, it comes first, and nothing is praised.
#[test]
fn speed_without_durability_is_not_better() {
    let before = recording("before", 1, 150, &writes(DISKS));
    let fast = recording("after", 2, 150, &writes(FLASH));
    // More than any window has: all of them.
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
        // The raw build counts neither; exports are known all the same.
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
        // Nobody counts the writes that a cache loses.
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
        // A slower server is worse, although its durability has changed, too.
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
        // The other way round, the time is the price of it.
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
                mean.why.as_ref().unwrap().contains("its price"),
                "{name}: {mean:?}"
            );
        }
    }
    // Equal durability withdraws no verdict, and the comparison says if durability is not known.
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
    // Reads alone lose nothing.
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

/// Adds 100 values of a histogram to each window.
fn with_values<const N: usize>(
    r: &Recording,
    family: &nfscope_model::Family<N>,
    labels: [&str; N],
    value: f64,
) -> Recording {
    let nfscope_model::Kind::Histogram(scheme) = family.info.kind else {
        panic!("{} is no histogram", family.info.name);
    };
    let mut all = r.clone();
    let id = all.series.iter().map(|k| k.id).max().unwrap() + 1;
    all.series.push(SeriesKey {
        id,
        family: family.info.name.into(),
        labels: labels.map(str::to_owned).to_vec(),
    });
    let mut h = Histogram::new(scheme);
    h.counts[scheme.bucket(value)] = 100;
    h.sum = 100.0 * value;
    let sample = Sample::from(&nfscope_model::Sample::Histogram(h));
    for w in &mut all.windows {
        w.samples.push((id, sample.clone()));
    }
    all
}

/// The exit code is one of its own, whatever else is asked.
#[test]
fn scripts_learn_that_durability_is_lost() {
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

/// A kind of operation in each window: version, name, number, mean seconds, and seconds of these in the log.
type Part = (&'static str, &'static str, f64, f64, f64);

/// Windows of these operations, each of which is a request of its own, but for those without any.
fn mixed(name: &str, seed: u64, parts: &[Part]) -> Recording {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut series = Vec::new();
    let mut key = |family: &str, labels: &[&str]| -> u32 {
        let labels: Vec<String> = labels.iter().map(|l| (*l).to_owned()).collect();
        let at = series
            .iter()
            .position(|k: &SeriesKey| k.family == family && k.labels == labels);
        at.unwrap_or_else(|| {
            let id = series.len() as u32;
            series.push(SeriesKey {
                id,
                family: family.into(),
                labels,
            });
            series.len() - 1
        }) as u32
    };
    let began_ms = 1_795_254_420_000 + seed as i64 * 604_800_000;
    let mut windows = Vec::new();
    for n in 0..120 {
        let mut all: std::collections::BTreeMap<u32, Histogram> = Default::default();
        let mut numbers = Vec::new();
        for (version, op, count, mean, log) in parts {
            let noise = 1.0 + random.random_range(-0.1..0.1);
            let count = (count * (1.0 + random.random_range(-0.1..0.1))).round() as u64;
            let mut h = Histogram::new(Scheme::TIME);
            for i in 0..20u64 {
                let v = mean * noise * f64::exp(0.8 * (i as f64 / 19.0 - 0.5));
                let n = (i + 1) * count / 20 - i * count / 20;
                h.counts[Scheme::TIME.bucket(v)] += n;
                h.sum += n as f64 * v;
            }
            let mut add = |id: u32, h: &Histogram| {
                let of = all
                    .entry(id)
                    .or_insert_with(|| Histogram::new(Scheme::TIME));
                of.merge(h);
            };
            add(key(f::OP_DURATION.info.name, &[version, op]), &h);
            add(key(f::RPC_DURATION.info.name, &[version]), &h);
            if *log > 0.0 {
                let mut wait = Histogram::new(Scheme::TIME);
                wait.counts[Scheme::TIME.bucket(log * noise)] += count;
                wait.sum = count as f64 * log * noise;
                add(key(f::LOG_WAIT.info.name, &["ext4", "sda"]), &wait);
                numbers.push((key(f::OP_PHASE.info.name, &[version, op, "log"]), wait.sum));
            }
        }
        let histograms = all.into_iter();
        let mut samples: Vec<_> = histograms
            .map(|(id, h)| (id, Sample::from(&nfscope_model::Sample::Histogram(h))))
            .collect();
        samples.extend(numbers.into_iter().map(|(id, n)| (id, Sample::Counter(n))));
        windows.push(RecordedWindow {
            began_ms: began_ms + n * 10_000,
            length: Duration::from_secs(10),
            samples,
        });
    }
    Recording {
        metadata: metadata(name, began_ms, 10),
        series,
        windows,
    }
}

/// WRITEs of 10 ms among READs of 0.3 ms: this share of them, this factor slower.
fn share(seed: u64, share: f64, slower: f64) -> Recording {
    let n = 5000.0;
    mixed(
        "mixed",
        seed,
        &[
            ("3", "write", n * share, 10e-3 * slower, 0.0),
            ("3", "read", n * (1.0 - share), 0.3e-3 * slower, 0.0),
        ],
    )
}

/// No operation became slower, and the total of all did: that is another mix, and no verdict.
#[test]
fn a_total_is_not_worse_where_only_the_mix_changed() {
    for (a, b) in [(0.03, 0.1), (0.1, 0.03), (0.005, 0.02), (0.3, 0.6)] {
        let c = compare_two(&share(1, a, 1.0), &share(2, b, 1.0));
        for r in &c.rows {
            let judged = matches!(r.verdict, Verdict::Better | Verdict::Worse);
            assert!(!judged, "{a} {b}: {r:?}");
        }
        let mean = row(&c, is_requests, &Quantity::Mean);
        assert_eq!(mean.verdict, Verdict::NotComparable, "{a} {b}: {mean:?}");
        assert!(
            mean.why.as_ref().unwrap().starts_with("the mix changed: "),
            "{mean:?}"
        );
        assert!(c.headline.contains("The mix changed: "), "{}", c.headline);
        assert!(!c.headline.contains("Requests"), "{}", c.headline);
    }
    let c = compare_two(&share(1, 0.03, 1.0), &share(2, 0.1, 1.0));
    let said = "WRITE 3 was 3.0 % of the operations before, 10.0 % after";
    assert!(c.headline.contains(said), "{}", c.headline);
    // A slower server is found if the mix is the same, and if it is slower by more than the mix explains.
    let c = compare_two(&share(3, 0.03, 1.0), &share(4, 0.03, 2.0));
    assert_eq!(
        row(&c, is_requests, &Quantity::Mean).verdict,
        Verdict::Worse
    );
    assert_eq!(row(&c, is_requests, &P99).verdict, Verdict::Worse);
    let c = compare_two(&share(5, 0.03, 1.0), &share(6, 0.1, 3.0));
    assert_eq!(
        row(&c, is_requests, &Quantity::Mean).verdict,
        Verdict::Worse
    );
    assert_eq!(row(&c, is_op("write"), &P99).verdict, Verdict::Worse);
}

/// Waits for a log are a total over operations, too; so are the operations of a COMPOUND, the sizes of READs, and stabilities.
#[test]
fn other_totals_follow_their_mix_as_well() {
    let logs = |seed, commits: f64| {
        let parts = [
            ("3", "commit", commits, 20e-3, 19e-3),
            ("3", "create", 1000.0 - commits, 2e-3, 1.5e-3),
        ];
        mixed("logs", seed, &parts)
    };
    let c = compare_two(&logs(1, 50.0), &logs(2, 150.0));
    let is_log = |s: &Subject| matches!(s, Subject::Log { .. });
    for quantity in [&Quantity::Mean, &P99] {
        let r = row(&c, is_log, quantity);
        assert!(
            !matches!(r.verdict, Verdict::Worse | Verdict::Better),
            "{r:?}"
        );
    }
    assert_eq!(
        row(&c, is_log, &Quantity::Mean).verdict,
        Verdict::NotComparable
    );
    let sized = |seed, bytes: f64, log: f64| {
        let tale = Tale {
            op: "read",
            bytes,
            disk: log,
            log: 0.0,
            ..writes(DISKS)
        };
        recording("reads", seed, 150, &tale)
    };
    let c = compare_two(&sized(1, 4096.0, 2e-3), &sized(2, 65536.0, 6e-3));
    let mean = row(&c, is_op("read"), &Quantity::Mean);
    assert_eq!(mean.verdict, Verdict::NotComparable, "{mean:?}");
    assert!(
        mean.why
            .as_ref()
            .unwrap()
            .contains("mean size of READs changed")
    );
    assert_eq!(
        row(&c, is_requests, &Quantity::Mean).verdict,
        Verdict::NotComparable
    );
    // Smaller READs that take three times as long are slower whatever their size explains.
    let c = compare_two(&sized(3, 65536.0, 2e-3), &sized(4, 4096.0, 6e-3));
    assert_eq!(
        row(&c, is_op("read"), &Quantity::Mean).verdict,
        Verdict::Worse
    );
    let stability = |seed, how, log| {
        let tale = Tale {
            stability: how,
            ..writes(log)
        };
        recording("writes", seed, 150, &tale)
    };
    let c = compare_two(
        &stability(1, "unstable", FLASH),
        &stability(2, "file_sync", DISKS),
    );
    let mean = row(&c, is_op("write"), &Quantity::Mean);
    assert_eq!(mean.verdict, Verdict::NotComparable, "{mean:?}");
    assert!(
        mean.why
            .as_ref()
            .unwrap()
            .contains("stability of WRITEs changed"),
        "{mean:?}"
    );
}

/// Requests of larger READs and of smaller WRITEs are other work, whichever of both comes last.
#[test]
fn every_operation_explains_its_part_of_a_request() {
    let of = |seed, name: [&'static str; 2], sizes: [f64; 2], times: [f64; 2]| {
        let parts = [0, 1].map(|i| ("3", name[i], 500.0, times[i], 0.0));
        let r = mixed("sizes", seed, &parts);
        let r = with_values(&r, &f::IO_SIZE, ["3", name[0]], sizes[0]);
        with_values(&r, &f::IO_SIZE, ["3", name[1]], sizes[1])
    };
    for (grows, other) in [("read", "write"), ("write", "read")] {
        let c = compare_two(
            &of(1, [grows, other], [4096.0, 65536.0], [1e-3, 4e-3]),
            &of(2, [grows, other], [65536.0, 4096.0], [3e-3, 4e-3]),
        );
        for quantity in [&Quantity::Mean, &Quantity::Quantile { percent: 50 }] {
            let r = row(&c, is_requests, quantity);
            assert_eq!(r.verdict, Verdict::NotComparable, "{grows}: {r:?}");
            let why = r.why.as_ref().unwrap();
            assert!(why.contains("READs") && why.contains("WRITEs"), "{why}");
        }
    }
    // A server that became slower by more than any size explains is found.
    let names = ["read", "write"];
    let c = compare_two(
        &of(3, names, [4096.0, 4096.0], [1e-3, 4e-3]),
        &of(4, names, [8192.0, 2048.0], [5e-3, 20e-3]),
    );
    let mean = row(&c, is_requests, &Quantity::Mean);
    assert_eq!(mean.verdict, Verdict::Worse, "{mean:?}");
}
