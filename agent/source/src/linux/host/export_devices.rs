//! Block devices of exported file systems, through device mapper, RAID and partitions. Requests are timed where they reach a device, and a
//! slow device without an export keeps no client waiting. Also finds exports that lose acknowledged writes.

use crate::etab::ETAB;
use crate::linux::host::device_names::DeviceNames;
use crate::linux::host::exports::{EtabPath, etab_paths};
use crate::linux::host::procfs::entry_names;
use crate::mounts::{MOUNTINFO, Mount, Mounts};
use crate::{host_table, lossless};
use nfscope_model::Snapshot;
use nfscope_model::family::{self as f, UNKNOWN_DEVICE};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Interval at which devices are looked up if exports and mounts have not changed.
const READ_AGAIN: Duration = Duration::from_secs(10);
/// Limit of pairs: a hundred exports on twenty disks would be two thousand series, as many as all others together.
const MOST_PAIRS: usize = 64;
/// Limit of exports that lose acknowledged writes, for each reason.
const MOST_NOT_DURABLE: usize = 512;
/// Limit of layers of devices. More of them are a circle.
const MOST_LAYERS: usize = 16;

/// Exports and their devices, kept between readings.
#[derive(Debug, Default)]
pub struct ExportDevices {
    read: Option<Instant>,
    /// Tables of exports and of mounts at that time.
    tables: [String; 2],
    found: Found,
}

#[derive(Debug, Default, PartialEq)]
struct Found {
    /// Exports and their devices.
    devices: Vec<(String, String)>,
    /// Exports whose option acknowledges writes before they are durable.
    asynchronous: Vec<String>,
    /// Exports on ZFS that clients may write to, and their datasets.
    datasets: Vec<(String, String)>,
    /// Every export, and true if it acknowledges writes before they are durable.
    exports: BTreeMap<String, bool>,
    mounts: Mounts,
}

/// Properties that decide if an export's writes are durable when they are acknowledged.
#[derive(Debug)]
pub struct Durability {
    /// Option `async` of the export.
    pub asynchronous: bool,
    /// Property `sync=disabled` of its ZFS dataset.
    pub sync_disabled: bool,
    /// Type of its file system.
    pub fs: String,
}

impl ExportDevices {
    /// Adds a series for each device of each export.
    pub fn read(&mut self, devices: &mut DeviceNames, s: &mut Snapshot) {
        let tables = [ETAB, MOUNTINFO].map(|path| host_table::read(path).unwrap_or_default());
        if tables != self.tables || self.read.is_none_or(|at| at.elapsed() >= READ_AGAIN) {
            self.found = find(&tables, devices);
            self.tables = tables;
            self.read = Some(Instant::now());
        }
        for (export, device) in &self.found.devices {
            s.gauge(&f::EXPORT_DEVICE, [export, device], 1.0);
        }
    }

    /// The mounts at the last reading.
    pub fn mounts(&self) -> &Mounts {
        &self.found.mounts
    }

    /// Adds a series for each export that acknowledges writes before they are durable. Must follow the properties of ZFS datasets.
    pub fn not_durable(&self, s: &mut Snapshot) {
        let disabled: BTreeSet<String> = s
            .numbers(&f::ZFS_DATASET)
            .filter(|([_, _, sync, _], _)| *sync == "disabled")
            .map(|([_, dataset, ..], _)| dataset.to_owned())
            .collect();
        for export in self.found.asynchronous.iter().take(MOST_NOT_DURABLE) {
            s.gauge(&f::NOT_DURABLE, [export, "async"], 1.0);
        }
        let lax = self.found.datasets.iter();
        for (export, _) in lax
            .filter(|(_, d)| disabled.contains(d))
            .take(MOST_NOT_DURABLE)
        {
            s.gauge(&f::NOT_DURABLE, [export, "sync_disabled"], 1.0);
        }
    }
}

impl ExportDevices {
    /// Durability of the export at this path, or of the one above it if that lets clients cross mounts (`crossmnt`). `None` for a path that
    /// is not in the table. Must follow the properties of ZFS datasets.
    pub fn durability(&self, path: &str, s: &Snapshot) -> Option<Durability> {
        let above = Path::new(path).ancestors().filter_map(Path::to_str);
        let asynchronous = above.filter_map(|p| self.found.exports.get(p)).next()?;
        let mount = self.found.mounts.on(path)?;
        let disabled = |([_, dataset, sync, _], _): &([&str; 4], f64)| {
            mount.fs == "zfs" && *dataset == mount.source && *sync == "disabled"
        };
        Some(Durability {
            asynchronous: *asynchronous,
            sync_disabled: s.numbers(&f::ZFS_DATASET).any(|series| disabled(&series)),
            fs: mount.fs.clone(),
        })
    }
}

fn find([etab, mountinfo]: &[String; 2], devices: &mut DeviceNames) -> Found {
    let mounts = Mounts::parse_mountinfo(mountinfo);
    let exports = etab_paths(etab);
    let on_zfs = |path: &str| {
        let mount = mounts.on(path).filter(|mount| mount.fs == "zfs")?;
        Some((path.to_owned(), mount.source.clone()))
    };
    Found {
        asynchronous: (exports.iter().filter(|e| e.asynchronous))
            .map(|e| e.path.clone())
            .collect(),
        datasets: (exports.iter().filter(|e| e.writable))
            .filter_map(|e| on_zfs(&e.path))
            .collect(),
        exports: (exports.iter())
            .map(|e| (e.path.clone(), e.asynchronous))
            .collect(),
        devices: pairs(exports, &mounts, devices),
        mounts,
    }
}

fn pairs(
    exports: Vec<EtabPath>,
    mounts: &Mounts,
    devices: &mut DeviceNames,
) -> Vec<(String, String)> {
    let all = exports.into_iter().flat_map(|EtabPath { path, .. }| {
        let mut below = BTreeSet::new();
        match mounts.on(&path).and_then(|mount| tops(mount, devices)) {
            Some(tops) => {
                for top in tops {
                    below_device(Path::new("/sys"), &top, &mut below, MOST_LAYERS);
                }
            }
            None => {
                below.insert(UNKNOWN_DEVICE.to_owned());
            }
        }
        below.into_iter().map(move |device| (path.clone(), device))
    });
    bounded(all.collect())
}

/// All pairs, or one for each device if there are too many.
fn bounded(mut all: Vec<(String, String)>) -> Vec<(String, String)> {
    if all.len() > MOST_PAIRS {
        let mut known = BTreeSet::new();
        all.retain(|(_, device)| known.insert(device.clone()));
    }
    all
}

/// Devices from which a file system is mounted; `None` if they are not known.
fn tops(mount: &Mount, devices: &mut DeviceNames) -> Option<BTreeSet<String>> {
    match mount.fs.as_str() {
        "tmpfs" | "ramfs" => Some(BTreeSet::new()),
        "btrfs" => {
            let one = devices.of_file(&mount.source)?;
            let all = host_table::entries("/sys/fs/btrfs", "/sys/fs/btrfs").ok()?;
            let mut lists = all.filter_map(|entry| entry_names(&entry.path().join("devices")));
            lists.find(|list| list.contains(&one))
        }
        // Only a pool's own tools know its devices.
        _ if mount.dev >> 20 == 0 => None,
        _ => Some(BTreeSet::from([devices.name(mount.dev)])),
    }
}

/// Adds a device and all devices below it.
fn below_device(sys: &Path, name: &str, below: &mut BTreeSet<String>, layers: usize) {
    if layers == 0 || !below.insert(name.to_owned()) {
        return;
    }
    let dir = sys.join("class/block").join(name);
    // Requests to a partition are requests to its disk.
    if dir.join("partition").exists()
        && let Ok(target) = fs::canonicalize(&dir)
        && let Some(disk) = target.parent().and_then(Path::file_name)
    {
        below_device(sys, &lossless::of_path(Path::new(disk)), below, layers - 1);
    }
    for slave in entry_names(&dir.join("slaves")).unwrap_or_default() {
        below_device(sys, &slave, below, layers - 1);
    }
    // The paths of a multipath NVMe namespace are hidden disks: nvme0n1 has nvme0c0n1 and nvme0c1n1.
    if let Some((controller, namespace)) = nvme(name) {
        for path in entry_names(&sys.join("class/block")).unwrap_or_default() {
            if is_path_of(&path, controller, namespace) {
                below.insert(path);
            }
        }
    }
}

/// `nvme0n1`: `nvme0` and `1`.
fn nvme(name: &str) -> Option<(&str, &str)> {
    let number = name.strip_prefix("nvme")?;
    let (subsystem, namespace) = number.split_once('n')?;
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    (digits(subsystem) && digits(namespace))
        .then(|| (&name[..name.len() - namespace.len() - 1], namespace))
}

fn is_path_of(path: &str, controller: &str, namespace: &str) -> bool {
    let rest = path
        .strip_prefix(controller)
        .and_then(|r| r.strip_prefix('c'));
    rest.and_then(|r| r.split_once('n'))
        .is_some_and(|(_, n)| n == namespace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn of_too_many_pairs_each_device_keeps_one() {
        let pairs = |exports: usize| -> Vec<_> {
            let disks = |e| ["sda", "sdb"].map(|d| (format!("/srv/{e}"), d.to_owned()));
            (0..exports).flat_map(disks).collect()
        };
        assert_eq!(bounded(pairs(MOST_PAIRS / 2)).len(), MOST_PAIRS);
        let few = bounded(pairs(MOST_PAIRS / 2 + 1));
        assert_eq!(few, pairs(1));
    }

    #[test]
    fn exports_that_lose_acknowledged_writes_are_told() {
        let etab =
            "/srv\t*(rw,async)\n/tank/a\t*(rw,sync)\n/tank/b\t*(rw,sync)\n/tank/c\t*(ro,sync)\n";
        let mountinfo = "40 22 0:40 / /tank/a rw - zfs tank/a rw\n\
                         41 22 0:41 / /tank/b rw - zfs tank/b rw\n\
                         42 22 0:42 / /tank/c rw - zfs tank/c rw\n";
        let found = find(
            &[etab.to_owned(), mountinfo.to_owned()],
            &mut DeviceNames::default(),
        );
        let exports = ExportDevices {
            found,
            ..ExportDevices::default()
        };
        let mut s = Snapshot::new(Duration::ZERO);
        s.gauge(
            &f::ZFS_DATASET,
            ["tank", "tank/a", "standard", "latency"],
            1.0,
        );
        s.gauge(
            &f::ZFS_DATASET,
            ["tank", "tank/b", "disabled", "latency"],
            1.0,
        );
        s.gauge(
            &f::ZFS_DATASET,
            ["tank", "tank/c", "disabled", "latency"],
            1.0,
        );
        exports.not_durable(&mut s);
        let told: Vec<_> = s
            .numbers(&f::NOT_DURABLE)
            .map(|(labels, _)| labels)
            .collect();
        assert_eq!(told, [["/srv", "async"], ["/tank/b", "sync_disabled"]]);
    }

    /// A mapped device on a RAID of two partitions.
    #[test]
    fn a_device_lies_on_all_below_it() {
        let sys = std::env::temp_dir().join(format!("nfscope-sys-{}", std::process::id()));
        let class = sys.join("class/block");
        fs::create_dir_all(&class).unwrap();
        let device = |path: &str, slaves: &[&str]| {
            let dir = sys.join("devices").join(path);
            fs::create_dir_all(dir.join("slaves")).unwrap();
            for slave in slaves {
                fs::create_dir(dir.join("slaves").join(slave)).unwrap();
            }
            symlink(&dir, class.join(dir.file_name().unwrap())).unwrap();
            dir
        };
        device("dm-0", &["md0"]);
        device("md0", &["sda1", "sdb1"]);
        for disk in ["sda", "sdb", "sdc"] {
            device(disk, &[]);
        }
        for partition in ["sda/sda1", "sdb/sdb1"] {
            fs::write(device(partition, &[]).join("partition"), "1").unwrap();
        }
        device("nvme0n1", &[]);
        device("nvme0c1n1", &[]);
        device("nvme0c1n2", &[]);
        let of = |name: &str| {
            let mut below = BTreeSet::new();
            below_device(&sys, name, &mut below, MOST_LAYERS);
            below.into_iter().collect::<Vec<_>>().join(" ")
        };
        let all = [of("dm-0"), of("sdc"), of("nvme0n1")];
        fs::remove_dir_all(&sys).unwrap();
        assert_eq!(all[0], "dm-0 md0 sda sda1 sdb sdb1");
        assert_eq!(all[1], "sdc");
        assert_eq!(all[2], "nvme0c1n1 nvme0n1");
    }
}
