//! `nfscope experiment analyse`, and what pilot recordings tell of a plan.

use super::experiment_plans::{read, recorded};
use crate::cli::experiment::{AnalyseArgs, PlanArgs};
use anyhow::{Context, ensure};
use nfscope_baseline::compare::share_of_all;
use nfscope_baseline::durability::{self, Durability};
use nfscope_baseline::estimate::Value;
use nfscope_baseline::experiment::{self, Measured, Plan, RunData};
use nfscope_baseline::series::{self, SeriesSet};
use nfscope_baseline::store::{Entry, Store};
use nfscope_baseline::target_metric::{Metric, Statistic};
use nfscope_model::family as f;
use nfscope_model::family::Info;
use nfscope_stats::experiment::Scale;
use nfscope_text::console::{json, print, say};
use std::fs;

/// The families of durations. A window without requests was not timed, and is left out.
const TIMES: [&Info; 2] = [&f::OP_DURATION.info, &f::RPC_DURATION.info];

/// The families that are read of each run.
fn families() -> Vec<&'static Info> {
    [&TIMES[..], &[&f::OP_ERRORS.info], &durability::FAMILIES[..]].concat()
}

/// Analyses the runs of an experiment, all of which must be recorded unless somebody asks for those that are.
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
    let missing = entries.iter().enumerate().filter(|(_, e)| e.is_none());
    let missing: Vec<usize> = missing.map(|(i, _)| i + 1).collect();
    let store = Store::open(&args.store.path)?;
    let mut responses: Vec<Measured> = Vec::new();
    for metric in &args.metrics {
        let name = metric.to_string();
        ensure!(
            responses.iter().all(|r| r.name != name),
            "--metric {name}: it is given twice; fix: give it once"
        );
        responses.push(Measured {
            name,
            is_rate: metric.what == Statistic::Rate,
            runs: Vec::new(),
            missing: missing.clone(),
        });
    }
    for entry in entries.iter().flatten() {
        let c = series::read(&store, entry, &families())?;
        let run = run(&c);
        for (response, metric) in responses.iter_mut().zip(&args.metrics) {
            let value = value(&c, entry, metric)?;
            response.runs.push(RunData {
                response: value.value,
                hidden: value.hidden,
                ..run.clone()
            });
        }
    }
    let scale = match args.linear {
        true => Scale::Linear,
        false => Scale::Logarithm,
    };
    let all = experiment::analyse(&plan, &responses, scale).map_err(anyhow::Error::msg)?;
    print(&match (args.json, &all[..]) {
        (true, [one]) => json(one)?,
        (true, several) => json(&several)?,
        (false, each) => each
            .iter()
            .map(experiment::analysis)
            .collect::<Vec<_>>()
            .join("\n"),
    })?;
    if let Some(path) = &args.html {
        fs::write(path, experiment::html::page(&all))
            .with_context(|| format!("cannot write {}", path.display()))?;
        say(&format!("wrote {}", path.display()));
    }
    Ok(())
}

/// What a recording says of a metric.
fn value(c: &SeriesSet, entry: &Entry, metric: &Metric) -> anyhow::Result<Value> {
    let op = metric.op.as_str();
    metric
        .is_known(&entry.metadata)
        .map_err(anyhow::Error::msg)?;
    // A client of NFSv4.2 may read by READ_PLUS what another reads by READ.
    let is = |o: &str| o == op || op == "read" && o == "read_plus";
    c.histograms(&f::OP_DURATION, |[_, o]| is(o))
        .and_then(|s| metric.of(&s, &c.lengths))
        .with_context(|| format!("`{}` has no {metric}", entry.metadata.name))
}

/// A run without a response: what all metrics have in common.
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

/// What pilot recordings say of a plan: the smallest effect that it will find.
pub(super) fn pilot(args: &PlanArgs, plan: &Plan, metric: &Metric) -> anyhow::Result<String> {
    let store = Store::open(&args.store.path)?;
    let mut pilots = Vec::new();
    for name in &args.pilot {
        let entry = store.entry(name)?;
        let c = series::read(&store, &entry, &TIMES)?;
        let value = value(&c, &entry, metric)?;
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
