//! Change points of a series: where its distribution changed.
//!
//! E-divisive (D. S. Matteson and N. A. James, A nonparametric approach for multiple change point analysis of multivariate data, JASA 109,
//! 2014): the split whose two sides have the largest energy distance is tested by permutations, and its sides are split again until nothing
//! is found. Permutations assume exchangeable observations, and windows of a server are not exchangeable. The method is therefore applied
//! to means of batches, which are long enough to be uncorrelated with their neighbours. A change that permutations find must also exceed
//! the effect of a slow wave that the values may hide.

use crate::interval::{CONFIDENCE, Interval, students_t};
use crate::slow_wave::SlowWave;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

/// Permutations of each test. The smallest p value is 1 / (`PERMUTATIONS` + 1).
const PERMUTATIONS: usize = 199;
/// Most batches: more of them only take more time.
const MAX_BATCHES: usize = 160;
/// Least number of batches for a test.
const MIN_BATCHES: usize = 20;
/// Most random orders that are tried to find one that is uncorrelated.
const MOST_ORDERS: usize = 20;
/// Shortest stretch between two changes, in batches.
const SHORTEST: usize = 5;
/// Largest correlation of neighbouring batches. The test allows for this remaining correlation.
const UNCORRELATED: f64 = 0.1;
/// Steps over which the correlation of batches has vanished.
const FAR: usize = 4;
/// Steps over which the correlation of single values has vanished.
const FARTHEST: usize = 64;
/// Least long-run variance, as a part of the variance. A smaller one counts as an error of its estimate.
const LEAST_LONG_RUN: f64 = 0.25;
/// Most changes that are looked for: a series with more is no series of levels.
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
    /// Level after less the level before.
    pub difference: Interval,
    /// Probability of such a split in a series without a change here.
    pub p: f64,
}

/// The changes of a series in order, each with a p value of at most `level`. `None` where neighbouring values are so correlated, or
/// so few, that there are no batches to test.
pub fn change_points(values: &[f64], level: f64) -> Option<Vec<ChangePoint>> {
    let (size, batches) = batches(values)?;
    // A seed from the series makes the result repeatable.
    let mut random = SmallRng::seed_from_u64(values.len() as u64);
    let mut ends = vec![0, batches.len()];
    let mut found: Vec<(usize, f64)> = Vec::new();
    let p = |larger: usize| (larger + 1) as f64 / (PERMUTATIONS + 1) as f64;
    while found.len() < MOST {
        let Some((at, q)) = best_split(&batches, &ends) else {
            break;
        };
        let mut larger = 0;
        for _ in 0..PERMUTATIONS {
            let shuffled = permuted(&batches, &ends, &mut random);
            let most = best_split(&shuffled, &ends).map_or(0.0, |s| s.1);
            larger += usize::from(most >= q);
            // The p value is too large already, whatever the remaining permutations give.
            if p(larger) > level {
                break;
            }
        }
        let by_order = p(larger);
        if by_order > level {
            break;
        }
        // No order of the batches shows a slow wave below the noise, so it is simulated.
        let wave = SlowWave::of(values, &places(&with(&ends, at), size, values.len()));
        let mut larger = 0;
        for _ in 0..PERMUTATIONS {
            let series = means(&wave.sample(&mut random), size);
            let most = best_split(&series, &ends).map_or(0.0, |s| s.1);
            larger += usize::from(most >= q);
            if p(larger) > level {
                break;
            }
        }
        let p = p(larger).max(by_order);
        if p > level {
            break;
        }
        found.push((at, p));
        ends = with(&ends, at);
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

/// The ends with one more.
fn with(ends: &[usize], at: usize) -> Vec<usize> {
    let mut ends = ends.to_vec();
    ends.push(at);
    ends.sort_unstable();
    ends
}

/// Ends of batches as positions of values; the last stretch has the values that are left over.
fn places(ends: &[usize], size: usize, values: usize) -> Vec<usize> {
    let mut places: Vec<usize> = ends.iter().map(|end| end * size).collect();
    if let Some(last) = places.last_mut() {
        *last = values;
    }
    places
}

/// Means of stretches of this length.
fn means(values: &[f64], size: usize) -> Vec<f64> {
    let chunks = values.chunks_exact(size);
    chunks
        .map(|c| c.iter().sum::<f64>() / size as f64)
        .collect()
}

/// Position of the first value after the change, at most one batch from `at`: the one at which the values fit the two levels best.
fn place_of(values: &[f64], at: usize, size: usize, before: f64, after: f64) -> usize {
    let (from, to) = (at - size, (at + size).min(values.len()));
    // Sum over the values: the squared distance from the level after less that from the level before.
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

/// The best split of all stretches between `ends`, and its energy distance over the long-run variance of the series with that split.
///
/// Permutations of correlated batches are less correlated, and their splits smaller. Where each series is measured by its own long-run
/// variance, both have the same distribution (J. P. Romano and M. A. Tirlea, Permutation testing for dependence in time series, J. of
/// Time Series Analysis 43, 2022). Only neighbours are correlated, because batches are long, and all orders have one variance.
fn best_split(batches: &[f64], ends: &[usize]) -> Option<(usize, f64)> {
    let each = ends.windows(2).filter_map(|segment| {
        let (at, q) = split(&batches[segment[0]..segment[1]])?;
        Some((segment[0] + at, q))
    });
    let (at, q) = each.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let long_run = 1.0 + 2.0 * correlation(batches, &with(ends, at));
    Some((at, q / long_run.max(LEAST_LONG_RUN)))
}

/// Batches in a random order within each segment between `ends`. The order must count as uncorrelated, because batches of the series were
/// chosen by that criterion.
fn permuted(batches: &[f64], ends: &[usize], random: &mut SmallRng) -> Vec<f64> {
    let mut shuffled = batches.to_vec();
    for _ in 0..MOST_ORDERS {
        for segment in ends.windows(2) {
            shuffled[segment[0]..segment[1]].shuffle(random);
        }
        if is_uncorrelated(&shuffled) {
            break;
        }
    }
    shuffled
}

/// Returns true if batches count as uncorrelated. The limit is wide, because the correlation of few batches is known badly.
fn is_uncorrelated(means: &[f64]) -> bool {
    correlation(means, &parted(means)) <= 1.8 / (means.len() as f64).sqrt()
}

/// The ends of the two parts that differ most: a change of level is no correlation.
fn parted(z: &[f64]) -> Vec<usize> {
    let mut ends = vec![0, z.len()];
    if let Some((at, _)) = split(z) {
        ends.insert(1, at);
    }
    ends
}

/// Length of batches long enough that the means of neighbours are uncorrelated, and these means. `None` for too few such batches.
fn batches(values: &[f64]) -> Option<(usize, Vec<f64>)> {
    let mut size = uncorrelated(values).max(values.len().div_ceil(MAX_BATCHES));
    while values.len() / size >= MIN_BATCHES {
        let means = means(values, size);
        if is_uncorrelated(&means) {
            return Some((size, means));
        }
        size += size.div_ceil(4);
    }
    None
}

/// Length of batches whose neighbours are hardly correlated. For values with the correlations r(k) the covariance of two neighbouring sums
/// is the sum of k r(k), and the variance of a sum of m is m (1 + 2 times the sum of r(k)).
fn uncorrelated(values: &[f64]) -> usize {
    let n = values.len();
    let far = (n / 8).clamp(FAR, FARTHEST);
    // The stretches of equal level are found on means. They hold for the values, too, except for a few at the ends of each stretch.
    let size = n.div_ceil(MAX_BATCHES).max(1);
    let all = places(&parted(&means(values, size)), size, n);
    let whole = variogram(values, far, &all);
    let (mut sum, mut moment) = (0.0, 0.0);
    for k in 1..=far / 2 {
        let r = 1.0 - variogram(values, k, &all) / whole;
        // A correlation below this limit is not known to exist, nor is one in a series of equal values. A higher limit would overlook slow
        // and weak waves.
        if r.is_nan() || r < 1.4 / (n as f64).sqrt() {
            break;
        }
        sum += r;
        moment += k as f64 * r;
    }
    (moment / (1.0 + 2.0 * sum) / UNCORRELATED).ceil().max(1.0) as usize
}

/// Mean squared difference of values `step` steps apart, within the stretches between `ends`. The largest differences are left out, because
/// they span a change of level.
fn variogram(z: &[f64], step: usize, ends: &[usize]) -> f64 {
    let mut all: Vec<f64> = Vec::with_capacity(z.len());
    for segment in ends.windows(2) {
        let stretch = z[segment[0]..segment[1]].windows(step + 1);
        all.extend(stretch.map(|w| (w[step] - w[0]).powi(2)));
    }
    let kept = all.len() - all.len().div_ceil(7);
    if kept == 0 {
        return 0.0;
    }
    all.select_nth_unstable_by(kept - 1, f64::total_cmp);
    all[..kept].iter().sum::<f64>() / kept as f64
}

/// Correlation of neighbouring batches, estimated from differences: those over k steps have a variance proportional to 1 - r(k), and over
/// two steps and more the correlation of batches has vanished.
fn correlation(z: &[f64], ends: &[usize]) -> f64 {
    let far: f64 = (2..=FAR).map(|k| variogram(z, k, ends)).sum();
    // A series of equal values has no correlation.
    match far > 0.0 {
        true => 1.0 - variogram(z, 1, ends) * (FAR - 1) as f64 / far,
        false => 0.0,
    }
}

/// The best split of a stretch, and its scaled energy distance.
fn split(z: &[f64]) -> Option<(usize, f64)> {
    let n = z.len();
    if n < 2 * SHORTEST {
        return None;
    }
    // Sums of distances: within the first part, within the second, and across.
    let (mut first, mut across) = (0.0, 0.0);
    let mut second: f64 = (1..n).map(|j| distances(&z[..j], z[j])).sum();
    let mut best: Option<(usize, f64)> = None;
    for at in 1..=n - SHORTEST {
        // The next value moves to the first part.
        let moved = at - 1;
        let to_first = distances(&z[..moved], z[moved]);
        let to_second = distances(&z[at..], z[moved]);
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

/// Sum of the distances of all values from `one`. Four sums run at a time, which a CPU adds to at once.
fn distances(z: &[f64], one: f64) -> f64 {
    let mut sums = [0.0; 4];
    let fours = z.chunks_exact(sums.len());
    let rest = fours.remainder().iter();
    for four in fours {
        for (sum, value) in sums.iter_mut().zip(four) {
            *sum += (value - one).abs();
        }
    }
    sums.iter().sum::<f64>() + rest.map(|value| (value - one).abs()).sum::<f64>()
}

/// Means before and after, and their difference by Student's t with one variance for both.
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
