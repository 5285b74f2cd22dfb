//! Main program: runs a command, and converts its result into an exit code.

#![forbid(unsafe_code)]

use nfscope::agent::replay::Replay;
use nfscope::check::summary;
use nfscope::cli::{Cli, Command, Probes};
use nfscope::{
    agent, baseline, check, demo, diagnose, doctor, experiment, fleet, mcp, metrics, path, report,
    slow, stuck, top, trace, versions, what_if, workload,
};
use nfscope_agent_client::access::{self, Access};
use nfscope_agent_client::{control, settings};
use nfscope_api::probe_change::{self, Change};
use nfscope_serve::http;
use nfscope_serve::service::http_process::Told;
use nfscope_source::{Source, privileges};
use nfscope_text::console::{self, Level, print};
use std::process::ExitCode;

/// Allocator that returns free memory to the kernel. The agent runs for months and keeps small objects for 15 minutes among large,
/// short-lived ones; with the allocators of glibc and musl it grew for hours.
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    if http::process::is_this() {
        return http::process::run();
    }
    match run(Cli::from_command_line().command) {
        Ok(code) => code,
        // The error was printed already.
        Err(e) if e.is::<Told>() => ExitCode::FAILURE,
        Err(e) => {
            console::log(Level::Error, &format!("{e:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(mut command: Command) -> anyhow::Result<ExitCode> {
    // Only the agent runs without huge pages. Other commands may start programs and measure them, and these inherit the setting.
    if !matches!(command, Command::Agent(_)) {
        nfscope_source::accept_huge_pages();
    }
    if let Some(asks) = command.asks() {
        let given = asks.access;
        let mut access = Access {
            ca_file: given.ca_file.clone(),
            fingerprint: given.fingerprint,
            certificate: given.cert_file.clone().zip(given.key_file.clone()),
            user: given.user.clone(),
            password_file: given.password_file.clone(),
        };
        settings::complete(asks.whom, asks.url, asks.also, &mut access)?;
        access::set(access)?;
    }
    match command {
        Command::Agent(args) => {
            let settings = agent::config::load(&args)?;
            let options = settings.source.clone();
            let replay = args.replay.clone();
            let start = move || {
                if let Some(file) = replay {
                    return Ok(Box::new(Replay::open(&file)?) as Box<dyn Source>);
                }
                privileges::require()?;
                nfscope_source::start(&options)
            };
            agent::run(settings, move || agent::config::load(&args), start)?;
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
            let report = match &args.url {
                Some(url) => check::of_agent(url)?,
                None => {
                    let mut report = nfscope_source::check();
                    report.facts.push(privileges::fact());
                    report.facts.push(privileges::sandbox_fact());
                    report
                }
            };
            if args.json {
                print(&(check::json(&report)? + "\n"))?;
            } else {
                let render = match args.all {
                    true => check::render_all,
                    false => summary::render,
                };
                print(&render(&report, console::colors()))?;
            }
            return Ok(check::exit_code(report.verdict).into());
        }
        Command::Doctor(args) => {
            let (text, code) = doctor::run(&args)?;
            print(&text)?;
            return Ok(code.into());
        }
        Command::Demo(args) => demo::run(&args)?,
        Command::Top(args) => top::run(&args)?,
        Command::Slow(args) => slow::run(&args)?,
        Command::Stuck(args) => {
            let (text, code) = stuck::run(&args)?;
            print(&text)?;
            return Ok(code.into());
        }
        Command::Diagnose(args) => return Ok(diagnose::exit_code(diagnose::run(&args)?).into()),
        Command::Report(args) => report::run(&args)?,
        Command::Path(args) => print(&path::run(&args)?)?,
        Command::Baseline(args) => return Ok(baseline::run(&args.command)?.into()),
        Command::Capacity(args) => print(&baseline::capacity(&args)?)?,
        Command::Experiment(args) => return Ok(experiment::run(&args.command)?.into()),
        Command::WhatIf(args) => print(&what_if::run(&args)?)?,
        Command::Fleet(args) => print(&fleet::run(&args)?)?,
        Command::Detach(args) => change(Change::Detach, &args.probes, args.url.as_deref())?,
        Command::Attach(args) if args.probes.is_empty() => {
            let all = [Probes(nfscope_source::words().collect())];
            change(Change::Attach, &all, args.url.as_deref())?;
        }
        Command::Attach(args) => change(Change::Attach, &args.probes, args.url.as_deref())?,
        Command::Workload(args) => {
            let (text, code) = workload::run(&args.command)?;
            print(&text)?;
            return Ok(code.into());
        }
        Command::Trace(args) => print(&trace::run(&args.command)?)?,
        Command::Versions(args) => {
            let (text, code) = versions::run(&args)?;
            print(&text)?;
            return Ok(code.into());
        }
        Command::Mcp(args) => mcp::run(&args)?,
        Command::Completions(args) => {
            print(&String::from_utf8(Cli::completions(args.shell))?)?;
        }
        Command::Metrics(args) => print(&metrics::run(&args))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn change(change: Change, probes: &[Probes], url: Option<&str>) -> anyhow::Result<()> {
    let probes: Vec<_> = probes.iter().flat_map(|p| &p.0).copied().collect();
    print(&control::ask(
        change,
        &probes,
        url,
        &probe_change::directory(),
    )?)?;
    Ok(())
}
