//! Names of block devices by their kernel `dev_t`.
//!
//! The kernel gives the number of a device that is gone to another one: an NVMe namespace, a partition or a mapped device. A
//! device is therefore known by its number and by the number of its directory in /sys, which no two have (fs/kernfs/dir.c,
//! `__kernfs_new_node()` counts up, on every kernel since 4.14).

use crate::{bounded, lossless};
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Devices by number, each looked up once in a reading.
#[derive(Debug)]
pub struct DeviceNames {
    /// /sys/dev/block
    directory: PathBuf,
    known: HashMap<u32, Known>,
    reading: u64,
}

#[derive(Debug, Clone)]
struct Known {
    /// Name and number in /sys of the last device, also after its removal.
    last: Option<(String, u64)>,
    /// True if that device is gone, and no other has the number.
    gone: bool,
    /// True if another device had the number until this reading.
    replaced: bool,
    /// Reading in which the device was looked up.
    reading: u64,
}

impl Default for DeviceNames {
    fn default() -> Self {
        Self::below(Path::new("/sys"))
    }
}

impl DeviceNames {
    /// Makes names below `sys`: /sys, or the directory of a test.
    pub fn below(sys: &Path) -> Self {
        DeviceNames {
            directory: sys.join("dev/block"),
            known: HashMap::new(),
            reading: 0,
        }
    }

    /// Begins a reading: names are looked up again.
    pub fn begin(&mut self) {
        self.reading += 1;
    }

    /// Name of a device: `sda`, `dm-0`. After its removal the device keeps its name until another has its number. `major:minor` if there
    /// was no device.
    pub fn name(&mut self, dev: u32) -> String {
        let known = self.look(dev);
        let last = known.last.as_ref().map(|(name, _)| name.clone());
        last.unwrap_or_else(|| id(dev))
    }

    /// True if the device that had the number is gone, and no other has it.
    pub fn is_gone(&mut self, dev: u32) -> bool {
        self.look(dev).gone
    }

    /// True in the reading that finds another device at this number than an earlier one did.
    pub fn replaced(&mut self, dev: u32) -> bool {
        self.look(dev).replaced
    }

    /// Name of the block device to which this file belongs. `path`: [`lossless`] text.
    pub fn of_file(&mut self, path: &str) -> Option<String> {
        let path = lossless::path(path);
        let asked = path.clone();
        let ask = move || fs::metadata(asked);
        let file = bounded::within(&path, bounded::PATIENCE, ask).ok()?;
        let device = file.file_type().is_block_device().then(|| file.rdev())?;
        Some(self.name(rustix::fs::major(device) << 20 | rustix::fs::minor(device)))
    }

    fn look(&mut self, dev: u32) -> &Known {
        let (directory, reading) = (&self.directory, self.reading);
        let find = |last: Option<(String, u64)>| {
            let place = directory.join(id(dev));
            let name = fs::read_link(&place)
                .ok()
                .and_then(|to| Some(lossless::of_path(Path::new(to.file_name()?))));
            let now = name.and_then(|name| Some((name, fs::metadata(&place).ok()?.ino())));
            let replaced = matches!((&last, &now), (Some(last), Some(now)) if last != now);
            Known {
                gone: now.is_none() && last.is_some(),
                last: now.or(last),
                replaced,
                reading,
            }
        };
        let known = self.known.entry(dev).or_insert_with(|| find(None));
        if known.reading != reading {
            *known = find(known.last.take());
        }
        known
    }
}

fn id(dev: u32) -> String {
    format!("{}:{}", dev >> 20, dev & 0xf_ffff)
}

/// Directories like those of /sys, in which devices come and go.
#[cfg(test)]
pub mod fake {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Directory that is removed when this value is dropped.
    pub struct Sys(pub PathBuf);

    impl Sys {
        /// Makes an empty directory.
        pub fn new(name: &str) -> Sys {
            let path = std::env::temp_dir().join(format!("nfscope-{name}-{}", std::process::id()));
            fs::create_dir_all(path.join("dev/block")).unwrap();
            Sys(path)
        }

        /// Adds a device, with a directory of its own.
        pub fn add(&self, dev: u32, name: &str) {
            fs::create_dir_all(self.0.join("devices").join(name)).unwrap();
            let link = self.0.join("dev/block").join(id(dev));
            symlink(Path::new("../../devices").join(name), link).unwrap();
        }

        /// Removes a device.
        pub fn remove(&self, dev: u32, name: &str) {
            let gone = self.0.join("devices").join(name);
            // The directory is kept: other file systems give the inode number of a removed directory to the next one, unlike /sys.
            let kept = fs::read_dir(&self.0).unwrap().count();
            fs::rename(gone, self.0.join(format!("gone-{kept}"))).unwrap();
            fs::remove_file(self.0.join("dev/block").join(id(dev))).unwrap();
        }
    }

    impl Drop for Sys {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fake::Sys;
    use super::*;

    const NUMBER: u32 = 259 << 20;

    #[test]
    fn a_number_that_another_device_takes_has_the_name_of_the_other() {
        let sys = Sys::new("names");
        let mut devices = DeviceNames::below(&sys.0);
        assert_eq!(devices.name(NUMBER), "259:0");
        assert!(!devices.is_gone(NUMBER));
        sys.add(NUMBER, "nvme0n1");
        assert_eq!(devices.name(NUMBER), "259:0", "the same reading");
        let at = |devices: &mut DeviceNames| {
            devices.begin();
            (devices.name(NUMBER), devices.replaced(NUMBER))
        };
        let is = |name: &str, replaced| (name.to_owned(), replaced);
        assert_eq!(at(&mut devices), is("nvme0n1", false));
        assert_eq!(at(&mut devices), is("nvme0n1", false));
        sys.remove(NUMBER, "nvme0n1");
        assert_eq!(at(&mut devices), is("nvme0n1", false));
        assert!(devices.is_gone(NUMBER));
        sys.add(NUMBER, "nvme1n1");
        assert_eq!(at(&mut devices), is("nvme1n1", true));
        assert_eq!(at(&mut devices), is("nvme1n1", false));
        // The device changes between two readings, under the same name.
        sys.remove(NUMBER, "nvme1n1");
        sys.add(NUMBER, "nvme1n1");
        assert_eq!(at(&mut devices), is("nvme1n1", true));
    }
}
