//! ext4's journal (jbd2), which ocfs2 has as well: the programs of probe jbd2 that each of its figures needs.

use super::logs::Log;
use crate::linux::host::log_types;

/// Log of jbd2 in probe jbd2, for [`logs`](super::logs).
pub static LOG: Log = Log {
    probe: "jbd2",
    map: "jbd2_log",
    events: "jbd2_event",
    log_type: &log_types::EXT4,
    wait: &[
        "jbd2_wait_begin",
        "jbd2_wait_end",
        "jbd2_fast_begin",
        "jbd2_fast_end",
        "jbd2_fast_start",
    ],
    commit: &[
        "jbd2_commit",
        "jbd2_committed",
        "jbd2_fast_start",
        "jbd2_fast_stop",
    ],
    bytes: Some(&["jbd2_written", "jbd2_fast_stop", "jbd2_fast_end"]),
};
