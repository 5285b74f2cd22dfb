//! The result of an analysis, shared by the terminal, JSON and the page.

use crate::durability::Durability;
use crate::experiment::plan::Factor;
use nfscope_stats::experiment::Word;
use nfscope_text::units::{percent, rate, seconds};
use serde::Serialize;

/// The unit of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A duration.
    Seconds,
    /// Events per second.
    PerSecond,
    /// A part of a whole, 0 to 1.
    Share,
    /// A number that a load printed, with an unknown unit.
    Number,
}

impl Unit {
    /// Text of a value.
    pub(super) fn shown(self, v: f64) -> String {
        match self {
            Unit::Seconds => seconds(v),
            Unit::PerSecond => format!("{}/s", rate(v)),
            Unit::Share => percent(v),
            Unit::Number => number(v),
        }
    }
}

/// Text of a number with four significant digits.
fn number(v: f64) -> String {
    if v == 0.0 || !v.is_finite() {
        return format!("{v}");
    }
    let decimals = (3.0 - v.abs().log10().floor()).clamp(0.0, 9.0);
    format!("{v:.*}", decimals as usize)
}

/// A response: the measurements of the runs, in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Name, for example `write p99`.
    pub name: String,
    /// Unit of its values.
    pub unit: Unit,
    /// Runs that were made.
    pub runs: Vec<RunData>,
    /// Numbers of the runs that were not made; the first is 1.
    pub missing: Vec<usize>,
}

/// Measurements of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunData {
    /// The response.
    pub response: f64,
    /// Relative error of the response within the bucket of a histogram, which repetitions do not show.
    pub hidden: f64,
    /// Operations per second.
    pub rate: f64,
    /// Share of operations that failed.
    pub failed: f64,
    /// The durability of acknowledged writes during the run.
    pub durability: Durability,
}

#[cfg(test)]
impl Measured {
    /// Response of numbers that loads have printed, one per run, without other measurements.
    pub(super) fn of_loads(numbers: impl Iterator<Item = f64>) -> Measured {
        let run = |response| RunData {
            response,
            hidden: 0.0,
            rate: 0.0,
            failed: 0.0,
            durability: Durability::default(),
        };
        Measured {
            name: "mbs of the load".into(),
            unit: Unit::Number,
            runs: numbers.map(run).collect(),
            missing: Vec::new(),
        }
    }
}

/// An effect, for the terminal and for programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    /// Word, for example `A` or `AB`.
    pub word: String,
    /// Names of its factors.
    pub factors: String,
    /// Ratio of the high level to the low one; on a linear scale half their difference.
    pub effect: f64,
    /// Ends of its 95 % interval; `None` without replicates.
    pub interval: Option<[f64; 2]>,
    /// Part of the variation that it explains.
    pub part: f64,
    /// Corrected p value; `None` without replicates.
    pub p: Option<f64>,
    /// True if there is evidence of the effect.
    pub found: bool,
    /// Aliases of the effect up to order two.
    pub aliases: Vec<String>,
    /// Plausible causes, which the design cannot separate; a single one if it can.
    pub causes: Vec<String>,
    /// The plausible causes as products of factors.
    #[serde(skip)]
    pub words: Vec<Word>,
}

impl Response {
    /// The numbers of the factors of its shortest word.
    pub(super) fn factors_of(&self) -> Vec<usize> {
        let word = Word::parse(&self.word);
        word.map_or(Vec::new(), |w| w.factors().collect())
    }

    /// `C or B x F`
    pub fn name(&self) -> String {
        self.causes.join(" or ")
    }
}

/// A factor or an interaction, if a factor has more than two levels.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TermResult {
    /// Names of its factors.
    pub factors: String,
    /// Degrees of freedom.
    pub dof: f64,
    /// Mean square over that of the noise; `None` without noise.
    pub f: Option<f64>,
    /// Part of the variation that it explains.
    pub part: f64,
    /// Corrected p value.
    pub p: Option<f64>,
    /// True if there is evidence of an effect of this factor or interaction.
    pub found: bool,
}

/// A level of a factor compared with the first one, over all levels of the other factors.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelResult {
    /// Name of the factor.
    pub factor: String,
    /// The level.
    pub level: String,
    /// Ratio of the response to that at the first level; on a linear scale the difference.
    pub effect: f64,
    /// Ends of its 95 % interval; `None` without noise.
    pub interval: Option<[f64; 2]>,
    /// P value corrected for the levels of the factor.
    pub p: Option<f64>,
    /// True if there is evidence of the factor, and of this level.
    pub found: bool,
}

/// Curvature: the centre compared with the value halfway between the levels.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CurvatureResult {
    /// Ratio of the response at the centre to the mean of the combinations; on a linear scale their difference.
    pub effect: f64,
    /// Ends of its 95 % interval; `None` without replicates.
    pub interval: Option<[f64; 2]>,
    /// Part of the variation that it explains.
    pub part: f64,
    /// P value of the test for curvature, without a correction for the tests of effects.
    pub p: Option<f64>,
    /// True if effects are not linear between the levels.
    pub found: bool,
}

/// Effects without replicates, compared with the sizes that noise alone would give.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HalfNormal {
    /// Noise of effects (Lenth's pseudo standard error). Sizes are on the scale of the analysis: logarithms unless it is linear.
    pub error: f64,
    /// Margin beyond which an effect stands out among all.
    pub margin: f64,
    /// Effects, the largest first.
    pub sizes: Vec<Size>,
}

/// The size of an effect.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Size {
    /// Names of its factors.
    pub factors: String,
    /// Half the difference between the levels, without its sign.
    pub size: f64,
    /// Size that noise alone would give to the effect of this rank.
    pub of_noise: f64,
}

/// The analysis of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Analysed {
    /// Name of the experiment.
    pub name: String,
    /// Response that was measured: `write p99`.
    pub response: String,
    /// True if the response is a number per second.
    pub is_rate: bool,
    /// The unit of the response.
    pub unit: Unit,
    /// True if effects are factors.
    pub logarithm: bool,
    /// Effects, the largest part first; empty if a factor has more than two levels.
    pub effects: Vec<Response>,
    /// Factors and interactions if a factor has more than two levels, the largest part first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub terms: Vec<TermResult>,
    /// Levels of these factors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<LevelResult>,
    /// Curvature from the runs at the centre; `None` without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curvature: Option<CurvatureResult>,
    /// Part of the variation that is between blocks of runs, which is not an effect; `None` with a single block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_part: Option<f64>,
    /// Part of the variation that neither effects nor blocks explain.
    pub error_part: f64,
    /// Smallest effect that four of five such experiments would have found, as a factor; `None` without replicates or on a linear scale.
    pub finds: Option<f64>,
    /// Effects that stand out of the noise, without replicates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub half_normal: Option<HalfNormal>,
    /// Levels, or runs, that differ in the durability of acknowledged writes: they may be fast because of that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub durability: Vec<String>,
    /// Found effects that may have several causes, and the fewest runs that separate these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ambiguous: Vec<String>,
    /// Caveats, which make the analysis less certain.
    pub caveats: Vec<String>,
    /// True if all runs had about the same load.
    pub equal_load: bool,
    /// True if hardly an operation failed in any run.
    pub few_failures: bool,
    /// Correlation of residuals with the order of the runs; `None` for too few runs.
    pub trend: Option<f64>,
    /// True if the correlation is too large for chance: something else changed meanwhile.
    pub drifts: bool,
    /// The factors, the first of which is A.
    pub factors: Vec<Factor>,
    /// Length of the shortest word of the defining relation; `None` for a full design.
    pub resolution: Option<u32>,
    /// Words that equal the identity.
    pub defining: Vec<String>,
    /// The runs in the order in which they were made.
    pub runs: Vec<RunResult>,
}

/// A run, and its part in the analysis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunResult {
    /// Number of the run; the first is 1.
    pub run: usize,
    /// Number of the block; the first is 1.
    pub block: usize,
    /// True for each factor at another level than its first.
    pub high: Vec<bool>,
    /// Number of the level of each factor; the first is 0, and the centre is 2.
    pub at: Vec<usize>,
    /// `log=slog threads=8`.
    pub levels: String,
    /// Response that was measured.
    pub response: f64,
    /// Response that effects and blocks predict for these levels.
    pub fitted: f64,
    /// Difference of the response from the prediction, on the scale of the analysis.
    pub residual: f64,
    /// Operations per second.
    pub rate: f64,
    /// Share of operations that failed.
    pub failed: f64,
}
