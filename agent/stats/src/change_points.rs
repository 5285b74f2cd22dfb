//! Change points of a series: where its distribution changed.
//!
//! E-divisive (D. S. Matteson and N. A. James, A nonparametric approach for multiple change point analysis of multivariate data, JASA
//! 109, 2014): the split whose two sides have the largest energy distance is tested by permutations, and its sides are split again
//! until nothing is found. Permutations take observations to be exchangeable, and windows of a server are not. The method is therefore
//! applied to means of batches, which are as long as it takes for neighbours to be uncorrelated.

use crate::interval::{CONFIDENCE, Interval, students_t};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

/// Permutations of each test; the smallest p value is one in so many and one.
const PERMUTATIONS: usize = 199;
/// More batches only take more time.
const MAX_BATCHES: usize = 160;
/// With fewer batches nothing is said.
const MIN_BATCHES: usize = 20;
/// Batches of the shortest stretch between two changes.
const SHORTEST: usize = 5;
/// Correlation of neighbouring batches that counts as none.
const UNCORRELATED: f64 = 0.03;
/// Changes that are looked for; a series with more is no series of levels.
const MOST: usize = 20;

/// A change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// Position of the first value after the change.
    pub at: usize,
    /// The level before, until the previous change.
    pub before: f64,
    /// The level after, until the next change.
    pub after: f64,
    /// After less before.
    pub difference: Interval,
    /// Probability of such a split in a series without a change here.
    pub p: f64,
}

/// The changes of a series in order, each with a p value of at most `level`. `None` where neighbouring values are so correlated, or
/// so few, that there are no batches to test.
pub fn change_points(values: &[f64], level: f64) -> Option<Vec<ChangePoint>> {
    let (size, batches) = batches(values)?;
    // The same result each time: a seed of our own.
    let mut random = SmallRng::seed_from_u64(values.len() as u64);
    let mut ends = vec![0, batches.len()];
    let mut found: Vec<(usize, f64)> = Vec::new();
    while found.len() < MOST {
        let segments = || ends.windows(2).map(|w| (w[0], w[1]));
        let best = segments()
            .filter_map(|(from, to)| {
                let (at, q) = split(&batches[from..to])?;
                Some((from + at, q))
            })
            .max_by(|a, b| a.1.total_cmp(&b.1));
        let Some((at, q)) = best else { break };
        let mut larger = 0;
        for _ in 0..PERMUTATIONS {
            let mut shuffled = batches.clone();
            let mut most = 0.0f64;
            for (from, to) in segments() {
                shuffled[from..to].shuffle(&mut random);
                most = most.max(split(&shuffled[from..to]).map_or(0.0, |s| s.1));
            }
            larger += usize::from(most >= q);
        }
        let p = (larger + 1) as f64 / (PERMUTATIONS + 1) as f64;
        if p > level {
            break;
        }
        found.push((at, p));
        ends.push(at);
        ends.sort_unstable();
    }
    found.sort_unstable_by_key(|(at, _)| *at);
    let points = found.iter().map(|(at, p)| {
        let place = ends.iter().position(|e| e == at).unwrap_or(0);
        let before = &batches[ends[place - 1]..*at];
        let after = &batches[*at..ends[place + 1]];
        let (before, after, difference) = step(before, after);
        ChangePoint {
            at: place_of(values, at * size, size, before, after),
            before,
            after,
            difference,
            p: *p,
        }
    });
    Some(points.collect())
}

/// The position, within a batch of this one, at which the values fit the two levels best.
fn place_of(values: &[f64], at: usize, size: usize, before: f64, after: f64) -> usize {
    let (from, to) = (at - size, (at + size).min(values.len()));
    // How much better each value fits the level before than the one after.
    let mut sum = 0.0f64;
    let mut best = (0.0, from);
    for (i, v) in values[from..to].iter().enumerate() {
        sum += (v - after).powi(2) - (v - before).powi(2);
        if sum > best.0 {
            best = (sum, from + i + 1);
        }
    }
    best.1
}

/// Means of stretches that are long enough to be uncorrelated, and how long they are.
fn batches(values: &[f64]) -> Option<(usize, Vec<f64>)> {
    let n = values.len() as f64;
    let mut size = values.len().div_ceil(MAX_BATCHES).max(1);
    // At the upper end of what the series allows, as in an autoregression.
    let r = (correlation(values) + 2.0 / n.sqrt()).clamp(0.0, 0.99);
    while size < values.len() && of_batches(r, size as f64) > UNCORRELATED {
        size += 1;
    }
    while values.len() / size >= MIN_BATCHES {
        let means: Vec<f64> = values
            .chunks_exact(size)
            .map(|c| c.iter().sum::<f64>() / size as f64)
            .collect();
        // Not every series is an autoregression. Of few batches the correlation is known badly.
        if correlation(&means) <= 1.8 / (means.len() as f64).sqrt() {
            return Some((size, means));
        }
        size += size.div_ceil(4);
    }
    None
}

/// Correlation of the means of neighbouring batches of an autoregression.
fn of_batches(r: f64, m: f64) -> f64 {
    let rest = 1.0 - r.powf(m);
    r * rest * rest / (m * (1.0 - r * r) - 2.0 * r * rest)
}

/// Correlation of neighbours from their differences, which a change of level hardly touches: the variances of differences over
/// one and over two steps are proportional to 1 - r(1) and 1 - r(2), and r(2) = r(1)² in an autoregression.
fn correlation(z: &[f64]) -> f64 {
    let square = |step: usize| {
        let each = z.windows(step + 1).map(|w| (w[step] - w[0]).powi(2));
        let mut d: Vec<f64> = each.collect();
        d.sort_unstable_by(f64::total_cmp);
        // Without the largest, which are the changes of level themselves.
        d.truncate(d.len() - d.len().div_ceil(7));
        d.iter().sum::<f64>() / d.len().max(1) as f64
    };
    let (one, two) = (square(1), square(2));
    // (1 - r²) / (1 - r) = 1 + r.
    // A series of equal values has none.
    if one > 0.0 { two / one - 1.0 } else { 0.0 }
}

/// The best split of a stretch, and its scaled energy distance.
fn split(z: &[f64]) -> Option<(usize, f64)> {
    let n = z.len();
    if n < 2 * SHORTEST {
        return None;
    }
    let distance = |i: usize, j: usize| (z[i] - z[j]).abs();
    // Sums of distances: within the first part, within the second, and across.
    let (mut first, mut second, mut across) = (0.0, 0.0, 0.0);
    for i in 0..n {
        for j in i + 1..n {
            second += distance(i, j);
        }
    }
    let mut best: Option<(usize, f64)> = None;
    for at in 1..=n - SHORTEST {
        // One more goes to the first part.
        let moved = at - 1;
        let to_first: f64 = (0..moved).map(|i| distance(i, moved)).sum();
        let to_second: f64 = (at..n).map(|j| distance(moved, j)).sum();
        first += to_first;
        across += to_second - to_first;
        second -= to_second;
        if at < SHORTEST {
            continue;
        }
        let (a, b) = (at as f64, (n - at) as f64);
        let energy =
            2.0 * across / (a * b) - 2.0 * first / (a * (a - 1.0)) - 2.0 * second / (b * (b - 1.0));
        let q = a * b / (a + b) * energy;
        if best.is_none_or(|(_, most)| q > most) {
            best = Some((at, q));
        }
    }
    best
}

/// Both levels, and their difference by Student's t with one variance.
fn step(before: &[f64], after: &[f64]) -> (f64, f64, Interval) {
    let moments = |z: &[f64]| {
        let n = z.len() as f64;
        let mean = z.iter().sum::<f64>() / n;
        (n, mean, z.iter().map(|v| (v - mean).powi(2)).sum::<f64>())
    };
    let ((n, b, of_b), (m, a, of_a)) = (moments(before), moments(after));
    let dof = n + m - 2.0;
    let error = ((of_b + of_a) / dof * (1.0 / n + 1.0 / m)).sqrt();
    let half = students_t(CONFIDENCE, dof) * error;
    let difference = Interval {
        value: a - b,
        low: a - b - half,
        high: a - b + half,
    };
    (b, a, difference)
}
