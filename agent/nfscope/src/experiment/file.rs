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
    /// The commands of the levels of each factor, in the order of the plan; that of the centre is the last one.
    pub levels: Vec<Vec<Level>>,
    /// What every run does.
    pub run: Run,
    /// The mount of each run.
    pub mount: Option<Mount>,
    /// Table that is printed when all runs are made.
    pub table: Option<Table>,
    /// Effects that are printed then.
    pub effects: Option<Effects>,
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

/// The effects of factors at the end.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Effects {
    pub responses: Vec<String>,
    /// Without logarithms, as `--linear` has them.
    #[serde(default)]
    pub linear: bool,
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
