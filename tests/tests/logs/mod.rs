//! Waits for logs, and writes of logs, equal the kernel's own counts.

pub mod journals;
