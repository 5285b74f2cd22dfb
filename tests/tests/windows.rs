//! The recorded window of each scenario (`tests/windows/`): the diagnosis names the lab's causes in the right order, has the required
//! words, and finds nothing on a healthy server.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result, ensure};
use lab::Kernel;
use lab::scenarios::{judge_recorded, judged_in_every_run, recorded};
use nfscope_diagnose::breakdown::Breakdown;
use nfscope_diagnose::normal::{Learner, Normal};
use nfscope_diagnose::{Observed, evaluate_observed};
use nfscope_model::finding::{Diagnosis, Kind, Severity};

/// Judges recorded windows. `vm_scenarios` plays scenarios without one.
fn judge(kernel: Kernel) -> Result<()> {
    let mut scenarios = judged_in_every_run(kernel)?;
    scenarios.retain(|s| recorded::file(kernel, &s.name).exists());
    let verdicts = judge_recorded(kernel, &scenarios, false)?;
    let wrong: Vec<_> = verdicts.iter().filter(|v| !v.wrong.is_empty()).collect();
    let lines: Vec<_> = wrong.iter().map(|v| v.line()).collect();
    ensure!(wrong.is_empty(), "{kernel}:\n{}", lines.join("\n"));
    Ok(())
}

#[test]
fn recorded_scenarios_of_6_1_are_diagnosed_right() -> Result<()> {
    judge(Kernel::V6_1)
}

#[test]
fn recorded_scenarios_of_6_12_are_diagnosed_right() -> Result<()> {
    judge(Kernel::V6_12)
}

#[test]
fn every_recorded_window_belongs_to_a_scenario() -> Result<()> {
    for kernel in Kernel::ZFS {
        let known: BTreeSet<_> = judged_in_every_run(kernel)?
            .iter()
            .map(|s| recorded::file(kernel, &s.name))
            .collect();
        let folder = recorded::folder(kernel);
        if !folder.exists() {
            continue;
        }
        let entries = fs::read_dir(&folder).with_context(|| format!("{}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            ensure!(known.contains(&path), "{}: remove it", path.display());
        }
    }
    Ok(())
}

/// Diagnosis of a recorded window on a server with these usual times.
fn judged(scenario: &str, normal: Option<Normal>) -> Result<Diagnosis> {
    let window = recorded::read(Kernel::V6_12, scenario)?;
    let observed = Observed {
        normal,
        ..Observed::default()
    };
    Ok(evaluate_observed(
        &window,
        &Breakdown::of(&window),
        &observed,
    ))
}

/// Usual times of a server that has been as in this window for more than an hour.
fn usual_as(scenario: &str) -> Result<Option<Normal>> {
    let b = Breakdown::of(&recorded::read(Kernel::V6_12, scenario)?);
    let mut learner = Learner::default();
    let windows = (2.0 * 3600.0 / b.length).ceil() as usize;
    (0..windows).for_each(|_| learner.add(&b));
    Ok(learner.normal())
}

/// Each fault on a server that knows its usual times: critical where the server was better before, and a warning where it was always so.
#[test]
fn severity_of_recorded_windows_follows_what_is_usual() -> Result<()> {
    for (scenario, kind, better) in [
        ("log-8ms", Kind::SlowIntentLog, "small-sync-v3"),
        ("log-zfs-8ms", Kind::SlowIntentLog, "small-sync-v3"),
        ("disk-20ms-reads", Kind::SlowDisk, "healthy-flash-reads"),
        ("threads-1-for-16", Kind::ThreadStarvation, "small-sync-v3"),
    ] {
        let severity = |normal: Option<Normal>| -> Result<Severity> {
            let d = judged(scenario, normal)?;
            let found = d.finding(kind).context(scenario)?;
            Ok(found.severity)
        };
        let fixed = severity(None)?;
        ensure!(fixed == Severity::Critical, "{scenario}: {fixed:?}");
        let worse = severity(usual_as(better)?)?;
        ensure!(worse == Severity::Critical, "{scenario} after {better}");
        let same = severity(usual_as(scenario)?)?;
        ensure!(same == Severity::Warning, "{scenario} as always");
    }
    Ok(())
}

/// Usual times change the severity alone: neither the findings nor their order.
#[test]
fn usual_times_change_no_finding_of_a_recorded_window() -> Result<()> {
    for scenario in judged_in_every_run(Kernel::V6_12)? {
        let kinds = |d: Diagnosis| -> Vec<_> { d.findings.into_iter().map(|f| f.kind).collect() };
        let without = kinds(judged(&scenario.name, None)?);
        for usual in [&*scenario.name, "healthy-balanced"] {
            let with = kinds(judged(&scenario.name, usual_as(usual)?)?);
            ensure!(with == without, "{} as {usual}: {with:?}", scenario.name);
        }
    }
    Ok(())
}
