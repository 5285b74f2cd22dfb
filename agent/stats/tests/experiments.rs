//! Designs and their analysis against the worked examples of the book, number by number, and against simulated experiments.
#![allow(missing_docs, clippy::unwrap_used)]

use nfscope_stats::experiment::{
    Analysis, Design, Levels, Observation, Run, Scale, Word, analyse, analyse_runs, blocks_of,
    half_normal, lenth,
};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, StandardNormal};

fn single(values: &[f64]) -> Vec<Vec<f64>> {
    values.iter().map(|v| vec![*v]).collect()
}

fn word(text: &str) -> Word {
    Word::parse(text).unwrap()
}

fn effect(a: &Analysis, text: &str) -> f64 {
    let found = a.effects.iter().find(|e| e.word == word(text));
    found.unwrap().effect.value
}

fn part(a: &Analysis, text: &str) -> f64 {
    let found = a.effects.iter().find(|e| e.word == word(text));
    (found.unwrap().part * 1000.0).round() / 10.0
}

/// Jain, section 17.1: memory and cache sizes.
#[test]
fn two_factors_of_the_book() {
    let design = Design::full(2).unwrap();
    let a = analyse(
        &design,
        &single(&[15.0, 45.0, 25.0, 75.0]),
        Scale::Linear,
        0.0,
    )
    .unwrap();
    assert_eq!(a.mean.value, 40.0);
    assert_eq!(["A", "B", "AB"].map(|w| effect(&a, w)), [20.0, 10.0, 5.0]);
    assert_eq!(["A", "B", "AB"].map(|w| part(&a, w)), [76.2, 19.0, 4.8]);
}

/// Jain, section 17.4: three factors.
#[test]
fn three_factors_of_the_book() {
    let design = Design::full(3).unwrap();
    let y = [14.0, 22.0, 10.0, 34.0, 46.0, 58.0, 50.0, 86.0];
    let a = analyse(&design, &single(&y), Scale::Linear, 0.0).unwrap();
    assert_eq!(a.mean.value, 40.0);
    let effects = ["A", "B", "C", "AB", "AC", "BC", "ABC"].map(|w| effect(&a, w));
    assert_eq!(effects, [10.0, 5.0, 20.0, 5.0, 2.0, 3.0, 1.0]);
    assert_eq!([part(&a, "A"), part(&a, "C")], [17.7, 70.9]);
}

/// Jain, section 18.1 to 18.4: two factors, three replicates.
#[test]
fn replicates_of_the_book() {
    let design = Design::full(2).unwrap();
    let y = vec![
        vec![15.0, 18.0, 12.0],
        vec![45.0, 48.0, 51.0],
        vec![25.0, 28.0, 19.0],
        vec![75.0, 75.0, 81.0],
    ];
    let a = analyse(&design, &y, Scale::Linear, 0.0).unwrap();
    assert_eq!(a.mean.value, 41.0);
    assert_eq!(["A", "B", "AB"].map(|w| effect(&a, w)), [21.5, 9.5, 5.0]);
    assert!(
        (a.error_part * 100.0 - 1.45).abs() < 0.01,
        "{}",
        a.error_part
    );
    let squares: f64 = a.residuals.iter().map(|e| e * e).sum();
    assert!((squares - 102.0).abs() < 1e-9);
    assert!((a.deviation.unwrap() - 3.57).abs() < 0.01);
    assert_eq!(a.dof, 8.0);
    // The book takes t of 90 %; with 2.306 for 95 % and 1.03 for the error of an effect.
    let i = a.effects[0].effect;
    assert!((i.value - i.low - 2.306 * 1.0308).abs() < 0.01, "{i:?}");
}

/// Jain, section 19.1: seven factors in eight runs. D = AB, E = AC, F = BC, G = ABC.
#[test]
fn the_fraction_of_the_book() {
    let design = Design::fraction(7, 8).unwrap();
    let y = [20.0, 35.0, 7.0, 42.0, 36.0, 50.0, 45.0, 82.0];
    let a = analyse(&design, &single(&y), Scale::Linear, 0.0).unwrap();
    assert_eq!(a.mean_total, 317.0);
    let totals: Vec<f64> = a.effects.iter().map(|e| e.total).collect();
    assert_eq!(totals, [101.0, 35.0, 109.0, 43.0, 1.0, 47.0, 3.0]);
    assert_eq!(a.effects.len(), 7);
    let parts: Vec<f64> = a
        .effects
        .iter()
        .map(|e| (e.part * 1e4).round() / 100.0)
        .collect();
    assert_eq!(parts, [37.26, 4.47, 43.40, 6.75, 0.0, 8.07, 0.03]);
    assert_eq!(design.resolution(), Some(3));
    assert!(design.aliases(word("A"), 2).contains(&word("BD")));
}

#[test]
fn fractions_know_what_they_cannot_tell_apart() {
    for (factors, runs, resolution) in [
        (3, 4, 3),
        (4, 8, 4),
        (5, 16, 5),
        (5, 8, 3),
        (6, 32, 6),
        (6, 16, 4),
        (6, 8, 3),
        (7, 64, 7),
        (7, 32, 4),
        (7, 16, 4),
        (7, 8, 3),
    ] {
        let d = Design::fraction(factors, runs).unwrap();
        assert_eq!(d.resolution(), Some(resolution), "{factors} in {runs}");
        assert_eq!(d.combinations.len(), runs);
        assert_eq!(d.effects().len(), runs - 1);
        // Every column is balanced, and any two are orthogonal.
        let effects = d.effects();
        for (i, a) in effects.iter().enumerate() {
            let sum = |w: Word| d.combinations.iter().map(|l| w.sign(*l)).sum::<f64>();
            assert_eq!(sum(*a), 0.0);
            for b in &effects[..i] {
                assert_eq!(sum(a.times(*b)), 0.0);
            }
        }
        for w in &d.defining {
            assert!(d.combinations.iter().all(|l| w.sign(*l) == 1.0), "{w}");
        }
    }
    let d = Design::fraction(4, 8).unwrap();
    assert_eq!(d.aliases(word("AB"), 2), [word("CD")]);
    assert_eq!(d.aliases(word("A"), 2), []);
    // Folded over, main effects of a design of resolution III are clear of interactions of two.
    let folded = Design::fraction(7, 8).unwrap().folded();
    assert_eq!(
        (folded.combinations.len(), folded.resolution()),
        (16, Some(4))
    );
    assert_eq!(folded.aliases(word("A"), 2), []);
    assert!(Design::fraction(4, 4).is_err());
    assert!(Design::generated(3, &[(2, word("C"))]).is_err());
    assert!(Design::generated(3, &[(2, word("A"))]).is_err());
    assert_eq!(
        Design::generated(3, &[(2, word("AB"))]),
        Design::fraction(3, 4)
    );
    // Blocks of all combinations, in an order that the seed keeps.
    let runs = Design::full(3).unwrap().runs(3, 7);
    assert_eq!(runs, Design::full(3).unwrap().runs(3, 7));
    assert_ne!(runs, Design::full(3).unwrap().runs(3, 8));
    for block in runs.chunks(8) {
        let mut levels: Vec<u16> = block.iter().map(|r| r.levels.high()).collect();
        assert!(block.iter().all(|r| r.block == block[0].block));
        levels.sort_unstable();
        assert_eq!(levels, [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}

/// Simulated 2^3 designs with three replicates: intervals hold, and nothing is found where there is nothing.
#[test]
fn intervals_of_effects_hold() {
    let mut random = SmallRng::seed_from_u64(40);
    let design = Design::full(3).unwrap();
    let truth = [0.3, 0.0, -0.2, 0.1, 0.0, 0.0, 0.0];
    let experiments = 4000;
    let (mut held, mut wrong) = (0u32, 0u32);
    for i in 0..2 * experiments {
        let with = if i % 2 == 0 { 1.0 } else { 0.0 };
        let words = design.effects();
        let y: Vec<Vec<f64>> = design
            .combinations
            .iter()
            .map(|levels| {
                let sum: f64 = words
                    .iter()
                    .zip(truth)
                    .map(|(w, t)| with * t * w.sign(*levels))
                    .sum();
                (0..3)
                    .map(|_| {
                        let e: f64 = StandardNormal.sample(&mut random);
                        (sum + 0.2 * e).exp()
                    })
                    .collect()
            })
            .collect();
        let a = analyse(&design, &y, Scale::Logarithm, 0.0).unwrap();
        if with > 0.0 {
            for (e, t) in a.effects.iter().zip(truth) {
                held += u32::from(e.effect.low <= t && t <= e.effect.high);
            }
        } else {
            wrong += u32::from(a.effects.iter().any(|e| e.p.unwrap() <= 0.05));
        }
    }
    let held = f64::from(held) / f64::from(7 * experiments);
    let wrong = f64::from(wrong) / f64::from(experiments);
    println!(
        "4,000 designs 2^3 of 3 replicates: {held:.4} of intervals hold; without effects something is found in {wrong:.4}"
    );
    assert!((0.94..=0.965).contains(&held), "{held}");
    assert!(wrong <= 0.05, "{wrong}");
}

/// Lenth's margins without replicates, by hand. Effects that stand out are hardly ever noise.
#[test]
fn unreplicated_effects_are_held_against_their_own_noise() {
    let effects = [10.0, 5.0, 20.0, 5.0, 2.0, 3.0, 1.0];
    let l = lenth(&effects).unwrap();
    // 1.5 times the median 5 is 7.5; below 18.75 the median of the rest is 4.
    assert_eq!(l.error, 6.0);
    // t(0.975) of 7/3 degrees of freedom is 3.764.
    assert!((l.margin / 6.0 - 3.764).abs() < 0.01, "{}", l.margin / 6.0);
    assert_eq!(lenth(&effects[..2]), None);
    // A sixth, a half and five sixths of a half-normal distribution.
    for (is, wanted) in half_normal(3).iter().zip([0.210, 0.674, 1.383]) {
        assert!((is - wanted).abs() < 1e-3, "{is} for {wanted}");
    }
    let mut random = SmallRng::seed_from_u64(41);
    let design = Design::full(4).unwrap();
    let (mut wrong, mut found, all) = (0, 0, 2000);
    for _ in 0..all {
        let noise: Vec<f64> = (0..16)
            .map(|_| StandardNormal.sample(&mut random))
            .collect();
        let a = analyse(&design, &single(&noise), Scale::Linear, 0.0).unwrap();
        assert!(a.effects.iter().all(|e| e.p.is_none()));
        wrong += i32::from(a.effects.iter().any(|e| e.stands_out));
        let y: Vec<f64> = design
            .combinations
            .iter()
            .zip(&noise)
            .map(|(l, e)| 3.0 * word("A").sign(*l) + e)
            .collect();
        let a = analyse(&design, &single(&y), Scale::Linear, 0.0).unwrap();
        found += i32::from(a.effects[0].stands_out);
    }
    println!(
        "of {all} designs 2^4 without replicates something stands out of noise in {wrong}, an effect of 3 in {found}"
    );
    assert!(wrong * 20 <= all && found * 10 >= all * 9);
}

/// Runs whose quantile lies in one bucket of a histogram have the same value, and what its width hides is no effect.
#[test]
fn what_a_bucket_hides_is_no_effect() {
    let design = Design::full(2).unwrap();
    let same = vec![vec![8.49e-3; 3]; 4];
    let a = analyse(&design, &same, Scale::Logarithm, 0.06).unwrap();
    assert!(a.effects.iter().all(|e| e.p == Some(1.0)), "{a:?}");
    let a = analyse(&design, &single(&[8.49e-3; 4]), Scale::Logarithm, 0.0).unwrap();
    assert!(a.effects.iter().all(|e| !e.stands_out), "{a:?}");
    // The high level is a bucket further.
    let y = |factor: f64| -> Vec<Vec<f64>> {
        let each = design.combinations.iter();
        each.map(|l| vec![factor.powf(word("A").sign(*l) / 2.0); 3])
            .collect()
    };
    for (factor, hidden, found) in [(1.12, 0.06, false), (2.0, 0.06, true), (1.12, 0.0, true)] {
        let a = analyse(&design, &y(factor), Scale::Logarithm, hidden).unwrap();
        assert_eq!(
            a.effects[0].p < Some(0.05),
            found,
            "{factor} {hidden}: {a:?}"
        );
        let shown = a.effects[0].effect;
        assert!(shown.high - shown.low >= 2.0 * hidden);
    }
}

#[test]
fn what_is_not_whole_is_not_analysed() {
    let design = Design::full(2).unwrap();
    let mut y = single(&[1.0, 2.0, 3.0, 4.0]);
    y[3].clear();
    assert_eq!(analyse(&design, &y, Scale::Linear, 0.0), None);
    y[3] = vec![0.0];
    assert_eq!(analyse(&design, &y, Scale::Logarithm, 0.0), None);
    assert_eq!(analyse(&design, &y[..3], Scale::Linear, 0.0), None);
}

/// Jain's replicates without the last run. By hand: means of 15, 48, 24 and 75, squares of 78 with 7 degrees of freedom, and a standard
/// error of sqrt(78 / 7 * (3 / 3 + 1 / 2) / 16), as the normal equations of all eleven runs have it.
#[test]
fn a_missing_run_leaves_the_others() {
    let design = Design::full(2).unwrap();
    let y = vec![
        vec![15.0, 18.0, 12.0],
        vec![45.0, 48.0, 51.0],
        vec![25.0, 28.0, 19.0],
        vec![75.0, 75.0],
    ];
    let a = analyse(&design, &y, Scale::Linear, 0.0).unwrap();
    assert!((a.mean.value - 40.5).abs() < 1e-9);
    let effects = ["A", "B", "AB"].map(|w| effect(&a, w));
    assert_eq!(effects.map(|v| (v * 10.0).round()), [210.0, 90.0, 45.0]);
    assert_eq!(a.dof, 7.0);
    let squares: f64 = a.residuals.iter().map(|e| e * e).sum();
    assert!((squares - 78.0).abs() < 1e-9);
    // t(0.975, 7) = 2.3646, W. S. Gosset's table.
    let half = 2.3646 * (78.0 / 7.0 * 1.5 / 16.0f64).sqrt();
    for e in &a.effects {
        assert!(
            (e.effect.high - e.effect.value - half).abs() < 1e-3,
            "{e:?}"
        );
    }
}

/// Two to four runs of each combination: intervals hold in 95 % of experiments.
#[test]
fn intervals_hold_where_runs_are_missing() {
    let mut random = SmallRng::seed_from_u64(12);
    let design = Design::full(3).unwrap();
    let (mut holds, mut all) = (0, 0);
    for _ in 0..2000 {
        let y: Vec<Vec<f64>> = (0..8)
            .map(|i| {
                let n = 2 + i % 3;
                let mut one = || -> f64 { StandardNormal.sample(&mut random) };
                (0..n).map(|_| 5.0 + one()).collect()
            })
            .collect();
        let a = analyse(&design, &y, Scale::Linear, 0.0).unwrap();
        for e in &a.effects {
            holds += u32::from(e.effect.low <= 0.0 && e.effect.high >= 0.0);
            all += 1;
        }
    }
    let share = f64::from(holds) / f64::from(all);
    println!("intervals hold in {share:.3} of {all} where runs are missing");
    // Effects of one experiment share their error: 2,000 independent ones stray by half a percent.
    assert!((0.935..=0.965).contains(&share), "{share}");
}

/// The yield of peas in six blocks of four plots: `npk` of R, of which N x P x K is the difference between blocks. The figures are those that
/// `summary(aov(yield ~ block + N * P * K, npk))` of R 4.2.2 prints, as in its own manual (`?npk`; W. N. Venables and B. D. Ripley, Modern Applied
/// Statistics with S, section 6.7).
#[test]
fn blocks_are_those_of_r() {
    let npk = [
        "011 49.5 110 62.8 000 46.8 101 57.0",
        "100 59.8 111 58.5 001 55.5 010 56.0",
        "010 62.8 111 55.8 100 69.5 001 55.0",
        "100 62.0 111 48.8 001 45.5 010 44.2",
        "110 52.0 000 51.5 101 49.8 011 48.8",
        "101 57.2 110 59.0 011 53.2 000 56.0",
    ];
    let mut runs = Vec::new();
    for (block, plots) in npk.iter().enumerate() {
        let words: Vec<&str> = plots.split(' ').collect();
        for plot in words.chunks(2) {
            let high = plot[0].bytes().enumerate();
            let high = high.map(|(i, c)| u16::from(c - b'0') << i);
            runs.push(Observation {
                run: Run {
                    block,
                    levels: Levels::of_two(high.sum()),
                },
                response: plot[1].parse().unwrap(),
            });
        }
    }
    let design = Design::full(3).unwrap();
    let a = analyse_runs(&design, &runs, Scale::Linear, 0.0, 1).unwrap();
    assert_eq!(a.dropped, [word("ABC")]);
    assert_eq!(a.dof, 12.0);
    // A mean square of the residuals of 15.44.
    assert!((a.deviation.unwrap().powi(2) - 15.44).abs() < 5e-3, "{a:?}");
    let square = a.deviation.unwrap().powi(2) * a.dof;
    let total = square / a.error_part;
    let near = |is: f64, wanted: f64| assert!((is - wanted).abs() < 0.051, "{is} for {wanted}");
    near(square, 185.3);
    near(a.block_part.unwrap() * total, 343.3);
    // Sums of squares and p values.
    for (text, square, p) in [
        ("A", 189.3, 0.00437),
        ("B", 8.4, 0.47490),
        ("C", 95.2, 0.02880),
        ("AB", 21.3, 0.26317),
        ("AC", 33.1, 0.16865),
        ("BC", 0.5, 0.86275),
    ] {
        let e = a.effects.iter().find(|e| e.word == word(text)).unwrap();
        near(e.part * total, square);
        assert!((e.p_alone.unwrap() - p).abs() < 1e-5, "{text}: {e:?}");
    }
    // N raises the yield by 5.617, as R's means of both levels tell; it is twice the effect.
    assert!((2.0 * effect(&a, "A") - 5.617).abs() < 1e-3);
}

/// Blocks that differ by ten times the noise: intervals hold in 95 % of experiments, and nothing is found too often. So they do with a
/// fold-over that was made on another day, and with runs that are missing in a block.
#[test]
fn intervals_hold_in_blocks() {
    let mut random = SmallRng::seed_from_u64(37);
    let half = Design::fraction(4, 8).unwrap();
    let on = half.folded_on(word("D"));
    let full = Design::full(3).unwrap();
    let blocks = full.runs(3, 1);
    let missing: Vec<Run> = blocks
        .iter()
        .copied()
        .filter(|r| (r.levels.high(), r.block) != (3, 1))
        .collect();
    let mut later = half.runs(2, 1);
    later.extend(blocks_of(&half.turned(word("D")), 2, 2, 2));
    for (name, design, runs) in [
        ("three blocks", &full, &blocks),
        ("a run is missing", &full, &missing),
        ("a fold-over of another day", &on, &later),
    ] {
        let (mut held, mut all, mut wrong, experiments) = (0u32, 0u32, 0u32, 2000);
        for _ in 0..experiments {
            let mut z = || -> f64 { StandardNormal.sample(&mut random) };
            let shift: Vec<f64> = (0..4).map(|_| 10.0 * z()).collect();
            let y: Vec<Observation> = runs
                .iter()
                .map(|run| Observation {
                    run: *run,
                    response: 50.0 + shift[run.block] + z(),
                })
                .collect();
            let a = analyse_runs(design, &y, Scale::Linear, 0.0, 1).unwrap();
            for e in &a.effects {
                held += u32::from(e.effect.low <= 0.0 && e.effect.high >= 0.0);
                all += 1;
            }
            wrong += u32::from(a.effects.iter().any(|e| e.p.unwrap() <= 0.05));
        }
        let held = f64::from(held) / f64::from(all);
        let wrong = f64::from(wrong) / f64::from(experiments);
        println!("{name}: {held:.3} of intervals hold, something is found in {wrong:.3}");
        assert!((0.935..=0.965).contains(&held), "{name}: {held}");
        // Three standard deviations of 5 % of 2,000.
        assert!(wrong <= 0.065, "{name}: {wrong}");
    }
}

/// A fold-over that was added later separates what the fraction could not, and its difference to the first part is no effect: A and B x C
/// of 2^(3-1), where everything was slower on the second day.
#[test]
fn a_fold_over_of_another_day_separates_aliases() {
    let half = Design::fraction(3, 4).unwrap();
    let folded = half.folded();
    let day = |block: usize, levels: u16| Observation {
        run: Run {
            block,
            levels: Levels::of_two(levels),
        },
        response: 10.0
            + 3.0 * word("A").sign(levels)
            + 2.0 * word("B").sign(levels)
            + word("AB").sign(levels)
            + 100.0 * block as f64,
    };
    let all = Word(7);
    let first = half.combinations.iter().map(|l| day(0, *l));
    let second = half.turned(all).into_iter().map(|l| day(1, l.high()));
    let runs: Vec<_> = first.chain(second).collect();
    assert_eq!(runs.len(), 8);
    let a = analyse_runs(&folded, &runs, Scale::Linear, 0.0, 1).unwrap();
    let words = ["A", "B", "C", "AB", "AC", "BC"];
    assert_eq!(a.dropped, [word("ABC")]);
    for (text, wanted) in words.into_iter().zip([3.0, 2.0, 0.0, 1.0, 0.0, 0.0]) {
        assert!((effect(&a, text) - wanted).abs() < 1e-9, "{text}");
    }
    // Each part by itself takes B x C for a part of A, and the other way round.
    let a = analyse_runs(&half, &runs[..4], Scale::Linear, 0.0, 1).unwrap();
    assert!((effect(&a, "C") - 1.0).abs() < 1e-9);
    // Turned on one factor, that factor is free of interactions.
    let on = Design::fraction(4, 8).unwrap().folded_on(word("D"));
    assert_eq!((on.combinations.len(), on.resolution()), (16, None));
    assert!(Design::fraction(4, 8).unwrap().turned(Word(15)).is_empty());
}

/// A full design without one of its runs: the longest effect counts as none. y = 10 + 3 A + B C on all runs but the last.
#[test]
fn a_combination_without_a_run_takes_the_longest_effect() {
    let design = Design::full(3).unwrap();
    let each = design.combinations.iter().take(7);
    let runs: Vec<_> = each
        .map(|levels| Observation {
            run: Run {
                block: 0,
                levels: Levels::of_two(*levels),
            },
            response: 10.0 + 3.0 * word("A").sign(*levels) + word("BC").sign(*levels),
        })
        .collect();
    let a = analyse_runs(&design, &runs, Scale::Linear, 0.0, 1).unwrap();
    assert_eq!(a.dropped, [word("ABC")]);
    for (text, wanted) in [("A", 3.0), ("B", 0.0), ("BC", 1.0), ("AC", 0.0)] {
        assert!((effect(&a, text) - wanted).abs() < 1e-9, "{text}");
    }
}
