//! The running agent: the thread that owns the probes, and those who listen to it.

pub mod control;
pub(crate) mod local_slow_ops;
pub mod slow_subscribers;
pub mod source_thread;
pub mod worth;
