//! Change points: how often they are found where there are none, and where they are.
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
        // 5 %, and two and a half standard errors of 1,500 series.
        assert!(found <= 0.064, "{correlation} {noise}: {found}");
    }
}

/// Few windows do not tell a slow and weak wave from a change: what the documentation says of that holds.
#[test]
fn slow_waves_in_few_windows_look_like_changes() {
    let mut random = SmallRng::seed_from_u64(32);
    for (n, noise, most) in [
        (180, 1.0, 0.09),
        (360, 1.0, 0.064),
        (180, 2.0, 0.21),
        (600, 2.0, 0.12),
    ] {
        let all = 1000;
        let found = (0..all)
            .filter(|_| {
                let points = change_points(&series(&mut random, n, 0.9, noise), 0.05);
                points.is_some_and(|p| !p.is_empty())
            })
            .count();
        let found = found as f64 / f64::from(all);
        println!("{n} windows, correlation 0.9, noise {noise}: found {found:.4}");
        assert!(found <= most, "{n} {noise}: {found}");
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
    // A slow wave has no two stretches that do not resemble each other.
    let wave: Vec<f64> = (0..100).map(|i| (f64::from(i) / 30.0).sin()).collect();
    assert_eq!(change_points(&wave, 0.05), None);
}
