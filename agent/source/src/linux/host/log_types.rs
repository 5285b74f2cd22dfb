//! Kinds of logs: which filesystems have one, which probe looks at it, and the programs without which a figure would be
//! short. The intent log of ZFS has figures of its own, in [`zfs`](crate::linux::read::zfs).

use crate::linux::host::mounts::{Mount, Mounts};
use crate::linux::host::procfs::DeviceNames;

/// What filesystems with one kind of log have in common.
pub struct Kind {
    /// The probe's word.
    pub probe: &'static str,
    /// Its map of rows.
    pub map: &'static str,
    /// Its map of rare events.
    pub events: &'static str,
    /// The filesystem, as /sys/fs calls it.
    pub fs: &'static str,
    /// The types as which those are mounted that have such a log.
    pub types: &'static [&'static str],
    /// What tells how long threads wait for it.
    pub wait: &'static [&'static str],
    /// What tells how long its own writes take.
    pub commit: &'static [&'static str],
    /// What tells its bytes; `None`: nothing does.
    pub bytes: Option<&'static [&'static str]>,
}

/// Every kind.
pub static KINDS: [Kind; 3] = [
    Kind {
        probe: "jbd2",
        map: "jbd2_log",
        events: "jbd2_event",
        fs: "ext4",
        types: &["ext4", "ext3", "ocfs2"],
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
    },
    Kind {
        probe: "xfs",
        map: "xfs_log",
        events: "xfs_event",
        fs: "xfs",
        types: &["xfs"],
        wait: &[
            "xfs_seq_begin",
            "xfs_seq_end",
            "xfs_force_begin",
            "xfs_force_end",
        ],
        commit: &["xfs_write_begin", "xfs_write_end"],
        bytes: Some(&["xfs_write_begin"]),
    },
    Kind {
        probe: "btrfs",
        map: "btrfs_log",
        events: "btrfs_event",
        fs: "btrfs",
        types: &["btrfs"],
        wait: &[
            "btrfs_log_begin",
            "btrfs_log_end",
            "btrfs_txn_begin",
            "btrfs_txn_end",
        ],
        commit: &["btrfs_log_begin", "btrfs_write", "btrfs_written"],
        bytes: None,
    },
];

/// What is told of a log of which nothing is missing.
pub const ALL_FIGURES: &str = "log waits, commits and bytes";

/// The kind that filesystems have which are mounted as this type.
pub fn of_type(fs: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|k| k.types.contains(&fs))
}

impl Kind {
    /// What is told of such a log where every program runs.
    pub fn figures(&self) -> &'static str {
        match self.bytes {
            Some(_) => ALL_FIGURES,
            None => "log waits and commits",
        }
    }

    /// The mount of such a filesystem by its device.
    pub fn at<'a>(&self, dev: u32, mounts: &'a Mounts) -> Option<&'a Mount> {
        self.of(mounts).find(|m| m.dev == dev)
    }

    /// The same by the device's name.
    pub fn named<'a>(
        &self,
        device: &str,
        mounts: &'a Mounts,
        devices: &mut DeviceNames,
    ) -> Option<&'a Mount> {
        self.of(mounts).find(|m| devices.name(m.dev) == device)
    }

    fn of<'a>(&self, mounts: &'a Mounts) -> impl Iterator<Item = &'a Mount> {
        mounts.iter().filter(|m| self.types.contains(&&*m.fs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_found_by_its_device_and_the_kind_of_its_log() {
        let m = Mounts::parse(
            "30 1 253:0 / /srv/a rw - xfs /dev/mapper/a rw\n32 1 8:1 / /srv/c rw - ext3 /dev/sda1 rw\n",
        );
        let [jbd2, xfs, _] = &KINDS;
        assert_eq!(xfs.at(253 << 20, &m).unwrap().point, "/srv/a");
        assert_eq!(jbd2.at(8 << 20 | 1, &m).unwrap().point, "/srv/c");
        // The device had another filesystem before.
        assert_eq!(jbd2.at(253 << 20, &m), None);
    }

    #[test]
    fn every_program_that_a_figure_needs_is_in_the_plan() {
        use crate::linux::load::program_table::PROBES;
        for kind in &KINDS {
            let probe = PROBES.iter().find(|p| p.word == kind.probe).unwrap();
            for name in [kind.wait, kind.commit, kind.bytes.unwrap_or_default()].concat() {
                assert!(probe.programs.iter().any(|p| p.name == name), "{name}");
            }
        }
    }
}
