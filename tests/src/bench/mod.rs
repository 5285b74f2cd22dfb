//! What the agent costs: `lab bench`.
//!
//! A machine that counts instructions instead of time (one CPU; its clock counts them) runs single NFS
//! operations, thousands in a row, alone, with the agent attached, without and with phases, and with bpftrace scripts
//! that measure about the same, in turn. Its own clock then tells instructions per operation, client and server
//! together, the same on any host. The difference is the cost, whole: the programs, the trampolines and tracepoints
//! they hang on, and whatever the processes do beside.
//!
//! Phases put a program on every context switch of a host, so two processes that have nothing to do with NFS switch to
//! and fro, too.

mod agent;
mod attach;
mod context_switches;
mod features;
mod figures;
mod inside;
mod load;
mod long_recording;
mod median;
mod options;
mod pages;
mod possible_cpus;
mod process;
mod recording;
mod report;
mod resources;
mod results;
mod rounds;
mod run;
mod table;

pub use inside::Inside;
pub use options::Options;
pub use run::run;
