//! The effects of factors on what the baselines of an experiment measured.

use crate::experiment::plan::Plan;
use nfscope_stats::experiment::{self as stats, Analysis, Scale, Word};
use serde::Serialize;

/// Rates of runs that differ by more than this factor count as another load.
const LOAD: f64 = 1.2;
/// A larger share of failed operations is told.
const FAILURES: f64 = 0.01;

/// What one run measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunData {
    /// The response.
    pub response: f64,
    /// How far it may be off within the bucket of a histogram, as a part of it; repetitions do not show that.
    pub hidden: f64,
    /// Operations per second.
    pub rate: f64,
    /// Share of operations that failed.
    pub failed: f64,
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
    /// True where effects are factors.
    pub logarithm: bool,
    /// Effects, the largest part first.
    pub effects: Vec<Response>,
    /// Part of the variation that no effect explains.
    pub error_part: f64,
    /// The smallest effect that four of five such experiments would have found, as a factor; `None` without replicates or on a
    /// linear scale.
    pub finds: Option<f64>,
    /// Without replicates: which effects stand out of noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub half_normal: Option<HalfNormal>,
    /// What makes the analysis less certain.
    pub caveats: Vec<String>,
}

/// Analyses the runs of a plan, in the order of its runs.
///
/// # Errors
/// Why they cannot be analysed.
pub fn analyse(
    plan: &Plan,
    response: &str,
    data: &[RunData],
    scale: Scale,
) -> Result<Analysed, String> {
    let design = plan.design().map_err(|e| e.to_string())?;
    let runs = plan.runs().map_err(|e| e.to_string())?;
    let mut y = vec![Vec::new(); design.combinations.len()];
    for (run, of) in runs.iter().zip(data) {
        let place = design.combinations.iter().position(|c| *c == run.levels);
        if let Some(place) = place {
            y[place].push(of.response);
        }
    }
    let hidden = data.iter().map(|d| match scale {
        Scale::Linear => d.hidden * d.response,
        Scale::Logarithm => d.hidden.ln_1p(),
    });
    let a = stats::analyse(&design, &y, scale, hidden.fold(0.0, f64::max))
        .ok_or("a run has no response, or one without a logarithm")?;
    let logarithm = scale == Scale::Logarithm;
    // From half the difference of logarithms to the ratio of levels.
    let shown = |v: f64| if logarithm { (2.0 * v).exp() } else { v };
    let mut effects: Vec<Response> = a
        .effects
        .iter()
        .map(|e| Response {
            word: e.word.to_string(),
            factors: plan.named(e.word),
            effect: shown(e.effect.value),
            interval: a
                .deviation
                .map(|_| [shown(e.effect.low), shown(e.effect.high)]),
            part: e.part,
            p: e.p,
            found: e.stands_out || e.p.is_some_and(|p| p <= 0.05),
            aliases: aliases(plan, &design, e.word),
        })
        .collect();
    effects.sort_by(|a, b| b.part.total_cmp(&a.part));
    let level = 0.05 / a.effects.len().max(1) as f64;
    let finds = a.smallest_found(level, 0.8).filter(|_| logarithm);
    Ok(Analysed {
        name: plan.name.clone(),
        response: response.to_owned(),
        logarithm,
        effects,
        error_part: a.error_part,
        finds: finds.map(|f| (2.0 * f).exp()),
        half_normal: half_normal(plan, &a),
        caveats: caveats(&a, &runs_by_order(&runs, &design, &a), data),
    })
}

fn half_normal(plan: &Plan, a: &Analysis) -> Option<HalfNormal> {
    let noise = a.lenth?;
    let mut effects: Vec<_> = a.effects.iter().collect();
    effects.sort_by(|a, b| b.effect.value.abs().total_cmp(&a.effect.value.abs()));
    let scores = stats::half_normal(effects.len());
    let sizes = effects.into_iter().zip(scores.iter().rev());
    Some(HalfNormal {
        error: noise.error,
        margin: noise.simultaneous_margin,
        sizes: sizes
            .map(|(e, score)| Size {
                factors: plan.named(e.word),
                size: e.effect.value.abs(),
                of_noise: score * noise.error,
            })
            .collect(),
    })
}

fn aliases(plan: &Plan, design: &stats::Design, word: Word) -> Vec<String> {
    let all = design.aliases(word, 2).into_iter();
    all.map(|w| plan.named(w)).collect()
}

/// Residuals in the order of the runs.
fn runs_by_order(runs: &[stats::Run], design: &stats::Design, a: &Analysis) -> Vec<f64> {
    let mut next = vec![0; design.combinations.len()];
    let each = runs.iter().filter_map(|run| {
        let place = design.combinations.iter().position(|c| *c == run.levels)?;
        next[place] += 1;
        a.residuals[place].get(next[place] - 1).copied()
    });
    each.collect()
}

fn caveats(a: &Analysis, residuals: &[f64], data: &[RunData]) -> Vec<String> {
    let mut all = Vec::new();
    if a.lenth.is_some() {
        all.push(
            "each combination was run once: the noise is estimated from the effects themselves (Lenth 1989), which takes most of them \
             to be none"
                .to_owned(),
        );
    } else if a.deviation.is_none() {
        all.push("too few runs: effects cannot be told from noise".to_owned());
    }
    let rates = data.iter().map(|d| d.rate);
    let (low, high) = rates.fold((f64::INFINITY, 0.0f64), |(l, h), r| (l.min(r), h.max(r)));
    if high > LOAD * low {
        all.push(format!(
            "the load differs between runs: {low:.1} to {high:.1} operations per second"
        ));
    }
    let hidden = data.iter().map(|d| d.hidden).fold(0.0, f64::max);
    if hidden > 0.0 {
        all.push(format!(
            "the response is known to {:.1} % only, the half of a bucket of its histogram, which no repetition narrows: smaller effects \
             cannot be seen. A mean has no such limit",
            hidden * 100.0
        ));
    }
    let failed = data.iter().filter(|d| d.failed > FAILURES).count();
    if failed > 0 {
        all.push(format!(
            "operations failed in {failed} of {} runs, and durations include failures",
            data.len()
        ));
    }
    // Something that changes with time, in spite of the random order.
    let n = residuals.len() as f64;
    if a.deviation.is_some() && n >= 10.0 {
        let middle = (n - 1.0) / 2.0;
        let (mut xy, mut xx, mut yy) = (0.0, 0.0, 0.0);
        for (i, r) in residuals.iter().enumerate() {
            let x = i as f64 - middle;
            xy += x * r;
            xx += x * x;
            yy += r * r;
        }
        // Without residuals there is nothing to follow.
        let r = xy / (xx * yy).sqrt();
        if r.is_finite() && r.abs() > 2.6 / n.sqrt() {
            all.push(format!(
                "residuals follow the order of the runs (correlation {r:.2}): something else changed meanwhile"
            ));
        }
    }
    all
}
