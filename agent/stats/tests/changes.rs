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

#[test]
fn a_series_without_a_change_has_none() {
    let mut random = SmallRng::seed_from_u64(30);
    for (correlation, noise) in [(0.0, 0.0), (0.3, 0.0), (0.6, 0.0), (0.6, 1.0), (0.9, 0.0)] {
        let (mut found, mut refused) = (0u32, 0u32);
        let all = 600;
        for _ in 0..all {
            match change_points(&series(&mut random, 2880, correlation, noise), 0.05) {
                None => refused += 1,
                Some(points) => found += u32::from(!points.is_empty()),
            }
        }
        let [found, refused] = [found, refused].map(|n| f64::from(n) / f64::from(all));
        println!(
            "correlation {correlation}, noise {noise}: found {found:.3}, refused {refused:.3}"
        );
        // 600 series tell 5 % to within 1.5 % or so.
        assert!(found <= 0.065, "{correlation} {noise}: {found}");
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
