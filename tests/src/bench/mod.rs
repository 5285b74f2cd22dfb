//! What the agent costs: `lab bench`.
//!
//! A machine that counts instructions instead of time (one processor; its clock counts them) runs single NFS
//! operations, thousands in a row, alone, with the agent attached, without and with phases, and with bpftrace scripts
//! that measure about the same, in turn. Its own clock then tells instructions per operation, client and server
//! together, the same on any host. The difference is the cost, whole: the programs, the trampolines and tracepoints
//! they hang on, and whatever the processes do beside.
//!
//! Phases put a program on every context switch of a host, so two processes that have nothing to do with NFS switch to
//! and fro, too.

pub mod agent;
mod attach;
pub mod context_switches;
mod figures;
pub mod load;
mod recording;
mod report;
mod resources;
mod table;
mod turns;

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;

use crate::kernel::Kernel;
use crate::machine;
use crate::paths;
use agent::{OwnAgent, Scraped, Started};
use load::{Case, Client};
use recording::Days;

/// What to measure, and how to show it.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Rounds: alone, agent without phases, alone, agent; bpftrace scripts in every other round
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// Operations of each kind in each measurement
    #[arg(long, default_value_t = 1000)]
    pub ops: u64,
    /// Round trips of a byte between two processes in each measurement of context switches
    #[arg(long, default_value_t = 20_000)]
    pub trips: u64,
    /// One round of sync writes and context switches, without bpftrace, start, memory and scrapes: to try a change
    #[arg(long)]
    pub quick: bool,
    /// Also show what each program of the agent and of bpftrace takes
    #[arg(long)]
    pub per_program: bool,
    /// Compare with the script without its queue times: these are three quarters of what it costs
    #[arg(long)]
    pub without_queue: bool,
    /// Also write every measurement to this file, as JSON lines
    #[arg(long, value_name = "FILE")]
    pub raw: Option<PathBuf>,
    /// Print Markdown
    #[arg(long)]
    pub markdown: bool,
    /// The machine's kernel: 6.1, 6.12 or 7.2
    #[arg(long, default_value = "6.12", value_parser = Kernel::named)]
    pub kernel: Kernel,
    /// Only operations of this client: a mount, or the lab's own
    #[arg(long, value_enum)]
    pub client: Option<Client>,
}

impl Options {
    fn rounds(&self) -> usize {
        if self.quick { 1 } else { self.rounds }
    }

    fn clients(&self) -> Vec<Client> {
        match self.client {
            Some(client) => vec![client],
            None if self.quick => vec![Client::Mount],
            None => vec![Client::Mount, Client::Raw],
        }
    }
}

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
                client,
                programs,
                mounts,
            } => {
                let cases = Case::all(*quick, client);
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

/// What was measured.
#[derive(Debug)]
struct Results {
    /// Bytes of the release binary.
    binary: u64,
    turns: Vec<turns::Turn>,
    per_program: Vec<turns::Turn>,
    /// On this host; on Linux without an NFS server that is without its probes.
    native: Option<(Started, Scraped)>,
    /// Two recordings of a day, compared on this host.
    days: Option<Days>,
    /// In the machine, its clock counting instructions, with all probes and after a mixed load.
    inside: Option<(Started, Scraped)>,
    /// The memory of the agent's maps in the machine, in bytes.
    maps: u64,
}

/// Measures, and prints tables.
pub fn run(options: &Options) -> Result<()> {
    let program = paths::nfscope_program()?;
    let mut results = Results {
        binary: std::fs::metadata(&program)?.len(),
        turns: Vec::new(),
        per_program: Vec::new(),
        native: None,
        days: None,
        inside: None,
        maps: 0,
    };
    if !options.quick {
        results.days = Some(recording::days(&program)?);
        match native(&program) {
            Ok(native) => results.native = Some(native),
            Err(e) => eprintln!("bench: not measured on this host itself: {e:#}"),
        }
    }
    turns::run(options, &mut results)?;
    print!("{}", report::render(options, &results));
    Ok(())
}

fn native(program: &std::path::Path) -> Result<(Started, Scraped)> {
    // The first start reads the program from the disk.
    let (agent, _) = OwnAgent::start(program, machine::free_port(None)?)?;
    agent.stop()?;
    let (agent, started) = OwnAgent::start(program, machine::free_port(None)?)?;
    let scraped = agent.scrape()?;
    agent.stop()?;
    Ok((started, scraped))
}

fn median(numbers: &mut [f64]) -> f64 {
    numbers.sort_by(f64::total_cmp);
    match numbers.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => numbers[n / 2],
        n => f64::midpoint(numbers[n / 2 - 1], numbers[n / 2]),
    }
}
