//! Change points: the rates of false alarms and of changes found.
#![allow(missing_docs, clippy::unwrap_used)]

use nfscope_stats::change_points;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, StandardNormal};

/// An autoregression, with noise of single windows on top.
fn series(random: &mut SmallRng, n: usize, correlation: f64, noise: f64) -> Vec<f64> {
    let mut state: f64 = StandardNormal.sample(random);
    let mut values = Vec::new();
    for _ in 0..n {
        let z: f64 = StandardNormal.sample(random);
        state = correlation * state + (1.0 - correlation * correlation).sqrt() * z;
        let e: f64 = StandardNormal.sample(random);
        values.push(state + noise * e);
    }
    values
}

/// The rate of false alarms. The permutation test is exact for values without correlation; the others are to be no worse.
#[test]
fn a_series_without_a_change_has_none() {
    let mut random = SmallRng::seed_from_u64(30);
    let day = 2880;
    for (n, correlation, noise) in [
        (day, 0.0, 0.0),
        (day, 0.3, 0.0),
        (day, 0.6, 0.0),
        (day, 0.6, 1.0),
        (day, 0.9, 0.0),
        (day, 0.9, 1.0),
        (360, 0.0, 0.0),
        (360, 0.6, 1.0),
        (180, 0.0, 0.0),
        (180, 0.3, 0.0),
        (180, 0.6, 0.0),
        (180, 0.6, 1.0),
        (600, 0.0, 0.0),
        (600, 0.3, 0.0),
        (600, 0.6, 0.0),
        (600, 0.9, 0.0),
        // A wave below the noise, which hardly any correlation shows.
        (180, 0.9, 1.0),
        (360, 0.9, 1.0),
        (180, 0.9, 2.0),
        (360, 0.9, 2.0),
        (600, 0.9, 2.0),
        (180, 0.9, 3.0),
    ] {
        let (mut found, mut refused) = (0u32, 0u32);
        let all = 1500;
        for _ in 0..all {
            match change_points(&series(&mut random, n, correlation, noise), 0.05) {
                None => refused += 1,
                Some(points) => found += u32::from(!points.is_empty()),
            }
        }
        let [found, refused] = [found, refused].map(|n| f64::from(n) / f64::from(all));
        println!(
            "{n} windows, correlation {correlation}, noise {noise}: found {found:.4}, refused {refused:.3}"
        );
        // The limit is 5 % and a standard error of 1,500 series.
        assert!(found <= 0.055, "{correlation} {noise}: {found}");
    }
}

/// Large changes are found even in a short recording: half an hour in windows of ten seconds, the second half at another level.
#[test]
fn half_an_hour_shows_a_large_change() {
    let mut random = SmallRng::seed_from_u64(33);
    for (correlation, noise, by, least) in [
        (0.0, 0.0, 1.5, 0.85),
        (0.0, 0.0, 2.0, 0.9),
        (0.3, 0.0, 2.0, 0.7),
    ] {
        let all = 300;
        let found = (0..all)
            .filter(|_| {
                let mut values = series(&mut random, 180, correlation, noise);
                values[90..].iter_mut().for_each(|v| *v += by);
                let points = change_points(&values, 0.05).unwrap_or_default();
                points.iter().any(|p| p.at.abs_diff(90) <= 10)
            })
            .count();
        let found = found as f64 / f64::from(all);
        println!("180 windows, correlation {correlation}, a change by {by}: found {found:.3}");
        assert!(found >= least, "{correlation} {by}: {found}");
    }
}

#[test]
fn changes_are_found_where_they_are() {
    let mut random = SmallRng::seed_from_u64(31);
    for correlation in [0.0, 0.3, 0.6] {
        let (mut found, mut near, all) = (0, 0, 60);
        for _ in 0..all {
            let mut values = series(&mut random, 2880, correlation, 0.0);
            values[960..1920].iter_mut().for_each(|v| *v += 1.0);
            let Some(points) = change_points(&values, 0.05) else {
                continue;
            };
            found += i32::from(points.len() == 2);
            let is_near = |at: usize| points.iter().any(|p| p.at.abs_diff(at) <= 100);
            near += i32::from(is_near(960) && is_near(1920));
            if let [first, _] = &points[..] {
                assert!((first.difference.value - 1.0).abs() < 0.7, "{first:?}");
                assert!(first.difference.low > 0.0);
            }
        }
        println!(
            "correlation {correlation}: both changes and no other in {found} of {all}, near {near}"
        );
        assert!(found * 4 >= all * 3 && near * 4 >= all * 3);
    }
}

#[test]
fn too_little_is_not_searched() {
    assert_eq!(change_points(&[1.0; 19], 0.05), None);
    // All stretches of a slow wave are correlated with others.
    let wave: Vec<f64> = (0..100).map(|i| (f64::from(i) / 30.0).sin()).collect();
    assert_eq!(change_points(&wave, 0.05), None);
}
