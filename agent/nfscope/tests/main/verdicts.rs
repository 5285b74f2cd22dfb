//! Verdicts with sound statistics: failures, replicates, few windows, other hours, a primary quantity.

use crate::days::by_hour;
use crate::fixture::recorder::{Place, ask, good, refused};
use crate::fixture::recordings::{
    DISKS, FLASH, by_the_hour, compare_all, compare_two, counting, failing, recording, runs, writes,
};
use nfscope_baseline::compare::result::{Comparison, Quantity, Row, Subject, Verdict};
use nfscope_baseline::compare::{Match, Options, html, text};
use nfscope_baseline::recording::{Recording, Sample, SeriesKey};
use nfscope_baseline::store::Store;
use nfscope_baseline::target_metric;
use nfscope_model::{Histogram, Scheme, family};

const P99: Quantity = Quantity::Quantile { percent: 99 };

fn rows(c: &Comparison, is: impl Fn(&Subject) -> bool) -> Vec<&Row> {
    c.rows.iter().filter(|r| is(&r.subject)).collect()
}

fn is_write(s: &Subject) -> bool {
    matches!(s, Subject::Op { op, .. } if op == "write")
}

fn write_row(c: &Comparison, quantity: &Quantity) -> Row {
    let all = rows(c, is_write);
    let found = all.into_iter().find(|r| r.quantity == *quantity);
    found.unwrap().clone()
}

fn kinds(c: &Comparison) -> Vec<&str> {
    c.caveats.iter().map(|w| w.kind).collect()
}

/// A full file system refuses 40 % of the WRITEs at once. They are fast, and that is not better.
#[test]
fn failures_are_worse_however_fast_they_are() {
    let before = recording("before", 1, 150, &writes(DISKS));
    let after = failing(&recording("after", 2, 150, &writes(DISKS)), 0.4);
    let c = compare_two(&before, &after);
    let failures = rows(&c, |s| matches!(s, Subject::Errors { .. }));
    assert_eq!(failures.len(), 2);
    for row in failures {
        // Failures per second rise with the load, too: the share is judged.
        let wanted = match row.quantity {
            Quantity::Share => Verdict::Worse,
            _ => Verdict::More,
        };
        assert_eq!(row.verdict, wanted, "{row:?}");
    }
    assert!(
        c.headline
            .starts_with("Failures of WRITE 3 rose from 0.0 % to 40"),
        "{}",
        c.headline
    );
    let caveat = c.caveats.iter().find(|w| w.kind == "errors").unwrap();
    assert!(
        caveat.text.contains("(nospc)") && caveat.text.contains("include the failures"),
        "{}",
        caveat.text
    );
    // Mean that fell by two fifths: not called better.
    let mean = write_row(&c, &Quantity::Mean);
    assert!(mean.ratio.unwrap().high < 0.8);
    assert_eq!(mean.verdict, Verdict::NotComparable);
    assert!(mean.why.unwrap().contains("durations include failures"));
    assert!(
        c.rows.iter().all(|r| r.verdict != Verdict::Better),
        "{:?}",
        c.rows
    );
    // Reverse comparison: the failures ended, and longer durations are not worse.
    let back = compare_two(&after, &before);
    assert!(
        back.headline
            .starts_with("Failures of WRITE 3 fell from 40")
    );
    let worse = |r: &&Row| r.verdict == Verdict::Worse;
    assert_eq!(back.rows.iter().filter(worse).count(), 0);
    // Failures took no time. Their end explains a mean of five thirds, and no more.
    let slower = recording("slower", 1, 150, &writes(DISKS * 3.0));
    let mean = write_row(&compare_two(&after, &slower), &Quantity::Mean);
    assert_eq!(mean.verdict, Verdict::Worse, "{mean:?}");
    // NOENT is an answer, not a failure.
    let mut answered = after.clone();
    answered.series.last_mut().unwrap().labels[2] = "noent".into();
    let c = compare_two(&before, &answered);
    assert_eq!(rows(&c, |s| matches!(s, Subject::Errors { .. })).len(), 0);
}

/// Calls that clients had to send again are in the headline, like everything that is worse.
#[test]
fn calls_sent_again_are_in_the_headline() {
    let before = recording("before", 3, 150, &writes(DISKS));
    let after = recording("after", 4, 150, &writes(DISKS));
    let after = counting(&after, &family::REPLY_CACHE, ["hit"], |i| {
        (i % 2) as f64 * 9.0
    });
    let c = compare_two(&before, &after);
    assert_eq!(
        rows(&c, |s| *s == Subject::Replays)[0].verdict,
        Verdict::Worse
    );
    let told = "Calls sent again, answered from the reply cache rose from 0.0 % to 0.9 %.";
    assert!(c.headline.starts_with(told), "{}", c.headline);
}

/// A recording that was stopped at once has no load, mix or threads that could differ.
#[test]
fn a_recording_without_windows_is_said_to_be_empty() {
    let whole = recording("whole", 5, 60, &writes(DISKS));
    let mut empty = recording("empty", 6, 1, &writes(DISKS));
    empty.windows.clear();
    for (before, after, side) in [(&empty, &whole, "before"), (&whole, &empty, "after")] {
        let c = compare_two(before, after);
        assert_eq!(kinds(&c), ["empty"]);
        assert_eq!(
            c.caveats[0].text,
            format!("{side}: the recording has no windows")
        );
        assert!(c.headline.starts_with("There is nothing to compare"));
        assert!(c.rows.iter().all(|r| r.p.is_none()), "{:?}", c.rows);
    }
    let place = Place::new("empty");
    let path = place.store();
    Store::create(&path).unwrap().put(&empty).unwrap();
    // Exit code for scripts: undecided, not "no worse".
    Store::create(&path).unwrap().put(&whole).unwrap();
    good(&path, &["compare", "empty", "whole"]);
    let fail_on = ["--between", "5%", "--fail-on", "worse"];
    let (code, _, err) = ask(
        &path,
        &[&["compare", "empty", "whole"][..], &fail_on].concat(),
    );
    assert_eq!(code, 6, "{err}");
    assert!(err.contains("undecided: nothing could be tested"), "{err}");
    let page = good(&path, &["show", "empty"]);
    assert!(page.contains("operations 0, -"), "{page}");
    let changes = good(&path, &["changes", "empty"]);
    assert_eq!(
        changes,
        "Nothing was searched: the recording has no operations.\n"
    );
}

/// Recording with failures in these windows only.
fn failing_in(name: &str, seed: u64, fails: impl Fn(usize) -> bool) -> Recording {
    let mut r = failing(&recording(name, seed, 150, &writes(DISKS)), 0.05);
    let errors = r.series.last().unwrap().id;
    for (i, w) in r.windows.iter_mut().enumerate() {
        if !fails(i) {
            w.samples.retain(|(id, _)| *id != errors);
        }
    }
    r
}

fn share_of_failures(c: &Comparison) -> Row {
    let all = rows(c, |s| matches!(s, Subject::Errors { .. }));
    let share = all.into_iter().find(|r| r.quantity == Quantity::Share);
    share.unwrap().clone()
}

/// Failures on one side only are tested by windows, or by recordings.
#[test]
fn failures_on_one_side_only_are_tested() {
    let never = recording("never", 21, 150, &writes(DISKS));
    let sporadic = |seed| failing_in("sporadic", seed, |i| (i * i + i / 3) % 7 < 2);
    let row = share_of_failures(&compare_two(&never, &sporadic(22)));
    assert_eq!(row.verdict, Verdict::Worse, "{row:?}");
    assert!(row.p.unwrap() < 0.001 && row.ratio.is_none(), "{row:?}");
    let row = share_of_failures(&compare_two(&sporadic(22), &never));
    assert_eq!(row.verdict, Verdict::Better, "{row:?}");
    // Two windows, or one burst of many, are no evidence.
    let rare = failing_in("rare", 23, |i| i == 30 || i == 100);
    let row = share_of_failures(&compare_two(&never, &rare));
    assert_eq!(row.verdict, Verdict::NoEvidence, "{row:?}");
    let burst = failing_in("burst", 24, |i| (50..80).contains(&i));
    let row = share_of_failures(&compare_two(&never, &burst));
    assert!(row.verdict != Verdict::Worse, "{row:?}");
    // Few independent windows: no verdict.
    let short = failing_in("short", 25, |i| (30..60).contains(&i));
    let mut short = Recording {
        windows: short.windows[20..70].to_vec(),
        ..short
    };
    short.metadata.began_ms += 200_000;
    let row = share_of_failures(&compare_two(
        &recording("a", 26, 12, &writes(DISKS)),
        &short,
    ));
    assert_eq!(row.verdict, Verdict::Few, "{row:?}");
    // Failures are tested with every primary quantity: they have a family of tests of their own.
    let ask = |primary: &str, after: &Recording| {
        let options = Options {
            primary: Some(target_metric::parse(primary).unwrap()),
            between: Some(0.0),
            ..Options::default()
        };
        compare_all(
            std::slice::from_ref(&never),
            std::slice::from_ref(after),
            &options,
        )
    };
    for (primary, is_tested) in [("write:rate", true), ("read:p99", false)] {
        let c = ask(primary, &sporadic(22));
        assert_eq!(c.rows.iter().any(|r| r.primary), is_tested);
        let row = share_of_failures(&c);
        assert_eq!(row.verdict, Verdict::Worse, "{row:?}");
        assert!(
            c.headline.starts_with("Failures of WRITE 3 rose from 0"),
            "{}",
            c.headline
        );
        assert!(
            c.headline.contains("nothing is tested behind it"),
            "{}",
            c.headline
        );
        assert!(
            c.method[0].contains("beside it, whatever it says, at a level of 1 %")
                && c.method[0].contains("is at most 6 % (Holm"),
            "{}",
            c.method[0]
        );
        // Failures per second are not in that family, and are tested after the primary quantity.
        let errors = rows(&c, |s| matches!(s, Subject::Errors { .. }));
        let rate = errors.into_iter().find(|r| r.quantity == Quantity::Rate);
        assert_eq!(rate.unwrap().verdict, Verdict::NotTested);
    }
    // Level of 1 % for that family: relative to 5 %, its p is five times that of a single test.
    let few = |i: usize| [12, 40, 75, 99, 130, 141].contains(&i);
    let six = failing_in("six", 27, few);
    let beside = share_of_failures(&ask("write:rate", &six));
    let alone = nfscope_stats::one_sided(6.0, 0.5, 1.02);
    assert!(
        beside.p.unwrap() >= (5.0 * alone).min(1.0) - 1e-12,
        "{beside:?} {alone}"
    );
    assert_eq!(beside.verdict, Verdict::NoEvidence, "{beside:?}");
    // Recording without failures among several: it had none, and not too few windows.
    let quiet = |n: u64| (0..n).map(|i| recording("quiet", 30 + i, 150, &writes(DISKS)));
    let before: Vec<_> = quiet(4).collect();
    let after: Vec<_> = (0..4).map(|i| sporadic(40 + i)).collect();
    let row = share_of_failures(&compare_all(&before, &after, &Options::default()));
    assert_eq!(row.verdict, Verdict::Worse, "{row:?}");
    assert!(row.components.is_some() && row.ratio.is_none(), "{row:?}");
    let mut one = before.clone();
    one[0] = sporadic(50);
    let row = share_of_failures(&compare_all(&before, &one, &Options::default()));
    assert_eq!(row.verdict, Verdict::NoEvidence, "{row:?}");
}

/// A script with a primary quantity learns of failures all the same, and of a primary quantity without data.
#[test]
fn a_closed_gate_does_not_silence_failures() {
    let place = Place::new("gate");
    let path = place.store();
    let mut store = Store::create(&path).unwrap();
    let sporadic = failing_in("sporadic", 22, |i| (i * i + i / 3) % 7 < 2);
    for r in [recording("never", 21, 150, &writes(DISKS)), sporadic] {
        store.put(&r).unwrap();
    }
    drop(store);
    let code = |before: &str, after: &str, primary: &str| {
        let of = [
            "compare",
            before,
            after,
            "--between",
            "0%",
            "--primary",
            primary,
        ];
        let (code, out, err) = ask(&path, &[&of[..], &["--fail-on", "worse"]].concat());
        (code, out, err)
    };
    for primary in ["write:rate", "read:p99"] {
        let (code, out, err) = code("never", "sporadic", primary);
        assert_eq!(code, 4, "{primary}: {out}{err}");
    }
    assert_eq!(code("sporadic", "never", "write:rate").0, 0);
    let (code, _, err) = code("sporadic", "never", "read:p99");
    assert!(
        code == 6 && err.contains("the primary quantity could not be tested"),
        "{err}"
    );
}

/// Recording with these operations beside the WRITEs: 100 in each window, of which this number fails.
fn with_operations(mut r: Recording, operations: &[(&str, u64)]) -> Recording {
    let mut add = |family: &str, labels: &[&str]| {
        let id = r.series.iter().map(|k| k.id).max().unwrap() + 1;
        r.series.push(SeriesKey {
            id,
            family: family.into(),
            labels: labels.iter().map(|l| (*l).to_owned()).collect(),
        });
        id
    };
    let ids: Vec<_> = operations
        .iter()
        .map(|(op, failed)| {
            let times = add(family::OP_DURATION.info.name, &["3", op]);
            let errors = add(family::OP_ERRORS.info.name, &["3", op, "nospc"]);
            (times, errors, *failed)
        })
        .collect();
    for w in &mut r.windows {
        for (times, errors, failed) in &ids {
            let mut h = Histogram::new(Scheme::TIME);
            h.counts[Scheme::TIME.bucket(40e-6)] = 100;
            h.sum = 100.0 * 40e-6;
            let times_of = Sample::from(&nfscope_model::Sample::Histogram(h));
            w.samples.push((*times, times_of));
            w.samples.push((*errors, Sample::Counter(*failed as f64)));
        }
    }
    r
}

/// More failures of any operation are worse, however many operations fail.
#[test]
fn the_last_of_many_failing_operations_counts() {
    let always = [
        ("lookup", 40),
        ("getattr", 35),
        ("access", 30),
        ("setattr", 25),
        ("create", 20),
        ("remove", 15),
    ];
    let of = |name: &str, seed, rare| {
        let operations = [&always[..], &[("rename", rare)]].concat();
        with_operations(recording(name, seed, 150, &writes(DISKS)), &operations)
    };
    let place = Place::new("many");
    let path = place.store();
    let mut store = Store::create(&path).unwrap();
    for r in [of("before", 41, 1), of("same", 42, 1), of("after", 43, 9)] {
        store.put(&r).unwrap();
    }
    drop(store);
    let fail_on = ["--between", "0%", "--fail-on", "worse"];
    let ask = |after| {
        ask(
            &path,
            &[&["compare", "before", after][..], &fail_on].concat(),
        )
    };
    let (code, out, err) = ask("after");
    assert_eq!(code, 4, "{out}{err}");
    assert!(out.contains("Failures of RENAME 3"), "{out}");
    // Rows without a change: four are printed, and the number of the others.
    assert!(!out.contains("Failures of REMOVE 3"), "{out}");
    assert!(
        out.contains("failures of 2 more operations have no"),
        "{out}"
    );
    let (code, out, err) = ask("same");
    assert_eq!(code, 0, "{out}{err}");
    assert!(
        out.contains("failures of 3 more operations have no"),
        "{out}"
    );
}

/// Recordings of one server that differ by 10 % from run to run.
#[test]
fn replicates_show_the_variance_between_recordings() {
    let (mut single, mut several, mut stated) = (0, 0, 0);
    let tries = 12;
    for i in 0..tries {
        let before = runs("a", 2 * i + 1, 3, 0.1, DISKS);
        let after = runs("b", 2 * i + 2, 3, 0.1, DISKS);
        let found = |c: &Comparison| {
            let wrong = |r: &Row| matches!(r.verdict, Verdict::Better | Verdict::Worse);
            u32::from(c.rows.iter().any(wrong))
        };
        let c = compare_all(&before[..1], &after[..1], &Options::default());
        assert!(kinds(&c).contains(&"replicates"), "{:?}", c.caveats);
        single += found(&c);
        let options = Options {
            between: Some(0.1),
            ..Options::default()
        };
        let c = compare_all(&before[..1], &after[..1], &options);
        assert!(c.method[0].contains("differ by 10.0 %"), "{}", c.method[0]);
        assert!(!kinds(&c).contains(&"replicates"));
        stated += found(&c);
        let c = compare_all(&before, &after, &Options::default());
        assert!(!kinds(&c).contains(&"replicates"));
        several += found(&c);
    }
    println!(
        "of {tries} pairs without a change, found with one a side {single}, stated {stated}, three a side {several}"
    );
    assert!(single == 0 && stated <= 1 && several <= 1);
    // Real change: it is found, and the report says how many recordings find a smaller one.
    let before = runs("hdd", 50, 3, 0.05, DISKS);
    let after = runs("ssd", 51, 3, 0.05, FLASH);
    let c = compare_all(&before, &after, &Options::default());
    assert_eq!(write_row(&c, &P99).verdict, Verdict::Better);
    let components = write_row(&c, &Quantity::Mean).components.unwrap();
    assert!(components.between > 0.0, "{components:?}");
    assert!(
        c.next[0].contains("on each side find a change of 10 %"),
        "{:?}",
        c.next
    );
    assert_eq!(c.before.recordings, ["hdd-0", "hdd-1", "hdd-2"]);
}

/// Latency that rises all the time: every window resembles the one before, and none is typical of the server.
#[test]
fn few_independent_stretches_are_no_verdict() {
    let rising = |name: &str, seed, first: f64| {
        by_the_hour(name, seed, 15, 10, move |hour| {
            first * f64::exp(20.0 * hour)
        })
    };
    let c = compare_two(&rising("before", 3, 5e-3), &rising("after", 4, 3e-3));
    let mean = write_row(&c, &Quantity::Mean);
    assert_eq!(mean.verdict, Verdict::Few);
    assert!(mean.why.unwrap().contains("independent stretches before"));
    assert!(mean.stretches.iter().all(|n| n.unwrap() < 3.0));
    assert!(
        c.headline.contains("Not comparable: WRITE 3"),
        "{}",
        c.headline
    );
    let page = text::render(&c, false);
    assert!(
        page.contains("independent  ") && page.contains(" stretches"),
        "{page}"
    );
}

/// Large changes need no long recordings: windows are too few only if each seems to follow from the one before.
#[test]
fn a_large_change_is_seen_in_six_minutes() {
    let (mut found, pairs) = (0, 20);
    for i in 0..pairs {
        let before = recording("before", 70 + 2 * i, 36, &writes(DISKS));
        let after = recording("after", 71 + 2 * i, 36, &writes(FLASH));
        let mean = write_row(&compare_two(&before, &after), &Quantity::Mean);
        match mean.verdict {
            Verdict::Better => found += 1,
            Verdict::Few => assert!(mean.stretches.iter().any(|n| n.unwrap() < 3.0)),
            _ => panic!("{mean:?}"),
        }
        let again = recording("again", 170 + i, 36, &writes(DISKS));
        let c = compare_two(&before, &again);
        let changed = c.rows.iter().filter(|r| r.verdict.is_change()).count();
        assert_eq!(changed, 0, "{:?}", c.rows);
    }
    println!("found in {found} of {pairs} pairs of 36 windows, whose correlation is 0.5");
    assert!(found >= 14, "{found}");
}

#[test]
fn a_primary_quantity_is_tested_first() {
    let before = recording("before", 5, 150, &writes(DISKS));
    let after = recording("after", 6, 150, &writes(DISKS * 0.9));
    let ask = |primary: Option<&str>| {
        let options = Options {
            primary: primary.map(|p| target_metric::parse(p).unwrap()),
            between: Some(0.0),
            ..Options::default()
        };
        compare_all(
            std::slice::from_ref(&before),
            std::slice::from_ref(&after),
            &options,
        )
    };
    let p = |c: &Comparison| write_row(c, &Quantity::Mean).p.unwrap();
    let (first, among) = (ask(Some("write:mean")), ask(None));
    assert!(p(&first) < p(&among), "{} {}", p(&first), p(&among));
    assert!(write_row(&first, &Quantity::Mean).primary);
    // Primary quantity without a change: no other quantity is tested.
    let c = ask(Some("write:rate"));
    let rate = write_row(&c, &Quantity::Rate);
    for row in c.rows.iter().filter(|r| r.p.is_some()) {
        assert!(row.p >= rate.p, "{row:?}");
    }
    let closed = |c: &Comparison| {
        for row in c
            .rows
            .iter()
            .filter(|r| !r.primary && r.verdict != Verdict::Few)
        {
            assert_eq!(row.verdict, Verdict::NotTested, "{row:?}");
            assert!(row.p.is_none() && row.finds.is_none(), "{row:?}");
        }
        assert!(
            c.headline.contains("nothing is tested behind it"),
            "{}",
            c.headline
        );
        assert!(
            !c.headline.contains("latency of operations"),
            "{}",
            c.headline
        );
    };
    closed(&c);
    // Whole level for the primary quantity: it finds smaller changes than as one of many.
    let finds = |c: &Comparison| write_row(c, &Quantity::Rate).finds.unwrap();
    assert!(
        finds(&c) < finds(&ask(None)),
        "{} {}",
        finds(&c),
        finds(&ask(None))
    );
    let c = ask(Some("read:p99"));
    assert!(kinds(&c).contains(&"primary"));
    closed(&c);
}

#[test]
fn no_evidence_comes_with_the_smallest_change_that_would_be_found() {
    let before = recording("before", 7, 150, &writes(DISKS));
    let c = compare_two(&before, &recording("after", 8, 150, &writes(DISKS)));
    for row in &c.rows {
        match row.verdict {
            Verdict::NoEvidence => assert!(row.finds.unwrap() > 0.02, "{row:?}"),
            Verdict::Small => {
                let r = row.ratio.unwrap();
                assert!(r.low > 1.0 / 1.03 && r.high < 1.03, "{row:?}");
                assert_eq!(row.finds, None);
            }
            other => panic!("{other:?}"),
        }
    }
    let share = rows(&c, |s| *s == Subject::SyncWrites)
        .into_iter()
        .find(|r| r.quantity == Quantity::Share);
    assert_eq!(share.unwrap().verdict, Verdict::Small);
    assert!(text::render(&c, false).contains("too small"));
}

/// Clients that differ are reported by the share of the load that moved, not by their number.
#[test]
fn other_clients_are_a_caveat_by_their_share_of_the_load() {
    let before = recording("before", 9, 150, &writes(DISKS));
    let after = recording("after", 10, 150, &writes(DISKS));
    let with = |share: f64| {
        let mut all = after.clone();
        let client = |k: &&nfscope_baseline::recording::SeriesKey| {
            k.family == nfscope_model::family::CLIENT_OPS.info.name
        };
        let old = all.series.iter().find(client).unwrap().id;
        all.series.push(nfscope_baseline::recording::SeriesKey {
            id: 900,
            family: nfscope_model::family::CLIENT_OPS.info.name.into(),
            labels: vec!["192.0.2.99".into()],
        });
        for w in &mut all.windows {
            let mut moved = 0.0;
            for (id, sample) in &mut w.samples {
                if let (true, nfscope_baseline::recording::Sample::Counter(n)) =
                    (*id == old, sample)
                {
                    moved = *n * share;
                    *n -= moved;
                }
            }
            let sample = nfscope_baseline::recording::Sample::Counter(moved);
            w.samples.push((900, sample));
        }
        compare_two(&before, &all)
    };
    assert!(!kinds(&with(0.05)).contains(&"clients"));
    let c = with(0.5);
    let caveat = c.caveats.iter().find(|w| w.kind == "clients").unwrap();
    assert!(
        caveat.text.contains("of the load moved") && caveat.text.contains("192.0.2."),
        "{}",
        caveat.text
    );
}

#[test]
fn times_that_do_not_match_are_caveats() {
    let a = recording("a", 11, 150, &writes(DISKS));
    let shifted = |hours: i64| {
        let mut b = recording("b", 11, 150, &writes(DISKS));
        b.metadata.began_ms += hours * 3_600_000;
        for w in &mut b.windows {
            w.began_ms += hours * 3_600_000;
        }
        b
    };
    let of = |b: &Recording| {
        kinds(&compare_two(&a, b))
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert!(of(&shifted(0)).contains(&"same".to_owned()));
    let mut other = recording("b", 12, 150, &writes(DISKS));
    other.metadata.began_ms = a.metadata.began_ms + 60_000;
    for (w, of) in other.windows.iter_mut().zip(&a.windows) {
        w.began_ms = of.began_ms + 60_000;
    }
    assert!(of(&other).contains(&"overlap".to_owned()));
    let week = 7 * 24;
    assert_eq!(of(&shifted(week)), Vec::<String>::new());
    assert!(of(&shifted(-week)).contains(&"order".to_owned()));
    // Sides that took turns have no wrong order, whichever was first.
    let (earlier, later) = (shifted(-week), shifted(week));
    let turns = compare_all(
        std::slice::from_ref(&a),
        &[earlier, later],
        &Options::default(),
    );
    assert!(!kinds(&turns).contains(&"order"), "{:?}", turns.caveats);
    assert!(of(&shifted(5)).contains(&"hours".to_owned()));
    assert!(!of(&shifted(1)).contains(&"hours".to_owned()));
    // Weekdays: the recording is of a Saturday.
    assert!(of(&shifted(72)).contains(&"weekdays".to_owned()));
    assert!(!of(&shifted(24)).contains(&"weekdays".to_owned()));
}

/// Days with a daily wave; those after are slower. Three on each side measure how much days differ, and one does not.
#[test]
fn whole_days_are_compared_hour_by_hour() {
    let wave = |slower: f64| {
        move |hour: f64| 5e-3 * slower * (1.0 + 0.8 * (hour / 24.0 * std::f64::consts::TAU).sin())
    };
    let days = |seed: u64, slower: f64| -> Vec<Recording> {
        (0..3)
            .map(|i| by_the_hour("day", seed + i, 288, 300, wave(slower)))
            .collect()
    };
    let changed = |r: &Row| matches!(r.verdict, Verdict::Better | Verdict::Worse);
    let (mut whole, mut matched, mut wrong, mut level) = (0, 0, 0, 0);
    for i in 0..10 {
        let (a, b) = (days(6 * i, 1.0), days(6 * i + 3, 1.1));
        let c = by_hour(&a, &b);
        matched += u32::from(write_row(&c, &Quantity::Mean).verdict == Verdict::Worse);
        assert!(c.next.is_empty(), "{:?}", c.next);
        let one = by_hour(&a[..1], &b[..1]);
        let caveat = one.caveats.iter().find(|w| w.kind == "replicates").unwrap();
        assert!(
            caveat.text.starts_with("one day on each side"),
            "{caveat:?}"
        );
        assert!(!one.rows.iter().any(changed) && one.next[0].starts_with("Record 3 days"));
        assert_eq!(write_row(&one, &Quantity::Mean).verdict, Verdict::NotJudged);
        let unmatched = compare_two(&a[0], &b[0]);
        assert!(
            unmatched.next[0].contains("--match hour"),
            "{:?}",
            unmatched.next
        );
        // Interval of a whole day: the wave makes it useless, and too long a number for a narrow screen.
        let page = html::page(&one);
        assert!(page.contains("hardly known") && !page.contains("0.00 µs .."));
        whole += u32::from(write_row(&unmatched, &Quantity::Mean).verdict == Verdict::Worse);
        let c = by_hour(&a, &days(300 + 6 * i, 1.0));
        wrong += u32::from(c.rows.iter().any(changed));
        // Days that differ by 10 %, each in all of its hours.
        let differ = |seed: u64| -> Vec<Recording> {
            let z = [0.9, -1.1, 0.3, -0.2, 1.2, -0.7f64];
            let z = |k: u64| z[((seed + 5 * k) % 6) as usize];
            let day = |k: u64| by_the_hour("day", seed + k, 288, 300, wave(f64::exp(0.1 * z(k))));
            (0..3).map(day).collect()
        };
        let c = by_hour(&differ(600 + 7 * i), &differ(800 + 7 * i));
        level += u32::from(c.rows.iter().any(changed));
    }
    println!(
        "slower by 10 %: {whole} of 10 found by whole days, {matched} by the hour; {wrong} of 10 found without a change, {level} where days \
         differ by 10 %"
    );
    assert!(whole == 0 && matched >= 9 && wrong <= 1 && level <= 1);
}

/// Recordings of this many days on two sides, without a wave: `--match hour` is advised only where it leads to a verdict.
#[test]
fn hours_are_advised_where_they_make_a_verdict() {
    for (days, judges) in [(1.4, false), (1.6, false), (1.7, false), (1.8, true)] {
        let of = |seed| by_the_hour("days", seed, (days * 288.0) as usize, 300, |_| 5e-3);
        let (before, after) = ([of(1)], [of(2)]);
        let options = |matching| Options {
            matching,
            ..Options::default()
        };
        let c = compare_all(&before, &after, &options(None));
        let advised = c.next.iter().any(|n| n.contains("--match hour"));
        let matched = compare_all(&before, &after, &options(Some(Match::Hour)));
        assert_eq!(matched.not_judged.is_none(), judges, "{days}");
        assert_eq!(advised, judges, "{days}: {:?}", c.next);
    }
}

/// Methods of a comparison without a verdict: none of verdicts is named, whatever the reason.
#[test]
fn a_comparison_names_only_methods_that_were_used() {
    let of = |seed, windows| vec![recording("a", seed, windows, &writes(DISKS))];
    let mut copies = of(1, 60);
    copies.extend(of(1, 60));
    let hours = Options {
        matching: Some(Match::Hour),
        ..Options::default()
    };
    let day = |seed| vec![by_the_hour("day", seed, 288, 300, |_| 5e-3)];
    for (before, after, options) in [
        (of(1, 60), of(2, 60), Options::default()),
        // Recordings too short for any test.
        (of(1, 6), of(2, 6), Options::default()),
        (copies.clone(), of(2, 60), Options::default()),
        (day(1), day(2), hours.clone()),
        (copies, of(2, 60), hours),
    ] {
        let c = compare_all(&before, &after, &options);
        assert!(c.not_judged.is_some());
        assert!(
            c.method[0].starts_with("There is no verdict: "),
            "{:?}",
            c.method
        );
        let all = c.method.join(" ");
        assert!(
            !all.contains("Student's t") && !all.contains("is the unit"),
            "{all}"
        );
        let windows = all.contains("those of the windows of these recordings alone");
        assert_eq!(windows, before.len() == 1, "{all}");
    }
}

/// Recordings are named by name, by label and in parts; `--fail-on` sets the exit code.
#[test]
fn recordings_are_named_by_name_label_and_part() {
    let place = Place::new("verdicts");
    let path = place.store();
    let mut store = Store::create(&path).unwrap();
    for (name, seed, log) in [("hdd", 60, DISKS), ("ssd", 61, FLASH)] {
        for mut r in runs(name, seed, 3, 0.03, log) {
            r.metadata.labels = [("disks".to_owned(), name.to_owned())].into();
            store.put(&r).unwrap();
        }
    }
    let day = by_the_hour(
        "day",
        62,
        1440,
        10,
        |hour| if hour < 2.0 { 5e-3 } else { 9e-3 },
    );
    store.put(&day).unwrap();
    drop(store);
    let json = |arguments: &[&str]| -> serde_json::Value {
        let mut all = vec!["compare", "--json"];
        all.extend(arguments);
        serde_json::from_str(&good(&path, &all)).unwrap()
    };
    let by_name = json(&["hdd-0,hdd-1,hdd-2", "ssd-0,ssd-1,ssd-2"]);
    assert_eq!(by_name["rows"], json(&["--by", "disks"])["rows"]);
    assert_eq!(by_name["rows"], json(&["--by", "disks=hdd,ssd"])["rows"]);
    assert!(by_name["rows"][0]["components"]["between"].is_f64());
    // Single recordings: two others of each label are too few to measure how recordings differ, and later ones do not count.
    for (before, after) in [("hdd-2", "ssd-2"), ("hdd-0", "ssd-0")] {
        let one = json(&[before, after]);
        assert!(one["rows"][0]["components"].is_null());
        assert!(one["caveats"].to_string().contains("replicates"));
    }
    let mut store = Store::create(&path).unwrap();
    for mut r in runs("old", 10, 5, 0.03, DISKS) {
        r.metadata.labels = [("disks".to_owned(), "hdd".to_owned())].into();
        store.put(&r).unwrap();
    }
    drop(store);
    let one = json(&["hdd-0", "ssd-0"]);
    assert!(one["rows"][0]["components"].is_object());
    assert!(!one["caveats"].to_string().contains("replicates"));
    let method = one["method"][0].as_str().unwrap();
    assert!(
        method.contains("earlier ones: old-0, old-1, old-2, old-3, old-4."),
        "{method}"
    );
    let parts = json(&["day", "--before", "+0s..+2h", "--after", "+2h..+4h"]);
    let mean = |side: &str| parts["rows"][1][side]["value"].as_f64().unwrap();
    assert!(
        (mean("after") / mean("before") - 1.8).abs() < 0.1,
        "{parts}"
    );
    let changes = good(&path, &["changes", "day"]);
    let found: Vec<_> = changes
        .lines()
        .filter(|l| l.contains("write mean"))
        .collect();
    assert!(
        found.len() == 1 && found[0].contains("02:00 UTC"),
        "{changes}"
    );
    assert!(
        found[0].contains("  +7") || found[0].contains("  +8"),
        "{changes}"
    );
    let worse = |a: &str, b: &str| ask(&path, &["compare", a, b, "--fail-on", "worse"]).0;
    assert_eq!(worse("ssd-0,ssd-1,ssd-2", "hdd-0,hdd-1,hdd-2"), 4);
    assert_eq!(worse("hdd-0,hdd-1,hdd-2", "ssd-0,ssd-1,ssd-2"), 0);
    let both = ["--match", "hour", "--between", "5%"];
    let (code, _, err) = ask(&path, &[&["compare", "hdd-0", "ssd-0"][..], &both].concat());
    assert!(code != 0 && err.contains("cannot be used with"), "{err}");
    for (arguments, why) in [
        (&["hdd-0", "hdd-0"][..], "compared with itself"),
        (&["--by", "shelf"], "has 0 values"),
        (
            &["--by", "disks=hdd,tape"],
            "no baseline has the label disks=tape",
        ),
        (
            &["day", "--before", "+7h..+8h", "--after", "+0s..+1h"],
            "no windows in that time",
        ),
    ] {
        let mut all = vec!["compare"];
        all.extend(arguments);
        let err = refused(&path, &all);
        assert!(err.contains(why), "{arguments:?}: {err}");
    }
}
