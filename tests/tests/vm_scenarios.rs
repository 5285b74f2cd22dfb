//! Scenarios (`tests/scenarios/`) whose recorded window may be out of date: each is played again, and the diagnosis must be right for
//! the new window, too. `windows.rs` judges the recorded ones.

use anyhow::{Context, Result, bail, ensure};
use lab::scenarios::{
    Runner, Scenario, Verdict, all_scenarios, diagnosed, judged_in_every_run, matrix, recorded,
};
use lab::{Checks, Kernel};
use nfscope_diagnose::tracker::WINDOW;

#[test]
fn vm_6_1_stale_scenarios_are_diagnosed_right() -> Result<()> {
    play(Kernel::V6_1, "6.1 scenarios", stale(Kernel::V6_1)?)
}

/// Two machines share the list: neighbours in it are alike, and take as long.
#[test]
fn vm_6_12_stale_scenarios_are_diagnosed_right_in_one_half() -> Result<()> {
    let half = stale(Kernel::V6_12)?.into_iter().step_by(2).collect();
    play(Kernel::V6_12, "6.12 scenarios, half 1", half)
}

#[test]
fn vm_6_12_stale_scenarios_are_diagnosed_right_in_the_other_half() -> Result<()> {
    let half = stale(Kernel::V6_12)?.into_iter().skip(1).step_by(2);
    play(Kernel::V6_12, "6.12 scenarios, half 2", half.collect())
}

/// A finding ends with its cause. Only an agent that goes on for several windows shows that, and no recorded window does.
#[test]
fn vm_6_12_a_finding_ends_with_its_cause() -> Result<()> {
    let runner = Runner::boot(Kernel::V6_12)?;
    a_finding_ends_with_its_cause(&runner)?;
    runner.close()
}

/// Scenarios whose window was recorded with other sources or on another kernel, or not at all.
fn stale(kernel: Kernel) -> Result<Vec<Scenario>> {
    let mut stale = Vec::new();
    for scenario in judged_in_every_run(kernel)? {
        if !recorded::is_fresh(kernel, &scenario)? {
            stale.push(scenario);
        }
    }
    Ok(stale)
}

/// Plays scenarios; boots no machine without any.
fn play(kernel: Kernel, title: &str, scenarios: Vec<Scenario>) -> Result<()> {
    println!("{title}: {} recorded windows are stale", scenarios.len());
    if scenarios.is_empty() {
        return Ok(());
    }
    println!("lab scenarios --kernel {kernel} --write writes them anew");
    let mut checks = Checks::new(title);
    let runner = Runner::boot(kernel)?;
    causes_are_named(&runner, &scenarios, &mut checks);
    checks.run("the agent stops", || runner.close());
    checks.finish()
}

/// Plays each scenario as a check of its own.
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

/// The load goes on after its log has become fast again: the agent, which evaluates every ten seconds, clears the finding within
/// three windows, and has no other finding in it.
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
