//! The recorded window of each scenario (`tests/windows/`): the diagnosis names the lab's causes in the right order, has the required
//! words, and finds nothing on a healthy server.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result, ensure};
use lab::Kernel;
use lab::scenarios::{judge_recorded, judged_in_every_run, recorded};

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
