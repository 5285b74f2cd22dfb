//! `nfscope experiment`: plans beside the store, runs in the store.

use super::experiment_plans::{check, end_run, file, keep, plans, read, recorded, unfinished};
use super::{experiment_run, record};
use crate::cli::RecordArgs;
use crate::cli::experiment::{AnalyseArgs, ExperimentCommand, PlanArgs, RecordRunArgs};
use anyhow::{Context, ensure};
use nfscope_baseline::compare::share_of_all;
use nfscope_baseline::experiment::{self, Fraction, Plan, RunData, label_of};
use nfscope_baseline::series;
use nfscope_baseline::store::{Entry, Store};
use nfscope_model::family as f;
use nfscope_model::family::Info;
use nfscope_stats::experiment::Scale;
use nfscope_text::console::{json, plain, print, say};
use std::fs;

const FAMILIES: &[&Info] = &[
    &f::OP_DURATION.info,
    &f::OP_ERRORS.info,
    &f::RPC_DURATION.info,
];

/// Runs a command of `nfscope experiment`.
///
/// # Errors
/// When it fails; the error says what to do.
pub fn run(command: &ExperimentCommand) -> anyhow::Result<u8> {
    match command {
        ExperimentCommand::Record(args) => return record_next(args),
        ExperimentCommand::Run(args) => return experiment_run::run(args),
        command => without_recording(command)?,
    }
    Ok(0)
}

fn without_recording(command: &ExperimentCommand) -> anyhow::Result<()> {
    match command {
        ExperimentCommand::Record(_) | ExperimentCommand::Run(_) => Ok(()),
        ExperimentCommand::Plan(args) => make(args),
        ExperimentCommand::Next(args) => {
            let plan = read(&args.store.path, &args.name)?;
            let runs = plan.runs()?;
            let recorded = recorded(&args.store.path, &plan)?;
            match recorded.iter().position(Option::is_none) {
                Some(i) => print(&experiment::next(&plan, i + 1, runs.len(), runs[i]))?,
                None => print(&format!(
                    "all {} runs are recorded: nfscope experiment analyse {}\n",
                    runs.len(),
                    plan.name
                ))?,
            }
            Ok(())
        }
        ExperimentCommand::Analyse(args) => analyse(args),
        ExperimentCommand::List(args) => {
            for path in plans(&args.path) {
                let name = path.file_stem().unwrap_or_default().to_string_lossy();
                let told = read(&args.path, &name).and_then(|plan| recorded(&args.path, &plan));
                // One that cannot be read hides no other.
                let line = match told {
                    Ok(recorded) => {
                        let done = recorded.iter().flatten().count();
                        format!("{name}: {done} of {} runs recorded", recorded.len())
                    }
                    Err(e) => format!("{name}: {e:#}"),
                };
                print(&(plain(&line) + "\n"))?;
            }
            Ok(())
        }
        ExperimentCommand::Rm(args) => {
            let path = file(&args.store.path, &args.name);
            if unfinished(&args.store.path, &args.name)?.is_some() {
                end_run(&args.store.path, &args.name)?;
            }
            fs::remove_file(&path).with_context(|| {
                format!(
                    "cannot remove {}; see `nfscope experiment list`",
                    path.display()
                )
            })
        }
    }
}

/// Records the first run that has no complete baseline.
fn record_next(args: &RecordRunArgs) -> anyhow::Result<u8> {
    let plan = read(&args.store.path, &args.name)?;
    let runs = plan.runs()?;
    let recorded = recorded(&args.store.path, &plan)?;
    let next = recorded.iter().position(Option::is_none);
    let i = next.with_context(|| {
        format!(
            "all runs of `{0}` are recorded; fix: nfscope experiment analyse {0}",
            args.name
        )
    })?;
    say(&format!(
        "run {} of {}: recording with {}",
        i + 1,
        runs.len(),
        plan.levels(runs[i])
    ));
    record::run(&RecordArgs {
        name: format!("{}-{}", plan.name, i + 1),
        length: args.duration,
        until_ci: None,
        at_most: args.duration,
        interval: args.interval,
        metric: None,
        labels: label_of(&plan, i + 1).into_iter().collect(),
        url: args.url.clone(),
        store: args.store.clone(),
    })
}

fn make(args: &PlanArgs) -> anyhow::Result<()> {
    let plan = Plan {
        name: args.name.clone(),
        factors: args.factors.clone(),
        replicates: usize::from(args.replicates),
        fraction: match args.fraction {
            Some(n) => Fraction::One(n),
            None if args.generators.is_empty() => Fraction::Full,
            None => Fraction::Generators(args.generators.clone()),
        },
        foldover: args.foldover,
        seed: args.seed,
    };
    check(&plan)?;
    let text = experiment::plan(&plan)?;
    keep(&args.store.path, &plan)?;
    print(&text)?;
    say(&format!(
        "`nfscope experiment next {}` tells the first run",
        args.name
    ));
    Ok(())
}

fn analyse(args: &AnalyseArgs) -> anyhow::Result<()> {
    let plan = read(&args.store.path, &args.name)?;
    let entries = recorded(&args.store.path, &plan)?;
    let done = entries.iter().flatten().count();
    ensure!(
        done == entries.len(),
        "{done} of {} runs are recorded; fix: `nfscope experiment next {}` tells the next one",
        entries.len(),
        args.name
    );
    let store = Store::open(&args.store.path)?;
    let data = entries
        .iter()
        .flatten()
        .map(|entry| measured(&store, entry, args))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let scale = match args.linear {
        true => Scale::Linear,
        false => Scale::Logarithm,
    };
    let response = args.metric.to_string();
    let a = experiment::analyse(&plan, &response, &data, scale).map_err(anyhow::Error::msg)?;
    print(&match args.json {
        true => json(&a)?,
        false => experiment::analysis(&a),
    })?;
    Ok(())
}

fn measured(store: &Store, entry: &Entry, args: &AnalyseArgs) -> anyhow::Result<RunData> {
    let c = series::read(store, entry, FAMILIES)?;
    let op = args.metric.op.as_str();
    let value = c
        .histograms(&f::OP_DURATION, |[_, o]| o == op)
        .and_then(|s| args.metric.of(&s, &c.lengths))
        .with_context(|| format!("`{}` has no {}", entry.metadata.name, args.metric))?;
    let all = c.histograms(&f::OP_DURATION, |_| true);
    let operations = all.map_or(0.0, |s| s.count());
    Ok(RunData {
        response: value.value,
        hidden: value.hidden,
        rate: operations / c.seconds().max(f64::MIN_POSITIVE),
        failed: share_of_all(&c, None),
    })
}
