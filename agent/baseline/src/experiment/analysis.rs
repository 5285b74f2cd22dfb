//! Effects of factors on the measurements of an experiment's baselines.

use crate::experiment::caveats::{Noise, checks};
use crate::experiment::plan::Plan;
use crate::experiment::result::{
    Analysed, CurvatureResult, HalfNormal, LevelResult, Measured, Response, RunData, RunResult,
    Size, TermResult, Unit,
};
use crate::experiment::{aliases, durability};
use nfscope_stats::experiment::{self as stats, Analysis, Scale, Word};
use nfscope_stats::holm;
use nfscope_text::units::many;

/// Largest corrected p value of an effect that is found.
const LEVEL: f64 = 0.05;
/// Number of factors from which on an effect is taken for zero if combinations without a run leave it without an estimate.
const LONG: u32 = 3;

/// Analyses every response of the runs of a plan. Holm's correction is for the effects on all responses.
///
/// # Errors
/// When they cannot be analysed; the error has the reason.
pub fn analyse(plan: &Plan, responses: &[Measured], scale: Scale) -> Result<Vec<Analysed>, String> {
    let each = responses.iter().map(|response| {
        let runs = Runs::of(plan, response, scale)?;
        match plan.is_mixed() {
            true => runs.by_levels(),
            false => runs.by_effects(responses.len()),
        }
    });
    let (mut all, alone): (Vec<_>, Vec<_>) =
        each.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
    let alone: Option<Vec<f64>> = alone.into_iter().flatten().collect();
    if let Some(corrected) = alone.map(|p| holm(&p)) {
        let tests = all.iter_mut().flat_map(tests);
        for ((of, found), p) in tests.zip(corrected) {
            *of = Some(p);
            *found = p <= LEVEL;
        }
    }
    for a in &mut all {
        match plan.is_mixed() {
            true => levels_of_found_factors(a),
            false => {
                let design = plan.design().map_err(|e| e.to_string())?;
                a.ambiguous = ambiguous(plan, &design, a);
            }
        }
        a.effects.sort_by(|a, b| b.part.total_cmp(&a.part));
        a.terms.sort_by(|a, b| b.part.total_cmp(&a.part));
    }
    Ok(all)
}

/// P values that are corrected together, with the results that they decide.
fn tests(a: &mut Analysed) -> impl Iterator<Item = (&mut Option<f64>, &mut bool)> {
    let effects = a.effects.iter_mut().map(|e| (&mut e.p, &mut e.found));
    effects.chain(a.terms.iter_mut().map(|t| (&mut t.p, &mut t.found)))
}

/// Judges the levels of a factor if there is evidence of the factor: then a level is found by chance no more often than the factor is.
fn levels_of_found_factors(a: &mut Analysed) {
    for level in &mut a.levels {
        let is_found = |t: &TermResult| t.found && t.factors == level.factor;
        level.found = level.p.is_some_and(|p| p <= LEVEL) && a.terms.iter().any(is_found);
    }
}

/// Found effects with several plausible causes, and the runs that separate them.
fn ambiguous(plan: &Plan, design: &stats::Design, a: &Analysed) -> Vec<String> {
    let found = a.effects.iter().filter(|e| e.found && e.causes.len() > 1);
    let mut all: Vec<String> = found
        .map(|e| format!("{}: this design cannot tell them apart", e.name()))
        .collect();
    // The smallest effect is the most doubtful, so the large ones are tried without it.
    let mut found: Vec<_> = a.effects.iter().filter(|e| e.found).collect();
    found.sort_by(|a, b| a.part.total_cmp(&b.part));
    let causes: Vec<Vec<Word>> = found.into_iter().map(|e| e.words.clone()).collect();
    all.extend(aliases::to_tell(plan, design, &causes));
    all
}

/// Runs in which one response was measured.
struct Runs<'a> {
    plan: &'a Plan,
    response: &'a Measured,
    scale: Scale,
    numbers: Vec<usize>,
    observations: Vec<stats::Observation>,
    /// Error that repetitions do not show, on the scale of the analysis.
    hidden: f64,
}

/// An analysis, and the p values of its tests before any correction.
type Told = (Analysed, Vec<Option<f64>>);

impl Runs<'_> {
    fn of<'a>(plan: &'a Plan, response: &'a Measured, scale: Scale) -> Result<Runs<'a>, String> {
        let planned = plan.runs().map_err(|e| e.to_string())?;
        let made = (1..).zip(planned);
        let made = made.filter(|(number, _)| !response.missing.contains(number));
        let each = made.zip(&response.runs);
        let (numbers, observations) = each
            .map(|((number, run), of)| {
                let response = of.response;
                (number, stats::Observation { run, response })
            })
            .unzip();
        let hidden = response.runs.iter().map(|d| match scale {
            Scale::Linear => d.hidden * d.response,
            Scale::Logarithm => d.hidden.ln_1p(),
        });
        Ok(Runs {
            plan,
            response,
            scale,
            numbers,
            observations,
            hidden: hidden.fold(0.0, f64::max),
        })
    }

    fn runs(&self) -> Vec<stats::Run> {
        self.observations.iter().map(|o| o.run).collect()
    }

    fn none(&self) -> String {
        format!(
            "{}: a run has no response, or one of zero or less, which has no logarithm; fix: --linear, or leave it out",
            self.response.name
        )
    }

    /// Refuses the analysis if the effect of one or two factors cannot be estimated because combinations have no run.
    fn refuse(&self, dropped: &[Word], without: &[String]) -> Result<(), String> {
        let short = dropped.iter().filter(|w| w.order() < LONG);
        let short: Vec<_> = short.map(|w| self.plan.named(*w)).collect();
        if short.is_empty() || without.is_empty() {
            return Ok(());
        }
        Err(format!(
            "no run with {} is recorded, and the effect of {} cannot be told without; fix: `nfscope experiment next {}` tells the next run",
            without.join("; or "),
            short.join(", "),
            self.plan.name
        ))
    }

    /// Parts of the result that do not depend on the model.
    fn analysed(&self, noise: &Noise, dropped: &[Word], without: &[String]) -> Analysed {
        let (plan, response) = (self.plan, self.response);
        let mut checks = checks(noise, &response.runs);
        if !dropped.is_empty() {
            let names: Vec<_> = dropped.iter().map(|w| plan.named(*w)).collect();
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
                missing.len() + self.numbers.len(),
                missing.join(", ")
            ));
        }
        Analysed {
            name: plan.name.clone(),
            response: response.name.clone(),
            is_rate: response.unit == Unit::PerSecond,
            unit: response.unit,
            logarithm: self.scale == Scale::Logarithm,
            effects: Vec::new(),
            terms: Vec::new(),
            levels: Vec::new(),
            curvature: None,
            block_part: None,
            error_part: 0.0,
            finds: None,
            half_normal: None,
            durability: durability::differs(plan, &self.runs(), &response.runs),
            ambiguous: Vec::new(),
            caveats: checks.caveats,
            equal_load: checks.equal_load,
            few_failures: checks.few_failures,
            trend: checks.trend,
            drifts: checks.drifts,
            factors: plan.factors.clone(),
            resolution: None,
            defining: Vec::new(),
            runs: results(
                plan,
                &self.numbers,
                &self.runs(),
                &response.runs,
                noise.residuals,
                self.scale,
            ),
        }
    }

    /// Analysis of factors with two levels: the effect of each and of each product, for one of `of` responses.
    fn by_effects(&self, of: usize) -> Result<Told, String> {
        let plan = self.plan;
        let design = plan.design().map_err(|e| e.to_string())?;
        let a = stats::analyse_runs(&design, &self.observations, self.scale, self.hidden, of)
            .ok_or_else(|| self.none())?;
        let without = self.without_runs()?;
        self.refuse(&a.dropped, &without)?;
        let logarithm = self.scale == Scale::Logarithm;
        // Converts half the difference of logarithms to the ratio of levels.
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
        let noise = Noise {
            by_effects: a.lenth.is_some(),
            deviation: a.deviation,
            residuals: &a.residuals,
        };
        let mut analysed = Analysed {
            effects,
            curvature: a.curvature.map(|c| CurvatureResult {
                effect: self.shown(c.difference.value),
                interval: (a.deviation)
                    .map(|_| [c.difference.low, c.difference.high].map(|v| self.shown(v))),
                part: c.part,
                p: c.p,
                found: c.p.is_some_and(|p| p <= LEVEL),
            }),
            block_part: a.block_part,
            error_part: a.error_part,
            finds: finds.map(|f| (2.0 * f).exp()),
            half_normal: half_normal(plan, &a, &causes),
            resolution: design.resolution(),
            defining: design.defining.iter().map(ToString::to_string).collect(),
            ..self.analysed(&noise, &a.dropped, &without)
        };
        if analysed.curvature.as_ref().is_some_and(|c| c.found) {
            analysed.caveats.push(
                "the centre is not where a straight line between the levels puts it: what a level between them would do cannot be told \
                 from these effects. More levels of a factor tell"
                    .to_owned(),
            );
        }
        Ok((analysed, alone))
    }

    /// Analysis of factors with any number of levels: a test of each factor and of each interaction, and each level compared with the
    /// first.
    fn by_levels(&self) -> Result<Told, String> {
        let plan = self.plan;
        let counts = plan.counts();
        let a = stats::analyse_factorial(&counts, &self.observations, self.scale, self.hidden)
            .ok_or_else(|| self.none())?;
        let without = self.without_runs()?;
        self.refuse(&a.dropped, &without)?;
        let terms = a.terms.iter().map(|t| TermResult {
            factors: plan.named(t.word),
            dof: t.dof,
            f: t.f,
            part: t.part,
            p: None,
            found: false,
        });
        let levels = a.levels.iter().map(|l| LevelResult {
            factor: plan.factors[l.factor].name.clone(),
            level: plan.factors[l.factor].level(l.level),
            effect: self.shown(l.difference.value),
            interval: (a.deviation)
                .map(|_| [l.difference.low, l.difference.high].map(|v| self.shown(v))),
            p: l.p,
            found: false,
        });
        let noise = Noise {
            by_effects: false,
            deviation: a.deviation,
            residuals: &a.residuals,
        };
        let mut analysed = Analysed {
            terms: terms.collect(),
            levels: levels.collect(),
            block_part: a.block_part,
            error_part: a.error_part,
            ..self.analysed(&noise, &a.dropped, &without)
        };
        if (a.order as usize) < counts.len() {
            analysed.caveats.push(format!(
                "no combination was run twice: interactions of more than {} are taken for noise",
                many(f64::from(a.order), "factor")
            ));
        }
        Ok((analysed, a.terms.iter().map(|t| t.p_alone).collect()))
    }

    /// A difference on the scale of the analysis; as a ratio if that is logarithmic.
    fn shown(&self, difference: f64) -> f64 {
        match self.scale {
            Scale::Linear => difference,
            Scale::Logarithm => difference.exp(),
        }
    }

    /// Combinations without a run, each by its levels.
    fn without_runs(&self) -> Result<Vec<String>, String> {
        let all = self.plan.combinations().map_err(|e| e.to_string())?;
        let has = |levels: &stats::Levels| {
            let mut runs = self.observations.iter();
            runs.any(|o| o.run.levels == *levels)
        };
        let missing = all.into_iter().filter(|levels| !has(levels));
        let named = missing.map(|levels| self.plan.levels(stats::Run { block: 0, levels }));
        Ok(named.collect())
    }
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
                .map(|f| run.levels.at(f) > 0)
                .collect(),
            at: (0..plan.factors.len()).map(|f| run.levels.at(f)).collect(),
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
