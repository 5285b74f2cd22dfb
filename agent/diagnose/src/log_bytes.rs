//! Devices that the bytes of logs went to, and the commits that no client asked for: neither is told by how a pool is configured.
//!
//! A log device that is offline, or full, takes none or a part of the log: OpenZFS then writes log blocks to the pool's main disks
//! (module/zfs/zio.c, `zio_alloc_zil`). A dataset with `sync=always` makes WRITEs wait for the log whose clients did not ask for that.

use crate::ratio::part;
use nfscope_model::window_parts::numbers;
use nfscope_model::{Window, family as f};
use std::collections::BTreeMap;

/// Bytes and commits of the log of one file system or pool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LogBytes {
    /// Bytes of the log that were written to the devices of the file system itself.
    pub to_main: f64,
    /// Bytes of the log that were written to a separate log device.
    pub to_log_device: f64,
    /// Commits for datasets of a ZFS pool with `sync=always`.
    pub always: f64,
    /// All commits of a ZFS pool that wait for its log.
    pub commits: f64,
    /// Datasets of a ZFS pool with `sync=always`.
    pub always_datasets: Vec<String>,
}

/// Bytes and commits by file system and volume.
pub type ByLog = BTreeMap<[String; 2], LogBytes>;

/// Bytes and commits of all logs of a window.
pub fn by_log(w: &Window) -> ByLog {
    let mut all = ByLog::new();
    let key = |fs: &str, volume: &str| [fs, volume].map(str::to_owned);
    for ([fs, volume, target], n) in numbers(w, &f::LOG_BYTES) {
        let of = all.entry(key(fs, volume)).or_default();
        match target {
            "separate" => of.to_log_device += n,
            _ => of.to_main += n,
        }
    }
    for ([pool, sync], n) in numbers(w, &f::ZFS_COMMITS) {
        let of = all.entry(key("zfs", pool)).or_default();
        of.always += if sync == "always" { n } else { 0.0 };
        of.commits += if sync == "disabled" { 0.0 } else { n };
    }
    for ([pool, dataset, sync, _], _) in numbers(w, &f::ZFS_DATASET) {
        if sync == "always" {
            let of = all.entry(key("zfs", pool)).or_default();
            of.always_datasets.push(dataset.to_owned());
        }
    }
    all
}

impl LogBytes {
    /// The part of the log's bytes that went past its log device, 0 to 1.
    pub fn part_on_main(&self) -> f64 {
        part(self.to_main, self.to_main + self.to_log_device)
    }

    /// The part of the commits that `sync=always` asked for, 0 to 1.
    pub fn of_always(&self) -> f64 {
        part(self.always, self.commits)
    }
}
