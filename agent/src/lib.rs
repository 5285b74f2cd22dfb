//! nfscope: where every NFS operation's time goes, on the server.

pub mod agent;
pub mod check;
pub mod cli;
pub mod config;
pub mod metrics;
pub mod model;
pub mod privileges;
pub mod reader;
pub mod reference;
pub mod source;
pub mod status;
pub mod top;
pub mod web;

/// Release of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Git commit it was built from; `unknown` outside a git checkout.
pub const REVISION: &str = env!("NFSCOPE_REVISION");
