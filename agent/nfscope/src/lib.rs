//! nfscope: where every NFS operation's time goes, on the server.

#![forbid(unsafe_code)]

pub mod cli;
pub mod commands;
