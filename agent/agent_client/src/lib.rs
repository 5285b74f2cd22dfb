//! Reaches a running agent for commands, or measures with probes of this process.

#![forbid(unsafe_code)]

pub mod access;
pub mod control;
pub mod counting;
pub mod events;
pub mod http;
pub mod known_names;
pub mod lines;
pub mod local_or_remote;
pub mod lock_waits;
pub mod owners;
pub mod page_cache;
pub mod prometheus;
pub mod server_state;
pub mod settings;
pub mod sleepers;
pub mod stream;
mod trust;
pub mod windows;
