//! Primary quantity, which is tested first: its choice, its power, and the error rate of whole tables.

use crate::fixture::chance;
use crate::fixture::recorder::{Place, ask};
use crate::fixture::recordings::{FLASH, by_the_hour, compare_all, recording, writes};
use crate::fixture::tale::Tale;
use crate::fixture::work::{is_op, mixed, row};
use nfscope_baseline::compare::result::{Comparison, Quantity, Row, Subject, Verdict};
use nfscope_baseline::compare::{Options, html, text};
use nfscope_baseline::recording::Recording;
use nfscope_baseline::store::Store;
use nfscope_baseline::target_metric;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

fn primary(c: &Comparison) -> &Row {
    let all: Vec<&Row> = c.rows.iter().filter(|r| r.primary).collect();
    assert_eq!(all.len(), 1, "{all:?}");
    all[0]
}

/// Recordings with this number of windows of WRITEs, with these means as multiples of 5 ms.
fn of_means(seed: u64, windows: usize, means: &[f64]) -> Vec<Recording> {
    let each = means.iter().zip(seed..);
    each.map(|(mean, seed)| by_the_hour("run", seed, windows, 10, move |_| 5e-3 * mean))
        .collect()
}

/// `n` recordings whose means differ by this standard deviation (of the logarithm), all slower by the factor `slower`.
fn some(random: &mut SmallRng, n: usize, differ: f64, slower: f64) -> Vec<Recording> {
    let mut z = || (0..12).map(|_| random.random_range(-0.5..0.5)).sum::<f64>();
    let means: Vec<f64> = (0..n).map(|_| slower * (differ * z()).exp()).collect();
    of_means(random.random_range(1..1_000_000), 60, &means)
}

/// Ten recordings on each side that differ by 4 %, of a server that became slower by 4.5 %. The interval of the mean excludes 1, and begins
/// below the 2 % that matter. Student's t finds the change (p 0.02), and so does a comparison with its defaults.
#[test]
fn a_small_change_that_students_t_finds_is_found() {
    let z = [-1.5, -1.0, -0.6, -0.3, -0.1, 0.1, 0.3, 0.6, 1.0, 1.5f64];
    let side = |seed, slower: f64| {
        let means = z.map(|z| slower * (0.042 * z).exp());
        of_means(seed, 60, &means)
    };
    let (before, after) = (side(100, 1.0), side(200, 1.045));
    let c = compare_all(&before, &after, &Options::default());
    let mean = primary(&c);
    assert!(is_op("write")(&mean.subject) && mean.quantity == Quantity::Mean);
    let ratio = mean.ratio.unwrap();
    assert!(
        ratio.low > 1.0 && ratio.low < 1.02 && ratio.high > 1.06,
        "{ratio:?}"
    );
    assert_eq!(mean.verdict, Verdict::Worse, "{mean:?}");
    assert!(mean.p.unwrap() <= 0.05, "{mean:?}");
    let why = "there is a change, and it may be less than 2.0 %";
    assert_eq!(mean.why.as_deref(), Some(why));
    assert!(
        c.headline.contains("WRITE 3 mean rose from"),
        "{}",
        c.headline
    );
    // Other quantities are corrected for their number, so the same change is no evidence there.
    let of_requests = |r: &&Row| matches!(r.subject, Subject::Requests { .. });
    let mut others = c.rows.iter().filter(of_requests);
    assert!(
        others.all(|r| r.verdict == Verdict::NoEvidence),
        "{:?}",
        c.rows
    );
    // Long recordings show that a change by 1 % is below the least change that matters.
    let small = |seed, slower: f64| of_means(seed, 360, &z.map(|z| slower * (0.004 * z).exp()));
    let c = compare_all(&small(300, 1.0), &small(400, 1.01), &Options::default());
    let mean = primary(&c);
    assert_eq!(mean.verdict, Verdict::Small, "{mean:?}");
}

/// A change of the primary quantity that may be smaller than the least that matters is reported, and does not fail. With `--min-change 0`
/// it does.
#[test]
fn a_change_that_may_be_small_is_not_counted_by_fail_on() {
    let z = [-1.5, -1.0, -0.6, -0.3, -0.1, 0.1, 0.3, 0.6, 1.0, 1.5f64];
    let place = Place::new("may-be-small");
    let path = place.store();
    let mut store = Store::create(&path).unwrap();
    let mut side = |name: &str, seed, slower: f64| -> String {
        let means = z.map(|z| slower * (0.042 * z).exp());
        let mut names = Vec::new();
        for (i, mut r) in of_means(seed, 60, &means).into_iter().enumerate() {
            r.metadata.name = format!("{name}-{i}");
            store.put(&r).unwrap();
            names.push(r.metadata.name);
        }
        names.join(",")
    };
    let (before, after) = (side("before", 100, 1.0), side("after", 200, 1.045));
    let slow = side("slow", 300, 1.5);
    drop(store);
    let fail = |after: &str, more: &[&str]| {
        let words = ["compare", &before, after, "--fail-on", "worse"];
        ask(&path, &[&words[..], more].concat())
    };
    let (code, out, err) = fail(&after, &[]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(
        out.contains("worse") && err.contains("not counted by --fail-on worse"),
        "{out}{err}"
    );
    for (after, more) in [(&after, &["--min-change", "0"][..]), (&slow, &[])] {
        let (code, out, err) = fail(after, more);
        assert_eq!(code, 4, "{out}{err}");
    }
}

/// Changes by 5 % among recordings that differ by 4 %, ten on each side: the primary quantity finds as many as Student's t at its level.
#[test]
fn the_primary_quantity_has_the_power_of_students_t() {
    let tries = chance::tries(40);
    let mut random = SmallRng::seed_from_u64(71);
    let (mut found, mut asked, mut said) = (0, 0, 0);
    let first = Options {
        primary: Some(target_metric::parse("write:mean").unwrap()),
        min_effect: 0.0,
        ..Options::default()
    };
    for _ in 0..tries {
        let before = some(&mut random, 10, 0.04, 1.0);
        let after = some(&mut random, 10, 0.04, 1.05);
        let c = compare_all(&before, &after, &Options::default());
        found += u64::from(primary(&c).verdict == Verdict::Worse);
        let c = compare_all(&before, &after, &first);
        asked += u64::from(primary(&c).verdict == Verdict::Worse);
        let told = |c: &Comparison| c.next.iter().any(|n| n.contains("on each side find"));
        said += u64::from(told(&c));
    }
    println!(
        "slower by 5 %, ten a side: found in {found} of {tries}, asked with --min-change 0 in {asked}"
    );
    // Power of Student's t with 18 degrees of freedom: 70 % at a level of 4 %, and 74 % at 5 %.
    assert!(found >= chance::fewest(tries, 0.68), "{found}");
    assert!(asked >= chance::fewest(tries, 0.72), "{asked}");
    assert_eq!(said, tries);
}

/// Whole tables of an unchanged server, with one to five recordings on each side that differ by 0 to 10 %: at most 5 % have any verdict.
#[test]
fn no_table_of_an_unchanged_server_is_wrong_more_often_than_nominal() {
    let tries = chance::tries(20);
    let mut random = SmallRng::seed_from_u64(72);
    let (mut all, mut wrong) = (0, 0);
    for n in 1..=5 {
        for differ in [0.0, 0.02, 0.05, 0.1] {
            let mut here = 0;
            for _ in 0..tries {
                let before = some(&mut random, n, differ, 1.0);
                let after = some(&mut random, n, differ, 1.0);
                let c = compare_all(&before, &after, &Options::default());
                here += u64::from(c.rows.iter().any(|r| r.verdict.is_change()));
            }
            println!("{n} a side that differ by {differ}: a verdict in {here} of {tries}");
            assert!(here <= chance::most(tries, 0.05), "{n} {differ}: {here}");
            assert!(n > 1 || here == 0, "{differ}: {here}");
            (all, wrong) = (all + tries, wrong + here);
        }
    }
    assert!(wrong <= chance::most(all, 0.05), "{wrong} of {all}");
}

/// Operation with the most time on both sides together: it is primary, whichever side is before.
#[test]
fn the_primary_quantity_is_what_takes_the_most_time() {
    let known = Options {
        between: Some(0.0),
        ..Options::default()
    };
    let subject = |before: &Recording, after: &Recording, options: &Options| {
        let [b, a] = [before, after].map(std::slice::from_ref);
        let [there, back] = [compare_all(b, a, options), compare_all(a, b, options)];
        let first = primary(&there);
        assert_eq!(
            (&first.subject, &first.quantity),
            (&primary(&back).subject, &primary(&back).quantity)
        );
        (first.subject.clone(), first.quantity.clone())
    };
    let of = |seed, read: f64, write: f64| {
        let parts = [
            ("3", "read", 500.0, read, 0.0),
            ("3", "write", 500.0, write, 0.0),
        ];
        mixed("mixed", seed, &parts)
    };
    let (s, q) = subject(&of(1, 1e-3, 4e-3), &of(2, 1e-3, 3e-3), &known);
    assert!(is_op("write")(&s) && q == Quantity::Mean, "{s:?}");
    let (s, _) = subject(&of(1, 9e-3, 4e-3), &of(2, 1e-3, 3e-3), &known);
    assert!(is_op("read")(&s), "{s:?}");
    let asked = Options {
        primary: Some(target_metric::parse("write:p90").unwrap()),
        ..known.clone()
    };
    let (s, q) = subject(&of(1, 9e-3, 4e-3), &of(2, 1e-3, 3e-3), &asked);
    assert!(is_op("write")(&s) && q == Quantity::Quantile { percent: 90 });
    let queue = |seed, queue| {
        let tale = Tale {
            queue,
            ..writes(FLASH)
        };
        recording("queue", seed, 150, &tale)
    };
    let (s, _) = subject(&queue(3, 5e-3), &queue(4, 20e-6), &known);
    assert_eq!(s, Subject::Queue);
    // A primary quantity that was chosen by default does not keep the others from being tested.
    let [b, a] = [queue(5, 20e-6), queue(6, 20e-6)].map(|r| [r]);
    let c = compare_all(&b, &a, &known);
    assert!(c.rows.iter().all(|r| r.verdict != Verdict::NotTested));
    for report in [text::render(&c, false), html::page(&c)] {
        assert!(report.contains("mean *") && report.contains("* primary quantity"));
    }
    let said = "The primary quantity is WRITE 3 mean, which takes the most time";
    assert!(c.method[0].contains(said), "{}", c.method[0]);
}

/// "No evidence" comes with a way to find a change: the number of recordings, and the smaller number if the quantity is primary.
#[test]
fn no_evidence_has_the_cheapest_way_to_find_it() {
    // Two operations: the one with less time is not primary.
    let two = |seed: u64, differ: f64| {
        let slower = (0.05 * differ).exp();
        let parts = [
            ("3", "read", 500.0, 3e-3 * slower, 0.0),
            ("3", "write", 500.0, 5e-3 * slower, 0.0),
        ];
        mixed("two", seed, &parts)
    };
    let side = |seed: u64, differ: [f64; 3]| -> Vec<Recording> {
        (seed..).zip(differ).map(|(seed, z)| two(seed, z)).collect()
    };
    let (before, after) = (side(1, [-1.0, 0.0, 1.0]), side(4, [0.9, -1.2, 0.4]));
    let c = compare_all(&before, &after, &Options::default());
    let of = |quantity: &Quantity| row(&c, is_op("write"), quantity);
    assert_eq!(of(&Quantity::Mean).verdict, Verdict::NoEvidence);
    let mean = &c.next[0];
    let n = of(&Quantity::Mean)
        .components
        .unwrap()
        .recordings_to_find
        .unwrap();
    let said = format!("({:.0} more than now)", n - 3.0);
    assert!(
        mean.starts_with("WRITE 3 mean: ") && mean.contains(&said),
        "{mean}"
    );
    assert!(!mean.contains("--primary"), "{mean}");
    let components = row(&c, is_op("read"), &Quantity::Mean).components.unwrap();
    let (all, first) = (
        components.recordings_to_find.unwrap(),
        components.recordings_to_find_first.unwrap(),
    );
    assert!(first < all, "{components:?}");
    let said = format!("In the next comparison {first:.0} are enough with --primary read:mean");
    assert!(c.next.iter().any(|n| n.contains(&said)), "{:?}", c.next);
}
