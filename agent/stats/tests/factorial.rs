//! Factors with more than two levels, centre points and screening designs: by figures of R, and by simulated servers.
#![allow(missing_docs, clippy::unwrap_used)]

use nfscope_stats::experiment::{
    Design, Factorial, Levels, Observation, Run, Scale, Word, analyse_factorial, analyse_runs,
    blocks_of, factorial,
};
use nfscope_stats::holm;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, StandardNormal};

fn near(is: f64, wanted: f64) {
    let error = (is - wanted).abs();
    assert!(error <= 1e-6 * wanted.abs().max(1e-3), "{is} for {wanted}");
}

/// Breaks in yarn by wool A and B and tension L, M and H: `warpbreaks` of R.
const BREAKS: [[f64; 9]; 6] = [
    [26.0, 30.0, 54.0, 25.0, 70.0, 52.0, 51.0, 26.0, 67.0],
    [18.0, 21.0, 29.0, 17.0, 12.0, 18.0, 35.0, 30.0, 36.0],
    [36.0, 21.0, 24.0, 18.0, 10.0, 43.0, 28.0, 15.0, 26.0],
    [27.0, 14.0, 29.0, 19.0, 29.0, 31.0, 41.0, 20.0, 44.0],
    [42.0, 26.0, 19.0, 16.0, 39.0, 28.0, 21.0, 39.0, 29.0],
    [20.0, 21.0, 24.0, 17.0, 13.0, 15.0, 15.0, 16.0, 28.0],
];

/// Breaks as runs, in one block or in nine, without those of the numbers in `missing`.
fn breaks(blocks: bool, missing: &[usize]) -> Vec<Observation> {
    let mut all = Vec::new();
    for (cell, values) in BREAKS.iter().enumerate() {
        for (i, v) in values.iter().enumerate() {
            let levels = Levels::default().with(0, (cell / 3) as u8);
            all.push(Observation {
                run: Run {
                    block: if blocks { i } else { 0 },
                    levels: levels.with(1, (cell % 3) as u8),
                },
                response: *v,
            });
        }
    }
    let kept = (1..).zip(all).filter(|(n, _)| !missing.contains(n));
    kept.map(|(_, o)| o).collect()
}

/// F, p and the difference of each level with its interval and p.
fn check(a: &Factorial, terms: &[(&str, f64, f64)], levels: &[[f64; 3]]) {
    for (term, (word, f, p)) in a.terms.iter().zip(terms) {
        assert_eq!(term.word, Word::parse(word).unwrap());
        near(term.f.unwrap(), *f);
        near(term.p_alone.unwrap(), *p);
    }
    assert_eq!((a.terms.len(), a.levels.len()), (terms.len(), levels.len()));
    for (level, [value, low, high]) in a.levels.iter().zip(levels) {
        near(level.difference.value, *value);
        near(level.difference.low, *low);
        near(level.difference.high, *high);
    }
}

/// `drop1(lm(breaks ~ wool * tension, warpbreaks), . ~ ., test = "F")` with `contr.sum`, and the differences of marginal means of
/// the same fit, by R 4.2.2.
#[test]
fn three_levels_are_those_of_r() {
    let a = analyse_factorial(&[2, 3], &breaks(false, &[]), Scale::Linear, 0.0).unwrap();
    check(
        &a,
        &[
            ("A", 3.765288361, 0.058212976),
            ("B", 8.498046648, 6.926209367e-4),
            ("AB", 4.189068967, 0.0210441907),
        ],
        &[
            [-5.777777778, -11.764579834, 0.209024279],
            [-10.0, -17.3323051145, -2.6676948855],
            [-14.7222222, -22.0545273, -7.38991711],
        ],
    );
    near(a.deviation.unwrap().powi(2), 119.689815);
    assert_eq!((a.dof, a.order, a.block_part), (48.0, 2, None));
    // Holm's correction for two levels.
    let p = holm(&[0.00855214214, 1.93845622e-4]);
    near(a.levels[1].p.unwrap(), p[0]);
    near(a.levels[2].p.unwrap(), p[1]);
}

/// The same of logarithms with nine blocks, and without five runs: `lm(log(breaks) ~ block + wool * tension)`.
#[test]
fn missing_runs_in_blocks_are_those_of_r() {
    let runs = breaks(true, &[1, 12, 30, 31, 54]);
    let a = analyse_factorial(&[2, 3], &runs, Scale::Logarithm, 0.0).unwrap();
    check(
        &a,
        &[
            ("A", 2.981931615, 0.0930163547),
            ("B", 8.964317331, 7.187927382e-4),
            ("AB", 4.271244039, 0.0218881496),
        ],
        &[
            [-0.1755934332, -0.3820261641, 0.0308392976],
            [-0.3365400105, -0.5917040996, -0.0813759213],
            [-0.53245168676, -0.78966257215, -0.27524080138],
        ],
    );
    near(a.deviation.unwrap().powi(2), 0.124063838);
    assert_eq!(a.dof, 35.0);
}

/// Yields of a 2^2 design with five points at its centre (D. C. Montgomery, Design and Analysis of Experiments, chapter 6): figures of
/// `lm(y ~ centre + a * b)` by R 4.2.2. His F of the curvature is 0.06, and his error 0.0430.
#[test]
fn curvature_is_that_of_r() {
    let design = Design::full(2).unwrap();
    let corners = design.levels().into_iter().zip([39.3, 40.9, 40.0, 41.5]);
    let centre = [40.3, 40.5, 40.7, 40.2, 40.6].map(|y| (Levels::centre(2), y));
    let runs: Vec<Observation> = corners
        .chain(centre)
        .map(|(levels, response)| Observation {
            run: Run { block: 0, levels },
            response,
        })
        .collect();
    let a = analyse_runs(&design, &runs, Scale::Linear, 0.0, 1).unwrap();
    let c = a.curvature.unwrap();
    near(c.difference.value, 0.035);
    near(c.difference.low, -0.3512153902);
    near(c.difference.high, 0.421215390);
    near(c.p.unwrap(), 0.8137408488);
    near(a.deviation.unwrap().powi(2), 0.0430);
    assert_eq!(a.dof, 4.0);
    for (effect, [value, low, p]) in a.effects.iter().zip([
        [0.775, 0.4871320445, 0.001712536703],
        [0.325, 0.0371320445, 0.03503025330],
        [-0.025, -0.3128679555, 0.8213164447],
    ]) {
        near(effect.effect.value, value);
        near(effect.effect.low, low);
        near(effect.p_alone.unwrap(), p);
    }
    near(a.mean.value, 40.425);
    let without = analyse_runs(&design, &runs[..4], Scale::Linear, 0.0, 1).unwrap();
    assert_eq!(without.curvature, None);
}

/// Fifteen factors in 16 and 32 runs: no main effect is another one, and the numbers of words of length three are those of the
/// catalogue of Chen, Sun and Wu (1993).
#[test]
fn up_to_fifteen_factors_are_screened() {
    let threes = [0, 4, 8, 12, 16, 22, 28, 35];
    for (factors, three) in (8..=15).zip(threes) {
        let design = Design::fraction(factors, 16).unwrap();
        assert_eq!(design.combinations.len(), 16);
        let short = design.defining.iter().filter(|w| w.order() == 3).count();
        assert_eq!(short, three, "{factors}");
        assert_eq!(design.effects().len(), 15);
        let design = Design::fraction(factors, 32).unwrap();
        assert_eq!(
            (design.combinations.len(), design.resolution()),
            (32, Some(4))
        );
    }
    assert_eq!(Design::fraction(8, 64).unwrap().resolution(), Some(5));
    let all = Design::fraction(15, 16).unwrap();
    let names: Vec<String> = all.effects().iter().map(ToString::to_string).collect();
    assert_eq!(names.concat(), "ABCDEFGHJKLMNOP");
    // Each factor is free of each other: their signs are orthogonal.
    for (i, a) in all.effects().iter().enumerate() {
        for b in &all.effects()[..i] {
            let products = all.combinations.iter().map(|l| a.sign(*l) * b.sign(*l));
            assert_eq!(products.sum::<f64>(), 0.0, "{a} {b}");
        }
    }
    // Three of fifteen factors matter: they are found without replicates.
    let mut random = SmallRng::seed_from_u64(15);
    let truth = [(2, 1.0), (8, -1.5), (14, 2.0)];
    let runs: Vec<Observation> = all
        .runs(1, 3)
        .into_iter()
        .map(|run| {
            let noise: f64 = StandardNormal.sample(&mut random);
            let each = truth.iter();
            let sum: f64 = each.map(|(f, e)| e * run.levels.sign(Word(1 << f))).sum();
            Observation {
                run,
                response: sum + 0.1 * noise,
            }
        })
        .collect();
    let a = analyse_runs(&all, &runs, Scale::Linear, 0.0, 1).unwrap();
    let found = a.effects.iter().filter(|e| e.stands_out);
    assert_eq!(found.map(|e| e.word.to_string()).collect::<String>(), "CJP");
    assert!(Design::full(8).is_err() && Design::full(16).is_err());
    assert!(factorial(&[2, 300]).is_err());
}

/// Levels of three factors in blocks that differ by ten times the noise: intervals hold in 95 % of experiments, and nothing is found
/// without an effect in 95 %, also where a tenth of the runs is missing. Bounds are those of four standard errors of the binomial.
#[test]
fn intervals_of_levels_hold() {
    let mut random = SmallRng::seed_from_u64(4);
    let counts = [4, 2, 3];
    let combinations = factorial(&counts).unwrap();
    let experiments = 1000;
    for missing in [0, 7] {
        let (mut held, mut of, mut found) = (0, 0, 0);
        for seed in 0..experiments {
            let mut runs = blocks_of(&combinations, 3, seed, 0);
            runs.truncate(runs.len() - missing);
            let data: Vec<Observation> = runs
                .into_iter()
                .map(|run| {
                    let noise: f64 = StandardNormal.sample(&mut random);
                    Observation {
                        run,
                        response: 10.0 * run.block as f64 + noise,
                    }
                })
                .collect();
            let a = analyse_factorial(&counts, &data, Scale::Linear, 0.0).unwrap();
            assert_eq!((a.terms.len(), a.levels.len()), (7, 6));
            of += a.levels.len();
            let holds = |l: &&nfscope_stats::experiment::LevelEffect| {
                l.difference.low <= 0.0 && l.difference.high >= 0.0
            };
            held += a.levels.iter().filter(holds).count();
            let p: Vec<f64> = a.terms.iter().map(|t| t.p_alone.unwrap()).collect();
            found += usize::from(holm(&p).iter().any(|p| *p <= 0.05));
        }
        let part = held as f64 / of as f64;
        println!("{missing} missing: {part} hold; {found} of {experiments} find something");
        // Levels of one factor share the error of the first one: an experiment is the unit.
        let error = 4.0 * (0.05f64 * 0.95 / experiments as f64).sqrt();
        assert!((part - 0.95).abs() < error, "{part}");
        let found = found as f64 / experiments as f64;
        assert!(found < 0.05 + error && found > 0.01, "{found}");
    }
}

/// Without replicates the longest interaction counts as noise, and a level without runs has no effect.
#[test]
fn the_longest_interaction_is_noise_where_nothing_is_run_twice() {
    let counts = [3, 2, 2];
    let response =
        |levels: Levels| levels.at(0) as f64 + 0.01 * (levels.at(1) * levels.at(2)) as f64;
    let data: Vec<Observation> = factorial(&counts)
        .unwrap()
        .into_iter()
        .map(|levels| Observation {
            run: Run { block: 0, levels },
            response: response(levels),
        })
        .collect();
    let a = analyse_factorial(&counts, &data, Scale::Linear, 0.0).unwrap();
    assert_eq!((a.order, a.dof), (2, 2.0));
    near(a.levels[1].difference.value, 2.0);
    let without: Vec<_> = data
        .iter()
        .copied()
        .filter(|o| o.run.levels.at(0) != 2)
        .collect();
    let a = analyse_factorial(&counts, &without, Scale::Linear, 0.0).unwrap();
    assert!(a.dropped.contains(&Word(1)), "{a:?}");
    assert!(analyse_factorial(&counts, &[], Scale::Linear, 0.0).is_none());
}
