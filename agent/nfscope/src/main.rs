//! The program: arguments in, exit code out.

#![forbid(unsafe_code)]

use nfscope::api::endpoint;
use nfscope::api::probe_change::Change;
use nfscope::cli::{Cli, Command, Probes};
use nfscope::client::control;
use nfscope::commands::{
    self, agent, baseline, check, config, diagnose, metrics, slow, top, what_if,
};
use nfscope_source::privileges;
use nfscope_text::console::{self, Level, print};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run(Cli::from_command_line().command) {
        Ok(code) => code,
        Err(e) => {
            console::log(Level::Error, &format!("{e:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Agent(args) => {
            let settings = config::load(&args)?;
            let options = settings.source.clone();
            let start = move || {
                privileges::require()?;
                nfscope_source::start(&options)
            };
            agent::run(settings, || config::load(&args), start)?;
        }
        Command::Check(args) => {
            if let Some(name) = &args.show_script {
                print(&nfscope_source::script(name)?)?;
                return Ok(ExitCode::SUCCESS);
            }
            if let Some(path) = &args.report {
                print(&check::write_report(nfscope_source::report()?, path)?)?;
                return Ok(ExitCode::SUCCESS);
            }
            let mut report = nfscope_source::check();
            report.facts.push(privileges::fact());
            if args.json {
                print(&(check::json(&report)? + "\n"))?;
            } else {
                print(&check::render(&report, console::colors()))?;
            }
            return Ok(check::exit_code(report.verdict).into());
        }
        Command::Top(args) => top::run(&args)?,
        Command::Slow(args) => slow::run(&args)?,
        Command::Diagnose(args) => return Ok(diagnose::exit_code(diagnose::run(&args)?).into()),
        Command::Baseline(args) => return Ok(baseline::run(&args.command)?.into()),
        Command::Capacity(args) => print(&baseline::capacity(&args)?)?,
        Command::Experiment(args) => return Ok(commands::experiment::run(&args.command)?.into()),
        Command::WhatIf(args) => print(&what_if::run(&args)?)?,
        Command::Detach(args) => change(Change::Detach, &args.probes, args.url.as_deref())?,
        Command::Attach(args) if args.probes.is_empty() => {
            let all = [Probes(nfscope_source::words().collect())];
            change(Change::Attach, &all, args.url.as_deref())?;
        }
        Command::Attach(args) => change(Change::Attach, &args.probes, args.url.as_deref())?,
        Command::Workload(args) => {
            let (text, code) = commands::workload::run(&args.command)?;
            print(&text)?;
            return Ok(code.into());
        }
        Command::Metrics(args) if args.markdown => print(&metrics::markdown())?,
        Command::Metrics(_) => print(&metrics::plain())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn change(change: Change, probes: &[Probes], url: Option<&str>) -> anyhow::Result<()> {
    let probes: Vec<_> = probes.iter().flat_map(|p| &p.0).copied().collect();
    let own = endpoint::default_url();
    print(&control::ask(change, &probes, url.unwrap_or(&own))?)?;
    Ok(())
}
