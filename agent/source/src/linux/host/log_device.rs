//! Where filesystems have their logs: for metrics whether on a device of its own, for `nfscope check` on which one, or why
//! that cannot be told. A ZFS pool tells its probe, and check the pool's own tools.

use crate::linux::host::log_types::Kind;
use crate::linux::host::mounts::{Mount, Mounts};
use crate::linux::host::procfs::DeviceNames;
use crate::linux::read::zfs;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Where a filesystem writes what must be durable at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Devices of their own.
    Separate(Vec<String>),
    /// With everything else.
    Shared,
    /// There is no log.
    None,
    /// Cannot be told, with the reason.
    Unknown(String),
}

impl Place {
    fn unknown(why: &str) -> Self {
        Place::Unknown(why.to_owned())
    }
}

/// A mounted filesystem that has a log.
#[derive(Debug, PartialEq)]
pub struct Mounted {
    /// Every device that it lies on.
    pub devices: BTreeSet<String>,
    /// The one that it is mounted from, where that is known.
    pub volume: Option<String>,
    /// Whether its log lies on a device of its own, where that is known.
    pub separate: Option<bool>,
}

/// The mounted filesystems that have such a log; `None` where /sys does not say.
pub fn mounted(kind: &Kind, mounts: &Mounts, devices: &mut DeviceNames) -> Option<Vec<Mounted>> {
    let dir = Path::new("/sys/fs").join(kind.fs);
    let found = names(&dir)?.into_iter().filter_map(|name| {
        let separate = match kind.fs {
            "btrfs" => return btrfs(&dir.join(name), mounts, devices),
            "xfs" if dir.join(&name).join("log").exists() => {
                let mount = kind.named(&name, mounts, devices);
                mount.map(|m| xfs_log_device(m).is_some())
            }
            "ext4" if journal_thread(&name)? != NO_THREAD => has_journal_device(&name),
            _ => return None,
        };
        Some(Mounted {
            devices: BTreeSet::from([name.clone()]),
            volume: Some(name),
            separate,
        })
    });
    Some(found.collect())
}

/// Where the filesystem of a mount has its log; `volume` is its device or its pool.
pub fn of(mount: &Mount, volume: &str, devices: &mut DeviceNames) -> Place {
    match mount.fs.as_str() {
        "ext4" | "ext3" => ext4(volume),
        "xfs" => match xfs_log_device(mount) {
            Some(path) => Place::Separate(vec![devices.of_file(&path).unwrap_or(path)]),
            None => Place::Shared,
        },
        // They have no other place for it.
        "btrfs" | "ocfs2" => Place::Shared,
        "zfs" => pool(volume),
        "tmpfs" | "ramfs" => Place::None,
        other => Place::Unknown(format!("nfscope does not know the log of {other}")),
    }
}

fn ext4(volume: &str) -> Place {
    let thread = match journal_thread(volume) {
        None => return Place::unknown("this kernel does not name the journal's thread"),
        Some(t) if t == NO_THREAD => return Place::None,
        Some(t) => t,
    };
    match has_journal_device(volume) {
        Some(false) => Place::Shared,
        // Of journals that are devices only the thread's name says whose is which: `jbd2/<device>` (fs/jbd2/journal.c,
        // jbd2_journal_start_thread()), before Linux 5.17 cut off at fifteen characters.
        Some(true) => match fs::read_to_string(format!("/proc/{thread}/comm")) {
            Ok(name) => {
                let name = name.trim();
                let device = name.strip_prefix("jbd2/").unwrap_or(name);
                Place::Separate(vec![device.to_owned()])
            }
            Err(_) => Place::unknown("the journal's thread is out of sight"),
        },
        None => Place::unknown("/proc/fs/jbd2 cannot be read"),
    }
}

/// What stands for the thread of a filesystem without a journal.
const NO_THREAD: &str = "<none>";

/// Of ext4's journal.
fn journal_thread(volume: &str) -> Option<String> {
    let path = Path::new("/sys/fs/ext4").join(volume).join("journal_task");
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

fn has_journal_device(volume: &str) -> Option<bool> {
    let journals = names(Path::new("/proc/fs/jbd2"))?;
    Some(!journals.iter().any(|j| lies_within(j, volume)))
}

/// jbd2's name of a journal: `sda1-8` is the one in inode 8 of sda1, `sdb` one that is a device.
fn lies_within(journal: &str, device: &str) -> bool {
    journal
        .strip_prefix(device)
        .and_then(|j| j.strip_prefix('-'))
        .is_some_and(|inode| inode.parse::<u64>().is_ok())
}

fn xfs_log_device(mount: &Mount) -> Option<String> {
    mount.option("logdev")
}

/// `dir` is /sys/fs/btrfs/UUID.
fn btrfs(dir: &Path, mounts: &Mounts, devices: &mut DeviceNames) -> Option<Mounted> {
    let all = names(&dir.join("devices"))?;
    // Its own device number is none's: the mount table names the device.
    let volume = mounts
        .iter()
        .filter(|m| m.fs == "btrfs")
        .filter_map(|m| devices.of_file(&m.source))
        .find(|n| all.contains(n));
    let only = all.first().filter(|_| all.len() == 1).cloned();
    Some(Mounted {
        volume: volume.or(only),
        devices: all,
        separate: Some(false),
    })
}

/// By the pool's own tools; the kernel tells nobody else.
fn pool(name: &str) -> Place {
    match zfs::ask("zpool", &["list", "-H", "-v", "-P", name]) {
        Some(list) => match log_devices(&list) {
            none if none.is_empty() => Place::Shared,
            devices => Place::Separate(devices),
        },
        None => Place::Unknown(format!("`zpool list -v {name}` does not answer")),
    }
}

/// Below the heading `logs` of `zpool list -H -v -P`, until the next heading; a mirror is not a device.
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

/// Of a directory's entries.
fn names(dir: &Path) -> Option<BTreeSet<String>> {
    let entries = fs::read_dir(dir).ok()?.flatten();
    let names = entries.map(|e| e.file_name().to_string_lossy().into_owned());
    Some(names.collect())
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
            let mounts = Mounts::parse(&line);
            of(
                mounts.on("/srv").unwrap(),
                "dm-0",
                &mut DeviceNames::default(),
            )
        };
        let gone = Place::Separate(vec!["/nowhere/log".into()]);
        assert_eq!(place("rw,attr2,logdev=/nowhere/log,noquota"), gone);
        assert_eq!(place("rw,attr2,logbufs=8"), Place::Shared);
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
