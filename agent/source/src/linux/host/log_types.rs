//! Types of logs: which file systems have one, and how they are mounted. The intent log of ZFS belongs to its pool.

use crate::linux::host::device_names::DeviceNames;
use crate::mounts::{Mount, Mounts};

/// Properties that file systems with one type of log have in common.
#[derive(Debug)]
pub struct LogType {
    /// Name of the file system in /sys/fs.
    pub fs: &'static str,
    /// Types under which file systems with such a log are mounted.
    pub mounted_as: &'static [&'static str],
}

/// The journal of jbd2.
pub static EXT4: LogType = LogType {
    fs: "ext4",
    mounted_as: &["ext4", "ext3", "ocfs2"],
};
/// The log of XFS.
pub static XFS: LogType = LogType {
    fs: "xfs",
    mounted_as: &["xfs"],
};
/// The tree log of btrfs.
pub static BTRFS: LogType = LogType {
    fs: "btrfs",
    mounted_as: &["btrfs"],
};

impl LogType {
    /// Mount of such a file system, by its device number.
    pub fn at<'a>(&self, dev: u32, mounts: &'a Mounts) -> Option<&'a Mount> {
        self.of(mounts).find(|m| m.dev == dev)
    }

    /// Mount of such a file system, by the device's name.
    pub fn named<'a>(
        &self,
        device: &str,
        mounts: &'a Mounts,
        devices: &mut DeviceNames,
    ) -> Option<&'a Mount> {
        self.of(mounts).find(|m| devices.name(m.dev) == device)
    }

    fn of<'a>(&self, mounts: &'a Mounts) -> impl Iterator<Item = &'a Mount> {
        mounts.iter().filter(|m| self.mounted_as.contains(&&*m.fs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_found_by_its_device_and_the_type_of_its_log() {
        let m = Mounts::parse_mountinfo(
            "30 1 253:0 / /srv/a rw - xfs /dev/mapper/a rw\n32 1 8:1 / /srv/c rw - ext3 /dev/sda1 rw\n",
        );
        assert_eq!(XFS.at(253 << 20, &m).unwrap().point, "/srv/a");
        assert_eq!(EXT4.at(8 << 20 | 1, &m).unwrap().point, "/srv/c");
        // Number of a device that had another file system before.
        assert_eq!(EXT4.at(253 << 20, &m), None);
    }
}
