//! Whom a command asks.

use super::Command;
use super::access::AccessArgs;
use crate::baseline::cli::BaselineCommand;
use crate::experiment::cli::ExperimentCommand;
use crate::trace::cli::TraceCommand;
use crate::workload::cli::WorkloadCommand;
use nfscope_api::address::Whom;

/// What a command is about to ask.
#[derive(Debug)]
pub struct Asks<'a> {
    /// An agent or a Prometheus.
    pub whom: Whom,
    /// Where, if that was given.
    pub url: &'a mut Option<String>,
    /// Another agent, which is asked likewise.
    pub also: Option<&'a mut String>,
    /// How to get in.
    pub access: &'a AccessArgs,
}

impl Command {
    /// Whom the command asks; `None` where it asks nobody.
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
            // A baseline is read from the store.
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
                ExperimentCommand::Run(args) => (&mut args.url, &args.access),
                _ => return None,
            },
            Command::Workload(args) => match &mut args.command {
                WorkloadCommand::Run(args) if args.record.is_some() => {
                    (&mut args.url, &args.access)
                }
                _ => return None,
            },
            Command::Trace(args) => match &mut args.command {
                TraceCommand::Record(args) => (&mut args.url, &args.access),
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
