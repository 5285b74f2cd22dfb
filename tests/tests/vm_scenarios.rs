//! Servers whose bottleneck is known, because the lab has made it (`tests/scenarios/`): the diagnosis names it first, and
//! nothing on a healthy one.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail, ensure};
use lab::scenarios::{Runner, Scenario, Verdict, all_scenarios, diagnosed, matrix};
use lab::{Checks, Kernel};
use nfscope_diagnose::tracker::WINDOW;

/// Every healthy server and one for each kind of cause; `make scenarios SCENARIOS="--kernel 6.1"` plays all.
#[test]
fn vm_6_1_the_cause_is_named() -> Result<()> {
    let mut seen = BTreeSet::new();
    let mut chosen = on(Kernel::V6_1)?;
    chosen.retain(|s| s.diagnosis.findings.is_empty() || seen.insert(s.expected().to_owned()));
    let mut checks = Checks::new("6.1 scenarios");
    let runner = Runner::boot(Kernel::V6_1)?;
    causes_are_named(&runner, &chosen, &mut checks);
    checks.run("the agent stops", || runner.close());
    checks.finish()
}

/// All of them, in two machines: neighbours in the list are alike, and take as long.
#[test]
fn vm_6_12_the_cause_is_named_in_one_half() -> Result<()> {
    half(0)
}

#[test]
fn vm_6_12_the_cause_is_named_in_the_other_half() -> Result<()> {
    half(1)
}

fn half(which: usize) -> Result<()> {
    let all = on(Kernel::V6_12)?;
    let chosen: Vec<Scenario> = all.into_iter().skip(which).step_by(2).collect();
    let mut checks = Checks::new(&format!("6.12 scenarios, half {}", which + 1));
    let runner = Runner::boot(Kernel::V6_12)?;
    if which == 1 {
        checks.run("a finding ends with its cause", || {
            a_finding_ends_with_its_cause(&runner)
        });
    }
    causes_are_named(&runner, &chosen, &mut checks);
    checks.run("the agent stops", || runner.close());
    checks.finish()
}

fn on(kernel: Kernel) -> Result<Vec<Scenario>> {
    let mut all = all_scenarios()?;
    all.retain(|s| s.runs_on(kernel));
    Ok(all)
}

/// Each scenario is a check of its own.
fn causes_are_named(runner: &Runner, scenarios: &[Scenario], checks: &mut Checks) {
    let mut verdicts = Vec::new();
    for scenario in scenarios {
        checks.run(&scenario.name, || {
            let seen = runner.play(scenario, false)?;
            let verdict = Verdict::of(scenario, diagnosed(&seen.window));
            println!("{}", verdict.line());
            let (line, right) = (verdict.line(), verdict.wrong.is_empty());
            verdicts.push(verdict);
            let figures = &seen.figures;
            ensure!(
                right,
                "{line}\n{}\n{} s, most frequent: {:?}",
                figures.line(&scenario.name),
                figures.seconds,
                figures.most
            );
            Ok(())
        });
    }
    println!("{}", matrix(&verdicts));
}

/// The load goes on when its log has become fast again: the agent, which evaluates every ten seconds, clears the finding
/// within three windows, and finds nothing else in it. The first in its machine, whose history it reads.
fn a_finding_ends_with_its_cause(runner: &Runner) -> Result<()> {
    let scenarios = all_scenarios()?;
    let scenario = scenarios.iter().find(|s| s.name == "over-slow-log");
    let scenario = scenario.context("no scenario is called over-slow-log")?;
    let followed = runner.follow(scenario, "slow_intent_log")?;
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
    Ok(())
}
