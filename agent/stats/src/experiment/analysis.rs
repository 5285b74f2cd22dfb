//! Effects with their intervals, and the part of the variation that each explains.

use crate::experiment::design::{CENTRE, Design, Levels, Run, Word};
use crate::experiment::least_squares::fit;
use crate::experiment::lenth::{Lenth, lenth_of};
use crate::interval::{CONFIDENCE, Interval, beyond, students_t};
use crate::multiple_comparisons::holm;
use std::collections::{BTreeMap, BTreeSet};

/// Responses that differ by less than this part of the largest are equal but for rounding.
pub(super) const ROUNDING: f64 = 1e-12;

/// Scale on which responses are analysed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Responses unchanged: effects add up.
    Linear,
    /// Logarithms of responses: effects are factors.
    Logarithm,
}

impl Scale {
    /// A response on this scale.
    pub fn of(self, response: f64) -> f64 {
        match self {
            Scale::Linear => response,
            Scale::Logarithm => response.ln(),
        }
    }
}

/// An effect: half the difference between the high and the low level.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// Factors of the effect.
    pub word: Word,
    /// The effect with its interval; without replicates the interval is the value.
    pub effect: Interval,
    /// Part of the variation of all responses, 0 to 1.
    pub part: f64,
    /// Sum of the responses with the signs of this effect, over the means of combinations (Jain's total).
    pub total: f64,
    /// Probability of an effect at least as large by chance, corrected for the number of effects (Holm); `None` without replicates.
    pub p: Option<f64>,
    /// Probability before that correction.
    pub p_alone: Option<f64>,
    /// True if the effect is beyond the simultaneous margin of error; for experiments without replicates.
    pub stands_out: bool,
}

/// Curvature: the response at the centre less the value of the model that is linear in every factor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Curvature {
    /// The response at the centre less the mean of the combinations, with its interval; without replicates the interval is the value.
    pub difference: Interval,
    /// Part of the variation.
    pub part: f64,
    /// Probability of a difference at least as large by chance, by a test of its own. `None` without replicates.
    pub p: Option<f64>,
}

/// An analysis.
#[derive(Debug, Clone, PartialEq)]
pub struct Analysis {
    /// The mean response on its scale.
    pub mean: Interval,
    /// The sum of the means of combinations.
    pub mean_total: f64,
    /// Effects in standard order.
    pub effects: Vec<Effect>,
    /// Effects that are aliased with blocks or with shorter effects: they count as none.
    pub dropped: Vec<Word>,
    /// Part of the variation that is between blocks; `None` with a single block.
    pub block_part: Option<f64>,
    /// Part of the variation that neither effects nor blocks explain.
    pub error_part: f64,
    /// Standard deviation of the responses of one combination in a block; `None` without replicates.
    pub deviation: Option<f64>,
    /// Degrees of freedom of the standard deviation.
    pub dof: f64,
    /// Number of runs of a balanced design with the same precision of effects.
    pub effective: f64,
    /// Noise of effects, for experiments without replicates.
    pub lenth: Option<Lenth>,
    /// Curvature from the runs at the centre; `None` without such runs.
    pub curvature: Option<Curvature>,
    /// Residuals in the order of the runs, on the scale of the analysis.
    pub residuals: Vec<f64>,
}

/// A run with its response.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation {
    /// The run.
    pub run: Run,
    /// Response that was measured.
    pub response: f64,
}

/// Analyses a design. `responses` has one or more responses of each combination, in the order of the design, all of one block. `None` if a
/// combination has no response, or if a logarithm does not exist.
pub fn analyse(
    design: &Design,
    responses: &[Vec<f64>],
    scale: Scale,
    hidden: f64,
) -> Option<Analysis> {
    let is_whole = responses.len() == design.combinations.len();
    if !is_whole || responses.iter().any(Vec::is_empty) {
        return None;
    }
    let each = design.combinations.iter().zip(responses);
    let all = each.flat_map(|(levels, all)| {
        all.iter().map(|response| Observation {
            run: Run {
                block: 0,
                levels: Levels::of_two(*levels),
            },
            response: *response,
        })
    });
    analyse_runs(design, &all.collect::<Vec<_>>(), scale, hidden, 1)
}

/// Analyses runs by least squares: a mean, a difference for each block but one, and the effects of the design. `None` where there are none,
/// or a logarithm does not exist.
///
/// An effect that blocks and shorter effects make up cannot be estimated: that of a fold-over that was added later, which is the difference
/// between both parts, or a long one where combinations have no run. It is in [`Analysis::dropped`] and counts as none. Combinations with
/// different numbers of runs make the error of effects larger, and the parts of the variation do not add up to the whole.
///
/// `hidden` is an error of each response that repetitions do not show, on the scale of the analysis: half a bucket of a histogram. No
/// effect up to that size is evidence.
///
/// `of` is the number of responses of an experiment, of which one is analysed. Without replicates an effect must then stand out among those
/// of all. With replicates the corrected p values are those of this response alone.
pub fn analyse_runs(
    design: &Design,
    observations: &[Observation],
    scale: Scale,
    hidden: f64,
    of: usize,
) -> Option<Analysis> {
    let y: Vec<f64> = observations.iter().map(|o| scale.of(o.response)).collect();
    if y.is_empty() || y.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let n = y.len() as f64;
    let words = design.effects();
    let blocks = blocks(observations);
    let signs = words.iter().map(|word| {
        let each = observations.iter();
        each.map(|o| o.run.levels.sign(*word)).collect()
    });
    let centre = centre(observations);
    let at = 1 + blocks.len();
    let first = at + usize::from(centre.is_some());
    let columns: Vec<Vec<f64>> = [vec![1.0; y.len()]]
        .into_iter()
        .chain(blocks)
        .chain(centre)
        .chain(signs)
        .collect();
    let fit = fit(&columns, &y);
    let error_square = fit.error_square();
    let variation = Variation::of(&y);
    let part = |square: f64| variation.part(square);
    let dof = (y.len() - fit.rank()) as f64;
    let deviation = (dof > 0.0).then(|| (error_square / dof).sqrt());
    // Variation of equal responses that rounding leaves counts as none.
    let rounding = ROUNDING * y.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
    let error = |variance: f64| deviation.map(|s| (s * variance.sqrt()).max(rounding));
    // Buckets hide a part of each estimate, which widens its interval: once for an effect, twice for a difference of two means.
    let interval_of = |(value, variance): (f64, f64), hidden: f64| {
        let half = error(variance).map_or(0.0, |e| students_t(CONFIDENCE, dof) * e + hidden);
        Interval {
            value,
            low: value - half,
            high: value + half,
        }
    };
    let interval = |of: (f64, f64)| interval_of(of, hidden);
    let estimates = words.iter().zip(&fit.coefficients[first..]);
    let known: Vec<(Word, (f64, f64))> = estimates
        .clone()
        .filter_map(|(w, e)| Some((*w, (*e)?)))
        .collect();
    let values: Vec<f64> = known.iter().map(|(_, (v, _))| *v).collect();
    let p_beyond = |(v, variance): (f64, f64), hidden: f64| {
        let error = error(variance)?;
        Some(match excess(v, hidden) {
            0.0 => 1.0,
            excess => beyond(excess / error, dof),
        })
    };
    let alone = known.iter().map(|(_, e)| p_beyond(*e, hidden));
    let alone: Option<Vec<f64>> = alone.collect();
    let alone = alone.filter(|_| deviation.is_some());
    let p = alone.as_deref().map(holm);
    let lenth = match deviation {
        None => lenth_of(&values, of),
        Some(_) => None,
    };
    let combinations = design.combinations.len() as f64;
    let effects = known
        .iter()
        .enumerate()
        .map(|(i, (word, estimate))| Effect {
            word: *word,
            effect: interval(*estimate),
            part: part(estimate.0 * estimate.0 / estimate.1),
            total: estimate.0 * combinations,
            p: p.as_ref().map(|p| p[i]),
            p_alone: alone.as_ref().map(|p| p[i]),
            stands_out: lenth
                .is_some_and(|l| excess(estimate.0, hidden) > l.simultaneous_margin.max(rounding)),
        });
    let curvature = (first > at).then(|| fit.coefficients[at]).flatten();
    let mean = fit.coefficients[0]?;
    let widest = known.iter().map(|(_, (_, v))| *v).fold(0.0, f64::max);
    Some(Analysis {
        mean: interval(mean),
        mean_total: mean.0 * combinations,
        effects: effects.collect(),
        dropped: estimates
            .filter(|(_, e)| e.is_none())
            .map(|(w, _)| *w)
            .collect(),
        block_part: (at > 1).then(|| part(variation.of_blocks(observations, &y))),
        error_part: part(error_square),
        deviation,
        dof,
        effective: if widest > 0.0 { 1.0 / widest } else { n },
        lenth,
        curvature: curvature.map(|c| Curvature {
            difference: interval_of(c, 2.0 * hidden),
            part: part(c.0 * c.0 / c.1),
            p: p_beyond(c, 2.0 * hidden),
        }),
        residuals: fit.residuals,
    })
}

/// A column for each block but the first. Each column has its mean subtracted, so that it is orthogonal to the other columns if all blocks
/// are complete.
pub(super) fn blocks(observations: &[Observation]) -> Vec<Vec<f64>> {
    let all: BTreeSet<usize> = observations.iter().map(|o| o.run.block).collect();
    let column = |block: &usize| {
        let is = |o: &Observation| f64::from(u8::from(o.run.block == *block));
        let share = observations.iter().map(is).sum::<f64>() / observations.len() as f64;
        observations.iter().map(|o| is(o) - share).collect()
    };
    all.iter().skip(1).map(column).collect()
}

/// A column of the runs at the centre, if there are any beside others.
fn centre(observations: &[Observation]) -> Option<Vec<f64>> {
    let is = |o: &Observation| f64::from(u8::from(o.run.levels.at(0) == CENTRE));
    let column: Vec<f64> = observations.iter().map(is).collect();
    let is_some = column.contains(&1.0) && column.contains(&0.0);
    is_some.then_some(column)
}

/// Variation of all responses about their mean.
pub(super) struct Variation {
    middle: f64,
    square: f64,
}

impl Variation {
    pub(super) fn of(y: &[f64]) -> Variation {
        let middle = y.iter().sum::<f64>() / y.len() as f64;
        Variation {
            middle,
            square: y.iter().map(|v| (v - middle).powi(2)).sum(),
        }
    }

    /// Part of the variation that a sum of squares has.
    pub(super) fn part(&self, square: f64) -> f64 {
        match self.square > 0.0 {
            true => square / self.square,
            false => 0.0,
        }
    }

    /// The sum of squares between blocks.
    pub(super) fn of_blocks(&self, observations: &[Observation], y: &[f64]) -> f64 {
        let mut all: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
        for (o, y) in observations.iter().zip(y) {
            let (sum, n) = all.entry(o.run.block).or_default();
            *sum += y;
            *n += 1.0;
        }
        let each = all.values();
        each.map(|(sum, n)| n * (sum / n - self.middle).powi(2))
            .sum()
    }
}

/// Part of an effect that exceeds the error hidden by buckets.
fn excess(value: f64, hidden: f64) -> f64 {
    (value.abs() - hidden).max(0.0)
}

impl Analysis {
    /// Smallest effect that this experiment finds with this power (0.8: in four of five experiments), on the scale of the analysis and
    /// before any correction.
    pub fn smallest_found(&self, level: f64, power: f64) -> Option<f64> {
        let runs = self.effective.round() as usize;
        Some(smallest_found(
            self.deviation?,
            runs,
            self.dof,
            level,
            power,
        ))
    }
}

/// Smallest effect that a test at this level finds with this power in `runs` runs, whose responses have this deviation within a
/// combination: half the difference between the levels. Infinite without degrees of freedom.
pub fn smallest_found(deviation: f64, runs: usize, dof: f64, level: f64, power: f64) -> f64 {
    let quantiles = students_t(1.0 - level, dof) + students_t(2.0 * power - 1.0, dof);
    quantiles * deviation / (runs as f64).sqrt()
}
