//! Loads that a client puts on a server: workloads, and one load over versions of NFS.

#![forbid(unsafe_code)]

pub mod versions;
pub mod workload;
