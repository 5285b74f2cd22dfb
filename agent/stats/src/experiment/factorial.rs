//! All combinations of factors with any number of levels: an F test for each factor and each interaction, and the difference of each level
//! from the first.
//!
//! Columns of a factor sum up to zero over its levels. Each test is therefore that of what a term adds to all others, which also holds where
//! runs are missing (type III; `drop1` of R with `contr.sum`).

use crate::experiment::analysis::{Observation, ROUNDING, Scale, Variation, blocks};
use crate::experiment::design::Word;
use crate::experiment::least_squares::{Fit, fit as least_squares};
use crate::interval::{CONFIDENCE, Interval, beyond, students_t};
use crate::multiple_comparisons::holm;
use statrs::distribution::{ContinuousCDF, FisherSnedecor};

/// A factor, or an interaction of several.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Term {
    /// Word of the term.
    pub word: Word,
    /// Degrees of freedom of the term.
    pub dof: f64,
    /// Mean square of the term over that of the noise; `None` without degrees of freedom of the noise.
    pub f: Option<f64>,
    /// Probability of an F at least as large by chance, before a correction for the number of terms.
    pub p_alone: Option<f64>,
    /// Part of the variation of all responses.
    pub part: f64,
}

/// A level of a factor compared with its first level, over all levels of the other factors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelEffect {
    /// Number of the factor.
    pub factor: usize,
    /// Number of the level; the first is 0 and has none.
    pub level: usize,
    /// The mean response less that of the first level, with its interval; without noise the interval is the value.
    pub difference: Interval,
    /// Probability of a difference at least as large by chance, by Holm's correction for the levels of the factor.
    pub p: Option<f64>,
}

/// An analysis.
#[derive(Debug, Clone, PartialEq)]
pub struct Factorial {
    /// Most factors of an interaction in the model: longer ones count as noise.
    pub order: u32,
    /// Terms: factors, then interactions.
    pub terms: Vec<Term>,
    /// Levels in the order of factors.
    pub levels: Vec<LevelEffect>,
    /// Terms that the runs cannot estimate.
    pub dropped: Vec<Word>,
    /// Part of the variation that is between blocks; `None` with a single block.
    pub block_part: Option<f64>,
    /// Part of the variation that the model does not explain.
    pub error_part: f64,
    /// Standard deviation of responses about the model; `None` without degrees of freedom.
    pub deviation: Option<f64>,
    /// Degrees of freedom of the standard deviation.
    pub dof: f64,
    /// Residuals in the order of the runs, on the scale of the analysis.
    pub residuals: Vec<f64>,
}

/// Columns of the model, and the terms that they belong to.
struct Model {
    columns: Vec<Vec<f64>>,
    terms: Vec<(Word, std::ops::Range<usize>)>,
}

impl Model {
    /// Model with terms of at most `order` factors.
    fn of(counts: &[usize], observations: &[Observation], order: u32) -> Model {
        let mut columns = vec![vec![1.0; observations.len()]];
        columns.extend(blocks(observations));
        let mut words: Vec<Word> = (1..=Word::all(counts.len()).0).map(Word).collect();
        words.retain(|w| w.order() <= order);
        words.sort_by_key(|w| (w.order(), w.0));
        let mut terms = Vec::new();
        for word in words {
            // The columns of a term are products of the columns of its factors.
            let mut of = vec![vec![1.0; observations.len()]];
            for factor in word.factors() {
                let column = |level: usize| {
                    let sign = move |o: &Observation| match o.run.levels.at(factor) {
                        l if l == level => 1.0,
                        0 => -1.0,
                        _ => 0.0,
                    };
                    observations.iter().map(sign).collect::<Vec<f64>>()
                };
                let own: Vec<_> = (1..counts[factor]).map(column).collect();
                let times =
                    |a: &Vec<f64>, b: &Vec<f64>| a.iter().zip(b).map(|(a, b)| a * b).collect();
                of = of
                    .iter()
                    .flat_map(|a| own.iter().map(move |b| times(a, b)))
                    .collect();
            }
            terms.push((word, columns.len()..columns.len() + of.len()));
            columns.extend(of);
        }
        Model { columns, terms }
    }

    /// Model without the columns of a term.
    fn without(&self, term: &std::ops::Range<usize>) -> Vec<Vec<f64>> {
        let all = self.columns.iter().enumerate();
        let kept = all.filter(|(i, _)| !term.contains(i));
        kept.map(|(_, c)| c.clone()).collect()
    }
}

/// Analyses runs of factors, whose numbers of levels are in `counts`, by least squares with blocks. The model has the longest interactions
/// that leave degrees of freedom for the noise. `None` without runs, or if a logarithm does not exist.
///
/// `hidden` is as in [`analyse_runs`](crate::experiment::analyse_runs): no difference up to twice that size is evidence.
pub fn analyse_factorial(
    counts: &[usize],
    observations: &[Observation],
    scale: Scale,
    hidden: f64,
) -> Option<Factorial> {
    let y: Vec<f64> = observations.iter().map(|o| scale.of(o.response)).collect();
    if y.is_empty() || y.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let fitted = |order: u32| {
        let model = Model::of(counts, observations, order);
        let fit = least_squares(&model.columns, &y);
        (order, model, fit)
    };
    let longest = counts.len() as u32;
    // A model with as many columns as runs leaves no noise, and is not tried.
    let columns = |order: u32| {
        let words = (1..=Word::all(counts.len()).0).map(Word);
        let of = words.filter(|w| w.order() <= order);
        of.map(|w| w.factors().map(|f| counts[f] - 1).product::<usize>())
            .sum::<usize>()
    };
    let orders = (1..=longest).rev();
    let mut possible = orders.filter(|order| columns(*order) + 1 < y.len() || *order == 1);
    let (order, model, fit) = loop {
        let (order, model, fit) = fitted(possible.next()?);
        if order == 1 || fit.rank() < y.len() {
            break (order, model, fit);
        }
    };
    let dof = (y.len() - fit.rank()) as f64;
    let error_square = fit.error_square();
    let variation = Variation::of(&y);
    let largest = y.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
    let deviation = (dof > 0.0).then(|| (error_square / dof).sqrt().max(ROUNDING * largest));
    let (mut terms, mut dropped) = (Vec::new(), Vec::new());
    for (word, range) in &model.terms {
        if range.clone().any(|c| fit.coefficients[c].is_none()) {
            dropped.push(*word);
            continue;
        }
        let without = least_squares(&model.without(range), &y);
        let square = (without.error_square() - error_square).max(0.0);
        let of = range.len() as f64;
        // Without any variation there is nothing to explain.
        let f = deviation.map(|s| match square > 0.0 {
            true => square / of / (s * s),
            false => 0.0,
        });
        // A difference that a bucket can hide is no effect.
        let moved = without.residuals.iter().zip(&fit.residuals);
        let largest_part = moved.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        terms.push(Term {
            word: *word,
            dof: of,
            f,
            p_alone: match largest_part <= hidden {
                true => f.map(|_| 1.0),
                false => f.and_then(|f| f_beyond(f, of, dof)),
            },
            part: variation.part(square),
        });
    }
    let mut levels = Vec::new();
    for (word, range) in model.terms.iter().filter(|(w, _)| w.order() == 1) {
        let factor = word.0.trailing_zeros() as usize;
        levels.extend(differences(factor, range, &fit, deviation, dof, hidden));
    }
    Some(Factorial {
        order,
        terms,
        levels,
        dropped,
        block_part: (model.terms.first()?.1.start > 1)
            .then(|| variation.part(variation.of_blocks(observations, &y))),
        error_part: variation.part(error_square),
        deviation,
        dof,
        residuals: fit.residuals,
    })
}

/// Each level of a factor less the first: the columns of the levels sum up to minus the effect of the first.
fn differences(
    factor: usize,
    range: &std::ops::Range<usize>,
    fit: &Fit,
    deviation: Option<f64>,
    dof: f64,
    hidden: f64,
) -> Vec<LevelEffect> {
    let level = |own: usize| {
        let weight = |c: usize| (c, if c == own { 2.0 } else { 1.0 });
        let (value, variance) = fit.sum(&range.clone().map(weight).collect::<Vec<_>>())?;
        let error = deviation.map(|s| s * variance.sqrt());
        let half = error.map_or(0.0, |e| students_t(CONFIDENCE, dof) * e + 2.0 * hidden);
        let excess = (value.abs() - 2.0 * hidden).max(0.0);
        let p = error.map(|e| match excess {
            0.0 => 1.0,
            excess => beyond(excess / e, dof),
        });
        Some(LevelEffect {
            factor,
            level: own - range.start + 1,
            difference: Interval {
                value,
                low: value - half,
                high: value + half,
            },
            p,
        })
    };
    let mut all: Vec<LevelEffect> = range.clone().filter_map(level).collect();
    let alone: Option<Vec<f64>> = all.iter().map(|l| l.p).collect();
    for (level, p) in all
        .iter_mut()
        .zip(alone.map(|p| holm(&p)).unwrap_or_default())
    {
        level.p = Some(p);
    }
    all
}

/// Probability that a variable with an F distribution is larger.
fn f_beyond(f: f64, above: f64, below: f64) -> Option<f64> {
    let known = f.is_finite().then_some(f)?;
    Some(FisherSnedecor::new(above, below).ok()?.sf(known))
}
