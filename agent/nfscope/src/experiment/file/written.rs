//! Parser of plan files, and its errors.

use super::measure::{self, WrittenRun};
use super::{Effects, Level, Measure, Mount, PlanFile, Table, put};
use crate::experiment::cli::fraction;
use crate::experiment::plans::check;
use crate::experiment::rounds::Until;
use anyhow::{Context, bail, ensure};
use nfscope_baseline::experiment::{self, Factor, Fraction, Plan, parse_generator};
use nfscope_baseline::name;
use nfscope_baseline::versions::Metric;
use nfscope_load::versions::site::FIGURES;
use nfscope_stats::MIN_RUNS_TO_STOP;
use nfscope_text::parse;
use serde::Deserialize;
use std::fs;
use std::path::Path;
use std::time::Duration;

const MAX_REPLICATES: usize = 100;

/// Names in braces that no factor may have.
const RESERVED: [&str; 2] = ["level", "mount"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    #[serde(default = "one")]
    replicates: usize,
    fraction: Option<String>,
    #[serde(default)]
    generators: Vec<String>,
    #[serde(default)]
    foldover: bool,
    #[serde(default)]
    centre_points: usize,
    #[serde(default = "one_seed")]
    seed: u64,
    run: WrittenRun,
    #[serde(rename = "factor")]
    factors: Vec<WrittenFactor>,
    mount: Option<Mount>,
    table: Option<Table>,
    effects: Option<Effects>,
    until: Option<WrittenUntil>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFactor {
    name: String,
    low: Option<Level>,
    high: Option<Level>,
    centre: Option<Level>,
    #[serde(default)]
    levels: Vec<String>,
    set: Option<String>,
    verify: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenUntil {
    ci: String,
    replicates: usize,
}

fn one() -> usize {
    1
}

fn one_seed() -> u64 {
    1
}

/// Reads a plan file.
///
/// # Errors
/// When the file cannot be read, or is not a valid plan; the error says where.
pub(crate) fn read(path: &Path) -> anyhow::Result<PlanFile> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    parse(&text).with_context(|| {
        format!(
            "{} is no plan; fix: see `nfscope experiment run --help`",
            path.display()
        )
    })
}

pub(super) fn parse(text: &str) -> anyhow::Result<PlanFile> {
    let written: Written = toml::from_str(text)?;
    let file = PlanFile {
        plan: plan(&written)?,
        run: measure::run(&written.run)?,
        levels: written
            .factors
            .iter()
            .map(|f| levels(f, written.centre_points > 0))
            .collect::<anyhow::Result<_>>()?,
        until: written.until.as_ref().map(until).transpose()?,
        mount: written.mount,
        table: written.table,
        effects: written.effects,
    };
    check_commands(&file)?;
    check_whole(&file)?;
    Ok(file)
}

fn until(written: &WrittenUntil) -> anyhow::Result<Until> {
    let ci = parse::percent(&written.ci, 0.0001..=1.0);
    ensure!(
        (MIN_RUNS_TO_STOP..=MAX_REPLICATES).contains(&written.replicates),
        "until: replicates: give {MIN_RUNS_TO_STOP} to {MAX_REPLICATES}, as the most rounds: an interval is believed after \
         {MIN_RUNS_TO_STOP} at the earliest"
    );
    Ok(Until {
        ci: ci.map_err(|e| anyhow::anyhow!("until: ci: {e}"))?,
        rounds: written.replicates,
        time: Duration::MAX,
    })
}

/// Levels of a factor with their commands. A centre point is the last one.
fn levels(f: &WrittenFactor, centre: bool) -> anyhow::Result<Vec<Level>> {
    let wrong = |why: &str| anyhow::anyhow!("factor {}: {why}", f.name);
    let templates = f.levels.is_empty();
    let mut all = match (&f.low, &f.high) {
        (Some(low), Some(high)) if templates && f.set.is_none() && f.verify.is_none() => {
            vec![low.clone(), high.clone()]
        }
        (None, None) if !templates => f.levels.iter().map(|l| f.level(l)).collect(),
        _ => {
            return Err(wrong(
                "give either low and high, each with its commands, or levels = [...] with set and verify for all, where {level} is the level",
            ));
        }
    };
    if centre {
        let middle = factor(f)?.centre();
        let middle = middle.ok_or_else(|| {
            wrong("centre_points need two levels that are numbers of one unit, as in 8 and 16")
        })?;
        all.push(match &f.centre {
            Some(own) if own.level == middle => own.clone(),
            None if !templates => f.level(&middle),
            _ => {
                return Err(wrong(&format!(
                    "give centre.level = \"{middle}\" with its commands"
                )));
            }
        });
    }
    Ok(all)
}

impl WrittenFactor {
    /// Level with the commands of its factor, in which it replaces `{level}`.
    fn level(&self, level: &str) -> Level {
        let own = |text: &Option<String>| Some(put(text.as_deref()?, "level", level));
        Level {
            level: level.to_owned(),
            set: own(&self.set),
            verify: own(&self.verify),
        }
    }
}

fn plan(written: &Written) -> anyhow::Result<Plan> {
    let name = name::check(&written.name).map_err(|e| anyhow::anyhow!("name: {e}"))?;
    ensure!(
        (1..=MAX_REPLICATES).contains(&written.replicates),
        "replicates: give 1 to {MAX_REPLICATES}"
    );
    let fraction = match (&written.fraction, &written.generators[..]) {
        (Some(_), [_, ..]) => bail!("give either fraction or generators"),
        (Some(text), []) => {
            Fraction::One(fraction(text).map_err(|e| anyhow::anyhow!("fraction: {e}"))?)
        }
        (None, []) => Fraction::Full,
        (None, words) => {
            let words: Result<Vec<_>, _> = words.iter().map(|w| parse_generator(w)).collect();
            Fraction::Generators(words.map_err(|e| anyhow::anyhow!("generators: {e}"))?)
        }
    };
    let factors: anyhow::Result<Vec<_>> = written.factors.iter().map(factor).collect();
    let plan = Plan {
        name,
        factors: factors?,
        replicates: written.replicates,
        fraction,
        foldover: written.foldover,
        centre: written.centre_points,
        seed: written.seed,
        more: Vec::new(),
    };
    check(&plan)?;
    Ok(plan)
}

/// Factor, checked by the rules of the command line.
fn factor(written: &WrittenFactor) -> anyhow::Result<Factor> {
    let name = &written.name;
    let two = [&written.low, &written.high];
    let two = two.into_iter().flatten().map(|l| l.level.clone());
    let levels = two.chain(written.levels.iter().cloned()).collect();
    let factor =
        experiment::factor(name, levels).map_err(|e| anyhow::anyhow!("factor {name}: {e}"))?;
    ensure!(
        !RESERVED.contains(&name.as_str()),
        "factor {name}: {{{name}}} stands for something else in a plan file; fix: give it another name"
    );
    Ok(factor)
}

/// Checks the characters of commands. Line feeds and tabs are allowed; no argument of a program can hold U+0000.
fn check_commands(file: &PlanFile) -> anyhow::Result<()> {
    let levels = file.levels.iter().flatten();
    let of_levels = levels.flat_map(|l| [&l.set, &l.verify]).flatten();
    let command = match &file.run.measure {
        Measure::Command(command) => Some(command),
        _ => None,
    };
    for command in of_levels.chain(&file.run.load).chain(command) {
        ensure!(
            !command.contains('\0'),
            "the command {command:?} has the character U+0000; fix: remove it"
        );
    }
    Ok(())
}

/// Checks the rules that span several sections of a file.
fn check_whole(file: &PlanFile) -> anyhow::Result<()> {
    let is_workload = matches!(file.run.measure, Measure::Workload(_));
    ensure!(
        file.mount.is_some() || !is_workload,
        "workload: there is no mount for it; fix: add [mount] with source and options"
    );
    if let Some(mount) = &file.mount {
        ensure!(
            mount.options.split(',').any(|o| o.starts_with("vers=")),
            "mount: options have no version; fix: add vers=4.2, or vers={{version}} with a factor of this name"
        );
    }
    if let Some(Table { columns, responses }) = &file.table {
        ensure!(!responses.is_empty(), "table: responses: name at least one");
        if let Some(name) = columns {
            file.plan
                .factor_named(name)
                .map_err(|e| anyhow::anyhow!("table: columns: {e}"))?;
        }
    }
    if let Some(Effects { responses, .. }) = &file.effects {
        ensure!(
            !responses.is_empty(),
            "effects: responses: name at least one"
        );
    }
    let table = file.table.as_ref().map(|t| ("table", &t.responses));
    let effects = file.effects.as_ref().map(|e| ("effects", &e.responses));
    for (part, responses) in table.into_iter().chain(effects) {
        check_responses(file, part, responses)?;
    }
    ensure!(
        file.until.is_none() || file.table.is_some(),
        "until: the intervals are those of the table; fix: add [table] with responses"
    );
    Ok(())
}

/// Checks that every number of the load in the responses is one that the runs have.
fn check_responses(file: &PlanFile, part: &str, responses: &[String]) -> anyhow::Result<()> {
    let own: Vec<&str> = match file.run.measure {
        Measure::Workload(_) => Metric::ALL.map(Metric::number).to_vec(),
        _ => file.run.numbers.keys().map(String::as_str).collect(),
    };
    for name in responses.iter().filter_map(|r| r.strip_prefix("load:")) {
        // Jobs of a fio workload have numbers such as `write.p99_seconds`.
        let of_job = matches!(file.run.measure, Measure::Workload(_))
            && name
                .rsplit('.')
                .next()
                .is_some_and(|n| FIGURES.contains(&n));
        if own.contains(&name) || of_job {
            continue;
        }
        match own.is_empty() {
            true => bail!(
                "{part}: responses: no run has the number `{name}`; fix: add it to [run.numbers], as text that the load prints"
            ),
            false => bail!(
                "{part}: responses: no run has the number `{name}`; fix: name load:{}{}",
                own.join(", load:"),
                match file.run.measure {
                    Measure::Workload(_) => "",
                    _ => ", or add it to [run.numbers]",
                }
            ),
        }
    }
    Ok(())
}
