//! nfscope: shows where each NFS operation spends its time on the server.
//!
//! Each capability has a folder with its flags, its command and its text.

#![forbid(unsafe_code)]

pub mod agent;
pub mod baseline;
pub mod check;
pub mod cli;
pub mod demo;
pub mod diagnose;
pub mod doctor;
pub mod experiment;
pub mod fleet;
pub mod mcp;
pub mod metrics;
pub mod path;
pub mod report;
pub mod slow;
pub mod stuck;
pub mod top;
pub mod trace;
#[cfg(test)]
mod unknown_tests;
pub mod versions;
pub mod what_if;
pub mod workload;
