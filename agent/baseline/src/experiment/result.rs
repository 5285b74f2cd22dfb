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
    /// A number that a load printed, whatever its unit is.
    Number,
}

impl Unit {
    /// A value for people.
    pub(super) fn shown(self, v: f64) -> String {
        match self {
            Unit::Seconds => seconds(v),
            Unit::PerSecond => format!("{}/s", rate(v)),
            Unit::Share => percent(v),
            Unit::Number => number(v),
        }
    }
}

/// A number with four digits that count.
fn number(v: f64) -> String {
    if v == 0.0 || !v.is_finite() {
        return format!("{v}");
    }
    let decimals = (3.0 - v.abs().log10().floor()).clamp(0.0, 9.0);
    format!("{v:.*}", decimals as usize)
}

/// A response: what each run measured, in the order of the runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// `write p99`.
    pub name: String,
    /// The unit of its values.
    pub unit: Unit,
    /// Each run that was made.
    pub runs: Vec<RunData>,
    /// The numbers of the runs that were not made; the first is 1.
    pub missing: Vec<usize>,
}

/// What one run measured.
#[derive(Debug, Clone, PartialEq)]
pub struct RunData {
    /// The response.
    pub response: f64,
    /// How far it may be off within the bucket of a histogram, as a part of it; repetitions do not show that.
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
    /// Numbers that loads have printed, a run each, of which nothing else is known.
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

/// One effect, for people and programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    /// `A`, `AB`.
    pub word: String,
    /// By name.
    pub factors: String,
    /// The high level over the low one; on a linear scale half their difference.
    pub effect: f64,
    /// Ends of its 95 % interval; `None` without replicates.
    pub interval: Option<[f64; 2]>,
    /// Part of the variation.
    pub part: f64,
    /// Corrected p value; `None` without replicates.
    pub p: Option<f64>,
    /// There is evidence of it.
    pub found: bool,
    /// Effects up to order two that cannot be told from it.
    pub aliases: Vec<String>,
    /// Its plausible causes, which the design cannot separate; a single one where it can.
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

/// A factor or an interaction where a factor has more than two levels.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TermResult {
    /// By name.
    pub factors: String,
    /// Degrees of freedom.
    pub dof: f64,
    /// Its mean square over that of the noise; `None` without noise.
    pub f: Option<f64>,
    /// Part of the variation.
    pub part: f64,
    /// Corrected p value.
    pub p: Option<f64>,
    /// There is evidence of it.
    pub found: bool,
}

/// A level of a factor beside the first one, over all levels of the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelResult {
    /// The factor by name.
    pub factor: String,
    /// Its level.
    pub level: String,
    /// The response over that at the first level; on a linear scale the difference.
    pub effect: f64,
    /// Ends of its 95 % interval; `None` without noise.
    pub interval: Option<[f64; 2]>,
    /// Corrected for the levels of the factor.
    pub p: Option<f64>,
    /// There is evidence of the factor, and of this level.
    pub found: bool,
}

/// The centre beside what the levels put there.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CurvatureResult {
    /// The response at the centre over the mean of the combinations; on a linear scale their difference.
    pub effect: f64,
    /// Ends of its 95 % interval; `None` without replicates.
    pub interval: Option<[f64; 2]>,
    /// Part of the variation.
    pub part: f64,
    /// P value of a test of its own.
    pub p: Option<f64>,
    /// Effects are no straight lines between the levels.
    pub found: bool,
}

/// Effects without replicates beside what noise alone would give.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HalfNormal {
    /// The noise of effects (Lenth's pseudo standard error); sizes are on the scale of the analysis, logarithms unless linear.
    pub error: f64,
    /// An effect beyond it stands out among all.
    pub margin: f64,
    /// Effects, the largest first.
    pub sizes: Vec<Size>,
}

/// The size of an effect.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Size {
    /// By name.
    pub factors: String,
    /// Half the difference between the levels, without its sign.
    pub size: f64,
    /// What noise alone would give the effect of this rank.
    pub of_noise: f64,
}

/// The analysis of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Analysed {
    /// Name of the experiment.
    pub name: String,
    /// What was measured: `write p99`.
    pub response: String,
    /// True where the response is a number per second.
    pub is_rate: bool,
    /// The unit of the response.
    pub unit: Unit,
    /// True where effects are factors.
    pub logarithm: bool,
    /// Effects, the largest part first; none where a factor has more than two levels.
    pub effects: Vec<Response>,
    /// Factors and interactions where a factor has more than two levels, the largest part first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub terms: Vec<TermResult>,
    /// The levels of these factors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<LevelResult>,
    /// Curvature by the runs at the centre; `None` without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curvature: Option<CurvatureResult>,
    /// Part of the variation that is between blocks of runs, which is no effect; `None` of a single block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_part: Option<f64>,
    /// Part of the variation that neither effects nor blocks explain.
    pub error_part: f64,
    /// The smallest effect that four of five such experiments would have found, as a factor; `None` without replicates or on a
    /// linear scale.
    pub finds: Option<f64>,
    /// Without replicates: which effects stand out of noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub half_normal: Option<HalfNormal>,
    /// Levels, or runs, that differ in the durability of acknowledged writes: what is fast there may be fast because of that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub durability: Vec<String>,
    /// Found effects that may have several causes, and the fewest runs that separate these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ambiguous: Vec<String>,
    /// What makes the analysis less certain.
    pub caveats: Vec<String>,
    /// All runs had about the same load.
    pub equal_load: bool,
    /// Hardly an operation failed in any run.
    pub few_failures: bool,
    /// Correlation of residuals with the order of the runs; `None` of too few.
    pub trend: Option<f64>,
    /// That is too much for chance: something else changed meanwhile.
    pub drifts: bool,
    /// The factors, the first of which is A.
    pub factors: Vec<Factor>,
    /// The length of the shortest word of the defining relation; `None` of a full design.
    pub resolution: Option<u32>,
    /// Words that equal the identity.
    pub defining: Vec<String>,
    /// The runs in the order in which they were made.
    pub runs: Vec<RunResult>,
}

/// A run, and what the analysis makes of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunResult {
    /// The first is 1.
    pub run: usize,
    /// The first is 1.
    pub block: usize,
    /// For each factor: at another level than its first.
    pub high: Vec<bool>,
    /// For each factor the number of its level; the first is 0, and the centre is 2.
    pub at: Vec<usize>,
    /// `log=slog threads=8`.
    pub levels: String,
    /// What was measured.
    pub response: f64,
    /// The response that effects and blocks make of these levels.
    pub fitted: f64,
    /// How far the response is from that, on the scale of the analysis.
    pub residual: f64,
    /// Operations per second.
    pub rate: f64,
    /// Share of operations that failed.
    pub failed: f64,
}
