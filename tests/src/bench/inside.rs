//! Commands of the bench inside its machine.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;

use super::agent::{self, OwnAgent};
use super::load::{self, Case, Client};
use super::{context_switches, recording};
use crate::machine;

/// Commands of the bench inside its machine; each prints JSON.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Inside {
    /// Repeat operations
    Load {
        /// Number of operations
        #[arg(long)]
        ops: u64,
        /// Repeat only writes
        #[arg(long)]
        quick: bool,
        /// Repeat the operations that show the costs of features
        #[arg(long)]
        features: bool,
        /// Clients of the operations
        #[arg(long, value_enum)]
        client: Vec<Client>,
        /// Add the kernel's figures of each program
        #[arg(long)]
        programs: bool,
        /// Mount points over v3 and v4.2
        mounts: Vec<PathBuf>,
    },
    /// Pass a byte to another process and back
    Switches {
        /// Number of round trips
        #[arg(long)]
        trips: u64,
        /// Add the kernel's figures of each program
        #[arg(long)]
        programs: bool,
    },
    /// Return each byte (the partner process)
    Echo,
    /// Start an agent, time it, and stop it
    Start {
        /// Path of nfscope
        program: PathBuf,
    },
    /// Scrape a running agent
    Scrape {
        /// Address at which the agent listens
        address: SocketAddr,
        /// Process ID of the agent
        pid: u32,
        /// Path of nfscope
        program: PathBuf,
    },
}

impl Inside {
    /// Runs the command, and returns its JSON.
    pub fn run(&self) -> Result<String> {
        Ok(match self {
            Inside::Load {
                ops,
                quick,
                features,
                client,
                programs,
                mounts,
            } => {
                let cases = match features {
                    true => Case::of_features(),
                    false => Case::all(*quick, client),
                };
                serde_json::to_string(&load::run(&cases, *ops, mounts, *programs)?)?
            }
            Inside::Switches { trips, programs } => {
                serde_json::to_string(&context_switches::run(*trips, *programs)?)?
            }
            Inside::Echo => {
                context_switches::echo()?;
                String::new()
            }
            Inside::Start { program } => {
                let (agent, started) = OwnAgent::start(program, machine::free_port(None)?)?;
                agent.stop()?;
                serde_json::to_string(&started)?
            }
            Inside::Scrape {
                address,
                pid,
                program,
            } => {
                let mut scraped = agent::scrape(*address, *pid)?;
                scraped.window = Some(recording::record(*address, *pid, program)?);
                serde_json::to_string(&scraped)?
            }
        })
    }
}
