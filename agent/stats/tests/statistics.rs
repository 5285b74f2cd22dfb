//! Statistics against series whose truth is known: windows of a server whose load resembles that of the window before.
#![allow(missing_docs, clippy::unwrap_used)]

use nfscope_model::{Scheme, Sparse};
use nfscope_stats as stats;
use nfscope_stats::{CONFIDENCE, Estimate, MIN_EFFECT, change};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, StandardNormal};
use statrs::distribution::{ContinuousCDF, Normal};
use std::sync::LazyLock;

/// Series for each figure.
const SERIES: usize = 2000;

/// A server whose windows differ by more than chance: the logarithms of load and latency follow an autoregression.
#[derive(Clone, Copy)]
struct Server {
    windows: usize,
    /// Correlation of a window with the next.
    autocorrelation: f64,
    /// Standard deviation of a window's level, and of single operations around it, of the logarithm of latency.
    between: f64,
    within: f64,
    /// Operations in a window.
    load: f64,
    /// Median latency.
    median: f64,
}

const SERVER: Server = Server {
    windows: 180,
    autocorrelation: 0.6,
    between: 0.3,
    within: 0.8,
    load: 60.0,
    median: 2e-3,
};

/// A recording of the server.
struct Seen {
    counts: Vec<f64>,
    seconds: Vec<f64>,
    spread: Vec<Sparse>,
}

impl Server {
    fn record(&self, random: &mut SmallRng) -> Seen {
        let mut normal = || -> f64 { StandardNormal.sample(random) };
        let (mut level, mut load) = (normal(), normal());
        let fresh = (1.0 - self.autocorrelation * self.autocorrelation).sqrt();
        let mut seen = Seen {
            counts: Vec::new(),
            seconds: Vec::new(),
            spread: Vec::new(),
        };
        for _ in 0..self.windows {
            level = self.autocorrelation * level + fresh * normal();
            load = self.autocorrelation * load + fresh * normal();
            let n = (self.load * (0.2 * load).exp()).round();
            let mut seconds = 0.0;
            let mut buckets = vec![0u64; Scheme::TIME.len];
            for _ in 0..n as u32 {
                let log = self.median.ln() + self.between * level + self.within * normal();
                seconds += log.exp();
                buckets[bucket(log)] += 1;
            }
            seen.counts.push(n);
            seen.seconds.push(seconds);
            let filled = buckets.iter().enumerate().filter(|(_, n)| **n > 0);
            seen.spread
                .push(filled.map(|(i, n)| (i as u16, *n)).collect());
        }
        seen
    }

    /// Quantile of all operations that the server ever does.
    fn quantile(&self, q: f64) -> f64 {
        let sigma = self.between.hypot(self.within);
        self.median * (sigma * Normal::standard().inverse_cdf(q)).exp()
    }

    /// Rate, mean, p50 and p99 of all operations that the server ever does.
    fn truths(&self) -> [f64; 4] {
        let sigma = self.between.hypot(self.within);
        [
            self.load * (0.2f64 * 0.2 / 2.0).exp(),
            self.median * (sigma * sigma / 2.0).exp(),
            self.quantile(0.5),
            self.quantile(0.99),
        ]
    }

    /// Quantile as an estimate from a thousand million operations in buckets.
    fn estimated(&self, q: f64) -> Estimate {
        let sigma = self.between.hypot(self.within);
        let below = |i: usize| {
            let z = (Scheme::TIME.edge(i) / self.median).ln() / sigma;
            Normal::standard().cdf(z)
        };
        let part = |i: usize| below(i) - if i > 0 { below(i - 1) } else { 0.0 };
        let buckets = (0..Scheme::TIME.len).map(|i| (i as u16, (part(i) * 5e7) as u64));
        let window: Sparse = buckets.filter(|(_, n)| *n > 0).collect();
        stats::quantile(&vec![window; 20], Scheme::TIME, q).unwrap()
    }
}

/// Bucket of a logarithm: a faster [`Scheme::bucket`].
fn bucket(log: f64) -> usize {
    static EDGES: LazyLock<Vec<f64>> = LazyLock::new(|| {
        (0..Scheme::TIME.len - 1)
            .map(|i| Scheme::TIME.edge(i).ln())
            .collect()
    });
    EDGES.partition_point(|edge| log > *edge)
}

/// 95 % of the intervals hold the truth, whether windows resemble each other or not; a little less where they resemble each
/// other so much that half an hour has only twenty that do not.
#[test]
fn intervals_cover_the_truth() {
    for (seed, autocorrelation, least) in [
        (1, 0.0, 0.93),
        (2, 0.3, 0.93),
        (3, 0.6, 0.93),
        (4, 0.8, 0.91),
    ] {
        let server = Server {
            autocorrelation,
            ..SERVER
        };
        let truths = server.truths();
        let mut random = SmallRng::seed_from_u64(seed);
        let mut held = [0; 4];
        for _ in 0..SERIES {
            let seen = server.record(&mut random);
            let all = [
                rate(&seen),
                mean(&seen),
                quantile(&seen, 0.5),
                quantile(&seen, 0.99),
            ];
            for ((held, measured), truth) in held.iter_mut().zip(all).zip(truths) {
                let i = measured.interval(CONFIDENCE);
                *held += u32::from((i.low..=i.high).contains(&truth));
            }
        }
        let held = held.map(|n| f64::from(n) / SERIES as f64);
        println!(
            "correlation {autocorrelation}: rate, mean, p50 and p99 are covered in {held:.3?}"
        );
        assert!(held.iter().all(|h| (least..=0.97).contains(h)), "{held:?}");
    }
}

/// Short recordings, too. Where windows resemble each other and have much noise of their own, the noise hides a part of that: twenty
/// such windows hold a little less often.
#[test]
fn intervals_of_short_recordings_cover_the_truth() {
    for (seed, windows, autocorrelation, least) in [
        (11, 20, 0.0, 0.93),
        (12, 20, 0.6, 0.90),
        (13, 36, 0.0, 0.93),
        (14, 36, 0.6, 0.91),
    ] {
        let server = Server {
            windows,
            autocorrelation,
            ..SERVER
        };
        let truths = server.truths();
        let mut random = SmallRng::seed_from_u64(seed);
        let (mut held, mut wrong) = ([0; 4], [0; 4]);
        for _ in 0..SERIES {
            let seen = server.record(&mut random);
            let q = |q| stats::quantile(&seen.spread, Scheme::TIME, q);
            let all = [Some(rate(&seen)), Some(mean(&seen)), q(0.5), q(0.99)];
            for (i, (measured, truth)) in all.into_iter().zip(truths).enumerate() {
                // A refused estimate misses nothing.
                let holds = measured.as_ref().is_none_or(|m| {
                    let i = m.interval(CONFIDENCE);
                    (i.low..=i.high).contains(&truth)
                });
                held[i] += u32::from(holds);
                wrong[i] += u32::from(!holds && measured.is_some_and(|m| m.is_known()));
            }
        }
        let [held, wrong] = [held, wrong].map(|all| all.map(|n| f64::from(n) / SERIES as f64));
        println!(
            "{windows} windows, correlation {autocorrelation}: rate, mean, p50 and p99 are covered in {held:.3?}; known and wrong {wrong:.3?}"
        );
        assert!(held.iter().all(|h| *h >= least), "{held:?}");
        assert!(wrong.iter().all(|w| *w <= 1.0 - least), "{wrong:?}");
    }
}

/// Buckets are 19 % wide, but values between their edges are distinguished far better. If a bucket has too many values for that, the
/// interval is wider.
#[test]
fn buckets_hardly_distort_quantiles() {
    for within in [0.8, 0.4, 0.2, 0.1, 0.05, 0.01] {
        let mut worst = [0.0f64; 2];
        for percent in [50, 90, 99] {
            let q = f64::from(percent) / 100.0;
            for shift in 0..16 {
                let median = SERVER.median * 2f64.powf(f64::from(shift) / 64.0);
                let server = Server {
                    median,
                    between: 0.0,
                    within,
                    ..SERVER
                };
                let (truth, estimate) = (server.quantile(q), server.estimated(q));
                let i = estimate.interval(CONFIDENCE);
                let off = (estimate.value / truth - 1.0).abs();
                let hidden = i.high > i.low * 1.01;
                worst[usize::from(hidden)] = worst[usize::from(hidden)].max(off);
                if hidden {
                    let range = i.low * 0.98..=i.high * 1.02;
                    assert!(range.contains(&truth), "{within} p{percent}: {truth} {i:?}");
                }
            }
        }
        assert!(worst[0] < 0.01, "{within}: off by {}", worst[0]);
        println!(
            "spread {within}: off by {:.4}; {:.4} where it says so",
            worst[0], worst[1]
        );
    }
}

/// Two recordings of one server hardly ever differ in anything.
#[test]
fn nothing_is_found_where_nothing_changed() {
    // In the second, operations of one window are all alike, and a few windows make the p99.
    let moody = Server {
        windows: 60,
        between: 0.5,
        within: 0.05,
        ..SERVER
    };
    for (seed, server) in [(5, SERVER), (7, moody)] {
        let mut random = SmallRng::seed_from_u64(seed);
        let found = (0..SERIES)
            .filter(|_| {
                let (a, b) = (all(&server, &mut random), all(&server, &mut random));
                let p: Vec<f64> = a
                    .iter()
                    .zip(&b)
                    .map(|(a, b)| change(a, b, 0.0, 0.0).p)
                    .collect();
                stats::holm(&p).iter().any(|p| *p <= 0.05)
            })
            .count();
        let share = found as f64 / SERIES as f64;
        println!("something is found in {share:.3} of pairs without a difference");
        assert!(share <= 0.05, "{share}");
    }
}

/// Whatever the latencies are, a p value below 5 % and an interval of 95 % without any relevant change are one.
#[test]
fn intervals_and_p_values_agree() {
    let mut random = SmallRng::seed_from_u64(9);
    let (mut found, mut pairs) = (0, 0);
    for within in [0.01, 0.05, 0.1, 0.2, 0.8] {
        for factor in [1.05, 1.2, 1.3, 1.5] {
            for _ in 0..10 {
                let server = Server {
                    windows: 60,
                    between: 0.05,
                    within,
                    ..SERVER
                };
                let other = Server {
                    median: server.median * factor,
                    ..server
                };
                let sides = [server, other].map(|s| s.record(&mut random));
                for q in [0.5, 0.9, 0.99] {
                    let [b, a] = [0, 1].map(|i| quantile(&sides[i], q));
                    let c = change(&b, &a, MIN_EFFECT, 0.0);
                    let beyond =
                        c.ratio.low > 1.0 + MIN_EFFECT || c.ratio.high < 1.0 / (1.0 + MIN_EFFECT);
                    // At the level itself rounding decides.
                    if (c.p - 0.05).abs() > 0.001 {
                        assert_eq!(c.p < 0.05, beyond, "{within} {factor} {q}: {c:?}");
                    }
                    found += i32::from(beyond);
                    pairs += 1;
                }
            }
        }
    }
    println!("{found} of {pairs} quantiles changed");
}

/// A change is found as often as the calculation from recordings says that it will be, or somewhat more often.
#[test]
fn a_shift_of_a_tenth_is_found_with_the_windows_that_it_takes() {
    let mut random = SmallRng::seed_from_u64(6);
    let pilots = 60;
    let windows = (0..pilots)
        .map(|_| quantile(&SERVER.record(&mut random), 0.99))
        .map(|pilot| {
            pilot
                .windows_to_find(1.1, MIN_EFFECT, 0.8, SERVER.windows)
                .unwrap()
        })
        .sum::<f64>();
    let windows = (windows / f64::from(pilots)).ceil() as usize;
    let before = Server { windows, ..SERVER };
    let after = Server {
        median: before.median * 1.1,
        ..before
    };
    let pairs = 300;
    let found = (0..pairs)
        .filter(|_| {
            let [b, a] = [&before, &after].map(|s| quantile(&s.record(&mut random), 0.99));
            let c = change(&b, &a, MIN_EFFECT, 0.0);
            c.p <= 0.05 && c.ratio.value > 1.0
        })
        .count();
    let share = found as f64 / f64::from(pairs);
    println!("{windows} windows a side find it in {share:.3}");
    assert!((0.78..=0.93).contains(&share), "{share}");
}

#[test]
fn nothing_is_said_of_too_little() {
    let one = |n: usize| vec![1.0; n];
    assert!(stats::ratio(&one(9), &one(9)).is_none());
    assert!(stats::ratio(&[0.0; 20], &one(20)).is_none());
    assert!(stats::ratio(&one(20), &[0.0; 20]).is_none());
    let few: Vec<Sparse> = vec![vec![(40, 4)]; 20];
    assert!(stats::quantile(&few, Scheme::TIME, 0.99).is_none());
    assert!(stats::quantile(&few, Scheme::TIME, 0.5).is_some());
    // No window differs from another: no doubt, and no numbers that are none.
    let same = stats::ratio(&one(20), &one(20)).unwrap();
    let c = change(&same, &same, MIN_EFFECT, 0.0);
    assert_eq!((c.ratio.value, c.ratio.low, c.ratio.high), (1.0, 1.0, 1.0));
    assert_eq!(c.p, 1.0);
}

fn rate(seen: &Seen) -> Estimate {
    stats::ratio(&seen.counts, &vec![1.0; seen.counts.len()]).unwrap()
}

fn mean(seen: &Seen) -> Estimate {
    stats::ratio(&seen.seconds, &seen.counts).unwrap()
}

fn quantile(seen: &Seen, q: f64) -> Estimate {
    stats::quantile(&seen.spread, Scheme::TIME, q).unwrap()
}

fn all(server: &Server, random: &mut SmallRng) -> Vec<Estimate> {
    let seen = server.record(random);
    let quantiles = [0.5, 0.9, 0.99].map(|q| quantile(&seen, q));
    let mut all = vec![rate(&seen), mean(&seen)];
    all.extend(quantiles);
    all
}
