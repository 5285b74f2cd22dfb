//! The log of XFS: the programs of probe xfs that each of its figures needs.

use super::logs::Log;
use crate::linux::host::log_types;

/// Log of XFS in probe xfs, for [`logs`](super::logs).
pub static LOG: Log = Log {
    probe: "xfs",
    map: "xfs_log",
    events: "xfs_event",
    log_type: &log_types::XFS,
    wait: &[
        "xfs_seq_begin",
        "xfs_seq_end",
        "xfs_force_begin",
        "xfs_force_end",
    ],
    commit: &["xfs_write_begin", "xfs_write_end"],
    bytes: Some(&["xfs_write_begin"]),
};
