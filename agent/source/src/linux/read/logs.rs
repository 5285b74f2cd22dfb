//! The logs of filesystems: rows of the probes, put together with what is mounted.
//!
//! A volume has series from the first reading that finds it mounted, waited for or not. Mounted is what the filesystem's
//! own directory under /sys/fs says, which has every mount of the host, whatever the agent's mount namespace. A row of
//! a filesystem that is gone goes too, so that its device can start anew.

use crate::linux::host::log_device::mounted;
use crate::linux::host::log_types::{KINDS, Kind};
use crate::linux::host::mounts::Mounts;
use crate::linux::host::procfs::DeviceNames;
use crate::linux::load::loader::Loaded;
use crate::linux::load::maps;
use crate::linux::read::nfsd::{fill, lost, time};
use nfscope_model::family as f;
use nfscope_model::{Histogram, ProbeStatus, Scheme, Snapshot};
use nfscope_probes::types as t;
use std::collections::BTreeMap;

/// `enum log_target`.
const TARGETS: [&str; 2] = ["main", "separate"];

/// What the probes counted for one device.
#[derive(Default)]
struct Row {
    fs: String,
    wait: Option<Histogram>,
    commit: Option<Histogram>,
    bytes: [u64; TARGETS.len()],
    separate: Option<bool>,
}

/// Reads every log that a probe looks at.
pub fn read(
    loaded: &BTreeMap<&'static str, Loaded>,
    states: &[ProbeStatus],
    devices: &mut DeviceNames,
    s: &mut Snapshot,
) {
    let runs = |probe: &str, program: &&str| {
        states
            .iter()
            .any(|p| p.probe == probe && p.program == *program && p.state.measures())
    };
    let mut mounts = None;
    for log in &KINDS {
        let Some(l) = loaded.get(log.probe) else {
            continue;
        };
        let told = |programs: &[&str]| programs.iter().all(|p| runs(log.probe, p));
        let mounts = mounts.get_or_insert_with(Mounts::read);
        let rows = rows(log, l, mounts, devices, s);
        for (volume, row) in &rows {
            let labels = [row.fs.as_str(), volume.as_str()];
            let none = || Histogram::new(Scheme::TIME);
            if told(log.wait) {
                let h = row.wait.clone().unwrap_or_else(none);
                s.histogram(&f::LOG_WAIT, labels, h);
            }
            if told(log.commit) {
                let h = row.commit.clone().unwrap_or_else(none);
                s.histogram(&f::LOG_COMMIT, labels, h);
            }
            if let Some(separate) = row.separate {
                s.gauge(&f::LOG_SEPARATE, labels, f64::from(u8::from(separate)));
            }
            if log.bytes.is_some_and(told) {
                // A log does not move while its filesystem is mounted: what the other place has is of an earlier one.
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
    }
}

/// By volume. Rows of what is no longer mounted are deleted.
fn rows(
    log: &Kind,
    l: &Loaded,
    mounts: &Mounts,
    devices: &mut DeviceNames,
    s: &mut Snapshot,
) -> BTreeMap<String, Row> {
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    let Some(map) = l.map(log.map) else {
        return rows;
    };
    // First the rows, then what is mounted: a filesystem that was mounted in between is not taken for gone.
    let keys = maps::keys::<u32>(map);
    let mounted = mounted(log, mounts, devices);
    let mut kept = 0;
    for dev in keys {
        let name = devices.name(dev);
        let of = mounted.iter().flatten();
        let of = of.into_iter().find(|m| m.devices.contains(&name));
        let mount = log.at(dev, mounts);
        // ocfs2 has journals of jbd2 as well, and /sys may not be there.
        if of.is_none() && mount.is_none() && mounted.is_some() {
            maps::forget(map, &dev.to_ne_bytes());
            continue;
        }
        kept += 1;
        let per_cpu = maps::per_cpu::<t::log_row>(map, &dev.to_ne_bytes());
        let bytes = [0, 1].map(|i| per_cpu.iter().map(|r| r.bytes[i]).sum::<u64>());
        let row = Row {
            fs: mount.map_or(log.fs, |m| &m.fs).to_owned(),
            wait: Some(time(per_cpu.iter().map(|r| &r.wait))),
            commit: Some(time(per_cpu.iter().map(|r| &r.commit))),
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
            let mount = log.named(&volume, mounts, devices);
            let row = Row {
                fs: mount.map_or(log.fs, |m| &m.fs).to_owned(),
                separate: m.separate,
                ..Row::default()
            };
            rows.insert(volume, row);
        }
    }
    rows
}
