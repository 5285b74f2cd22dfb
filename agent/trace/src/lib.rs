//! Traces: one line of a table for each operation of NFS, without the names of files and users.
//!
//! - [`operation`] is an operation, and [`header`] has the facts about the whole trace.
//! - [`describe`] tells what the load of a trace is, [`compare`] how far two loads are from each other.
//! - [`convert`] reads and writes other forms.
//! - [`fit`] makes a synthetic workload like a trace.
//! - [`format`] writes and reads the file: Parquet, compressed, in row groups, with bounded memory. docs/trace.md describes it.

#![forbid(unsafe_code)]

pub mod compare;
pub mod convert;
pub mod describe;
pub mod example;
pub mod fit;
pub mod format;
pub mod header;
pub mod operation;

pub use format::{Error, Reader, Writer};
pub use header::{Dropped, Header, Host};
pub use operation::{Op, Operation, Stability, Version};
