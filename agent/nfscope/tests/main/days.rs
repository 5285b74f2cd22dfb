//! Whole days: the day is the unit, and its hours are compared with the same hours of other days.

use crate::fixture::chance;
use crate::fixture::recorder::{Place, ask};
use crate::fixture::recordings::by_the_hour;
use crate::fixture::work::{is_op, row};
use nfscope_baseline::compare::result::{Comparison, Quantity, Verdict};
use nfscope_baseline::compare::{Match, Options, Sides, compare_sides};
use nfscope_baseline::recording::Recording;
use nfscope_baseline::series::{Grid, SeriesSet};
use nfscope_baseline::store::Store;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::f64::consts::TAU;

/// `n` days with a daily wave, at whose peak a WRITE takes nine times as long as at its trough. They differ by this standard deviation (of
/// the logarithm).
fn days(random: &mut SmallRng, n: usize, differ: f64, slower: f64) -> Vec<Recording> {
    let each = (0..n).map(|_| {
        let z: f64 = (0..12).map(|_| random.random_range(-0.5..0.5)).sum();
        let level = 5e-3 * slower * (differ * z).exp();
        let wave = move |hour: f64| level * (1.0 + 0.8 * (hour / 24.0 * TAU).sin());
        by_the_hour("day", random.random_range(1..1_000_000), 72, 1200, wave)
    });
    each.collect()
}

/// Compares recordings by the hour of the day.
pub fn by_hour(before: &[Recording], after: &[Recording]) -> Comparison {
    let hourly = |r: &Recording| {
        let windows = r.windows.iter().cloned().map(Ok);
        SeriesSet::on_grid(r.metadata.clone(), r.series.clone(), Grid::Hours, windows).unwrap()
    };
    let [before, after] = [before, after].map(|all| all.iter().map(hourly).collect::<Vec<_>>());
    let options = Options {
        matching: Some(Match::Hour),
        ..Options::default()
    };
    let sides = Sides {
        before: &before,
        after: &after,
        earlier: &[],
    };
    compare_sides(&sides, &options)
}

/// Whole tables of unchanged servers, with two, three and five days on each side that differ by 0 to 10 %; and tables with a change by 10
/// %.
#[test]
fn the_day_is_the_unit_of_several_days() {
    let tries = chance::tries(20);
    let mut random = SmallRng::seed_from_u64(81);
    let (mut all, mut wrong) = (0, 0);
    for n in [2, 3, 5] {
        for differ in [0.0, 0.03, 0.1] {
            let (mut here, mut found) = (0, 0);
            for _ in 0..tries {
                let before = days(&mut random, n, differ, 1.0);
                let c = by_hour(&before, &days(&mut random, n, differ, 1.0));
                here += u64::from(c.rows.iter().any(|r| r.verdict.is_change()));
                let c = by_hour(&before, &days(&mut random, n, differ, 1.1));
                let mean = row(&c, is_op("write"), &Quantity::Mean);
                found += u64::from(mean.verdict == Verdict::Worse);
            }
            println!(
                "{n} days a side that differ by {differ}: a verdict without a change in {here} of {tries}, 10 % found in {found}"
            );
            assert!(here <= chance::most(tries, 0.05), "{n} {differ}: {here}");
            // Power of Student's t at 4 %: 74 % with three days that differ by 3 %, and 99 % with five.
            let least = match (n, differ) {
                (3, 0.03) => 0.65,
                (5, 0.03) | (2.., 0.0) => 0.9,
                _ => 0.0,
            };
            assert!(
                found >= chance::fewest(tries, least),
                "{n} {differ}: {found}"
            );
            (all, wrong) = (all + tries, wrong + here);
        }
    }
    println!("any verdict without a change in {wrong} of {all}");
    assert!(wrong <= chance::most(all, 0.05), "{wrong} of {all}");
}

/// Recordings of whole days are compared by days without --match, and the wave hides no change.
#[test]
fn whole_days_are_days_without_an_option() {
    let mut random = SmallRng::seed_from_u64(82);
    let (before, after) = (
        days(&mut random, 3, 0.01, 1.0),
        days(&mut random, 3, 0.01, 1.1),
    );
    let place = Place::new("days");
    let path = place.store();
    let mut store = Store::create(&path).unwrap();
    for (side, all) in [("mon", before), ("tue", after)] {
        for (i, mut r) in all.into_iter().enumerate() {
            r.metadata.name = format!("{side}-{i}");
            store.put(&r).unwrap();
        }
    }
    drop(store);
    let sides = ["compare", "mon-0,mon-1,mon-2", "tue-0,tue-1,tue-2"];
    let asked = |more: &[&str]| ask(&path, &[&sides[..], more, &["--fail-on", "worse"]].concat());
    let (code, out, err) = asked(&[]);
    assert_eq!(code, 4, "{out}{err}");
    assert!(
        err.contains("whole days") && err.contains("--match none"),
        "{err}"
    );
    let (same, with, _) = asked(&["--match", "hour"]);
    assert_eq!((same, with), (code, out));
    // Each recording as a whole: the difference between hours of a day hides that between days.
    let (code, out, err) = asked(&["--match", "none"]);
    assert!(
        code == 0 && !err.contains("whole days"),
        "{code} {out}{err}"
    );
}
