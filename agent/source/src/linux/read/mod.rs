//! Maps and kernel counters into a snapshot: one file for each probe's word, each by the map types of
//! `nfscope_probes::types`.
//!
//! [`nfsd`] has the time that probe sched measures for its operations. [`jbd2`], [`xfs`] and [`btrfs`] name what [`logs`]
//! reads for all of them. [`decode`] has what every reader needs; [`top_k`] and [`slow_ops`] read nfsd's tables of clients
//! and its ring of slow operations.

pub mod block;
pub mod btrfs;
mod decode;
pub mod jbd2;
pub mod logs;
mod nfs_status;
pub mod nfsd;
pub mod slow_ops;
pub mod top_k;
pub mod xfs;
pub mod zfs;

pub use decode::monotonic_ns;

/// Logs with a probe of their own, but for ZFS's.
pub static LOGS: [&logs::Log; 3] = [&jbd2::LOG, &xfs::LOG, &btrfs::LOG];
