//! The lab: a real kernel NFS server in a virtual machine, built in one expression.
//!
//! ```no_run
//! # fn main() -> anyhow::Result<()> {
//! use lab::{Kernel, Load, Server};
//! let server = Server::boot(Kernel::V6_12).export("xfs").clients(3).start()?;
//! let agent = server.agent(&[])?;
//! let before = server.kernel_counters()?;
//! server.load(Load::mixed().ops(20_000))?;
//! let executed = server.kernel_counters()? - before;
//! println!("{} v4 writes\n{}", executed.op4("write"), agent.get("/metrics")?);
//! # Ok(())
//! # }
//! ```
//!
//! Machines are QEMU under virtme-ng (`tests/setup/setup.sh lab`), on the host's root file system, read-only: programs
//! built here run there. At most two run at a time, whatever the number of test processes. A machine ends with the
//! value, or the process, that owns it. Its logs are removed, unless a test failed: then the failure names them.

#![forbid(unsafe_code)]

mod accel;
mod agent;
mod arm64;
pub mod baselines;
pub mod begun;
pub mod bench;
pub mod big_server;
pub mod block_cost;
pub mod breakdown;
mod builder;
pub mod campaign;
mod checks;
mod client;
pub mod clock;
pub mod conformance;
mod control;
pub mod cpu_hog;
mod cpu_time;
pub mod demo;
mod digest;
mod disk;
pub mod evict_cache;
pub mod experiment;
pub mod guest;
pub mod http;
pub mod init;
mod kernel;
mod kernel_counters;
pub mod load;
mod machine;
mod machine_slots;
pub mod monitoring;
mod names;
mod paths;
mod protocol;
mod qemu;
mod qmp;
pub mod raw;
pub mod reconcile;
pub mod recordings;
pub mod refused;
pub mod rpc_status;
pub mod scenarios;
mod server;
mod skip;
mod slow;
pub mod soak;
mod spec;
pub mod ssd_log;
mod stamped;
pub mod supervisor;
mod threads;
mod variant;
pub mod versions;
pub mod what_if;

pub use agent::Agent;
pub use builder::{Builder, CountedCpus};
pub use checks::{Checks, finally};
pub use client::Client;
pub use control::{Output, Running, beside_the_host, pass};
pub use disk::{Delay, Disk};
pub use http::{Lines, Response};
pub use kernel::{Kernel, cache};
pub use kernel_counters::KernelCounters;
pub use load::{Load, LoadReport};
pub use names::{OP4, PROC3};
pub use paths::{lab_program, nfscope_program, target_dir};
pub use server::Server;
pub use skip::skip;
pub use slow::{SlowLine, SlowOp};
pub use threads::ThreadTimes;
