//! Plan files: an experiment, and the commands that make its runs.

mod measure;
#[cfg(test)]
mod tests;
mod written;

use crate::experiment::numbers::Pattern;
use crate::experiment::rounds::Until;
use nfscope_baseline::experiment::{self, Plan};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

pub(super) use written::read;

/// A plan file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PlanFile {
    /// The experiment.
    pub plan: Plan,
    /// Levels of each factor with their commands, in the order of the plan. A centre point is the last level.
    pub levels: Vec<Vec<Level>>,
    /// Load and measurement of every run.
    pub run: Run,
    /// The mount of each run.
    pub mount: Option<Mount>,
    /// Table that is printed after the last run.
    pub table: Option<Table>,
    /// Effects that are printed after the last run.
    pub effects: Option<Effects>,
    /// Condition that ends a campaign whose number of rounds is open.
    pub until: Option<Until>,
}

/// Commands that set and verify a level.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Level {
    level: String,
    /// Sets the level. The command also has to work if the level is set already.
    pub set: Option<String>,
    /// Succeeds if and only if the level is set.
    pub verify: Option<String>,
}

/// Load and measurement of every run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Run {
    /// Command of the load. It runs from before the warm-up to the end of the recording.
    pub load: Option<String>,
    pub warmup: Duration,
    pub measure: Measure,
    /// Numbers that the load or the command prints, by name.
    pub numbers: BTreeMap<String, Pattern>,
}

/// Measurement of a run.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Measure {
    /// Recording of the server.
    Record(Recorded),
    /// Command that runs to its end and prints numbers.
    Command(String),
    /// Workload of `nfscope versions`, measured by the client that mounts the export.
    Workload(Block),
}

/// Recording of the server.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Recorded {
    /// Length of the recording, or its limit if `until_ci` ends it earlier.
    pub length: Duration,
    pub interval: Duration,
    /// Least number of operations. A run with fewer has failed.
    pub operations: u64,
    /// Relative width of the confidence interval of `metric` at which the recording ends.
    pub until_ci: Option<f64>,
    pub metric: Option<String>,
}

/// Workload of `nfscope versions`. Its texts may contain `{factor}`, which a level replaces.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Block {
    pub workload: String,
    pub threads: String,
    pub runtime: Duration,
    /// Parameters of a fio workload.
    pub set: BTreeMap<String, String>,
}

/// Mount that each run makes and removes. Its texts may contain `{factor}`, which a level replaces.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mount {
    pub source: String,
    /// Source over NFSv3, if it differs: NFSv4 has a path below the pseudo root.
    pub v3_source: Option<String>,
    pub options: String,
}

/// Table that is printed after the last run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    pub columns: Option<String>,
    pub responses: Vec<String>,
}

/// Effects of factors that are printed after the last run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Effects {
    pub responses: Vec<String>,
    /// Effects are differences and not ratios, as with `--linear`.
    #[serde(default)]
    pub linear: bool,
}

impl PlanFile {
    /// Replaces `{factor}` in a text by the level of a run, and `{mount}` by its mount point.
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

    /// Level of each factor in a run, with a text such as `threads=8`.
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

/// Replaces `{name}` by a value. `${name}` is a variable of the shell, and stays.
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
