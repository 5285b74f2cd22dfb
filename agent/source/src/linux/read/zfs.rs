//! OpenZFS: series from the probe's tables and from kstats.

use super::decode::{fill, lost, text, time};
use crate::bounded;
use crate::linux::host::kstat::{Kstats, Totals, ZIL, Zil};
use crate::linux::load::object::Loaded;
use crate::lossless;
use nfscope_model::Snapshot;
use nfscope_model::family as f;
use nfscope_probes::types as t;
use std::collections::BTreeMap;
use std::fs;
use std::os::linux::fs::MetadataExt;
use std::path::Path;

/// Directory of OpenZFS's kstats: it has a directory for each pool.
const KSTATS: &str = "/proc/spl/kstat/zfs";

const SYNCS: [&str; 3] = ["standard", "always", "disabled"];
const LOGBIASES: [&str; 2] = ["latency", "throughput"];
const TARGETS: [&str; 2] = ["main", "separate"];

/// Values from one reading to the next.
#[derive(Debug, Default)]
pub struct Zfs {
    totals: Totals,
}

/// Pool that a key names, if it is imported; keys have the first bytes of long names.
fn pool_of<'a>(key: &t::zfs_pool_key, k: &'a Kstats) -> Option<&'a str> {
    let name = text(&key.name);
    let cut = name.len() + 1 == key.name.len();
    k.pools
        .keys()
        .find(|p| **p == name || (cut && p.starts_with(&name)))
        .map(String::as_str)
}

/// Disk of a vdev's path, by the name that block devices have elsewhere; the path if it has no device.
fn device_name(path: &str) -> String {
    let name = || {
        // A pool of files can lie in any file system, also in one that does not answer.
        let place = lossless::path(path);
        let asked = place.clone();
        let file = bounded::within(&place, bounded::PATIENCE, move || fs::metadata(asked));
        let dev = file.ok()?.st_rdev();
        let id = format!("{}:{}", rustix::fs::major(dev), rustix::fs::minor(dev));
        let mut of = fs::canonicalize(Path::new("/sys/dev/block").join(id)).ok()?;
        if of.join("partition").exists() {
            of.pop();
        }
        Some(lossless::of_path(Path::new(of.file_name()?)))
    };
    name().unwrap_or_else(|| path.to_owned())
}

impl Zfs {
    /// Reads the maps of the probe, where it is loaded, and the kstats. Pools that are no longer imported have no
    /// series, and their entries are removed.
    pub fn read(&mut self, probe: Option<&Loaded>, s: &mut Snapshot) {
        let k = Kstats::read(Path::new(KSTATS));
        for (volume, zil) in self.totals.add(&k) {
            counted(volume, zil, s);
        }
        let Some(l) = probe else { return };
        pools(l, &k, s);
        datasets(l, &k, s);
        devices(l, &k, s);
        use t::zfs_event as E;
        lost(
            l,
            "zfs_event",
            "zfs",
            s,
            &[
                ("map_full", E::EV_ZFS_FULL.0),
                ("unmatched", E::EV_ZFS_UNMATCHED.0),
            ],
        );
    }
}

/// Adds the kstats of a pool, or of all pools.
fn counted(volume: &str, zil: &Zil, s: &mut Snapshot) {
    let [
        calls,
        writers,
        indirect,
        copied,
        needcopy,
        error,
        stall,
        suspend,
        crash,
    ] = zil.map(|v| v.map(|v| v as f64));
    for (family, v) in [(&f::ZFS_ZIL_COMMITS, calls), (&f::ZFS_ZIL_WRITERS, writers)] {
        if let Some(v) = v {
            s.counter(family, [volume], v);
        }
    }
    for (family, kind, v) in [
        (&f::ZFS_ITX_BYTES, "indirect", indirect),
        (&f::ZFS_ITX_BYTES, "copied", copied),
        (&f::ZFS_ITX_BYTES, "needcopy", needcopy),
        (&f::ZFS_TXG_WAITS, "error", error),
        (&f::ZFS_TXG_WAITS, "stall", stall),
        (&f::ZFS_TXG_WAITS, "suspend", suspend),
        (&f::ZFS_TXG_WAITS, "crash", crash),
    ] {
        if let Some(v) = v {
            s.counter(family, [volume, kind], v);
        }
    }
}

fn pools(l: &Loaded, k: &Kstats, s: &mut Snapshot) {
    let (Some(map), Some(now)) = (l.map("zfs_pool"), l.map("zfs_pool_now")) else {
        return;
    };
    // From 2.4 on commits wait in another function, and kstats count each reason.
    let txg_waits_seen = k.all.is_none_or(|all| all[ZIL.len() - 1].is_none());
    let keys = map.keys::<t::zfs_pool_key>();
    for key in &keys {
        let Some(pool) = pool_of(key, k) else {
            map.remove(key);
            now.remove(key);
            continue;
        };
        let Some(row) = map.value::<t::zfs_pool_row>(key) else {
            continue;
        };
        let separate = now.value::<t::zfs_pool_now>(key).map(|n| n.separate != 0);
        s.histogram(&f::LOG_WAIT, ["zfs", pool], time(&row.wait));
        let commit = time(&row.commit);
        s.histogram(&f::LOG_COMMIT, ["zfs", pool], commit);
        if let Some(separate) = separate {
            s.gauge(
                &f::LOG_SEPARATE,
                ["zfs", pool],
                f64::from(u8::from(separate)),
            );
        }
        for (i, target) in TARGETS.iter().enumerate() {
            let written = time(&row.write[i]);
            // A pool that never had a log device gets no series of one.
            if i == 1 && separate != Some(true) && written.count() == 0 {
                continue;
            }
            s.counter(&f::LOG_BYTES, ["zfs", pool, target], row.bytes[i] as f64);
            s.histogram(&f::ZFS_LWB_WRITE, [pool, target], written);
            let flushed = time(&row.flush[i]);
            s.histogram(&f::ZFS_LWB_FLUSH, [pool, target], flushed);
        }
        for (i, sync) in SYNCS.iter().enumerate() {
            s.counter(&f::ZFS_COMMITS, [pool, sync], row.commits[i] as f64);
        }
        if txg_waits_seen {
            s.counter(&f::ZFS_TXG_WAITS, [pool, "any"], row.txg_waits as f64);
        }
        let txg = time(&row.txg_sync);
        s.histogram(&f::ZFS_TXG_SYNC, [pool], txg);
        let throttle = time(&row.throttle);
        s.histogram(&f::ZFS_THROTTLE, [pool], throttle);
    }
    fill(map, keys.len(), "zfs_pool", s);
}

fn datasets(l: &Loaded, k: &Kstats, s: &mut Snapshot) {
    let Some(map) = l.map("zfs_dataset") else {
        return;
    };
    let keys = map.keys::<t::zfs_dataset_key>();
    for key in &keys {
        let pool = pool_of(&key.pool, k);
        let dataset = pool.and_then(|p| Some((p, k.pools.get(p)?.get(&key.objset)?)));
        let Some((pool, dataset)) = dataset else {
            map.remove(key);
            continue;
        };
        let Some(now) = map.value::<t::zfs_dataset_now>(key) else {
            continue;
        };
        let (sync, logbias) = (
            SYNCS.get(now.sync as usize).unwrap_or(&"unknown"),
            LOGBIASES.get(now.logbias as usize).unwrap_or(&"unknown"),
        );
        let labels = [pool, &dataset.name, sync, logbias];
        s.gauge(&f::ZFS_DATASET, labels, 1.0);
    }
    fill(map, keys.len(), "zfs_dataset", s);
}

fn devices(l: &Loaded, k: &Kstats, s: &mut Snapshot) {
    let Some(map) = l.map("zfs_device") else {
        return;
    };
    let keys = map.keys::<t::zfs_device_key>();
    // Two partitions of a disk may serve one pool.
    let mut disks: BTreeMap<(&str, String, &str), u64> = BTreeMap::new();
    for key in &keys {
        let Some(pool) = pool_of(&key.pool, k) else {
            map.remove(key);
            continue;
        };
        let target = TARGETS[usize::from(key.separate != 0)];
        let disk = (pool, device_name(&text(&key.path)), target);
        *disks.entry(disk).or_default() += map.value::<u64>(key).unwrap_or(0);
    }
    for ((pool, device, target), n) in disks {
        s.counter(&f::ZFS_LOG_DEVICE, [pool, &device, target], n as f64);
    }
    fill(map, keys.len(), "zfs_device", s);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_are_known_by_their_names_long_ones_by_their_beginning() {
        let long = "p".repeat(80);
        let mut k = Kstats::default();
        k.pools.insert("tank".into(), BTreeMap::new());
        k.pools.insert(long.clone(), BTreeMap::new());
        let key = |name: &str| {
            let mut key = t::zfs_pool_key::default();
            let n = name.len().min(key.name.len() - 1);
            key.name[..n].copy_from_slice(&name.as_bytes()[..n]);
            key
        };
        assert_eq!(pool_of(&key("tank"), &k), Some("tank"));
        assert_eq!(pool_of(&key("tan"), &k), None);
        assert_eq!(pool_of(&key(&long), &k), Some(long.as_str()));
    }
}
