//! Plan files: an experiment, and the commands that make its runs.

use super::experiment_numbers::Pattern;
use super::experiment_plans::check;
use crate::cli::experiment::{LEAST_OPERATIONS, fraction};
use anyhow::{Context, ensure};
use nfscope_baseline::experiment::{Factor, Fraction, Plan, parse_factor, parse_generator};
use nfscope_baseline::name;
use nfscope_stats::MIN_WINDOWS;
use nfscope_text::parse;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);
const MAX_REPLICATES: usize = 100;

/// A plan file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlanFile {
    /// The experiment.
    pub plan: Plan,
    /// The commands of both levels of each factor, in the order of the plan.
    pub levels: Vec<[Level; 2]>,
    /// What every run does.
    pub run: Run,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    /// The load, from before the warm-up to the end of the recording.
    pub load: Option<String>,
    pub warmup: Duration,
    pub record: Duration,
    pub interval: Duration,
    /// A run with fewer operations has failed.
    pub operations: u64,
    /// Numbers that the load prints, by name.
    pub numbers: BTreeMap<String, Pattern>,
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
    #[serde(default = "one_seed")]
    seed: u64,
    run: WrittenRun,
    #[serde(rename = "factor")]
    factors: Vec<WrittenFactor>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRun {
    load: Option<String>,
    warmup: Option<String>,
    record: String,
    interval: Option<String>,
    operations: Option<u64>,
    #[serde(default)]
    numbers: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFactor {
    name: String,
    low: Level,
    high: Level,
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
            .into_iter()
            .map(|f| [f.low, f.high])
            .collect(),
    };
    check_commands(&file)?;
    Ok(file)
}

fn plan(written: &Written) -> anyhow::Result<Plan> {
    let name = name::check(&written.name).map_err(|e| anyhow::anyhow!("name: {e}"))?;
    ensure!(
        (1..=MAX_REPLICATES).contains(&written.replicates),
        "replicates: give 1 to {MAX_REPLICATES}"
    );
    let fraction = match (&written.fraction, &written.generators[..]) {
        (Some(_), [_, ..]) => anyhow::bail!("give either fraction or generators"),
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
        seed: written.seed,
        more: Vec::new(),
    };
    check(&plan)?;
    Ok(plan)
}

/// By the same rules as on the command line: a level is a word of labels.
fn factor(written: &WrittenFactor) -> anyhow::Result<Factor> {
    let (name, levels) = (&written.name, [&written.low.level, &written.high.level]);
    let text = format!("{name}={},{}", levels[0], levels[1]);
    let factor = parse_factor(&text).map_err(|e| anyhow::anyhow!("factor {name}: {e}"))?;
    ensure!(
        factor.name == *name,
        "factor {name}: its name has a `=`; fix: remove it"
    );
    Ok(factor)
}

fn run(written: &WrittenRun) -> anyhow::Result<Run> {
    let time = |what: &str, text: &str, least: Duration, most: Duration| {
        parse::duration(text, least..=most).map_err(|e| anyhow::anyhow!("{what}: {e}"))
    };
    let second = Duration::from_secs(1);
    let run = Run {
        load: written.load.clone(),
        warmup: match &written.warmup {
            Some(text) => time("warmup", text, Duration::ZERO, DAY)?,
            None => Duration::ZERO,
        },
        record: time("record", &written.record, second, 30 * DAY)?,
        interval: match &written.interval {
            Some(text) => time("interval", text, second / 10, 3600 * second)?,
            None => 10 * second,
        },
        operations: written.operations.unwrap_or(LEAST_OPERATIONS),
        numbers: numbers(written)?,
    };
    let least = run.interval * MIN_WINDOWS as u32;
    ensure!(
        run.record >= least,
        "record: {} has fewer than {MIN_WINDOWS} windows of {}, and its variation would not be known; fix: record = \"{}\", or a shorter interval",
        parse::exact(run.record),
        parse::exact(run.interval),
        parse::exact(least)
    );
    Ok(run)
}

/// The patterns of numbers that the load prints.
fn numbers(written: &WrittenRun) -> anyhow::Result<BTreeMap<String, Pattern>> {
    ensure!(
        written.load.is_some() || written.numbers.is_empty(),
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
    let of_levels = levels.flat_map(|l| [&l.set, &l.verify]);
    for command in of_levels.chain([&file.run.load]).flatten() {
        ensure!(
            !command.contains('\0'),
            "the command {command:?} has the character U+0000; fix: remove it"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        name = "slog"
        replicates = 3
        seed = 7
        [run]
        load = "sleep 1000"
        warmup = "5s"
        record = "10m"
        [[factor]]
        name = "log"
        low = { level = "disk", set = "true" }
        high = { level = "slog", verify = "true" }
    "#;

    /// A name of 99 characters: its baselines would have 101.
    const LONG: &str = "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"";

    fn wrong(text: &str) -> String {
        format!("{:#}", parse(text).unwrap_err())
    }

    #[test]
    fn a_plan_file_is_a_plan_with_commands() {
        let file = parse(GOOD).unwrap();
        assert_eq!((file.plan.replicates, file.plan.seed), (3, 7));
        assert_eq!(file.plan.runs().unwrap().len(), 6);
        assert_eq!(file.levels[0][0].set.as_deref(), Some("true"));
        assert_eq!(file.levels[0][1].set, None);
        assert_eq!(file.run.record, Duration::from_secs(600));
        assert_eq!(file.run.interval, Duration::from_secs(10));
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (from, to, why) in [
            ("seed = 7", "sed = 7", "unknown field `sed`"),
            ("replicates = 3", "replicates = 0", "give 1 to 100"),
            ("\"slog\"", "\"a/b\"", "name:"),
            ("\"10m\"", "\"10 apples\"", "record:"),
            ("seed = 7", "fraction = \"1/3\"", "fraction:"),
            ("seed = 7", "generators = [\"x\"]", "generators:"),
            ("level = \"slog\"", "level = \"disk\"", "factor log:"),
            ("name = \"log\"", "", "missing field `name`"),
            (
                "\"10m\"",
                "\"99s\"",
                "record: 99s has fewer than 10 windows of 10s, and its variation would not be known; fix: record = \"100s\"",
            ),
            (
                "\"10m\"",
                "\"10m\"\ninterval = \"2m\"",
                "fix: record = \"20m\"",
            ),
            ("\"slog\"", LONG, "-6`, but a name has 1 to 100 letters"),
            ("\"log\"", "\"lo=g\"", "factor lo=g: its name has a `=`"),
            (
                "\"log\"",
                r#""l\u009bog""#,
                r#"factor "l\u{9b}og": control"#,
            ),
            ("\"disk\"", r#""\u0000""#, r#"factor "\0": control"#),
            (
                "\"disk\"",
                r#""a\u202eb""#,
                r#"factor "a\u{202e}b": control"#,
            ),
            ("\"true\"", r#""a\u0000b""#, "has the character U+0000"),
            ("sleep 1000", r"\u0000", "has the character U+0000"),
            (
                "\"10m\"",
                "\"10m\"\nnumbers.mbs = 'bw'",
                "numbers: mbs: give a text with {} in place of the number",
            ),
            (
                "load = \"sleep 1000\"",
                "numbers.mbs = 'bw={}'",
                "numbers: there is no load",
            ),
        ] {
            let text = GOOD.replacen(from, to, 1);
            assert_ne!(text, GOOD, "{from}");
            assert!(wrong(&text).contains(why), "{to}: {}", wrong(&text));
        }
    }

    #[test]
    fn factors_have_names_of_their_own() {
        let second = GOOD.split_once("[[factor]]").unwrap().1;
        let text = format!("{GOOD}\n[[factor]]\n{second}");
        let why = "factor log: two factors have this name; fix:";
        assert!(wrong(&text).contains(why), "{}", wrong(&text));
    }

    #[test]
    fn as_few_windows_and_as_long_a_name_as_can_be() {
        let text = GOOD
            .replace("10m", "100s")
            .replacen("\"slog\"", &LONG.replacen('x', "", 1), 1);
        assert_eq!(parse(&text).unwrap().run.record, Duration::from_secs(100));
    }
}
