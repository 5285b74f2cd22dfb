//! The program: arguments in, exit code out.

use clap::Parser;
use nfscope::cli::{Cli, Command};
use nfscope::{agent, check, config, privileges, reference, source, top};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(code) => code,
        Err(e) => {
            eprintln!("error: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Agent(args) => {
            let settings = config::load(&args)?;
            let options = settings.source.clone();
            agent::run(&settings, move || {
                privileges::require()?;
                source::start(&options)
            })?;
        }
        Command::Check(args) => {
            let mut report = source::check();
            report.facts.push(privileges::fact());
            if args.json {
                print(&(check::json(&report)? + "\n"))?;
            } else {
                let color = std::io::stdout().is_terminal()
                    && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
                print(&check::render(&report, color))?;
            }
            return Ok(check::exit_code(report.verdict).into());
        }
        Command::Top(args) => top::run(&args)?,
        Command::Metrics(args) if args.markdown => print(&reference::markdown())?,
        Command::Metrics(_) => print(&reference::plain())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints; a reader that closed the pipe early has all it wanted.
fn print(text: &str) -> std::io::Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
