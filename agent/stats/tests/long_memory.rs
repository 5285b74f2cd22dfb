//! Series that no autoregression describes: long memory, bursts, and waves below the noise of single windows. How often an interval or a
//! change is wrong there, how often such a series is recognized, and how often another one is taken for it.
#![allow(missing_docs, clippy::unwrap_used)]

use nfscope_model::{Scheme, Sparse};
use nfscope_stats::{
    CONFIDENCE, Estimate, Looks, MIN_EFFECT, MIN_STRETCHES, MIN_WINDOWS_OF_TEST, Memory,
    change_points, quantile, quantile_memory, ratio, replicated,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use statrs::distribution::{Binomial, DiscreteCDF};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// Waves of all lengths, the longer ones hardly weaker: a Hurst exponent of 0.85 from one window to thousands.
    LongMemory,
    /// Windows of which one in twenty is three times as slow, in spells of ten windows on average.
    Bursts,
    /// An autoregression of 0.9 below noise of single windows that is twice as strong.
    WaveBelowNoise,
    /// Nothing but neighbours that resemble each other.
    Autoregression(f64),
    /// Means of six independent values, as a smoothed series has them.
    MovingAverage,
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
    /// A slow spell has come.
    has_burst: bool,
    /// Last values that a moving average is made of.
    last: [f64; 6],
}

impl<'a> Series<'a> {
    fn new(kind: Kind, random: &'a mut SmallRng) -> Self {
        let waves = std::array::from_fn(|_| StandardNormal.sample(random));
        let is_slow = random.random_bool(0.05);
        let last = match kind {
            Kind::MovingAverage => std::array::from_fn(|_| StandardNormal.sample(random)),
            _ => [0.0; 6],
        };
        Series {
            kind,
            random,
            waves,
            is_slow,
            has_burst: false,
            last,
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
                self.has_burst |= self.is_slow;
                let level = if self.is_slow { 3.0 } else { 1.0 };
                level / 1.1 * (0.1 * self.normal() - 0.005).exp()
            }
            Kind::WaveBelowNoise => {
                self.waves[0] = 0.9 * self.waves[0] + 0.19f64.sqrt() * self.normal();
                let z = (self.waves[0] + 2.0 * self.normal()) / 5.0f64.sqrt();
                (0.2 * z - 0.02).exp()
            }
            Kind::Autoregression(r) => {
                self.waves[0] = r * self.waves[0] + (1.0 - r * r).sqrt() * self.normal();
                (0.2 * self.waves[0] - 0.02).exp()
            }
            Kind::MovingAverage => {
                self.last.rotate_left(1);
                self.last[5] = self.normal();
                let z = self.last.iter().sum::<f64>() / 6.0f64.sqrt();
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
                _ => [[0.78; 2], [0.92; 2], [0.95; 2], [0.96; 2]][i],
            };
            assert!(
                told > 0 && is_documented(share, documented, told),
                "{kind:?} {n}: {share}"
            );
        }
    }
}

/// Recordings of a class without an interval, because it is recognized.
#[test]
fn series_are_recognized() {
    let mut random = SmallRng::seed_from_u64(65);
    let steady = [0.0, 0.3, 0.6, 0.9].map(Kind::Autoregression);
    let smoothed = [Kind::MovingAverage];
    for kind in ALL.into_iter().chain(steady).chain(smoothed) {
        for (i, n) in [36, 180, 360, 1440].into_iter().enumerate() {
            let (all, ones) = (400, vec![1.0; n]);
            let refused = (0..all)
                .filter(|_| Memory::of_ratio(&values(kind, n, &mut random), &ones).is_long())
                .count() as u32;
            let share = f64::from(refused) / f64::from(all);
            println!("{kind:?}, {n} windows: {refused} of {all} have no interval");
            let documented = match kind {
                // There is no test of so few windows.
                _ if n < MIN_WINDOWS_OF_TEST => [0.0, 0.0],
                Kind::LongMemory => [[0.0; 2], [0.49; 2], [0.91; 2], [1.0; 2]][i],
                Kind::Bursts => [0.0, 0.02],
                Kind::WaveBelowNoise => [[0.0; 2], [0.52; 2], [0.82; 2], [1.0; 2]][i],
                Kind::Autoregression(r) if r > 0.6 => [0.02, 0.08],
                Kind::Autoregression(_) => [0.0, 0.03],
                Kind::MovingAverage => [0.3, 1.0],
            };
            assert!(
                is_documented(share, documented, all),
                "{kind:?} {n}: {share}"
            );
        }
    }
}

/// Autoregressions are hardly ever taken for a long memory, from the least number of windows of the test on, and never before.
#[test]
fn a_short_series_is_not_called_long() {
    let mut random = SmallRng::seed_from_u64(68);
    for r in [0.0, 0.3, 0.6] {
        for n in [10, 20, MIN_WINDOWS_OF_TEST - 1, MIN_WINDOWS_OF_TEST, 90] {
            let (all, ones) = (1000, vec![1.0; n]);
            let kind = Kind::Autoregression(r);
            let refused = (0..all)
                .filter(|_| Memory::of_ratio(&values(kind, n, &mut random), &ones).is_long())
                .count() as u32;
            println!("correlation {r}, {n} windows: {refused} of {all} are called long");
            let most = if n < MIN_WINDOWS_OF_TEST { 0.0 } else { 0.03 };
            let is_few = if most > 0.0 {
                is_at_most(refused, most, all)
            } else {
                refused == 0
            };
            assert!(is_few, "{r} {n}: {refused}");
        }
    }
}

/// Outcomes of measurements that end when the interval of their mean is narrow.
#[derive(Debug, Clone, Copy, Default)]
struct Ends {
    ended: u32,
    missed: u32,
    /// Misses after a burst had come.
    missed_burst: u32,
    /// Measurements that end without a look at memory, and miss.
    missed_blindly: u32,
}

fn ends(kind: Kind, wanted: f64, all: u32, random: &mut SmallRng) -> Ends {
    let mut ends = Ends::default();
    for _ in 0..all {
        let mut series = Series::new(kind, random);
        let (mut looks, mut blind) = (Looks::at_windows(), Some(Looks::at_windows()));
        let mut y = Vec::new();
        while y.len() < 2880 {
            y.push(series.next());
            let n = y.len();
            if !looks.is_due(n) {
                continue;
            }
            let ones = vec![1.0; n];
            let e = ratio(&y, &ones).unwrap();
            let i = e.interval(CONFIDENCE);
            let missed = !(i.low..=i.high).contains(&1.0);
            let narrow = (i.high - i.low) / 2.0 / i.value <= wanted;
            if blind
                .as_mut()
                .is_some_and(|looks| looks.enough(n, e.stretches, narrow))
            {
                blind = None;
                ends.missed_blindly += u32::from(missed);
            }
            let memory = Memory::of_ratio(&y, &ones);
            if looks.enough(n, e.stretches, narrow && memory.is_enough()) && memory.is_tested() {
                ends.ended += 1;
                ends.missed += u32::from(missed);
                ends.missed_burst += u32::from(missed && series.has_burst);
                break;
            }
        }
    }
    ends
}

/// True if `found` of `all` are no surprise where the probability is at most this: the exact binomial probability of as many or more is above
/// one in a thousand.
fn is_at_most(found: u32, share: f64, all: u32) -> bool {
    let binomial = Binomial::new(share, u64::from(all)).unwrap();
    found == 0 || binomial.sf(u64::from(found) - 1) > 0.001
}

/// A measurement that ends when its interval is narrow goes on where a series has a long memory, bursts or a wave below its noise. Nothing
/// tells of bursts before the first has come.
#[test]
fn ends_of_measurements() {
    let mut random = SmallRng::seed_from_u64(62);
    let all = 400;
    for kind in ALL {
        for wanted in [0.1, 0.05] {
            let e = ends(kind, wanted, all, &mut random);
            println!("{kind:?}, ±{wanted}, of {all}: {e:?}");
            // Bursts count that have come.
            let missed = if kind == Kind::Bursts {
                e.missed_burst
            } else {
                e.missed
            };
            assert!(is_at_most(missed, 0.03, all), "{kind:?}: {missed}");
            assert!(is_at_most(e.missed, 0.35, all), "{kind:?}: {}", e.missed);
            assert!(
                wanted > 0.05 || e.missed_blindly > 3 * missed.max(10),
                "{kind:?}: {}",
                e.missed_blindly
            );
        }
    }
}

/// A series with a short memory is hardly ever taken for another.
#[test]
fn a_short_memory_ends_a_measurement() {
    let mut random = SmallRng::seed_from_u64(66);
    let all = 400;
    for (correlation, refused) in [(0.0, 0.02), (0.3, 0.03), (0.6, 0.05)] {
        for wanted in [0.1, 0.05] {
            let e = ends(Kind::Autoregression(correlation), wanted, all, &mut random);
            println!("correlation {correlation}, ±{wanted}, of {all}: {e:?}");
            assert!(
                is_at_most(all - e.ended, refused, all),
                "{correlation}: {}",
                e.ended
            );
            assert!(
                is_at_most(e.missed, 0.05, all),
                "{correlation}: {}",
                e.missed
            );
        }
    }
}

/// A window of sixty values around this level, whose logarithms have a deviation of a half.
fn window(level: f64, random: &mut SmallRng) -> Sparse {
    let mut counts = vec![0u64; Scheme::TIME.len];
    for _ in 0..60 {
        let noise: f64 = StandardNormal.sample(random);
        let seconds = 2e-3 * level * (0.5 * noise).exp();
        let bucket = (0..Scheme::TIME.len - 1).find(|i| seconds <= Scheme::TIME.edge(*i));
        counts[bucket.unwrap_or(Scheme::TIME.len - 1)] += 1;
    }
    let filled = counts.into_iter().enumerate().filter(|(_, n)| *n > 0);
    filled.map(|(i, n)| (i as u16, n)).collect()
}

/// Ends of measurements of the median of sixty values in each window.
#[test]
fn ends_of_measurements_of_a_median() {
    let mut random = SmallRng::seed_from_u64(67);
    let all = 100;
    for (kind, refused) in [
        (Kind::LongMemory, None),
        (Kind::WaveBelowNoise, None),
        (Kind::Autoregression(0.0), Some(0.05)),
        (Kind::Autoregression(0.6), Some(0.05)),
    ] {
        let (mut ended, mut missed) = (0, 0);
        for _ in 0..all {
            let mut series = Series::new(kind, &mut random);
            let (mut looks, mut windows) = (Looks::at_windows(), Vec::new());
            for n in 1..=1440 {
                let level = series.next() * (0.02f64).exp();
                windows.push(window(level, series.random));
                if !looks.is_due(n) {
                    continue;
                }
                let e = quantile(&windows, Scheme::TIME, 0.5).unwrap();
                let i = e.interval(CONFIDENCE);
                let narrow = (i.high - i.low) / 2.0 / i.value <= 0.05;
                let memory = quantile_memory(&windows, Scheme::TIME, 0.5).unwrap();
                let narrow = narrow && e.tail.unwrap().is_enough() && !memory.is_long();
                if looks.enough(n, e.stretches, narrow) && memory.is_tested() {
                    ended += 1;
                    missed += u32::from(!(i.low..=i.high).contains(&2e-3));
                    break;
                }
            }
        }
        println!("{kind:?}, median: {ended} of {all} end, {missed} miss");
        assert!(is_at_most(missed, 0.06, all), "{kind:?}: {missed}");
        if let Some(refused) = refused {
            assert!(is_at_most(all - ended, refused, all), "{kind:?}: {ended}");
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
                _ => [0.03, 0.05],
            };
            let share = f64::from(found) / f64::from(all);
            assert!(
                is_documented(share, documented, all),
                "{kind:?} {n}: {found}"
            );
        }
    }
}
