//! nfscope: where every NFS operation's time goes, on the server.

pub mod agent;
pub mod baseline;
pub mod check;
pub mod cli;
pub mod config;
pub mod console;
pub mod control;
pub mod diagnose;
mod feed;
mod fetch;
pub mod metrics;
pub mod model;
mod near;
pub mod privileges;
pub mod reader;
pub mod reference;
pub mod slow;
pub mod source;
pub mod status;
mod table;
pub mod top;
mod units;
pub mod web;
pub mod workload;
mod wrap;

/// Release of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Git commit it was built from; `unknown` outside a git checkout.
pub const REVISION: &str = env!("NFSCOPE_REVISION");
