//! `nfscope experiment`: plans are files beside the store, and runs are baselines in it.

pub(crate) mod analyse;
pub(crate) mod check;
pub mod cli;
pub(crate) mod client;
pub(crate) mod data;
pub(crate) mod dry_run;
pub(crate) mod file;
pub(crate) mod numbers;
pub(crate) mod plans;
pub(crate) mod response;
pub(crate) mod rounds;
pub(crate) mod run;
pub(crate) mod shell;
pub(crate) mod shell_programs;
pub(crate) mod table;

use crate::baseline::record;
use crate::cli::RecordArgs;
use crate::experiment::analyse::{analyse, pilot};
use crate::experiment::cli::{ExperimentCommand, NamedArgs, PlanArgs, RecordRunArgs};
use crate::experiment::plans::{
    change, check, end_run, file, hold, keep, plans, read, recorded, unfinished,
};
use anyhow::Context;
use nfscope_baseline::experiment::{self, Factor, Fraction, More, Plan, label_of};
use nfscope_baseline::store::{State, Store};
use nfscope_text::console::{plain, print, say};
use std::fs;

/// Runs a command of `nfscope experiment`.
///
/// # Errors
/// When it fails; the error says what to do.
pub fn run(command: &ExperimentCommand) -> anyhow::Result<u8> {
    match command {
        ExperimentCommand::Record(args) => return record_next(args),
        ExperimentCommand::Run(args) => return run::run(args),
        ExperimentCommand::Check(args) => return check::run(args),
        command => without_recording(command)?,
    }
    Ok(0)
}

fn without_recording(command: &ExperimentCommand) -> anyhow::Result<()> {
    match command {
        ExperimentCommand::Record(_) | ExperimentCommand::Run(_) | ExperimentCommand::Check(_) => {
            Ok(())
        }
        ExperimentCommand::Plan(args) => match more(args)? {
            Some(more) => add(args, more),
            None => make(args),
        },
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
        ExperimentCommand::Table(args) => table::run(args),
        ExperimentCommand::List(args) => {
            for path in plans(&args.path) {
                let name = path.file_stem().unwrap_or_default().to_string_lossy();
                let told = read(&args.path, &name).and_then(|plan| recorded(&args.path, &plan));
                // Plans that cannot be read do not hide the others.
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
        ExperimentCommand::Rm(args) => remove(args),
    }
}

/// Removes a plan, unless another call is making a run of it.
fn remove(args: &NamedArgs) -> anyhow::Result<()> {
    let (store, name) = (&args.store.path, &args.name);
    let path = file(store, name);
    let gone = || {
        format!(
            "cannot remove {}; see `nfscope experiment list`",
            path.display()
        )
    };
    path.symlink_metadata().with_context(gone)?;
    let _held = hold(store, name)?;
    if unfinished(store, name)?.is_some() {
        end_run(store, name)?;
    }
    fs::remove_file(&path).with_context(gone)
}

/// Records the first run that has no complete baseline.
fn record_next(args: &RecordRunArgs) -> anyhow::Result<u8> {
    let plan = read(&args.store.path, &args.name)?;
    let _held = hold(&args.store.path, &args.name)?;
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
    let name = plan.run_name(i + 1);
    let code = record::run(&RecordArgs {
        repeat: None,
        every: None,
        name: name.clone(),
        length: args.duration,
        until_ci: None,
        at_most: args.duration,
        interval: args.interval,
        metric: None,
        labels: label_of(&plan, i + 1).into_iter().collect(),
        url: args.url.clone(),
        access: args.access.clone(),
        store: args.store.clone(),
    })?;
    let mut store = Store::open(&args.store.path)?;
    let entry = store.entry(&name)?;
    if entry.state == State::Complete {
        let told = data::enough(&store, &entry, args.min_operations);
        if let Err(e) = told {
            store.remove(&[name])?;
            return Err(e.context(format!("run {} is removed", i + 1)));
        }
    }
    Ok(code)
}

/// Runs that the command line adds to a plan, if any.
fn more(args: &PlanArgs) -> anyhow::Result<Option<More>> {
    if let Some(n) = args.add_replicates {
        return Ok(Some(More::Replicates(n.into())));
    }
    let Some(factor) = &args.add_foldover else {
        return Ok(None);
    };
    let plan = read(&args.store.path, &args.name)?;
    let word = plan.factors_named(factor).map_err(anyhow::Error::msg)?;
    Ok(Some(More::Foldover(word.0)))
}

/// Adds runs to a plan. The runs that it has stay unchanged.
fn add(args: &PlanArgs, more: More) -> anyhow::Result<()> {
    let store = &args.store.path;
    // Without the lock, this call could overwrite the runs that a concurrent one adds.
    let _held = hold(store, &args.name)?;
    let plan = read(store, &args.name)?;
    let had = plan.runs()?.len();
    let plan = plan.with(more).map_err(anyhow::Error::msg)?;
    check(&plan)?;
    let text = experiment::plan(&plan, args.duration)?;
    change(store, &plan)?;
    print(&text)?;
    say(&format!(
        "runs {} to {} are new; `nfscope experiment next {}` tells the next run, and `nfscope experiment run` makes all that are missing",
        had + 1,
        plan.runs()?.len(),
        args.name
    ));
    Ok(())
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
        centre: usize::from(args.centre_points),
        seed: args.seed,
        more: Vec::new(),
    };
    let wrong = |f: &&Factor| plan.centre > 0 && f.centre().is_none();
    if let Some(f) = plan.factors.iter().find(wrong) {
        anyhow::bail!(
            "--centre-points: the levels of {} are no two numbers of one unit, as in 8 and 16; fix: leave it out",
            f.name
        );
    }
    check(&plan)?;
    let mut text = experiment::plan(&plan, args.duration)?;
    if let Some(metric) = &args.metric {
        text += &pilot(args, &plan, metric)?;
    }
    keep(&args.store.path, &plan)?;
    print(&text)?;
    say(&format!(
        "`nfscope experiment next {}` tells the first run",
        args.name
    ));
    Ok(())
}
