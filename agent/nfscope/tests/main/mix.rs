//! Comparisons of totals with another mix of operations, of READs with other sizes, and of WRITEs with other stabilities.

use crate::fixture::recordings::{
    DISKS, FLASH, compare_all, compare_two, counting, recording, writes,
};
use crate::fixture::tale::Tale;
use crate::fixture::work::{is_op, is_requests, mixed, row, share, with_values};
use nfscope_baseline::compare::result::{Comparison, Quantity, Subject, Verdict};
use nfscope_baseline::compare::{Options, text};
use nfscope_model::family as f;

const P99: Quantity = Quantity::Quantile { percent: 99 };

/// No operation became slower, and the total of all did: the mix is another one, and there is no verdict.
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
    // Slower server: found if the mix is the same, and if it is slower by more than the mix explains.
    let c = compare_two(&share(3, 0.03, 1.0), &share(4, 0.03, 2.0));
    assert_eq!(
        row(&c, is_requests, &Quantity::Mean).verdict,
        Verdict::Worse
    );
    assert_eq!(row(&c, is_requests, &P99).verdict, Verdict::Worse);
    let c = compare_two(&share(5, 0.03, 1.0), &share(6, 0.1, 3.0));
    assert_eq!(
        row(&c, is_requests, &Quantity::MeanAtOneMix).verdict,
        Verdict::Worse
    );
    assert_eq!(row(&c, is_op("write"), &P99).verdict, Verdict::Worse);
}

/// Waits for a log are a total over operations, too. Sizes of READs and stabilities of WRITEs are a mix as well.
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
    // Smaller READs that take three times as long are slower, whatever their size explains.
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
    // Slower server by more than any size explains: found.
    let names = ["read", "write"];
    let c = compare_two(
        &of(3, names, [4096.0, 4096.0], [1e-3, 4e-3]),
        &of(4, names, [8192.0, 2048.0], [5e-3, 20e-3]),
    );
    let mean = row(&c, is_requests, &Quantity::Mean);
    assert_eq!(mean.verdict, Verdict::Worse, "{mean:?}");
}

fn rows<'a>(c: &'a serde_json::Value, of: &str, what: &str) -> Vec<&'a serde_json::Value> {
    let all = c["rows"].as_array().unwrap().iter();
    all.filter(|r| r["of"] == of && r["what"] == what).collect()
}

fn three(seed: u64, part: f64, slower: f64) -> Vec<nfscope_baseline::recording::Recording> {
    (0..3).map(|i| share(seed + i, part, slower)).collect()
}

/// WRITEs grow from 3 to 10 % of the operations, and both latencies stay: one recording a side, and three.
#[test]
fn a_total_is_shown_at_one_mix_as_well() {
    let (before, after) = (three(1, 0.03, 1.0), three(11, 0.1, 1.0));
    for n in [1, 3] {
        let c = compare_all(&before[..n], &after[..n], &Options::default());
        let caveats: Vec<_> = c.caveats.iter().map(|w| w.kind).collect();
        assert!(caveats.contains(&"mix"), "{n}: {:?}", c.caveats);
        let json = serde_json::to_value(&c).unwrap();
        let raw = rows(&json, "requests", "mean")[0];
        let value = raw["ratio"]["value"].as_f64().unwrap();
        assert!((1.8..2.6).contains(&value), "{raw}");
        assert_eq!(raw["verdict"], "not_comparable", "{n}: {raw}");
        let one = rows(&json, "requests", "mean_at_one_mix")[0];
        let value = one["ratio"]["value"].as_f64().unwrap();
        assert!((0.95..1.05).contains(&value), "{one}");
        let verdict = one["verdict"].as_str().unwrap();
        assert!(verdict != "worse" && verdict != "better", "{one}");
        // Table: it has both figures, one below the other.
        let out = text::render(&c, false);
        assert!(out.contains("  mean at one mix "), "{out}");
    }
    // Server that is slower by 30 % with another mix: found, and its total has no verdict of its own.
    let slower = three(21, 0.1, 1.3);
    let c = compare_all(&before, &slower, &Options::default());
    let json = serde_json::to_value(&c).unwrap();
    let one = rows(&json, "requests", "mean_at_one_mix")[0];
    assert_eq!(one["verdict"], "worse", "{one}");
    let value = one["ratio"]["value"].as_f64().unwrap();
    assert!((1.2..1.4).contains(&value), "{one}");
    assert_eq!(
        rows(&json, "requests", "mean")[0]["verdict"],
        "not_comparable"
    );
    // Equal mixes: one figure, which has the verdict.
    let c = compare_all(&before, &three(31, 0.03, 1.3), &Options::default());
    let json = serde_json::to_value(&c).unwrap();
    assert_eq!(rows(&json, "requests", "mean_at_one_mix").len(), 0);
    assert_eq!(rows(&json, "requests", "mean")[0]["verdict"], "worse");
}

/// Mixes that differ from recording to recording make no total worse: an unchanged server gets verdicts no more often than chance allows.
#[test]
fn mixes_that_differ_by_chance_have_no_verdict() {
    let (mut wrong, tries) = (0, 40);
    let parts = [0.02, 0.05, 0.03, 0.08, 0.04, 0.1, 0.06];
    let part = |i: u64| parts[(i % 7) as usize];
    for n in 0..tries {
        let side = |from: u64| -> Vec<_> {
            (from..from + 3)
                .map(|i| share(1000 + i, part(i * i + 3), 1.0))
                .collect()
        };
        let c = compare_all(&side(6 * n), &side(6 * n + 3), &Options::default());
        let judged = |v: Verdict| matches!(v, Verdict::Better | Verdict::Worse);
        wrong += usize::from(c.rows.iter().any(|r| judged(r.verdict)));
    }
    println!("{wrong} of {tries} unchanged servers with mixes that move have a verdict");
    // Binomial bound: forty comparisons with a chance of 5 % each have more than 7 verdicts once in a thousand times.
    assert!(wrong <= 7, "{wrong}");
}

/// READs that are larger by an eighth explain a mean that is longer by an eighth.
#[test]
fn a_small_difference_in_size_explains_a_small_change() {
    let sized = |seed, bytes: f64, slower: f64| {
        let parts = [("3", "read", 1000.0, 4e-3 * slower, 0.0)];
        with_values(
            &mixed("reads", seed, &parts),
            &f::IO_SIZE,
            ["3", "read"],
            bytes,
        )
    };
    let c = compare_two(&sized(1, 65536.0, 1.0), &sized(2, 74000.0, 1.12));
    let mean = row(&c, is_op("read"), &Quantity::Mean);
    assert_eq!(mean.verdict, Verdict::NotComparable, "{mean:?}");
    let told = |c: &Comparison| {
        c.caveats
            .iter()
            .any(|w| w.text.contains("mean size of READs"))
    };
    assert!(told(&c), "{:?}", c.caveats);
    // Longer time than the size explains: a change.
    let c = compare_two(&sized(3, 65536.0, 1.0), &sized(4, 74000.0, 1.5));
    let mean = row(&c, is_op("read"), &Quantity::Mean);
    assert_eq!(mean.verdict, Verdict::Worse, "{mean:?}");
    // Sizes that explain nothing of the change: no caveat.
    let c = compare_two(&sized(5, 65536.0, 1.0), &sized(6, 65540.0, 1.5));
    assert!(!told(&c), "{:?}", c.caveats);
}

/// Unstable WRITEs of 0.1 ms, of which a few are FILE_SYNC and take 20 ms: three times as many of these double the mean of all.
#[test]
fn a_few_stable_writes_more_explain_a_longer_mean() {
    let of = |seed, stable: f64, slower: f64| {
        let n = 2000.0;
        let parts = [
            ("3", "write", n * (1.0 - stable), 0.1e-3 * slower, 0.0),
            ("3", "write", n * stable, 20e-3 * slower, 0.0),
        ];
        let r = mixed("writes", seed, &parts);
        let count =
            |r, how, n: f64| crate::fixture::recordings::counting(&r, &f::WRITE, ["3", how], |_| n);
        count(
            count(r, "unstable", n * (1.0 - stable)),
            "file_sync",
            n * stable,
        )
    };
    let c = compare_two(&of(1, 0.005, 1.0), &of(2, 0.015, 1.0));
    let mean = row(&c, is_op("write"), &Quantity::Mean);
    assert!(mean.ratio.unwrap().value > 1.8, "{mean:?}");
    assert_eq!(mean.verdict, Verdict::NotComparable, "{mean:?}");
    assert!(
        c.caveats.iter().any(|w| w.kind == "stability"),
        "{:?}",
        c.caveats
    );
    // Stable WRITEs on one side only: that side has the time that they take.
    let c = compare_two(&of(3, 0.0, 1.0), &of(4, 0.01, 1.0));
    let mean = row(&c, is_op("write"), &Quantity::Mean);
    assert_eq!(mean.verdict, Verdict::NotComparable, "{mean:?}");
    // Mean that is five times as long: more than these few stable WRITEs explain.
    let c = compare_two(&of(5, 0.005, 1.0), &of(6, 0.006, 5.0));
    let mean = row(&c, is_op("write"), &Quantity::Mean);
    assert_eq!(mean.verdict, Verdict::Worse, "{mean:?}");
}

/// Quantiles of requests and of waits for a log are those of one mix. With another mix they have no verdict, however much they changed, and
/// the mean at one mix has it.
#[test]
fn quantiles_of_a_total_are_not_judged_beside_another_mix() {
    let quantiles = [50, 90, 99].map(|percent| Quantity::Quantile { percent });
    let logs = |seed, commits: f64, slower: f64| {
        let parts = [
            ("3", "commit", commits, 20e-3 * slower, 19e-3 * slower),
            (
                "3",
                "create",
                1000.0 - commits,
                2e-3 * slower,
                1.5e-3 * slower,
            ),
        ];
        mixed("logs", seed, &parts)
    };
    let is_log = |s: &Subject| matches!(s, Subject::Log { .. });
    for (part, is_same) in [(0.03, true), (0.1, false), (0.3, false)] {
        let side = |from: u64, part: f64, slower: f64| -> Vec<_> {
            (from..from + 3).map(|i| share(i, part, slower)).collect()
        };
        let c = compare_all(
            &side(1, 0.03, 1.0),
            &side(4, part, 3.0),
            &Options::default(),
        );
        for quantity in &quantiles {
            let r = row(&c, is_requests, quantity);
            let wanted = if is_same {
                Verdict::Worse
            } else {
                Verdict::NotComparable
            };
            assert_eq!(r.verdict, wanted, "{part}: {r:?}");
            assert_eq!(r.why.is_some(), !is_same, "{part}: {r:?}");
        }
        let mean = if is_same {
            Quantity::Mean
        } else {
            Quantity::MeanAtOneMix
        };
        assert_eq!(
            row(&c, is_requests, &mean).verdict,
            Verdict::Worse,
            "{part}"
        );
        let c = compare_two(&logs(1, 50.0, 1.0), &logs(2, 1000.0 * part + 20.0, 3.0));
        for quantity in &quantiles {
            let r = row(&c, is_log, quantity);
            let wanted = if is_same {
                Verdict::Worse
            } else {
                Verdict::NotComparable
            };
            assert_eq!(r.verdict, wanted, "{part}: {r:?}");
        }
    }
}

/// Operations that keep threads busy for longer make others wait, the more so the busier the threads are. Other work that explains a longer
/// wait takes its verdict away, by as much as the utilization says.
#[test]
fn other_work_explains_the_wait_for_a_thread_by_the_utilization() {
    let threads = 8.0;
    // Windows of ten seconds with 1000 operations, 8 threads that are busy for `utilization` of the time, and waits of `wait` seconds for a
    // thread.
    let of = |seed, writes: f64, utilization: f64, wait: f64| {
        let parts = [
            ("3", "write", writes, 10e-3, 0.0),
            ("3", "read", 1000.0 - writes, 1e-3, 0.0),
        ];
        let r = mixed("busy", seed, &parts);
        let r = counting(&r, &f::THREADS, ["0"], |_| threads);
        let r = counting(&r, &f::THREAD_BUSY, ["0"], |_| 10.0 * threads * utilization);
        with_values(&r, &f::RPC_QUEUE, ["0"], wait)
    };
    let is_queue = |s: &Subject| *s == Subject::Queue;
    let verdict = |more: f64, utilization: f64, longer: f64| {
        // Share of the work: a tenth of the operations are WRITEs, which have 10 of 19 ms.
        let work = 1.0 + 9.0 * (more - 1.0) * 0.1 / 1.9;
        let before = of(1, 100.0, utilization, 1e-3);
        let after = of(2, 100.0 * more, utilization * work, 1e-3 * longer);
        row(&compare_two(&before, &after), is_queue, &Quantity::Mean).verdict
    };
    // Wait that the work explains: a fifth more WRITEs are a tenth more work. At 85 % the wait may be 2.7 times as long, and at 20 % twice.
    for (utilization, explained, beyond) in [(0.85, 2.0, 8.0), (0.2, 1.3, 4.0)] {
        assert_eq!(verdict(1.2, utilization, explained), Verdict::NotComparable);
        assert_eq!(verdict(1.2, utilization, beyond), Verdict::Worse);
    }
    // Full utilization: other work explains any wait, and equal work none.
    assert_eq!(verdict(1.2, 0.98, 30.0), Verdict::NotComparable);
    assert_eq!(verdict(1.0, 0.98, 3.0), Verdict::Worse);
}
