//! Servers that a command connects to: an agent or a Prometheus.

use super::Command;
use super::access::AccessArgs;
use crate::baseline::cli::BaselineCommand;
use crate::experiment::cli::ExperimentCommand;
use crate::workload::cli::WorkloadCommand;
use nfscope_api::address::Whom;

/// Connection that a command is about to make.
#[derive(Debug)]
pub struct Asks<'a> {
    /// Agent or Prometheus.
    pub whom: Whom,
    /// URL, if one was given.
    pub url: &'a mut Option<String>,
    /// URL of a second agent.
    pub also: Option<&'a mut String>,
    /// Flags for TLS and passwords.
    pub access: &'a AccessArgs,
}

impl Command {
    /// Connection of the command; `None` if it makes none.
    pub fn asks(&mut self) -> Option<Asks<'_>> {
        let (url, access) = match self {
            Command::Check(args) if args.url.is_some() => (&mut args.url, &args.access),
            Command::Top(args) => (&mut args.url, &args.access),
            Command::Slow(args) => (&mut args.url, &args.access),
            Command::Stuck(args) => (&mut args.url, &args.access),
            Command::Diagnose(args) => (&mut args.url, &args.access),
            Command::Mcp(args) => (&mut args.url, &args.access),
            Command::Report(args) => (&mut args.url, &args.access),
            Command::Path(args) => {
                return Some(Asks {
                    whom: Whom::Agent,
                    url: &mut args.url,
                    also: Some(&mut args.server),
                    access: &args.access,
                });
            }
            Command::Versions(args) => (&mut args.url, &args.access),
            // Baselines are read from the store.
            Command::WhatIf(args) if args.name.is_none() => (&mut args.url, &args.access),
            Command::Fleet(args) => return Some(prometheus(&mut args.url, &args.access)),
            Command::Baseline(args) => match &mut args.command {
                BaselineCommand::Record(args) => (&mut args.url, &args.access),
                BaselineCommand::Import(args) if args.prometheus.is_some() => {
                    return Some(prometheus(&mut args.prometheus, &args.access));
                }
                _ => return None,
            },
            Command::Experiment(args) => match &mut args.command {
                ExperimentCommand::Record(args) => (&mut args.url, &args.access),
                ExperimentCommand::Check(args) if !args.dry_run => (&mut args.url, &args.access),
                ExperimentCommand::Run(args) => (&mut args.url, &args.access),
                _ => return None,
            },
            Command::Workload(args) => match &mut args.command {
                WorkloadCommand::Run(args) if args.record.is_some() => {
                    (&mut args.url, &args.access)
                }
                _ => return None,
            },
            _ => return None,
        };
        Some(Asks {
            whom: Whom::Agent,
            url,
            also: None,
            access,
        })
    }
}

fn prometheus<'a>(url: &'a mut Option<String>, access: &'a AccessArgs) -> Asks<'a> {
    Asks {
        whom: Whom::Prometheus,
        url,
        also: None,
        access,
    }
}
