//! Locations of the logs of file systems. Metrics say if a log has a device of its own; `nfscope check` names the device, or the reason why
//! it is unknown. For a ZFS pool the metrics use its probe, and check uses the pool's own tools.

use crate::host_table;
use crate::linux::host::device_names::DeviceNames;
use crate::linux::host::log_types::LogType;
use crate::linux::host::procfs::entry_names;
use crate::linux::host::zfs_tools;
use crate::mounts::{Mount, Mounts};
use std::collections::BTreeSet;
use std::path::Path;

/// Place to which a file system writes data that must be durable at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// The log has devices of its own.
    Separate(Vec<String>),
    /// The log shares the devices of the file system.
    Shared,
    /// There is no log.
    None,
    /// The location is unknown, for this reason.
    Unknown(String),
}

impl Location {
    fn unknown(why: &str) -> Self {
        Location::Unknown(why.to_owned())
    }
}

/// A mounted file system that has a log.
#[derive(Debug, PartialEq)]
pub struct MountedLog {
    /// All devices of the file system.
    pub devices: BTreeSet<String>,
    /// Device that it is mounted from, if that is known.
    pub volume: Option<String>,
    /// True if its log has a device of its own; `None` if that is not known.
    pub separate: Option<bool>,
}

/// Mounted file systems with this type of log; `None` if /sys does not list them.
pub fn mounted_logs(
    log_type: &LogType,
    mounts: &Mounts,
    devices: &mut DeviceNames,
) -> Option<Vec<MountedLog>> {
    let dir = Path::new("/sys/fs").join(log_type.fs);
    let found = entry_names(&dir)?.into_iter().filter_map(|name| {
        let separate = match log_type.fs {
            "btrfs" => return btrfs(&dir.join(name), mounts, devices),
            "xfs" if dir.join(&name).join("log").exists() => {
                let mount = log_type.named(&name, mounts, devices);
                mount.map(|m| xfs_log_device(m).is_some())
            }
            "ext4" if journal_thread(&name)? != NO_THREAD => has_journal_device(&name),
            _ => return None,
        };
        Some(MountedLog {
            devices: BTreeSet::from([name.clone()]),
            volume: Some(name),
            separate,
        })
    });
    Some(found.collect())
}

/// Location of the log of a mount's file system; `volume` is its device or its pool.
pub fn locate(mount: &Mount, volume: &str, devices: &mut DeviceNames) -> Location {
    match mount.fs.as_str() {
        "ext4" | "ext3" => ext4(volume),
        "xfs" => match xfs_log_device(mount) {
            Some(path) => Location::Separate(vec![devices.of_file(&path).unwrap_or(path)]),
            None => Location::Shared,
        },
        // These file systems have no other place for their log.
        "btrfs" | "ocfs2" => Location::Shared,
        "zfs" => pool(volume),
        "tmpfs" | "ramfs" => Location::None,
        other => Location::Unknown(format!("nfscope does not know the log of {other}")),
    }
}

fn ext4(volume: &str) -> Location {
    let thread = match journal_thread(volume) {
        None => return Location::unknown("this kernel does not name the journal's thread"),
        Some(t) if t == NO_THREAD => return Location::None,
        Some(t) => t,
    };
    match has_journal_device(volume) {
        Some(false) => Location::Shared,
        // The owner of a journal device is only known by the thread's name: `jbd2/<device>` (fs/jbd2/journal.c,
        // jbd2_journal_start_thread()), cut at fifteen characters before Linux 5.17.
        Some(true) => match host_table::read_at("/proc/TID/comm", format!("/proc/{thread}/comm")) {
            Some(name) => {
                let name = name.trim();
                let device = name.strip_prefix("jbd2/").unwrap_or(name);
                Location::Separate(vec![device.to_owned()])
            }
            None => Location::unknown("the journal's thread is out of sight"),
        },
        None => Location::unknown("/proc/fs/jbd2 cannot be read"),
    }
}

/// Text in place of the thread for a file system without a journal.
const NO_THREAD: &str = "<none>";

/// Thread of ext4's journal.
fn journal_thread(volume: &str) -> Option<String> {
    let path = Path::new("/sys/fs/ext4").join(volume).join("journal_task");
    Some(
        host_table::read_at("/sys/fs/ext4/DEVICE/journal_task", path)?
            .trim()
            .to_owned(),
    )
}

fn has_journal_device(volume: &str) -> Option<bool> {
    let journals = entry_names(Path::new("/proc/fs/jbd2"))?;
    Some(!journals.iter().any(|j| lies_within(j, volume)))
}

/// True if a journal lies within a device. jbd2 names the journal in inode 8 of sda1 `sda1-8`, and a journal that is the device sdb `sdb`.
fn lies_within(journal: &str, device: &str) -> bool {
    journal
        .strip_prefix(device)
        .and_then(|j| j.strip_prefix('-'))
        .is_some_and(|inode| inode.parse::<u64>().is_ok())
}

fn xfs_log_device(mount: &Mount) -> Option<String> {
    mount.option("logdev")
}

/// Log of a btrfs, whose directory is `dir`: /sys/fs/btrfs/UUID.
fn btrfs(dir: &Path, mounts: &Mounts, devices: &mut DeviceNames) -> Option<MountedLog> {
    let all = entry_names(&dir.join("devices"))?;
    // The device number of btrfs belongs to no device: the mount table names the device.
    let volume = mounts
        .iter()
        .filter(|m| m.fs == "btrfs")
        .filter_map(|m| devices.of_file(&m.source))
        .find(|n| all.contains(n));
    let only = all.first().filter(|_| all.len() == 1).cloned();
    Some(MountedLog {
        volume: volume.or(only),
        devices: all,
        separate: Some(false),
    })
}

/// Location of a pool's log, from the pool's own tools: the kernel does not offer it.
fn pool(name: &str) -> Location {
    match zfs_tools::output("zpool", &["list", "-H", "-v", "-P", name]) {
        Some(list) => match log_devices(&list) {
            none if none.is_empty() => Location::Shared,
            devices => Location::Separate(devices),
        },
        None => Location::Unknown(format!("`zpool list -v {name}` does not answer")),
    }
}

/// Devices below the heading `logs` of `zpool list -H -v -P`, until the next heading; a mirror is not a device.
fn log_devices(list: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in list.lines() {
        match line.strip_prefix('\t') {
            None => inside = line.starts_with("logs"),
            Some(row) if inside => {
                let name = row.split('\t').next().unwrap_or_default().trim();
                if name.starts_with('/') {
                    found.push(name.to_owned());
                }
            }
            Some(_) => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_in_an_inode_is_told_from_one_on_a_device() {
        assert!(lies_within("dm-0-8", "dm-0"));
        assert!(!lies_within("dm-0", "dm-0"));
        assert!(!lies_within("dm-10-8", "dm-1"));
        assert!(!lies_within("dm-1", "dm-10"));
        assert!(!lies_within("sdb", "sda"));
    }

    #[test]
    fn xfs_names_its_log_device_among_its_options() {
        let place = |options: &str| {
            let line = format!("39 27 253:0 / /srv rw - xfs /dev/mapper/data {options}");
            let mounts = Mounts::parse_mountinfo(&line);
            locate(
                mounts.on("/srv").unwrap(),
                "dm-0",
                &mut DeviceNames::default(),
            )
        };
        let gone = Location::Separate(vec!["/nowhere/log".into()]);
        assert_eq!(place("rw,attr2,logdev=/nowhere/log,noquota"), gone);
        assert_eq!(place("rw,attr2,logbufs=8"), Location::Shared);
    }

    #[test]
    fn log_devices_of_a_pool() {
        let none = "tank\t960M\t1M\t959M\t-\t-\t0%\t0%\t1.00x\tONLINE\t-\n\t/dev/sda\t960M\n";
        assert_eq!(log_devices(none), Vec::<String>::new());
        let logs = format!(
            "{none}logs\t-\t-\t-\n\tmirror-1\t480M\n\t/dev/sdb\t-\t-\n\t/dev/sdc\t-\ncache\t-\n\t/dev/sdd\t1G\n"
        );
        assert_eq!(log_devices(&logs), ["/dev/sdb", "/dev/sdc"]);
    }
}
