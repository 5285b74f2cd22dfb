//! How often verdicts are wrong, where windows resemble each other and recordings differ: series whose truth is known.
#![allow(missing_docs, clippy::unwrap_used)]

use nfscope_stats::{
    CONFIDENCE, Estimate, Looks, MIN_EFFECT, MIN_STRETCHES, change, holm, paired, quantile, ratio,
    replicated,
};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, StandardNormal};

const SERIES: usize = 2000;

/// The logarithm of each window's mean is an autoregression around 0.
struct Windows<'a> {
    random: &'a mut SmallRng,
    correlation: f64,
    state: f64,
    deviation: f64,
}

impl<'a> Windows<'a> {
    fn new(random: &'a mut SmallRng, correlation: f64, deviation: f64) -> Self {
        let state = StandardNormal.sample(random);
        Windows {
            random,
            correlation,
            state,
            deviation,
        }
    }

    fn next(&mut self) -> f64 {
        let z: f64 = StandardNormal.sample(self.random);
        self.state =
            self.correlation * self.state + (1.0 - self.correlation * self.correlation).sqrt() * z;
        (self.deviation * self.state).exp()
    }
}

/// A recording whose level differs from that of others by this factor.
fn recording(random: &mut SmallRng, windows: usize, correlation: f64, level: f64) -> Estimate {
    let mut from = Windows::new(random, correlation, 0.2);
    let y: Vec<f64> = (0..windows).map(|_| level * from.next()).collect();
    ratio(&y, &vec![1.0; windows]).unwrap()
}

fn normal(random: &mut SmallRng) -> f64 {
    StandardNormal.sample(random)
}

/// Mean of the windows of [`Windows`] with a deviation of 0.2.
fn truth() -> f64 {
    (0.2f64 * 0.2 / 2.0).exp()
}

/// Recordings of one server that differ by 5 % from run to run. One on each side finds changes that are none; three on each
/// side do not, and neither does one on each side where it is stated.
#[test]
fn recordings_that_differ_are_no_change() {
    let mut random = SmallRng::seed_from_u64(20);
    let one = |random: &mut SmallRng| {
        let level = (0.05 * normal(random)).exp();
        recording(random, 180, 0.3, level)
    };
    let mut found = [0; 4];
    for _ in 0..SERIES {
        let sides: [Vec<Estimate>; 2] =
            [(); 2].map(|()| (0..3).map(|_| one(&mut random)).collect());
        let [before, after] = &sides;
        let [b, a] = [&before[..1], &after[..1]];
        let earlier = [(); 2].map(|()| (0..4).map(|_| one(&mut random)).collect());
        let p = [
            change(&b[0], &a[0], 0.0, 0.0).p,
            change(&b[0], &a[0], 0.0, 0.05).p,
            replicated(before, after, &[], 0.0, 0.0).unwrap().change.p,
            replicated(b, a, &earlier, 0.0, 0.0).unwrap().change.p,
        ];
        for (found, p) in found.iter_mut().zip(p) {
            *found += u32::from(p <= 0.05);
        }
    }
    let found = found.map(|n| f64::from(n) / SERIES as f64);
    println!(
        "found without a change: one a side {:.3}; one, with 5 % stated {:.3}; three a side {:.3}; one, with eight earlier {:.3}",
        found[0], found[1], found[2], found[3]
    );
    assert!(found[0] > 0.25, "{found:?}");
    assert!(found[1..].iter().all(|f| *f <= 0.06), "{found:?}");
}

/// The whole table of a comparison, ten quantities that rise and fall together or not.
#[test]
fn replicates_keep_the_rate_of_a_family() {
    let mut random = SmallRng::seed_from_u64(21);
    let mut wrong = 0;
    for _ in 0..SERIES {
        let p: Vec<f64> = (0..10)
            .map(|_| {
                let sides = [(); 2].map(|()| {
                    let level = |random: &mut SmallRng| (0.1 * normal(random)).exp();
                    (0..3)
                        .map(|_| {
                            let level = level(&mut random);
                            recording(&mut random, 30, 0.0, level)
                        })
                        .collect::<Vec<_>>()
                });
                replicated(&sides[0], &sides[1], &[], 0.0, 0.0)
                    .unwrap()
                    .change
                    .p
            })
            .collect();
        wrong += u32::from(holm(&p).iter().any(|p| *p <= 0.05));
    }
    let share = f64::from(wrong) / SERIES as f64;
    println!("ten quantities, three recordings a side: something is found in {share:.3}");
    assert!(share <= 0.06, "{share}");
}

/// The estimated variances within and between recordings are those that made the series, and the number of recordings that they require
/// finds the change.
#[test]
fn both_components_of_variance_are_told() {
    let mut random = SmallRng::seed_from_u64(22);
    let (mut within, mut between) = (0.0, 0.0);
    for _ in 0..SERIES {
        let sides = [(); 2].map(|()| {
            (0..3)
                .map(|_| {
                    let level = (0.05 * normal(&mut random)).exp();
                    recording(&mut random, 180, 0.0, level)
                })
                .collect::<Vec<_>>()
        });
        let r = replicated(&sides[0], &sides[1], &[], 0.0, 0.0).unwrap();
        within += r.within / SERIES as f64;
        between += r.between / SERIES as f64;
    }
    println!(
        "deviation within {:.4}, between {:.4}",
        within.sqrt(),
        between.sqrt()
    );
    // 0.2 over the root of 180 windows; the estimate for a series without correlation is a little wide.
    assert!((within.sqrt() / 0.0149 - 1.0).abs() < 0.15, "{within}");
    assert!((between.sqrt() / 0.05 - 1.0).abs() < 0.05, "{between}");

    let pilot = |random: &mut SmallRng| {
        let sides = [(); 2].map(|()| {
            (0..20)
                .map(|_| {
                    let level = (0.05 * normal(random)).exp();
                    recording(random, 180, 0.0, level)
                })
                .collect::<Vec<_>>()
        });
        replicated(&sides[0], &sides[1], &[], 0.0, MIN_EFFECT).unwrap()
    };
    let n = pilot(&mut random)
        .recordings_to_find(1.1, MIN_EFFECT, 0.05, 0.8)
        .unwrap() as usize;
    let found = (0..500)
        .filter(|_| {
            let sides = [1.0, 1.1].map(|factor| {
                (0..n)
                    .map(|_| {
                        let level = factor * (0.05 * normal(&mut random)).exp();
                        recording(&mut random, 180, 0.0, level)
                    })
                    .collect::<Vec<_>>()
            });
            let r = replicated(&sides[0], &sides[1], &[], 0.0, MIN_EFFECT).unwrap();
            r.change.p <= 0.05
        })
        .count();
    let share = found as f64 / 500.0;
    println!("{n} recordings a side find 10 % in {share:.3}");
    assert!((0.72..=0.93).contains(&share), "{share}");
}

/// Intervals hold however few the windows and however much they resemble each other: there are fewer independent stretches then,
/// and Student's t has as few degrees of freedom. With those of the batches, ten windows with a correlation of 0.6 hold in 86 %.
#[test]
fn short_and_correlated_recordings_hold() {
    let mut random = SmallRng::seed_from_u64(23);
    for (correlation, least) in [
        (0.0, 0.93),
        (0.3, 0.93),
        (0.6, 0.93),
        (0.8, 0.91),
        (0.9, 0.90),
    ] {
        for windows in [10, 15, 20, 30, 36, 60, 120, 180, 360] {
            let (mut known, mut wrong, mut all) = (0u32, 0u32, 0u32);
            for _ in 0..2 * SERIES {
                let e = recording(&mut random, windows, correlation, 1.0);
                let i = e.interval(CONFIDENCE);
                let holds = (i.low..=i.high).contains(&truth());
                all += u32::from(holds);
                known += u32::from(e.is_known());
                wrong += u32::from(e.is_known() && !holds);
            }
            let [all, known, wrong] =
                [all, known, wrong].map(|n| f64::from(n) / (2 * SERIES) as f64);
            println!(
                "correlation {correlation}, {windows} windows: {all:.3} hold; known {known:.3}, known and wrong {wrong:.3}"
            );
            assert!(all >= least, "{correlation} {windows}: {all}");
            assert!(wrong <= 1.0 - least, "{correlation} {windows}: {wrong}");
            // Where windows are independent, few of them are enough for a verdict.
            if correlation == 0.0 && windows >= 20 {
                assert!(known >= 0.9, "{windows}: {known}");
            }
        }
    }
}

/// Two recordings of one server hardly ever differ, however short they are; and a thirtieth of a latency is seen in little.
#[test]
fn short_recordings_have_right_verdicts() {
    let mut random = SmallRng::seed_from_u64(28);
    for correlation in [0.0, 0.3, 0.6, 0.9] {
        for windows in [10, 20, 36, 60] {
            let (mut wrong, mut far, mut found) = (0u32, 0u32, 0u32);
            for _ in 0..SERIES {
                let [b, a, fast] = [1.0, 1.0, 1.0 / 30.0]
                    .map(|level| recording(&mut random, windows, correlation, level));
                let p = |a: &Estimate| match b.is_known() && a.is_known() {
                    true => change(&b, a, 0.0, 0.0).p,
                    false => 1.0,
                };
                let same = p(&a);
                wrong += u32::from(same <= 0.05);
                far += u32::from(same <= 0.005);
                // Among ten quantities.
                found += u32::from(p(&fast) <= 0.005);
            }
            let [wrong, far, found] = [wrong, far, found].map(|n| f64::from(n) / SERIES as f64);
            println!(
                "correlation {correlation}, {windows} windows a side: {wrong:.4} of equal ones differ at 5 %, {far:.4} at 0.5 %; a thirtieth is found in {found:.3}"
            );
            assert!(wrong <= 0.05, "{correlation} {windows}: {wrong}");
            // The expectation is 0.5 % of 2,000 pairs: 10 with a standard deviation of 3.
            assert!(far <= 0.01, "{correlation} {windows}: {far}");
            if correlation == 0.0 && windows >= 36 {
                assert!(found >= 0.99, "{windows}: {found}");
            }
        }
    }
}

/// A measurement that ends when its interval is narrow: the interval holds as often as it says.
#[test]
fn stopping_at_a_narrow_interval_keeps_it_right() {
    let mut random = SmallRng::seed_from_u64(24);
    for (correlation, least) in [(0.0, 0.93), (0.3, 0.93), (0.6, 0.93), (0.9, 0.90)] {
        for wanted in [0.1, 0.05, 0.025] {
            let (mut held, mut every, mut length) = (0u32, 0u32, 0);
            let series = 600;
            for _ in 0..series {
                let mut from = Windows::new(&mut random, correlation, 0.2);
                let (mut looks, mut y) = (Looks::at_windows(), Vec::new());
                let mut lucky = None;
                loop {
                    y.push(from.next());
                    if !looks.is_due(y.len()) {
                        // Control: the coverage if the measurement ended at the first narrow interval.
                        continue;
                    }
                    let e = ratio(&y, &vec![1.0; y.len()]).unwrap();
                    let i = e.interval(CONFIDENCE);
                    let holds = (i.low..=i.high).contains(&truth());
                    let narrow = (i.high - i.low) / 2.0 / i.value <= wanted;
                    if narrow && lucky.is_none() {
                        lucky = Some(holds);
                    }
                    if looks.enough(y.len(), e.stretches, narrow) {
                        held += u32::from(holds);
                        every += u32::from(lucky.unwrap());
                        length += y.len();
                        break;
                    }
                }
            }
            let share = f64::from(held) / f64::from(series);
            println!(
                "correlation {correlation}, ±{wanted}: {share:.3} hold after {} windows; {:.3} at the first narrow look",
                length / series as usize,
                f64::from(every) / f64::from(series)
            );
            assert!(share >= least, "{correlation} {wanted}: {share}");
        }
    }
}

/// A change that a bucket hides is never found by a longer recording, so no number of windows is given.
#[test]
fn more_windows_do_not_open_a_bucket() {
    use nfscope_model::Scheme;
    let windows = vec![vec![(40u16, 100u64)]; 200];
    let e = quantile(&windows, Scheme::TIME, 0.99).unwrap();
    assert!(e.hidden() > 0.05, "{}", e.hidden());
    assert_eq!(e.windows_to_find(1.1, MIN_EFFECT, 0.8, 200), None);
    assert!(e.windows_to_find(2.0, MIN_EFFECT, 0.8, 200).is_some());
    // No window differs from another: all that is unknown is where in their buckets both are, each counted once.
    assert_eq!(e.log_error(), 0.0);
    let found = change(&e, &e, MIN_EFFECT, 0.0).smallest_found(MIN_EFFECT, 0.05, 0.8);
    assert!(
        (found / (1.0 + MIN_EFFECT)).ln() - 2.0 * e.hidden() < 1e-9,
        "{found}"
    );
}

/// A p99 of few windows is known from as many as have such values.
#[test]
fn windows_without_slow_values_tell_nothing_of_them() {
    use nfscope_model::Scheme;
    let slow = |windows: usize| -> Vec<_> {
        (0..200)
            .map(|i| match i % (200 / windows) {
                0 => vec![(40u16, 100u64), (60, 400 / windows as u64)],
                _ => vec![(40, 100)],
            })
            .collect()
    };
    let of = |windows| quantile(&slow(windows), Scheme::TIME, 0.99).unwrap();
    assert!(
        of(2).stretches < 2.01 && !of(2).is_known(),
        "{:?}",
        of(2).stretches
    );
    // The lower end is known all the same: the p99 is not below the median.
    assert!(of(2).is_known_from_below());
    assert!(
        of(10).stretches < 10.01 && of(10).is_known(),
        "{:?}",
        of(10).stretches
    );
    assert!(of(100).stretches > 20.0, "{:?}", of(100).stretches);
}

/// The smallest change that would have been found is found in four of five comparisons.
#[test]
fn what_would_have_been_found_is_found() {
    let mut random = SmallRng::seed_from_u64(25);
    let pilots = 50;
    let factor = (0..pilots)
        .map(|_| {
            let [b, a] = [(); 2].map(|()| recording(&mut random, 180, 0.3, 1.0));
            change(&b, &a, MIN_EFFECT, 0.0).smallest_found(MIN_EFFECT, 0.05, 0.8)
        })
        .sum::<f64>()
        / f64::from(pilots);
    let found = (0..500)
        .filter(|_| {
            let b = recording(&mut random, 180, 0.3, 1.0);
            let a = recording(&mut random, 180, 0.3, factor);
            change(&b, &a, MIN_EFFECT, 0.0).p <= 0.05
        })
        .count() as f64
        / 500.0;
    println!("a change by {factor:.4} is found in {found:.3}");
    assert!((0.7..=0.9).contains(&found), "{found}");
}

/// Pairs of hours without a change, whose differences may be correlated: a change is found in at most 7 % of the series.
#[test]
fn pairs_hold() {
    let mut random = SmallRng::seed_from_u64(26);
    for correlation in [0.0, 0.3, 0.6] {
        for pairs in [7, 12, 24, 168] {
            let (mut known, mut wrong) = (0u32, 0u32);
            for _ in 0..SERIES {
                let mut from = Windows::new(&mut random, correlation, 0.1);
                let differences: Vec<f64> = (0..pairs).map(|_| from.next().ln()).collect();
                let (change, independent) = paired(&differences, 0.0, 0.0).unwrap();
                let is_known = independent >= MIN_STRETCHES;
                known += u32::from(is_known);
                wrong += u32::from(is_known && change.p <= 0.05);
            }
            let [known, wrong] = [known, wrong].map(|n| f64::from(n) / SERIES as f64);
            println!(
                "{pairs} pairs, correlation {correlation}: known {known:.3}, wrong {wrong:.3}"
            );
            assert!(wrong <= 0.07, "{pairs} {correlation}: {wrong}");
        }
    }
}

/// Runs of a load, repeated until the interval of their mean is narrow. Runs that resemble each other are mostly refused.
#[test]
fn repeating_until_it_is_narrow_keeps_the_interval_right() {
    let mut random = SmallRng::seed_from_u64(27);
    for (correlation, least) in [(0.0, 0.93), (0.3, 0.93), (0.6, 0.93), (0.9, 0.90)] {
        for wanted in [0.2, 0.1, 0.05] {
            let (mut held, mut ended, mut length) = (0u32, 0u32, 0);
            let series = SERIES as u32;
            for _ in 0..series {
                let mut from = Windows::new(&mut random, correlation, 0.2);
                let (mut looks, mut y) = (Looks::at_runs(), Vec::new());
                for _ in 0..150 {
                    y.push(from.next());
                    if !looks.is_due(y.len()) {
                        continue;
                    }
                    let e = ratio(&y, &vec![1.0; y.len()]).unwrap();
                    let i = e.interval(CONFIDENCE);
                    let narrow = (i.high - i.low) / 2.0 / i.value <= wanted;
                    if looks.enough(y.len(), e.stretches, narrow) {
                        held += u32::from((i.low..=i.high).contains(&truth()));
                        ended += 1;
                        break;
                    }
                }
                length += y.len();
            }
            let [held, ended] = [held, ended].map(|n| f64::from(n) / f64::from(series));
            println!(
                "correlation {correlation}, ±{wanted}: {ended:.3} end, after {} runs; {:.3} of them hold",
                length / series as usize,
                held / ended.max(1e-9)
            );
            // Ended measurements whose interval does not hold are wrong; refused ones are not.
            assert!(
                ended - held <= 1.0 - least,
                "{correlation} {wanted}: {}",
                ended - held
            );
        }
    }
}

/// The interval of a ratio holds the error within a bucket, and no change within that is called small or found.
#[test]
fn a_bucket_beside_the_estimates_widens_the_interval() {
    let mut random = SmallRng::seed_from_u64(23);
    let mut side = |level: f64| -> Vec<Estimate> {
        let level = level * truth();
        (0..20)
            .map(|_| recording(&mut random, 2000, 0.0, level))
            .collect()
    };
    let (before, after) = (side(1.0), side(1.06));
    let of = |beside| {
        replicated(&before, &after, &[], beside, 0.02)
            .unwrap()
            .change
    };
    let (known, hidden) = (of(0.0), of(0.05));
    assert!(known.p < 0.001 && hidden.p > 0.05, "{known:?} {hidden:?}");
    let wider = |a: f64, b: f64| ((a / b).ln() - 0.05).abs() < 1e-9;
    assert!(wider(hidden.ratio.high, known.ratio.high) && wider(known.ratio.low, hidden.ratio.low));
    let same = replicated(&before, &before, &[], 0.0, 0.02).unwrap().change;
    let hidden = replicated(&before, &before, &[], 0.05, 0.02)
        .unwrap()
        .change;
    assert!(same.is_small(0.02) && !hidden.is_small(0.02));
    let found = |c: &nfscope_stats::Change| c.smallest_found(0.02, 0.05, 0.8);
    assert!(wider(found(&hidden), found(&same)));
}
