//! Section `[run]` of a plan file: the load and the measurement of every run.

use super::{Block, Measure, Recorded, Run};
use crate::experiment::cli::LEAST_OPERATIONS;
use crate::experiment::numbers::Pattern;
use anyhow::{bail, ensure};
use nfscope_baseline::name;
use nfscope_baseline::target_metric;
use nfscope_stats::{MIN_WINDOWS, MIN_WINDOWS_TO_STOP};
use nfscope_text::parse;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

/// Section `[run]` as the file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenRun {
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

/// Parses `[run]`.
pub(super) fn run(written: &WrittenRun) -> anyhow::Result<Run> {
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

/// Parses the measurement: exactly one of a recording, a command and a workload.
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

/// Patterns of the numbers that the load or the command prints.
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
