//! nfscope: where every NFS operation's time goes, on the server.

#![forbid(unsafe_code)]

pub mod api;
pub mod cli;
pub mod client;
pub mod commands;
pub mod doctor;
pub mod endpoints;
pub mod exposition;
pub mod http;
pub mod mcp;
pub mod names;
pub mod service;
pub mod tui;
pub mod versions;
pub mod workload;

pub use api::build_info::{REVISION, VERSION};
