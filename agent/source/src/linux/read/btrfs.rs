//! The tree log of btrfs: the programs of probe btrfs that each of its figures needs.

use super::logs::Log;
use crate::linux::host::log_types;

/// Log of btrfs in probe btrfs, for [`logs`](super::logs).
pub static LOG: Log = Log {
    probe: "btrfs",
    map: "btrfs_log",
    events: "btrfs_event",
    log_type: &log_types::BTRFS,
    wait: &[
        "btrfs_log_begin",
        "btrfs_log_end",
        "btrfs_txn_begin",
        "btrfs_txn_end",
    ],
    commit: &["btrfs_log_begin", "btrfs_write", "btrfs_written"],
    bytes: None,
};
