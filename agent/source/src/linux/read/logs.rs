//! Logs of file systems: rows of the probes jbd2, xfs and btrfs, combined with the mounts.
//!
//! A volume has series from the first reading that finds it mounted, even without any wait. Mounts come from the file system's own
//! directory under /sys/fs, which has every mount of the host, in any mount namespace. The row of a file system that is gone is removed, so
//! that its device can start again.

use super::decode::{fill, lost, time};
use crate::linux::host::device_names::DeviceNames;
use crate::linux::host::log_device::{Location, mounted_logs};
use crate::linux::host::log_types::LogType;
use crate::linux::load::object::Loaded;
use crate::mounts::Mounts;
use nfscope_model::family as f;
use nfscope_model::{Histogram, ProbeStatus, Scheme, Snapshot};
use nfscope_probes::types as t;
use std::collections::BTreeMap;
use std::time::Instant;

/// A log with a probe of its own, and the programs without which a figure would be incomplete.
#[derive(Debug)]
pub struct Log {
    /// Name of the probe.
    pub probe: &'static str,
    /// Name of its map of rows.
    pub map: &'static str,
    /// Name of its map of rare events.
    pub events: &'static str,
    /// File systems that have the log.
    pub log_type: &'static LogType,
    /// Programs that measure how long threads wait for it.
    pub wait: &'static [&'static str],
    /// Programs that measure how long its own writes take.
    pub commit: &'static [&'static str],
    /// Programs that measure its bytes; `None` if there are none.
    pub bytes: Option<&'static [&'static str]>,
}

/// `enum log_target`.
const TARGETS: [&str; 2] = ["main", "separate"];

/// Counts of the probes for one device.
#[derive(Default)]
struct Row {
    fs: String,
    wait: Option<Histogram>,
    commit: Option<Histogram>,
    bytes: [u64; TARGETS.len()],
    separate: Option<bool>,
}

/// Reads the logs whose probe is loaded.
pub fn read(
    logs: &[&Log],
    loaded: &BTreeMap<&'static str, Loaded>,
    states: &[ProbeStatus],
    mounts: &Mounts,
    devices: &mut DeviceNames,
    s: &mut Snapshot,
) {
    let runs = |probe: &str, program: &&str| {
        states
            .iter()
            .any(|p| p.probe == probe && p.program == *program && p.state.measures())
    };
    for log in logs {
        let Some(l) = loaded.get(log.probe) else {
            continue;
        };
        let start = Instant::now();
        let runs_all = |programs: &[&str]| programs.iter().all(|p| runs(log.probe, p));
        let rows = rows(log, l, mounts, devices, s);
        for (volume, row) in &rows {
            let labels = [row.fs.as_str(), volume.as_str()];
            let none = || Histogram::new(Scheme::TIME);
            if runs_all(log.wait) {
                let h = row.wait.clone().unwrap_or_else(none);
                s.histogram(&f::LOG_WAIT, labels, h);
            }
            if runs_all(log.commit) {
                let h = row.commit.clone().unwrap_or_else(none);
                s.histogram(&f::LOG_COMMIT, labels, h);
            }
            if let Some(separate) = row.separate {
                s.gauge(&f::LOG_SEPARATE, labels, f64::from(u8::from(separate)));
            }
            if log.bytes.is_some_and(runs_all) {
                // A log does not move while its file system is mounted: the bytes of the other place belong to an earlier one.
                for (i, target) in TARGETS.iter().enumerate() {
                    if row.separate == Some(i == 1) {
                        let labels = [labels[0], labels[1], target];
                        s.counter(&f::LOG_BYTES, labels, row.bytes[i] as f64);
                    }
                }
            }
        }
        use t::log_event as E;
        let events = [
            ("map_full", E::EV_LOG_FULL.0),
            ("unmatched", E::EV_LOG_UNMATCHED.0),
        ];
        lost(l, log.events, log.probe, s, &events);
        // The first log also reads the mounts.
        let seconds = start.elapsed().as_secs_f64();
        s.gauge(&f::PROBE_READ_SECONDS, [log.probe], seconds);
    }
}

/// Rows by volume. Rows of file systems that are no longer mounted are removed.
fn rows(
    log: &Log,
    l: &Loaded,
    mounts: &Mounts,
    devices: &mut DeviceNames,
    s: &mut Snapshot,
) -> BTreeMap<String, Row> {
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    let Some(map) = l.map(log.map) else {
        return rows;
    };
    // Rows are read before the mounts, so that a file system that was mounted in between does not count as gone.
    let keys = map.keys::<u32>();
    let mounted = mounted_logs(log.log_type, mounts, devices);
    let mut kept = 0;
    for dev in keys {
        let name = devices.name(dev);
        // The counters belong to a file system on the earlier device of this number.
        if devices.replaced(dev) {
            map.remove(&dev);
            continue;
        }
        let of = mounted.iter().flatten();
        let of = of.into_iter().find(|m| m.devices.contains(&name));
        let mount = log.log_type.at(dev, mounts);
        // The row stays without a mount if /sys is not there. ocfs2 is looked up in the mount table: it has journals of jbd2 as well.
        if of.is_none() && mount.is_none() && mounted.is_some() {
            map.remove(&dev);
            continue;
        }
        kept += 1;
        let counted = map.value::<t::log_row>(&dev).unwrap_or_default();
        let bytes = counted.bytes;
        let row = Row {
            fs: mount.map_or(log.log_type.fs, |m| &m.fs).to_owned(),
            wait: Some(time(&counted.wait)),
            commit: Some(time(&counted.commit)),
            bytes,
            separate: of
                .and_then(|m| m.separate)
                .or((bytes != [0, 0]).then_some(bytes[1] > 0)),
        };
        rows.insert(name, row);
    }
    fill(map, kept, log.map, s);
    for m in mounted.into_iter().flatten() {
        let Some(volume) = m.volume else { continue };
        if !m.devices.iter().any(|d| rows.contains_key(d)) {
            let mount = log.log_type.named(&volume, mounts, devices);
            let row = Row {
                fs: mount.map_or(log.log_type.fs, |m| &m.fs).to_owned(),
                separate: m.separate,
                ..Row::default()
            };
            rows.insert(volume, row);
        }
    }
    rows
}

/// The figures of a log of which nothing is missing.
const ALL_FIGURES: &str = "log waits, commits and bytes";

/// Figures of the log of a file system of this type that are measured: true if all are, and a text.
pub fn measured(
    logs: &[&Log],
    fs: &str,
    location: &Location,
    probes: &[ProbeStatus],
) -> (bool, String) {
    let log = logs.iter().find(|l| l.log_type.mounted_as.contains(&fs));
    let (word, figures) = match (log, fs) {
        (Some(log), _) if log.bytes.is_none() => (log.probe, "log waits and commits"),
        (Some(log), _) => (log.probe, ALL_FIGURES),
        (None, "zfs") => ("zfs", ALL_FIGURES),
        (None, "tmpfs" | "ramfs") => {
            return (true, "nothing to wait for: it lives in memory".into());
        }
        _ => {
            let why = "no log waits: they count as disk or lock";
            return (false, why.into());
        }
    };
    if *location == Location::None {
        return (true, "no log waits: a sync write waits for its disk".into());
    }
    let of_it: Vec<_> = probes.iter().filter(|p| p.probe == word).collect();
    match (
        of_it.iter().filter(|p| p.state.measures()).count(),
        of_it.len(),
    ) {
        (0, _) => (
            false,
            format!("its log is not measured: see probe {word} below"),
        ),
        (n, all) if n < all => (false, format!("a part: see probe {word} below")),
        _ => (true, format!("{figures}; the log's part of each operation")),
    }
}
