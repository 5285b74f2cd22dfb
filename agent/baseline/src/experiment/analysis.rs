//! The effects of factors on what the baselines of an experiment measured.

use crate::experiment::caveats::checks;
use crate::experiment::plan::Plan;
use crate::experiment::result::{
    Analysed, HalfNormal, Measured, Response, RunData, RunResult, Size, Unit,
};
use crate::experiment::{aliases, durability};
use nfscope_stats::experiment::{self as stats, Analysis, Scale, Word};
use nfscope_stats::holm;

/// Effects with a corrected p value of at most this are found.
const LEVEL: f64 = 0.05;
/// An effect of so many factors may be taken for none where a combination has no run.
const LONG: u32 = 3;

/// Analyses the runs of a plan: every response. Holm's correction is for
/// the effects on all of them.
///
/// # Errors
/// Why they cannot be analysed.
pub fn analyse(plan: &Plan, responses: &[Measured], scale: Scale) -> Result<Vec<Analysed>, String> {
    let each = responses
        .iter()
        .map(|response| one(plan, response, scale, responses.len()));
    let (mut all, alone): (Vec<_>, Vec<_>) =
        each.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
    let alone: Option<Vec<f64>> = alone.into_iter().flatten().collect();
    if let Some(corrected) = alone.map(|p| holm(&p)) {
        let effects = all.iter_mut().flat_map(|a| &mut a.effects);
        for (effect, p) in effects.zip(corrected) {
            effect.p = Some(p);
            effect.found = p <= LEVEL;
        }
    }
    let design = plan.design().map_err(|e| e.to_string())?;
    for a in &mut all {
        a.ambiguous = ambiguous(plan, &design, a);
        a.effects.sort_by(|a, b| b.part.total_cmp(&a.part));
    }
    Ok(all)
}

/// Found effects with several plausible causes, and the runs that separate them.
fn ambiguous(plan: &Plan, design: &stats::Design, a: &Analysed) -> Vec<String> {
    let found = a.effects.iter().filter(|e| e.found && e.causes.len() > 1);
    let mut all: Vec<String> = found
        .map(|e| format!("{}: this design cannot tell them apart", e.name()))
        .collect();
    // The smallest is the most doubtful: without it the large ones are no interactions.
    let mut found: Vec<_> = a.effects.iter().filter(|e| e.found).collect();
    found.sort_by(|a, b| a.part.total_cmp(&b.part));
    let causes: Vec<Vec<Word>> = found.into_iter().map(|e| e.words.clone()).collect();
    all.extend(aliases::to_tell(plan, design, &causes));
    all
}

/// One of so many responses, with the p values of its effects before any correction.
fn one(
    plan: &Plan,
    response: &Measured,
    scale: Scale,
    of: usize,
) -> Result<(Analysed, Vec<Option<f64>>), String> {
    let data = &response.runs;
    let design = plan.design().map_err(|e| e.to_string())?;
    let planned = plan.runs().map_err(|e| e.to_string())?;
    let made = (1..).zip(planned);
    let made = made.filter(|(number, _)| !response.missing.contains(number));
    let (numbers, runs): (Vec<usize>, Vec<stats::Run>) = made.unzip();
    let observations: Vec<stats::Observation> = runs
        .iter()
        .zip(data)
        .map(|(run, of)| stats::Observation {
            run: *run,
            response: of.response,
        })
        .collect();
    let hidden = data.iter().map(|d| match scale {
        Scale::Linear => d.hidden * d.response,
        Scale::Logarithm => d.hidden.ln_1p(),
    });
    let hidden = hidden.fold(0.0, f64::max);
    let a = stats::analyse_runs(&design, &observations, scale, hidden, of)
        .ok_or_else(|| {
            format!(
                "{}: a run has no response, or one of zero or less, which has no logarithm; fix: --linear, or leave it out",
                response.name
            )
        })?;
    let without = without_runs(plan, &design, &runs);
    if a.dropped.iter().any(|w| w.order() < LONG) && !without.is_empty() {
        return Err(format!(
            "no run with {} is recorded, and effects of two factors cannot be told without",
            without.join("; or ")
        ));
    }
    let logarithm = scale == Scale::Logarithm;
    // From half the difference of logarithms to the ratio of levels.
    let shown = |v: f64| if logarithm { (2.0 * v).exp() } else { v };
    let large: Vec<Word> = (a.effects.iter())
        .filter(|e| aliases::is_large(&a, e))
        .map(|e| e.word)
        .collect();
    let causes = |word: Word| aliases::causes(&design, word, |w| large.contains(&w));
    let effects: Vec<Response> = a
        .effects
        .iter()
        .map(|e| (e, causes(e.word)))
        .map(|(e, words)| Response {
            word: e.word.to_string(),
            factors: plan.named(e.word),
            effect: shown(e.effect.value),
            interval: a
                .deviation
                .map(|_| [shown(e.effect.low), shown(e.effect.high)]),
            part: e.part,
            p: e.p,
            found: e.stands_out,
            aliases: of_two(plan, &design, e.word),
            causes: words.iter().map(|w| plan.named(*w)).collect(),
            words,
        })
        .collect();
    let alone = a.effects.iter().map(|e| e.p_alone).collect();
    let level = LEVEL / (a.effects.len() * of).max(1) as f64;
    let finds = a.smallest_found(level, 0.8).filter(|_| logarithm);
    let mut checks = checks(&a, data);
    if !a.dropped.is_empty() {
        let names: Vec<_> = a.dropped.iter().map(|w| plan.named(*w)).collect();
        checks.caveats.push(match without.is_empty() {
            true => format!(
                "runs were added later, and what changed meanwhile cannot be told from the effect of {}: it is none of the effects above",
                names.join(", ")
            ),
            false => format!(
                "no run with {} is recorded: the effect of {} is taken for none",
                without.join("; or "),
                names.join(", ")
            ),
        });
    }
    if !response.missing.is_empty() {
        let missing: Vec<_> = response.missing.iter().map(usize::to_string).collect();
        checks.caveats.push(format!(
            "{} of {} runs are missing ({}): effects are those of the others, by least squares",
            missing.len(),
            missing.len() + runs.len(),
            missing.join(", ")
        ));
    }
    let analysed = Analysed {
        name: plan.name.clone(),
        response: response.name.clone(),
        is_rate: response.unit == Unit::PerSecond,
        unit: response.unit,
        logarithm,
        effects,
        block_part: a.block_part,
        error_part: a.error_part,
        finds: finds.map(|f| (2.0 * f).exp()),
        half_normal: half_normal(plan, &a, &causes),
        durability: durability::differs(plan, &runs, data),
        ambiguous: Vec::new(),
        caveats: checks.caveats,
        equal_load: checks.equal_load,
        few_failures: checks.few_failures,
        trend: checks.trend,
        drifts: checks.drifts,
        factors: plan.factors.clone(),
        resolution: design.resolution(),
        defining: design.defining.iter().map(ToString::to_string).collect(),
        runs: results(plan, &numbers, &runs, data, &a.residuals, scale),
    };
    Ok((analysed, alone))
}

fn results(
    plan: &Plan,
    numbers: &[usize],
    runs: &[stats::Run],
    data: &[RunData],
    residuals: &[f64],
    scale: Scale,
) -> Vec<RunResult> {
    let each = numbers.iter().zip(runs.iter().zip(data).zip(residuals));
    let of =
        |(number, ((run, of), residual)): (&usize, ((&stats::Run, &RunData), &f64))| RunResult {
            run: *number,
            block: run.block + 1,
            high: (0..plan.factors.len())
                .map(|f| run.levels >> f & 1 == 1)
                .collect(),
            levels: plan.levels(*run),
            response: of.response,
            fitted: match scale {
                Scale::Linear => of.response - residual,
                Scale::Logarithm => of.response / residual.exp(),
            },
            residual: *residual,
            rate: of.rate,
            failed: of.failed,
        };
    each.map(of).collect()
}

fn half_normal(
    plan: &Plan,
    a: &Analysis,
    causes: &dyn Fn(Word) -> Vec<Word>,
) -> Option<HalfNormal> {
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
                factors: aliases::named(plan, &causes(e.word)),
                size: e.effect.value.abs(),
                of_noise: score * noise.error,
            })
            .collect(),
    })
}

fn of_two(plan: &Plan, design: &stats::Design, word: Word) -> Vec<String> {
    let all = design.aliases(word, 2).into_iter();
    all.map(|w| plan.named(w)).collect()
}

/// The combinations without a run, each by its levels.
fn without_runs(plan: &Plan, design: &stats::Design, runs: &[stats::Run]) -> Vec<String> {
    let has = |levels: &&u8| !runs.iter().any(|r| r.levels == **levels);
    let missing = design.combinations.iter().filter(has);
    let levels = |levels: &u8| {
        plan.levels(stats::Run {
            block: 0,
            levels: *levels,
        })
    };
    missing.map(levels).collect()
}
