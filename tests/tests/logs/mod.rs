//! Waits for logs, and what logs write, are counted as the kernel counts them.

pub mod journals;
