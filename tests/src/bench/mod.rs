//! `lab bench`: the cost of the agent.
//!
//! An icount machine (one CPU, whose clock counts instructions) runs single NFS operations, thousands in a row: alone, with the agent
//! attached, without and with phases, and with bpftrace scripts that measure about the same, in turn. Its own clock gives
//! instructions per operation, client and server together, the same on any host. The difference is the whole cost: the programs,
//! their trampolines and tracepoints, and all other work of the processes.
//!
//! Phases put a program on every context switch of a host. Two processes without any NFS therefore switch to and fro, too.

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
