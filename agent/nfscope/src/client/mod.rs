//! How commands reach a running agent, or measure themselves.

pub mod control;
pub(crate) mod events;
pub mod http;
pub mod local_or_remote;
pub mod slow_ops;
pub mod windows;
