//! Plan files: an experiment, and the commands that make its runs.

#[cfg(test)]
mod tests;

use super::experiment_numbers::Pattern;
use super::experiment_plans::check;
use crate::cli::experiment::{LEAST_OPERATIONS, fraction};
use anyhow::{Context, bail, ensure};
use nfscope_baseline::experiment::{self, Factor, Fraction, Plan, parse_generator};
use nfscope_baseline::name;
use nfscope_baseline::target_metric;
use nfscope_stats::{MIN_RUNS_TO_STOP, MIN_WINDOWS, MIN_WINDOWS_TO_STOP};
use nfscope_text::parse;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);
const MAX_REPLICATES: usize = 100;

/// Names in braces that are no factors.
const RESERVED: [&str; 2] = ["level", "mount"];

/// A plan file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PlanFile {
    /// The experiment.
    pub plan: Plan,
    /// The commands of the levels of each factor, in the order of the plan; that of the centre is the last one.
    pub levels: Vec<Vec<Level>>,
    /// What every run does.
    pub run: Run,
    /// The mount of each run.
    pub mount: Option<Mount>,
    /// Table that is printed when all runs are made.
    pub table: Option<Table>,
    /// More rounds, until every interval is as narrow as this.
    pub until: Option<Until>,
}

/// How a level is set.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Level {
    level: String,
    /// Sets it; it may be set already.
    pub set: Option<String>,
    /// Succeeds if it is set.
    pub verify: Option<String>,
}

/// What every run does.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Run {
    /// The load, from before the warm-up to the end of the recording.
    pub load: Option<String>,
    pub warmup: Duration,
    pub measure: Measure,
    /// Numbers that the load or the command prints, by name.
    pub numbers: BTreeMap<String, Pattern>,
}

/// Measurement of a run.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Measure {
    /// The server, by a recording of it.
    Record(Recorded),
    /// The numbers that a command prints, which runs to its end.
    Command(String),
    /// Figures that a client of the mount sees of a load of `nfscope versions`.
    Workload(Block),
}

/// Recording of the server.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Recorded {
    /// The longest time.
    pub length: Duration,
    pub interval: Duration,
    /// A run with fewer operations has failed.
    pub operations: u64,
    /// Width of the metric's interval at which the recording ends.
    pub until_ci: Option<f64>,
    pub metric: Option<String>,
}

/// A load of `nfscope versions`; texts may have levels in them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Block {
    pub workload: String,
    pub threads: String,
    pub runtime: Duration,
    /// Parameters of a workload of fio.
    pub set: BTreeMap<String, String>,
}

/// A mount that each run makes and removes; texts may have levels in them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mount {
    pub source: String,
    /// Path of the export over NFSv3, where that is another one.
    pub v3_source: Option<String>,
    pub options: String,
}

/// The table at the end.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    pub columns: Option<String>,
    pub responses: Vec<String>,
}

/// Condition under which there are rounds enough.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Until {
    /// Half of each interval, as a part of its mean.
    pub ci: f64,
    /// Most rounds.
    pub replicates: usize,
}

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
    until: Option<WrittenUntil>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRun {
    load: Option<String>,
    warmup: Option<String>,
    record: Option<String>,
    interval: Option<String>,
    operations: Option<u64>,
    until_ci: Option<String>,
    metric: Option<String>,
    command: Option<String>,
    workload: Option<String>,
    threads: Option<String>,
    runtime: Option<String>,
    #[serde(default)]
    set: BTreeMap<String, String>,
    #[serde(default)]
    numbers: BTreeMap<String, String>,
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
/// When it cannot be read, or is no plan; the error says where.
pub(super) fn read(path: &Path) -> anyhow::Result<PlanFile> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    parse(&text).with_context(|| {
        format!(
            "{} is no plan; fix: see `nfscope experiment run --help`",
            path.display()
        )
    })
}

fn parse(text: &str) -> anyhow::Result<PlanFile> {
    let written: Written = toml::from_str(text)?;
    let file = PlanFile {
        plan: plan(&written)?,
        run: run(&written.run)?,
        levels: written
            .factors
            .iter()
            .map(|f| levels(f, written.centre_points > 0))
            .collect::<anyhow::Result<_>>()?,
        until: written.until.as_ref().map(until).transpose()?,
        mount: written.mount,
        table: written.table,
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
        replicates: written.replicates,
    })
}

/// The commands of each level, and of the centre behind them.
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
    /// A level by the commands of all.
    fn level(&self, level: &str) -> Level {
        let own = |text: &Option<String>| Some(put(text.as_deref()?, "level", level));
        Level {
            level: level.to_owned(),
            set: own(&self.set),
            verify: own(&self.verify),
        }
    }
}

/// Puts a value in place of `{name}`. A `$` before it makes it a variable of the shell.
fn put(text: &str, name: &str, value: &str) -> String {
    let place = format!("{{{name}}}");
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(&place) {
        let (before, behind) = rest.split_at(at);
        out += before;
        out += match before.ends_with('$') {
            true => &place,
            false => value,
        };
        rest = &behind[place.len()..];
    }
    out + rest
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

/// Factor by the rules of the command line.
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

fn run(written: &WrittenRun) -> anyhow::Result<Run> {
    Ok(Run {
        load: written.load.clone(),
        warmup: match &written.warmup {
            Some(text) => time("warmup", text, Duration::ZERO, DAY)?,
            None => Duration::ZERO,
        },
        measure: measure(written)?,
        numbers: numbers(written)?,
    })
}

fn time(what: &str, text: &str, least: Duration, most: Duration) -> anyhow::Result<Duration> {
    parse::duration(text, least..=most).map_err(|e| anyhow::anyhow!("{what}: {e}"))
}

/// Exactly one of a recording, a command and a workload.
fn measure(written: &WrittenRun) -> anyhow::Result<Measure> {
    let of_recordings = [
        ("interval", written.interval.is_some()),
        ("operations", written.operations.is_some()),
        ("until_ci", written.until_ci.is_some()),
        ("metric", written.metric.is_some()),
    ];
    let of_workloads = [
        ("threads", written.threads.is_some()),
        ("runtime", written.runtime.is_some()),
        ("set", !written.set.is_empty()),
    ];
    let refuse = |all: &[(&str, bool)], of: &str| {
        let given = all.iter().find(|(_, given)| *given);
        match given {
            Some((name, _)) => Err(anyhow::anyhow!("[run] {name} is for {of}; fix: remove it")),
            None => Ok(()),
        }
    };
    let block = |workload: &String| {
        refuse(&of_recordings, "record = \"...\"")?;
        ensure!(
            written.numbers.is_empty(),
            "numbers: a workload has numbers of its own; fix: remove them"
        );
        let runtime = written.runtime.as_deref().unwrap_or("5s");
        Ok(Measure::Workload(Block {
            workload: workload.clone(),
            threads: written.threads.clone().unwrap_or_else(|| "4".to_owned()),
            runtime: time("runtime", runtime, Duration::from_secs(1), DAY)?,
            set: written.set.clone(),
        }))
    };
    match (&written.record, &written.command, &written.workload) {
        (Some(record), None, None) => {
            refuse(&of_workloads, "workload = \"...\"")?;
            recorded(written, record).map(Measure::Record)
        }
        (None, Some(command), None) => {
            refuse(&of_recordings, "record = \"...\"")?;
            refuse(&of_workloads, "workload = \"...\"")?;
            ensure!(
                !written.numbers.is_empty(),
                "command: it measures the numbers that it prints, and [run.numbers] has none; fix: add them"
            );
            Ok(Measure::Command(command.clone()))
        }
        (None, None, Some(workload)) => block(workload),
        _ => bail!(
            "[run] measures one thing; fix: give one of record = \"10m\", command = \"...\" and workload = \"reads\""
        ),
    }
}

fn recorded(written: &WrittenRun, length: &str) -> anyhow::Result<Recorded> {
    let second = Duration::from_secs(1);
    let metric = written.metric.as_deref().map(target_metric::parse);
    metric
        .transpose()
        .map_err(|e| anyhow::anyhow!("metric: {e}"))?;
    let until_ci = written.until_ci.as_deref();
    let until_ci = until_ci.map(|text| parse::percent(text, 0.0001..=1.0));
    let run = Recorded {
        length: time("record", length, second, 30 * DAY)?,
        interval: match &written.interval {
            Some(text) => time("interval", text, second / 10, 3600 * second)?,
            None => 10 * second,
        },
        operations: written.operations.unwrap_or(LEAST_OPERATIONS),
        until_ci: until_ci
            .transpose()
            .map_err(|e| anyhow::anyhow!("until_ci: {e}"))?,
        metric: written.metric.clone(),
    };
    let windows = match run.until_ci {
        Some(_) => MIN_WINDOWS_TO_STOP,
        None => MIN_WINDOWS,
    };
    let least = run.interval * windows as u32;
    ensure!(
        run.length >= least,
        "record: {} has fewer than {windows} windows of {}, and its variation would not be known; fix: record = \"{}\", or a shorter interval",
        parse::exact(run.length),
        parse::exact(run.interval),
        parse::exact(least)
    );
    Ok(run)
}

/// The patterns of numbers that the load prints.
fn numbers(written: &WrittenRun) -> anyhow::Result<BTreeMap<String, Pattern>> {
    ensure!(
        written.load.is_some() || written.command.is_some() || written.numbers.is_empty(),
        "numbers: there is no load that prints them; fix: add load = \"...\" to [run]"
    );
    let each = written.numbers.iter().map(|(name, text)| {
        let wrong = |e| anyhow::anyhow!("numbers: {name}: {e}");
        let name = name::check(name).map_err(wrong)?;
        Ok((name, Pattern::parse(text).map_err(wrong)?))
    });
    each.collect()
}

/// Commands have lines and tabs; no program can be given U+0000.
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

/// Rules on what one part of a file needs of another.
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
    ensure!(
        file.until.is_none() || file.table.is_some(),
        "until: the intervals are those of the table; fix: add [table] with responses"
    );
    Ok(())
}

impl PlanFile {
    /// A text of the file with the levels of a run in it, and the directory of its mount.
    pub(super) fn filled(&self, text: &str, run: &experiment::Run, mount: Option<&Path>) -> String {
        let factors = self.plan.factors.iter().enumerate();
        let text = factors.fold(text.to_owned(), |text, (i, f)| {
            put(&text, &f.name, &f.level(run.levels.at(i)))
        });
        match mount {
            Some(at) => put(&text, "mount", &at.display().to_string()),
            None => text,
        }
    }

    /// The level of each factor in a run, with its name.
    pub(super) fn levels_of<'a>(
        &'a self,
        run: &'a experiment::Run,
    ) -> impl Iterator<Item = (String, &'a Level)> {
        let factors = self.plan.factors.iter().zip(&self.levels).enumerate();
        factors.map(|(i, (factor, levels))| {
            let at = run.levels.at(i);
            (format!("{}={}", factor.name, factor.level(at)), &levels[at])
        })
    }
}
