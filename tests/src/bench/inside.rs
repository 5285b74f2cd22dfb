//! The bench's part inside its machine.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;

use super::agent::{self, OwnAgent};
use super::load::{self, Case, Client};
use super::{context_switches, recording};
use crate::machine;

/// What the bench runs inside its machine; each prints JSON.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Inside {
    /// Repeat operations
    Load {
        /// How often
        #[arg(long)]
        ops: u64,
        /// Only writes
        #[arg(long)]
        quick: bool,
        /// Those that show what features cost
        #[arg(long)]
        features: bool,
        /// Whose
        #[arg(long, value_enum)]
        client: Vec<Client>,
        /// With the kernel's figures of each program
        #[arg(long)]
        programs: bool,
        /// Mounts over v3 and v4.2
        mounts: Vec<PathBuf>,
    },
    /// Pass a byte to another process and back
    Switches {
        /// How often
        #[arg(long)]
        trips: u64,
        /// With the kernel's figures of each program
        #[arg(long)]
        programs: bool,
    },
    /// Give back each byte (the other process)
    Echo,
    /// Start an agent, time it, and stop it
    Start {
        /// nfscope
        program: PathBuf,
    },
    /// Scrape a running agent
    Scrape {
        /// Where it listens
        address: SocketAddr,
        /// Its process
        pid: u32,
        /// nfscope
        program: PathBuf,
    },
}

impl Inside {
    /// Does it, and returns the JSON.
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
