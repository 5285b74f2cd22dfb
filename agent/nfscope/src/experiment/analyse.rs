//! `nfscope experiment analyse`, and the smallest effect that a plan can find by its pilot recordings.

use crate::experiment::cli::{AnalyseArgs, PlanArgs};
use crate::experiment::file::PlanFile;
use crate::experiment::plans::{read, recorded};
use crate::experiment::response::{Asked, of_operation};
use anyhow::{Context, ensure};
use nfscope_baseline::compare::{FAMILIES, share_of_all};
use nfscope_baseline::durability::{self, Durability};
use nfscope_baseline::experiment::{self, Analysed, Measured, Plan, RunData};
use nfscope_baseline::series::{self, SeriesSet};
use nfscope_baseline::store::{Entry, Store};
use nfscope_baseline::target_metric::Metric;
use nfscope_model::family as f;
use nfscope_model::family::Info;
use nfscope_stats::experiment::Scale;
use nfscope_text::console::{json, print, say};
use std::fs;
use std::path::Path;

/// Families of durations. A window without requests has no durations, and is left out.
const TIMES: [&Info; 2] = [&f::OP_DURATION.info, &f::RPC_DURATION.info];

/// Setting of a plan file that replaces the flag `--linear`; error messages name it.
const OF_FILE: &str = "linear = true in [effects]";

/// Families to read from the baseline of each run.
fn families(asked: &[Asked]) -> Vec<&'static Info> {
    let mut all = [&TIMES[..], &[&f::OP_ERRORS.info], &durability::FAMILIES[..]].concat();
    if asked.iter().any(|a| matches!(a, Asked::Row(_))) {
        all.extend(FAMILIES);
    }
    all
}

/// Analyses the recorded runs of an experiment. Every run must be recorded unless `--incomplete` is given.
pub(super) fn analyse(args: &AnalyseArgs) -> anyhow::Result<()> {
    let plan = read(&args.store.path, &args.name)?;
    let entries = recorded(&args.store.path, &plan)?;
    let done = entries.iter().flatten().count();
    ensure!(
        done == entries.len() || args.incomplete,
        "{done} of {} runs are recorded; fix: `nfscope experiment next {}` tells the next one, and --incomplete analyses those that are",
        entries.len(),
        args.name
    );
    let store = Store::open(&args.store.path)?;
    let recorded: Vec<&Entry> = entries.iter().flatten().collect();
    let mut asked: Vec<Asked> = args.metrics.iter().cloned().map(Asked::Operation).collect();
    for text in &args.responses {
        asked.push(Asked::parse(text, &store, &recorded)?);
    }
    let responses = measured(&store, &entries, &asked)?;
    let all =
        experiment::analyse(&plan, &responses, scale(args.linear)).map_err(anyhow::Error::msg)?;
    print(&match (args.json, &all[..]) {
        (true, [one]) => json(one)?,
        (true, several) => json(&several)?,
        (false, each) => shown(each),
    })?;
    if let Some(path) = &args.html {
        fs::write(path, experiment::html::page(&all))
            .with_context(|| format!("cannot write {}", path.display()))?;
        say(&format!("wrote {}", path.display()));
    }
    Ok(())
}

fn scale(linear: bool) -> Scale {
    match linear {
        true => Scale::Linear,
        false => Scale::Logarithm,
    }
}

fn shown(all: &[Analysed]) -> String {
    let each = all.iter().map(experiment::analysis);
    each.collect::<Vec<_>>().join("\n")
}

/// Prints the effects that a plan file asks for.
///
/// # Errors
/// When a run has no such response.
pub(super) fn of_file(path: &Path, file: &PlanFile) -> anyhow::Result<()> {
    let Some(wanted) = &file.effects else {
        return Ok(());
    };
    let entries = recorded(path, &file.plan)?;
    let store = Store::open(path)?;
    let done: Vec<&Entry> = entries.iter().flatten().collect();
    let asked = wanted
        .responses
        .iter()
        .map(|r| Asked::any(r, &store, &done));
    let asked: Vec<Asked> = asked.collect::<anyhow::Result<_>>()?;
    let responses = measured(&store, &entries, &asked)?;
    let all = experiment::analyse(&file.plan, &responses, scale(wanted.linear));
    let all = all.map_err(|why| anyhow::Error::msg(why.replace("--linear", OF_FILE)));
    Ok(print(&shown(&all.context("effects")?))?)
}

/// Values of the responses in the recorded runs of an experiment.
///
/// # Errors
/// When a response is given twice, or a run has no such response.
pub(super) fn measured(
    store: &Store,
    entries: &[Option<Entry>],
    asked: &[Asked],
) -> anyhow::Result<Vec<Measured>> {
    measured_with(store, entries, asked, false)
}

/// Values of the responses, for tables. A run without a number of the load counts as missing: a workload of opens has no throughput.
///
/// # Errors
/// When a response is given twice, or no run has it.
pub(super) fn measured_where_there(
    store: &Store,
    entries: &[Option<Entry>],
    asked: &[Asked],
) -> anyhow::Result<Vec<Measured>> {
    measured_with(store, entries, asked, true)
}

fn measured_with(
    store: &Store,
    entries: &[Option<Entry>],
    asked: &[Asked],
    some: bool,
) -> anyhow::Result<Vec<Measured>> {
    let missing = entries.iter().enumerate().filter(|(_, e)| e.is_none());
    let missing: Vec<usize> = missing.map(|(i, _)| i + 1).collect();
    let mut responses: Vec<Measured> = Vec::new();
    for one in asked {
        let name = one.name();
        ensure!(
            responses.iter().all(|r| r.name != name),
            "{name}: it is given twice; fix: give it once"
        );
        responses.push(Measured {
            name,
            unit: one.unit(),
            runs: Vec::new(),
            missing: missing.clone(),
        });
    }
    let families = families(asked);
    let mut none = None;
    for (number, entry) in (1..).zip(entries) {
        let Some(entry) = entry else { continue };
        let c = series::read(store, entry, &families)?;
        let run = run(&c);
        for (response, one) in responses.iter_mut().zip(asked) {
            let of_server = !matches!(one, Asked::Load(_));
            let name = &entry.metadata.name;
            ensure!(
                run.rate > 0.0 || !of_server,
                "`{name}` has no operations: its load did not reach the server; fix: nfscope baseline rm {name}, and make this run again"
            );
            let (value, hidden) = match one.value(&c, entry) {
                Ok(value) => value,
                Err(e) if some && !of_server => {
                    response.missing.push(number);
                    none = Some(e);
                    continue;
                }
                Err(e) => return Err(e),
            };
            response.runs.push(RunData {
                response: value,
                hidden,
                ..run.clone()
            });
        }
    }
    match none {
        Some(e) if responses.iter().any(|r| r.runs.is_empty()) => Err(e),
        _ => Ok(responses),
    }
}

/// Data of a run that all responses share: rate, failed operations, durability. Its response is NaN.
fn run(c: &SeriesSet) -> RunData {
    let all = c.histograms(&f::OP_DURATION, |_| true);
    let operations = all.map_or(0.0, |s| s.count());
    RunData {
        response: f64::NAN,
        hidden: 0.0,
        rate: operations / c.seconds().max(f64::MIN_POSITIVE),
        failed: share_of_all(c, None),
        durability: Durability::of([c]),
    }
}

/// Text about the smallest effect that a plan finds, by the variation between and within its pilot recordings.
pub(super) fn pilot(args: &PlanArgs, plan: &Plan, metric: &Metric) -> anyhow::Result<String> {
    let store = Store::open(&args.store.path)?;
    let mut pilots = Vec::new();
    for name in &args.pilot {
        let entry = store.entry(name)?;
        let c = series::read(&store, &entry, &TIMES)?;
        let value = of_operation(&c, &entry, metric)?;
        pilots.push(experiment::Pilot {
            value: value.value,
            half_width: value.half_width(),
            seconds: c.seconds(),
            hidden: value.hidden,
        });
    }
    experiment::pilot(
        plan,
        &metric.to_string(),
        &pilots,
        args.duration.as_secs_f64(),
    )
    .map_err(|why| anyhow::anyhow!("--pilot: {why}"))
}
