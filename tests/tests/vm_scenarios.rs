//! Servers whose bottleneck is known, because the lab has made it (`tests/scenarios/`): the diagnosis names it first, and
//! nothing on a healthy one.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail, ensure};
use lab::Kernel;
use lab::scenarios::{Options, Stage, all_scenarios, matrix, run};
use nfscope_diagnose::tracker::WINDOW;

/// Every healthy server and one for each kind of cause; `make scenarios SCENARIOS="--kernel 6.1"` plays all.
#[test]
fn vm_6_1_the_cause_is_named() -> Result<()> {
    let mut seen = BTreeSet::new();
    let mut chosen = all_scenarios()?;
    chosen.retain(|s| s.runs_on(Kernel::V6_1));
    chosen.retain(|s| s.diagnosis.findings.is_empty() || seen.insert(s.truth().to_owned()));
    the_cause_is_named(Kernel::V6_1, chosen.into_iter().map(|s| s.name).collect())
}

#[test]
fn vm_6_12_the_cause_is_named() -> Result<()> {
    the_cause_is_named(Kernel::V6_12, Vec::new())
}

/// The load goes on when its log has become fast again: the agent, which judges every ten seconds, lets go of the finding
/// within three windows, and finds nothing else in it.
#[test]
fn vm_6_12_a_finding_ends_with_its_cause() -> Result<()> {
    let stage = Stage::boot(Kernel::V6_12)?;
    let scenarios = all_scenarios()?;
    let scenario = scenarios.iter().find(|s| s.name == "over-slow-log");
    let scenario = scenario.context("no scenario is called over-slow-log")?;
    let followed = stage.follow(scenario, "slow_intent_log")?;
    let found = &followed.findings;
    let [episode] = &found["history"].as_array().context("no history")?[..] else {
        bail!("more than one finding: {found}");
    };
    let ended = episode["ended"].as_f64().context("no end")?;
    let windows = (ended - followed.fault_ended) / WINDOW.as_secs_f64();
    println!("ended {windows:.1} windows after its cause: {episode}");
    ensure!(windows <= 3.0, "{windows} windows after its cause: {found}");
    ensure!(episode["worst_share"].as_f64() > Some(0.5), "{episode}");
    ensure!(found["active"] == serde_json::json!([]), "{found}");
    stage.close()
}

fn the_cause_is_named(kernel: Kernel, only: Vec<String>) -> Result<()> {
    let verdicts = run(&Options {
        kernel,
        only,
        measure: false,
        json: false,
        page: false,
    })?;
    let wrong: Vec<_> = verdicts
        .iter()
        .filter(|v| !v.wrong.is_empty())
        .map(|v| v.line())
        .collect();
    ensure!(
        wrong.is_empty(),
        "{kernel}:\n{}\n{}",
        matrix(&verdicts),
        wrong.join("\n")
    );
    Ok(())
}
