//! nfscope: where every NFS operation's time goes, on the server.

pub mod api;
pub mod cli;
pub mod client;
pub mod commands;
pub mod exposition;
pub mod http;
pub mod service;
pub mod tui;
pub mod workload;

/// Release of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Git commit it was built from; `unknown` outside a git checkout.
pub const REVISION: &str = env!("NFSCOPE_REVISION");
