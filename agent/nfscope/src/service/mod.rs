//! The running agent: the thread that owns the probes, and those who listen to it.

pub mod control;
pub mod slow_subscribers;
pub mod source_thread;
