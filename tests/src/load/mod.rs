//! Realistic mixed load: calls of applications on NFS, as direct system calls, bounded by operations or by time.

mod actions;
mod command;
mod kind;
mod run;

pub use command::Load;
pub use kind::Kind;
pub use run::{LoadReport, run};
