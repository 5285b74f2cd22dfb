//! Differences that make two sides incomparable come before any latency, in every form of the report.

use crate::fixture::recorder::{Place, ask, good};
use crate::fixture::recordings::{
    DISKS, FLASH, by_the_hour, compare_all, compare_two, counting, recording, runs, writes,
};
use crate::fixture::tale::Tale;
use crate::fixture::work::{RISK, at_risk, is_op, row, with_values, without};
use nfscope_baseline::compare::result::{Comparison, Quantity, Verdict};
use nfscope_baseline::compare::{Options, html, text};
use nfscope_baseline::durability::Direction;
use nfscope_baseline::recording::Recording;
use nfscope_baseline::store::Store;
use nfscope_model::family as f;
use std::path::Path;

/// Number above the WRITEs of any window: all of them are at risk.
const ALL: f64 = 600.0;

fn lossy(name: &str, seed: u64, log: f64) -> Recording {
    let r = recording(name, seed, 60, &writes(log));
    at_risk(&r, Some(RISK), "async", ALL)
}

/// Report in every form: for the terminal, as JSON, and as a page.
fn reports(c: &Comparison) -> [String; 3] {
    [
        text::render(c, false),
        serde_json::to_string(c).unwrap(),
        html::page(c),
    ]
}

/// Export that became async, dataset with sync=disabled, or durability that is not known: no report has the word "better", for any number
/// of recordings.
#[test]
fn no_report_of_a_less_durable_side_has_the_word_better() {
    let safe: Vec<_> = (1..4)
        .map(|i| recording("safe", i, 60, &writes(DISKS)))
        .collect();
    let zfs = |i| {
        let r = recording("fast", i, 60, &writes(FLASH));
        let labels = ["/tank/a", "sync_disabled"];
        at_risk(&r, Some(labels), "sync_disabled", ALL)
    };
    let unknown = |i| {
        let counted = [f::DURABLE_WRITES.info.name, f::UNSAFE_WRITES.info.name];
        without(&recording("fast", i, 60, &writes(FLASH)), &counted)
    };
    let of = |make: &dyn Fn(u64) -> Recording| (4..7).map(make).collect::<Vec<_>>();
    for (after, direction) in [
        (of(&|i| lossy("fast", i, FLASH)), Direction::Less),
        (of(&zfs), Direction::Less),
        (of(&unknown), Direction::Unknown),
    ] {
        let options = Options::default();
        for c in [
            compare_two(&safe[0], &after[0]),
            compare_all(&safe[..1], &after[..1], &options),
            compare_all(&safe, &after, &options),
        ] {
            assert_eq!(c.durability.as_ref().unwrap().direction, direction);
            assert!(c.headline.starts_with("Durability "), "{}", c.headline);
            for report in reports(&c) {
                let at = report.to_lowercase().find("better");
                let near = at.map(|at| report[at.saturating_sub(60)..].chars().take(120));
                assert_eq!(near.map(String::from_iter), None);
            }
        }
    }
}

/// A server that became durable waits for its log. The headline calls that the price of durability.
#[test]
fn time_that_durable_writes_wait_is_the_price_of_durability() {
    let before: Vec<_> = (1..4).map(|i| lossy("fast", i, FLASH)).collect();
    let after: Vec<_> = (4..7)
        .map(|i| recording("safe", i, 60, &writes(DISKS)))
        .collect();
    let c = compare_all(&before, &after, &Options::default());
    let price = "The price of durability: WRITE 3 p99 rose from";
    assert!(c.headline.contains(price), "{}", c.headline);
    let mean = row(&c, is_op("write"), &Quantity::Mean);
    assert_eq!(mean.verdict, Verdict::Worse);
    // Slower CPU: not the price of durability.
    let busy = |seed| {
        let tale = Tale {
            cpu: 12e-3,
            ..writes(FLASH)
        };
        recording("busy", seed, 60, &tale)
    };
    let after: Vec<_> = (4..7).map(busy).collect();
    let c = compare_all(&before, &after, &Options::default());
    assert!(c.headline.contains("WRITE 3 p99 rose from"));
    assert!(
        !c.headline.contains("price of durability: "),
        "{}",
        c.headline
    );
    let mean = row(&c, is_op("write"), &Quantity::Mean);
    assert_eq!(mean.why, None);
}

/// Write cache that is no longer flushed: on the same disk, or on another disk, which may have no cache.
#[test]
fn a_write_cache_that_is_hardly_ever_flushed_is_no_progress() {
    let of = |first: u64, log: f64, device: &'static str, every: usize, flushes: f64| {
        let make = move |i| {
            let r = recording("run", i, 60, &writes(log));
            let r = with_values(&r, &f::BLOCK_DEVICE, [device, "write"], 1e-3);
            let each = |n: usize| {
                if n.is_multiple_of(every) {
                    flushes
                } else {
                    0.0
                }
            };
            counting(&r, &f::BLOCK_FUA, [device], each)
        };
        (first..first + 3).map(make).collect::<Vec<Recording>>()
    };
    let before = of(1, DISKS, "sda", 1, 300.0);
    let c = compare_all(&before, &of(4, FLASH, "sda", 20, 1.0), &Options::default());
    let durability = c.durability.as_ref().unwrap();
    assert_eq!(durability.direction, Direction::Less);
    let said = "after, sda is hardly ever asked to flush its write cache";
    assert!(c.headline.contains(said), "{}", c.headline);
    assert!(c.rows.iter().all(|r| r.verdict != Verdict::Better));
    // Flushes of the same log with ten times as many writes each: still durable.
    let c = compare_all(&before, &of(4, FLASH, "sda", 1, 30.0), &Options::default());
    let mean = row(&c, is_op("write"), &Quantity::Mean);
    assert_eq!(
        (c.durability.is_none(), mean.verdict),
        (true, Verdict::Better)
    );
    // Other device: it may have no write cache, and the first sentence says to check that.
    for (every, flushes) in [(1, 0.0), (20, 1.0)] {
        let after = of(4, FLASH, "nvme0n1", every, flushes);
        let c = compare_all(&before, &after, &Options::default());
        let said = "After, writes go to nvme0n1, and hardly one is followed by a flush of a write cache, as on sda before.";
        assert!(c.headline.starts_with(said), "{}", c.headline);
        assert_eq!(c.caveats[0].kind, "write_cache");
        // Reverse order: writes went to such a device before.
        let (flash, disks) = (
            of(1, FLASH, "nvme0n1", every, flushes),
            of(4, DISKS, "sda", 1, 300.0),
        );
        let c = compare_all(&flash, &disks, &Options::default());
        let said = "Before, writes go to nvme0n1, and hardly one is followed by a flush of a write cache, as on sda after.";
        assert!(c.headline.starts_with(said), "{}", c.headline);
        assert_eq!(c.caveats[0].kind, "write_cache");
    }
    let c = compare_all(
        &before,
        &of(4, FLASH, "nvme0n1", 1, 300.0),
        &Options::default(),
    );
    assert!(c.caveats.iter().all(|w| w.kind != "write_cache"));
}

/// A warm-up, or a steady slowdown, on one side alone does not make a server slower. The same on both sides is not an objection.
#[test]
fn a_trend_on_one_side_alone_is_no_verdict() {
    let of = |first: u64, level: &dyn Fn(f64) -> f64| {
        // Window number from the hour: windows are ten seconds long.
        let each = (first..first + 3)
            .map(|i| by_the_hour("run", i, 180, 10, |hour| 5e-3 * level(hour * 360.0)));
        each.collect::<Vec<_>>()
    };
    let steady = |_: f64| 1.0;
    let warm = |window: f64| if window < 40.0 { 3.0 } else { 1.0 };
    let slowly_warm = |window: f64| 1.0 + 2.0 * (-window / 20.0).exp();
    let ramp = |window: f64| 1.0 + window / 180.0;
    let step = |window: f64| if window < 90.0 { 2.0 } else { 1.0 };
    let cases: [(&dyn Fn(f64) -> f64, &str); 4] = [
        (&warm, "a warm-up"),
        (&slowly_warm, "a step"),
        (&ramp, "a ramp"),
        (&step, "a step"),
    ];
    for (level, what) in cases {
        for (before, after, side) in [
            (of(1, &steady), of(4, level), "after"),
            (of(1, level), of(4, &steady), "before"),
        ] {
            let c = compare_all(&before, &after, &Options::default());
            assert!(
                c.rows.iter().all(|r| !r.verdict.is_change()),
                "{what}: {:?}",
                c.rows
            );
            let told = c.rows.iter().filter_map(|r| r.why.as_ref());
            let said = format!("{side} alone it has {what}");
            assert!(
                told.clone().any(|why| why.starts_with(&said)),
                "{said}: {:?}",
                c.rows
            );
            let sentence = c.headline.to_lowercase();
            assert!(
                sentence.contains("warm-up") || sentence.contains("mean latency of write 3"),
                "{sentence}"
            );
        }
        // Warm-up on both sides: a server that is eight times as slow is found.
        let slower = |window: f64| 8.0 * level(window);
        let c = compare_all(&of(1, level), &of(4, &slower), &Options::default());
        let mean = row(&c, is_op("write"), &Quantity::Mean);
        assert_eq!(mean.verdict, Verdict::Worse, "{what}: {mean:?}");
    }
}

/// Recordings of less than a minute have too few windows, and the headline says so.
#[test]
fn a_quantity_that_cannot_be_compared_has_a_reason() {
    let of = |first: u64, windows| {
        let each = (first..first + 3).map(|i| recording("run", i, windows, &writes(DISKS)));
        each.collect::<Vec<_>>()
    };
    let c = compare_all(&of(1, 60), &of(4, 5), &Options::default());
    let said = "Not comparable: WRITE 3 (too few values after: at least 10 windows are needed";
    assert!(c.headline.contains(said), "{}", c.headline);
}

/// Recordings before, constructor of a recording after, and the difference that is reported.
type Case<'a> = (&'a [Recording], &'a dyn Fn(u64) -> Recording, &'a str);

/// Differences other than the server are in the first sentence, before the latency.
#[test]
fn differences_of_the_work_come_before_any_latency() {
    let before: Vec<_> = (1..4)
        .map(|i| recording("before", i, 60, &writes(DISKS)))
        .collect();
    let faster = |i| recording("after", i, 60, &writes(FLASH));
    let other_kernel = |i| {
        let mut r: Recording = faster(i);
        r.metadata.kernel = Some("7.2.0".into());
        r
    };
    let other_clients = |i| {
        let r = counting(&faster(i), &f::CLIENT_OPS, ["192.0.2.7"], |_| 0.0);
        counting(&r, &f::CLIENT_OPS, ["192.0.2.99"], |_| 400.0)
    };
    let partly_timed = |i| {
        let r = counting(&faster(i), &f::KERNEL_OPS, ["3"], |_| 500.0);
        counting(&r, &f::TIMED_OPS, ["3"], |_| 400.0)
    };
    let half_stable = |i| {
        let r = counting(&faster(i), &f::WRITE, ["3", "file_sync"], |_| 300.0);
        counting(&r, &f::WRITE, ["3", "unstable"], |_| 200.0)
    };
    let larger = |i| with_values(&faster(i), &f::IO_SIZE, ["3", "write"], 65536.0);
    let before_sized: Vec<_> = before
        .iter()
        .map(|r| with_values(r, &f::IO_SIZE, ["3", "write"], 4096.0))
        .collect();
    let cases: [Case; 5] = [
        (&before, &other_kernel, "the kernel differs"),
        (
            &before,
            &other_clients,
            "of the load moved to other clients",
        ),
        (
            &before,
            &partly_timed,
            "80.0 % of NFSv3 operations were timed",
        ),
        (&before, &half_stable, "the stability of WRITEs changed"),
        (&before_sized, &larger, "the mean size of WRITEs changed"),
    ];
    for (before, after, said) in cases {
        let after: Vec<_> = (4..7).map(after).collect();
        let c = compare_all(before, &after, &Options::default());
        let headline = c.headline.to_lowercase();
        let at = headline.find(&said.to_lowercase());
        let at = at.unwrap_or_else(|| panic!("{said}: {headline}"));
        for latency in [" fell from", " rose from", "no evidence"] {
            let latency = headline.find(latency).unwrap_or(usize::MAX);
            assert!(at < latency, "{said}: {headline}");
        }
    }
    // Failures are in the table before latencies.
    let failing = |i| crate::fixture::recordings::failing(&faster(i), 0.4);
    let after: Vec<_> = (4..7).map(failing).collect();
    let c = compare_all(&before, &after, &Options::default());
    let out = text::render(&c, false);
    let table = out.find("QUANTITY").unwrap();
    let failures = out[table..].find("Failures of WRITE 3").unwrap();
    assert!(failures < out[table..].find("mean").unwrap(), "{out}");
    // Equal work: no sentence about it.
    let after: Vec<_> = (4..7).map(faster).collect();
    let c = compare_all(&before, &after, &Options::default());
    assert!(c.headline.starts_with("WRITE 3 p99 fell"), "{}", c.headline);
}

/// Export that became async: without a counter of its writes their number is not known. With a counter the report may say that there were
/// few.
#[test]
fn writes_that_were_not_counted_are_not_said_to_be_few() {
    let before: Vec<_> = (1..4)
        .map(|i| recording("safe", i, 60, &writes(DISKS)))
        .collect();
    let fast = |i| recording("fast", i, 60, &writes(FLASH));
    let early = |r: &Recording| counting(r, &f::NOT_DURABLE, RISK, |_| 1.0);
    let counted = |r: &Recording| counting(r, &f::UNSAFE_WRITES, ["async"], |_| 0.0);
    // Agent that counted a fifth of the stable WRITEs by their exports.
    let part = |i| {
        counting(&counted(&early(&fast(i))), &f::DURABLE_WRITES, [], |_| {
            100.0
        })
    };
    let no_counter = |i| early(&fast(i));
    let untimed = |i| {
        let names = [f::OP_DURATION.info.name, f::DURABLE_WRITES.info.name];
        without(&no_counter(i), &names)
    };
    let few = |i| counted(&early(&fast(i)));
    let of = |make: &dyn Fn(u64) -> Recording| {
        let after: Vec<_> = (4..7).map(make).collect();
        compare_all(&before, &after, &Options::default())
    };
    for c in [of(&part), of(&no_counter), of(&untimed)] {
        assert!(
            c.headline.starts_with("Durability differs: after, "),
            "{}",
            c.headline
        );
        let said = "/run/exp is exported async: how many writes that concerns was not counted";
        assert!(c.headline.contains(said), "{}", c.headline);
        for report in reports(&c) {
            assert!(!report.contains("hardly a write"), "{report}");
            assert!(!report.contains(" better"), "{report}");
        }
    }
    let c = of(&few);
    let said = "after, /run/exp is exported async; hardly a write went there";
    assert!(c.caveats.iter().any(|w| w.text == said), "{:?}", c.caveats);
}

fn put(path: &Path, all: impl IntoIterator<Item = Recording>) {
    let mut store = Store::create(path).unwrap();
    for r in all {
        store.put(&r).unwrap();
    }
}

/// Less durable writes have exit code 5, and the help has it.
#[test]
fn the_help_has_the_exit_code_of_lost_durability() {
    let place = Place::new("comparable");
    let path = place.store();
    let mut safe = runs("safe", 1, 3, 0.02, DISKS);
    safe.extend((4..7).map(|i| lossy(&format!("fast-{i}"), i, FLASH)));
    put(&path, safe);
    let sides = ["compare", "safe-0,safe-1,safe-2", "fast-4,fast-5,fast-6"];
    let (code, out, err) = ask(&path, &sides);
    assert_eq!(code, 5, "{out}{err}");
    assert!(out.starts_with("Durability differs: after, /run/exp is exported async"));
    assert!(!out.contains("better"), "{out}");
    let help = good(&path, &["compare", "--help"]);
    assert!(help.contains("\n  5   compared; acknowledged writes are less durable"));
}
