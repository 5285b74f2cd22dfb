//! `lab scenarios`: servers with a bottleneck that the lab has made, to test the diagnosis with.
//!
//! Each file of `tests/scenarios/` is a scenario: a server, a load, a fault, and the findings that a diagnosis must have. They run
//! one after the other in one machine, whose disks are null_blk with a timer: a request takes the time that the file says, and costs
//! no CPU time.

mod figures;
pub mod recorded;
mod runner;
mod scenario;
mod verdict;
pub mod window;

use std::collections::BTreeSet;
use std::io::Write;

use anyhow::{Result, ensure};

pub use figures::{CpuTimes, Figures};
pub use runner::{Followed, Runner, Seen};
pub use scenario::{Expected, Fault, Place, Scenario, all_scenarios};
pub use verdict::{Diagnosed, Verdict, diagnosed, matrix};

use crate::kernel::Kernel;

/// Scenarios to run, and the form of the report.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The machine's kernel: 6.1 or 6.12
    #[arg(long, default_value = "6.12", value_parser = Kernel::named)]
    pub kernel: Kernel,
    /// Only scenarios whose name contains this; may be given more than once
    #[arg(long)]
    pub only: Vec<String>,
    /// Print the figures of each instead of the diagnosis
    #[arg(long)]
    pub measure: bool,
    /// Print one JSON object for each scenario
    #[arg(long)]
    pub json: bool,
    /// Also print the output of `nfscope diagnose` on each; with --recorded without what it counts while it watches
    #[arg(long)]
    pub page: bool,
    /// Write the window of each into tests/windows/, where plain tests judge it; without --only those that `make test` judges
    #[arg(long, conflicts_with = "recorded")]
    pub write: bool,
    /// Judge the windows in tests/windows/ again instead of playing: no machine boots
    #[arg(long, conflicts_with_all = ["measure", "json"])]
    pub recorded: bool,
}

/// Plays the scenarios, prints each report as it comes, and returns the verdicts.
pub fn run(options: &Options) -> Result<Vec<Verdict>> {
    let scenarios = chosen(options)?;
    if options.recorded {
        return judge_recorded(options.kernel, &scenarios, options.page);
    }
    let runner = Runner::boot(options.kernel)?;
    if options.measure && !options.json {
        tell(Figures::HEADINGS)?;
    }
    let mut verdicts = Vec::new();
    for scenario in &scenarios {
        let asked = !scenario.diagnosis.command_says.is_empty();
        let seen = match runner.play(scenario, options.page || asked) {
            Ok(seen) => seen,
            // The next scenario sets the server up anew.
            Err(e) => {
                let verdict = Verdict::not_played(scenario, &e);
                eprintln!("{}", verdict.line());
                verdicts.push(verdict);
                continue;
            }
        };
        if options.write {
            recorded::write(options.kernel, scenario, &seen.window)?;
        }
        let mut verdict = Verdict::of(scenario, diagnosed(&seen.window));
        if let Some(page) = &seen.page {
            verdict.hear(scenario, page);
            // A wrong diagnosis prints the page, to show its words.
            if options.page || (!verdict.wrong.is_empty() && !options.json) {
                tell(page)?;
            }
        }
        if options.json {
            let line = serde_json::json!({"verdict": verdict, "figures": seen.figures});
            tell(line)?;
        } else if options.measure {
            tell(seen.figures.line(&scenario.name))?;
        } else {
            tell(verdict.line())?;
        }
        verdicts.push(verdict);
    }
    runner.close()?;
    if !options.json && !options.measure {
        tell(format!("\n{}", matrix(&verdicts)))?;
    }
    Ok(verdicts)
}

/// Prints a line.
///
/// # Errors
/// When the reader of the pipe has ended, as behind `head`.
fn tell(line: impl std::fmt::Display) -> std::io::Result<()> {
    writeln!(std::io::stdout(), "{line}")
}

/// Diagnoses the recorded windows of these scenarios and prints the verdicts, and with `page` what the diagnosis says.
///
/// # Errors
/// When a scenario has no recorded window.
pub fn judge_recorded(kernel: Kernel, scenarios: &[Scenario], page: bool) -> Result<Vec<Verdict>> {
    let mut verdicts = Vec::new();
    for scenario in scenarios {
        let window = recorded::read(kernel, &scenario.name)?;
        let verdict = Verdict::of(scenario, diagnosed(&window));
        if page {
            let diagnosis = nfscope_diagnose::evaluate(&window, &[]);
            tell(nfscope_diagnose::render(&diagnosis, &scenario.name, false))?;
        }
        tell(verdict.line())?;
        verdicts.push(verdict);
    }
    tell(format!("\n{}", matrix(&verdicts)))?;
    Ok(verdicts)
}

/// Scenarios of this kernel that `make test` judges: all of them on 6.12, and on 6.1 every healthy server and one scenario of each
/// kind of cause, because the diagnosis is the same program on both.
///
/// # Errors
/// Fails if a scenario cannot be read.
pub fn judged_in_every_run(kernel: Kernel) -> Result<Vec<Scenario>> {
    let mut scenarios = all_scenarios()?;
    scenarios.retain(|s| s.runs_on(kernel));
    if kernel == Kernel::V6_1 {
        let mut kinds = BTreeSet::new();
        scenarios
            .retain(|s| s.diagnosis.findings.is_empty() || kinds.insert(s.expected().to_owned()));
    }
    Ok(scenarios)
}

fn chosen(options: &Options) -> Result<Vec<Scenario>> {
    if (options.write || options.recorded) && options.only.is_empty() {
        return judged_in_every_run(options.kernel);
    }
    let wanted = |s: &Scenario| {
        let named = options.only.is_empty() || options.only.iter().any(|o| s.name.contains(o));
        named && s.runs_on(options.kernel)
    };
    let mut scenarios = all_scenarios()?;
    let names: Vec<_> = scenarios.iter().map(|s| s.name.clone()).collect();
    scenarios.retain(wanted);
    ensure!(
        !scenarios.is_empty(),
        "no scenario of {} is called {:?}; there are {}",
        options.kernel,
        options.only,
        names.join(", ")
    );
    Ok(scenarios)
}
