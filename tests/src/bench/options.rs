//! Options of the bench.

use std::path::PathBuf;

use super::attach::Beside;
use super::load::Client;
use crate::kernel::Kernel;

/// Measurements to make, and the form of the report.
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
    /// Make one round of sync writes and context switches, without bpftrace, start, memory and scrapes: to try a change
    #[arg(long)]
    pub quick: bool,
    /// Measure only a reading and kernel memory, with 2, 16 and 64 possible CPUs
    #[arg(long)]
    pub reading: bool,
    /// Measure only the costs of single features: instructions in the agent's programs, with and without each, and with --client
    #[arg(long, conflicts_with_all = ["quick", "per_program", "agent", "reading"])]
    pub features: bool,
    /// Measure only this part of --features, no break-downs and no --client
    #[arg(long, value_enum, requires = "features")]
    pub without: Vec<Beside>,
    /// Measure only the agent's own costs: its start, its memory, its scrapes, and open pages
    #[arg(long, conflicts_with_all = ["quick", "per_program"])]
    pub agent: bool,
    /// Also show the cost of each program of the agent and of bpftrace
    #[arg(long)]
    pub per_program: bool,
    /// Compare with the script without its queue times: these are three quarters of its cost
    #[arg(long)]
    pub without_queue: bool,
    /// Also write every measurement to this file, as JSON lines
    #[arg(long, value_name = "FILE")]
    pub raw: Option<PathBuf>,
    /// Print Markdown
    #[arg(long)]
    pub markdown: bool,
    /// The machine's kernel: 6.1, 6.12, 6.18 or 7.2
    #[arg(long, default_value = "6.12", value_parser = Kernel::named)]
    pub kernel: Kernel,
    /// Measure only operations of this client: a mount, or the lab's own
    #[arg(long, value_enum)]
    pub client: Option<Client>,
}

impl Options {
    pub(super) fn rounds(&self) -> usize {
        match (self.agent, self.quick) {
            (true, _) => 0,
            (_, true) => 1,
            _ => self.rounds,
        }
    }

    pub(super) fn clients(&self) -> Vec<Client> {
        match self.client {
            Some(client) => vec![client],
            None if self.quick => vec![Client::Mount],
            None => vec![Client::Mount, Client::Raw],
        }
    }
}
