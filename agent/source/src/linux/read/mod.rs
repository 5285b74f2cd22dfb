//! Maps and kernel counters into a snapshot: one file a probe.

pub mod logs;
pub mod nfs_status;
pub mod nfsd;
pub mod slow_ops;
pub mod top_k;
pub mod zfs;
