//! Series that no autoregression describes: long memory, bursts, and waves below the noise of single windows. How often an interval or a
//! change is wrong there.
#![allow(missing_docs, clippy::unwrap_used)]

use nfscope_stats::{
    CONFIDENCE, Estimate, Looks, MIN_EFFECT, MIN_STRETCHES, change_points, ratio, replicated,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, StandardNormal};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// Waves of all lengths, the longer ones hardly weaker: a Hurst exponent of 0.85 from one window to thousands.
    LongMemory,
    /// Windows of which one in twenty is three times as slow, in spells of ten windows on average.
    Bursts,
    /// An autoregression of 0.9 below noise of single windows that is twice as strong.
    WaveBelowNoise,
}

const ALL: [Kind; 3] = [Kind::LongMemory, Kind::Bursts, Kind::WaveBelowNoise];

/// Lengths of the waves of a long memory.
const LENGTHS: [f64; 7] = [1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0];
/// Correlations fall with the distance k as k to the power of 2 H - 2.
const HURST: f64 = 0.85;

/// Values of consecutive windows, with a mean of 1 and a deviation of some 20 % for most.
struct Series<'a> {
    kind: Kind,
    random: &'a mut SmallRng,
    waves: [f64; LENGTHS.len()],
    is_slow: bool,
}

impl<'a> Series<'a> {
    fn new(kind: Kind, random: &'a mut SmallRng) -> Self {
        let waves = std::array::from_fn(|_| StandardNormal.sample(random));
        let is_slow = random.random_bool(0.05);
        Series {
            kind,
            random,
            waves,
            is_slow,
        }
    }

    fn normal(&mut self) -> f64 {
        StandardNormal.sample(self.random)
    }

    fn next(&mut self) -> f64 {
        match self.kind {
            Kind::LongMemory => {
                let weights = LENGTHS.map(|l| l.powf(2.0 * HURST - 2.0));
                let all: f64 = weights.iter().sum();
                let mut sum = 0.0;
                for (i, length) in LENGTHS.iter().enumerate() {
                    let r = if i == 0 { 0.0 } else { (-1.0 / length).exp() };
                    self.waves[i] = r * self.waves[i] + (1.0 - r * r).sqrt() * self.normal();
                    sum += (weights[i] / all).sqrt() * self.waves[i];
                }
                (0.2 * sum - 0.02).exp()
            }
            Kind::Bursts => {
                let turns = if self.is_slow { 0.1 } else { 0.1 * 0.05 / 0.95 };
                self.is_slow ^= self.random.random_bool(turns);
                let level = if self.is_slow { 3.0 } else { 1.0 };
                level / 1.1 * (0.1 * self.normal() - 0.005).exp()
            }
            Kind::WaveBelowNoise => {
                self.waves[0] = 0.9 * self.waves[0] + 0.19f64.sqrt() * self.normal();
                let z = (self.waves[0] + 2.0 * self.normal()) / 5.0f64.sqrt();
                (0.2 * z - 0.02).exp()
            }
        }
    }
}

fn values(kind: Kind, n: usize, random: &mut SmallRng) -> Vec<f64> {
    let mut series = Series::new(kind, random);
    (0..n).map(|_| series.next()).collect()
}

/// Returns true if a share of `of` series is within the range in docs/statistics.md, by three standard errors and half a percent of
/// rounding.
fn is_documented(share: f64, [low, high]: [f64; 2], of: u32) -> bool {
    let chance = |p: f64| 3.0 * (p * (1.0 - p) / f64::from(of.max(1))).sqrt() + 0.005;
    share >= low - chance(low) && share <= high + chance(high)
}

/// Recordings with an interval that has the true mean.
#[test]
fn intervals_of_recordings() {
    let mut random = SmallRng::seed_from_u64(61);
    for kind in ALL {
        for (i, n) in [36, 180, 360, 2880].into_iter().enumerate() {
            let (mut told, mut held) = (0u32, 0u32);
            let all = 400;
            for _ in 0..all {
                let y = values(kind, n, &mut random);
                let e = ratio(&y, &vec![1.0; n]).unwrap();
                if e.stretches < MIN_STRETCHES {
                    continue;
                }
                let i = e.interval(CONFIDENCE);
                told += 1;
                held += u32::from((i.low..=i.high).contains(&1.0));
            }
            let share = f64::from(held) / f64::from(told.max(1));
            println!(
                "{kind:?}, {n} windows: {told} of {all} have an interval, {share:.3} of them hold"
            );
            // A recording shows nothing of waves longer than itself, or of spells that did not come.
            let documented = match kind {
                Kind::LongMemory => [0.61, 0.72],
                Kind::Bursts => [[0.07; 2], [0.51; 2], [0.71; 2], [0.89; 2]][i],
                Kind::WaveBelowNoise => [[0.78; 2], [0.92; 2], [0.95; 2], [0.96; 2]][i],
            };
            assert!(
                told > 0 && is_documented(share, documented, told),
                "{kind:?} {n}: {share}"
            );
        }
    }
}

/// A measurement that ends when its interval is narrow.
#[test]
fn ends_of_measurements() {
    let mut random = SmallRng::seed_from_u64(62);
    for kind in ALL {
        for wanted in [0.1, 0.05] {
            let all = 400;
            let (mut ended, mut missed) = (0u32, 0u32);
            for _ in 0..all {
                let y = values(kind, 2880, &mut random);
                let mut looks = Looks::at_windows();
                for n in 1..=y.len() {
                    if !looks.is_due(n) {
                        continue;
                    }
                    let e = ratio(&y[..n], &vec![1.0; n]).unwrap();
                    let i = e.interval(CONFIDENCE);
                    if looks.enough(n, e.stretches, (i.high - i.low) / 2.0 / i.value <= wanted) {
                        ended += 1;
                        missed += u32::from(!(i.low..=i.high).contains(&1.0));
                        break;
                    }
                }
            }
            println!(
                "{kind:?}, ±{wanted}: {ended} of {all} end within 2880 windows, {missed} end and miss"
            );
            let documented = match kind {
                Kind::LongMemory => 0.33,
                Kind::Bursts => 0.79,
                Kind::WaveBelowNoise => 0.15,
            };
            let share = f64::from(missed) / f64::from(all);
            assert!(
                ended > 0 && (wanted > 0.05 || is_documented(share, [documented; 2], all)),
                "{kind:?}: {share}"
            );
        }
    }
}

/// Three recordings on each side of an unchanged server, one in two hours: the recording is the unit.
#[test]
fn recordings_on_each_side() {
    let mut random = SmallRng::seed_from_u64(64);
    for kind in ALL {
        let all = 2000;
        let mut found = 0u32;
        for _ in 0..all {
            let mut series = Series::new(kind, &mut random);
            let recordings: Vec<Estimate> = (0..6)
                .map(|_| {
                    let y: Vec<f64> = (0..180).map(|_| series.next()).collect();
                    for _ in 0..540 {
                        series.next();
                    }
                    ratio(&y, &vec![1.0; y.len()]).unwrap()
                })
                .collect();
            let (before, after) = recordings.split_at(3);
            // Single recordings on each side show no variance between recordings, so there is no verdict without earlier ones.
            let one = replicated(&before[..1], &after[..1], &[], MIN_EFFECT, 0.0);
            assert_eq!(one, None);
            let change = replicated(before, after, &[], MIN_EFFECT, 0.0)
                .unwrap()
                .change;
            found += u32::from(change.p <= 0.05);
        }
        let share = f64::from(found) / f64::from(all);
        println!("{kind:?}, three recordings on each side: a change in {share:.3}");
        let documented = if kind == Kind::LongMemory { 0.025 } else { 0.0 };
        assert!(
            share <= 0.05 && is_documented(share, [documented; 2], all),
            "{kind:?}: {share}"
        );
    }
}

/// Changes in series that have none.
#[test]
fn false_changes() {
    let mut random = SmallRng::seed_from_u64(63);
    for kind in ALL {
        for n in [180, 600, 2880] {
            let (mut found, mut refused) = (0u32, 0u32);
            let all = 400;
            for _ in 0..all {
                match change_points(&values(kind, n, &mut random), 0.05) {
                    None => refused += 1,
                    Some(points) => found += u32::from(!points.is_empty()),
                }
            }
            println!(
                "{kind:?}, {n} windows: a change in {found}, not searched {refused}, of {all}"
            );
            let documented = match kind {
                Kind::LongMemory => [0.05, 0.13],
                Kind::Bursts => [0.04, 0.13],
                Kind::WaveBelowNoise => [0.03, 0.05],
            };
            let share = f64::from(found) / f64::from(all);
            assert!(
                is_documented(share, documented, all),
                "{kind:?} {n}: {found}"
            );
        }
    }
}
