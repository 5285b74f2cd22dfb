//! Effects with their intervals, and the part of the variation that each explains.

use crate::experiment::design::{Design, Word};
use crate::experiment::lenth::{Lenth, lenth_of};
use crate::interval::{CONFIDENCE, Interval, beyond, students_t};
use crate::multiple_comparisons::holm;

/// Responses that differ by less than this part of the largest are equal but for rounding.
const ROUNDING: f64 = 1e-12;

/// How responses are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// As they are: effects add up.
    Linear,
    /// Their logarithms: effects are factors.
    Logarithm,
}

/// One effect: half the difference between the high and the low level.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// Which.
    pub word: Word,
    /// The effect with its interval; without replicates the interval is the value.
    pub effect: Interval,
    /// Part of the variation of all responses, 0 to 1.
    pub part: f64,
    /// Sum of the responses with the signs of this effect, over the means of combinations (Jain's total).
    pub total: f64,
    /// Probability of an effect at least as large without any, corrected for the number of effects (Holm); `None` without replicates.
    pub p: Option<f64>,
    /// The same before that correction.
    pub p_alone: Option<f64>,
    /// Beyond the simultaneous margin of error, where there are no replicates.
    pub stands_out: bool,
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
    /// Part of the variation that no effect explains.
    pub error_part: f64,
    /// Standard deviation of the responses of one combination; `None` without replicates.
    pub deviation: Option<f64>,
    /// Degrees of freedom of that.
    pub dof: f64,
    /// The noise of effects, where there are no replicates.
    pub lenth: Option<Lenth>,
    /// Residuals by combination and replicate, on the scale of the analysis.
    pub residuals: Vec<Vec<f64>>,
}

/// Analyses a design: for each combination, in the order of the design, its responses, one or more. `None` where a combination has no
/// response, or a logarithm does not exist.
///
/// As there is an effect for each combination but one, least squares fits the mean of each combination, whatever the number of its
/// responses. Effects are contrasts of these means. Combinations with different numbers of responses make the error of all effects larger
/// alike, and the parts of the variation do not add up to the whole.
///
/// `hidden` is how far each response may be off without that repetitions show it, on the scale of the analysis: half a bucket of a
/// histogram. No effect up to that size is evidence.
pub fn analyse(
    design: &Design,
    responses: &[Vec<f64>],
    scale: Scale,
    hidden: f64,
) -> Option<Analysis> {
    analyse_one_of(design, responses, scale, hidden, 1)
}

/// The same of one of several responses of an experiment: without replicates an effect must then stand out among those of all. With
/// replicates the corrected p values are those of this response alone.
pub fn analyse_one_of(
    design: &Design,
    responses: &[Vec<f64>],
    scale: Scale,
    hidden: f64,
    of: usize,
) -> Option<Analysis> {
    let is_whole = responses.len() == design.combinations.len();
    if !is_whole || responses.iter().any(Vec::is_empty) {
        return None;
    }
    let scaled = |v: &f64| match scale {
        Scale::Linear => *v,
        Scale::Logarithm => v.ln(),
    };
    let y: Vec<Vec<f64>> = responses
        .iter()
        .map(|all| all.iter().map(scaled).collect())
        .collect();
    if y.iter().flatten().any(|v| !v.is_finite()) {
        return None;
    }
    let mean_of = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    let means: Vec<f64> = y.iter().map(|all| mean_of(all)).collect();
    let n = means.len() as f64;
    let count = |all: &Vec<f64>| all.len() as f64;
    // The variance of an effect is that of a response over as many runs as this; it is the number of runs where all have as many.
    let effective = n * n / y.iter().map(|all| 1.0 / count(all)).sum::<f64>();
    let residuals: Vec<Vec<f64>> = y
        .iter()
        .zip(&means)
        .map(|(all, mean)| all.iter().map(|v| v - mean).collect())
        .collect();
    let error_square: f64 = residuals.iter().flatten().map(|e| e * e).sum();
    let mean = mean_of(&means);
    let all: Vec<f64> = y.iter().flatten().copied().collect();
    let middle = mean_of(&all);
    let total_square: f64 = all.iter().map(|v| (v - middle).powi(2)).sum();
    let part = |square: f64| match total_square > 0.0 {
        true => square / total_square,
        false => 0.0,
    };
    let dof = all.len() as f64 - n;
    let deviation = (dof > 0.0).then(|| (error_square / dof).sqrt());
    // What is left of equal responses by rounding is no variation.
    let rounding = ROUNDING
        * y.iter()
            .flatten()
            .fold(0.0, |most: f64, v| most.max(v.abs()));
    let error = deviation.map(|s| (s / effective.sqrt()).max(rounding));
    let interval = |value: f64| {
        let half = error.map_or(0.0, |e| students_t(CONFIDENCE, dof) * e + hidden);
        Interval {
            value,
            low: value - half,
            high: value + half,
        }
    };
    let words = design.effects();
    let totals: Vec<f64> = words
        .iter()
        .map(|word| {
            let each = design.combinations.iter().zip(&means);
            each.map(|(levels, mean)| word.sign(*levels) * mean).sum()
        })
        .collect();
    let values: Vec<f64> = totals.iter().map(|t| t / n).collect();
    let alone = error.map(|e| {
        let each = values.iter().map(|v| match excess(*v, hidden) {
            0.0 => 1.0,
            excess => beyond(excess / e, dof),
        });
        each.collect::<Vec<_>>()
    });
    let p = alone.as_deref().map(holm);
    let lenth = match deviation {
        None => lenth_of(&values, of),
        Some(_) => None,
    };
    let effects = words
        .iter()
        .enumerate()
        .map(|(i, word)| Effect {
            word: *word,
            effect: interval(values[i]),
            part: part(effective * values[i] * values[i]),
            total: totals[i],
            p: p.as_ref().map(|p| p[i]),
            p_alone: alone.as_ref().map(|p| p[i]),
            stands_out: lenth
                .is_some_and(|l| excess(values[i], hidden) > l.simultaneous_margin.max(rounding)),
        })
        .collect();
    Some(Analysis {
        mean: interval(mean),
        mean_total: means.iter().sum(),
        effects,
        error_part: part(error_square),
        deviation,
        dof,
        lenth,
        residuals,
    })
}

/// How much larger an effect is than what may be hidden.
fn excess(value: f64, hidden: f64) -> f64 {
    (value.abs() - hidden).max(0.0)
}

impl Analysis {
    /// The smallest effect that four of five such experiments would find, on the scale of the analysis and before any correction.
    pub fn smallest_found(&self, level: f64, power: f64) -> Option<f64> {
        let n = self.residuals.len() as f64;
        let parts: f64 = self
            .residuals
            .iter()
            .map(|all| 1.0 / all.len() as f64)
            .sum();
        let runs = (n * n / parts).round() as usize;
        Some(smallest_found(
            self.deviation?,
            runs,
            self.dof,
            level,
            power,
        ))
    }
}

/// The smallest effect that a test at this level finds with this power in so many runs, whose responses vary by this deviation within a
/// combination: half the difference between the levels. Infinite without degrees of freedom.
pub fn smallest_found(deviation: f64, runs: usize, dof: f64, level: f64, power: f64) -> f64 {
    let quantiles = students_t(1.0 - level, dof) + students_t(2.0 * power - 1.0, dof);
    quantiles * deviation / (runs as f64).sqrt()
}
