//! How commands reach a running agent, or measure themselves.

pub mod access;
pub mod control;
pub(crate) mod counting;
pub(crate) mod events;
pub mod http;
pub(crate) mod known_names;
pub(crate) mod lines;
pub mod local_or_remote;
pub(crate) mod lock_waits;
pub(crate) mod owners;
pub mod prometheus;
pub(crate) mod server_state;
pub mod settings;
pub(crate) mod sleepers;
mod trust;
pub mod windows;
