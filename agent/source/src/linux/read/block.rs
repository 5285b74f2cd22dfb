//! Block devices: requests, their time in the queue and in the device.

use super::decode::{fill, lost, monotonic_ns, time};
use crate::linux::host::device_names::DeviceNames;
use crate::linux::load::maps::Map;
use crate::linux::load::object::Loaded;
use nfscope_model::family as f;
use nfscope_model::{Histogram, Snapshot};
use nfscope_probes::types as t;
use std::collections::HashMap;

/// `enum block_op`.
const OPS: [&str; 5] = ["read", "write", "flush", "discard", "other"];

/// Counters of the probe for one operation of a device number.
#[derive(Debug, Clone)]
struct Row {
    queue: Histogram,
    device: Histogram,
    bytes: u64,
    fua: u64,
}

impl Row {
    fn since(&self, earlier: &Row) -> Row {
        Row {
            queue: self.queue.since(&earlier.queue),
            device: self.device.since(&earlier.device),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            fua: self.fua.saturating_sub(earlier.fua),
        }
    }
}

/// Counters of earlier devices with the number of a present device. The probe counts by number, and the kernel gives the number of a device
/// that is gone to another.
#[derive(Debug, Default)]
pub struct Predecessors(HashMap<u32, Predecessor>);

#[derive(Debug)]
struct Predecessor {
    /// Counters with which the next device of the number started, by operation.
    rows: Vec<Row>,
    /// Time at which the next device started, in nanoseconds (CLOCK_MONOTONIC).
    until: u64,
}

impl Predecessors {
    /// Part of `rows` that belongs to the present device of the number; `None` if it is gone.
    fn without(&mut self, dev: u32, rows: Vec<Row>, devices: &mut DeviceNames) -> Option<Vec<Row>> {
        if devices.is_gone(dev) {
            return None;
        }
        if devices.replaced(dev) {
            let until = monotonic_ns();
            self.0.insert(
                dev,
                Predecessor {
                    rows: rows.clone(),
                    until,
                },
            );
        }
        let Some(before) = self.0.get(&dev) else {
            return Some(rows);
        };
        let pairs = rows.iter().zip(&before.rows);
        Some(pairs.map(|(row, before)| row.since(before)).collect())
    }

    /// True if a request that was issued at this time belongs to the present device of the number.
    fn is_own(&self, dev: u32, issued: u64) -> bool {
        self.0.get(&dev).is_none_or(|before| issued >= before.until)
    }
}

/// Reads the block devices.
pub fn read(
    l: &Loaded,
    s: &mut Snapshot,
    devices: &mut DeviceNames,
    predecessors: &mut Predecessors,
) {
    let maps = ["block_device", "block_row", "block_request"].map(|name| l.map(name));
    let [Some(index), Some(map), Some(requests)] = maps else {
        return;
    };
    let keys = index.keys::<u32>();
    let ops = OPS.len() as u32;
    let mut found = Vec::new();
    for dev in &keys {
        let Some(number) = index.value::<u32>(dev) else {
            continue;
        };
        let row = |op| {
            let row = map.total::<t::block_row>(index.capacity() * ops, number * ops + op);
            Row {
                queue: time(&row.queue),
                device: time(&row.device),
                bytes: row.bytes,
                fua: row.fua,
            }
        };
        let rows = (0..ops).map(row).collect();
        if let Some(rows) = predecessors.without(*dev, rows, devices) {
            found.push((*dev, rows));
        }
    }
    let inflight = inflight(requests, predecessors);
    for (dev, rows) in found {
        let device = devices.name(dev);
        for (name, row) in OPS.iter().zip(&rows) {
            if row.queue.count() == 0 && row.device.count() == 0 {
                continue;
            }
            s.histogram(&f::BLOCK_QUEUE, [&device, name], row.queue.clone());
            s.histogram(&f::BLOCK_DEVICE, [&device, name], row.device.clone());
            if *name != "flush" {
                s.counter(&f::BLOCK_BYTES, [&device, name], row.bytes as f64);
            }
        }
        let now = inflight.get(&dev).copied().unwrap_or_default();
        s.gauge(&f::BLOCK_INFLIGHT, [&device], f64::from(now));
        let fua: u64 = rows.iter().map(|row| row.fua).sum();
        s.counter(&f::BLOCK_FUA, [&device], fua as f64);
    }
    fill(index, keys.len(), "block_device", s);
    use t::block_event as E;
    lost(
        l,
        "block_event",
        "block",
        s,
        &[
            ("map_full", E::EV_BLOCK_FULL.0),
            ("unmatched", E::EV_BLOCK_UNMATCHED.0),
            ("record", E::EV_BLOCK_REQUEST_FULL.0),
        ],
    );
}

/// Number of requests at each device.
fn inflight(requests: &Map, predecessors: &Predecessors) -> HashMap<u32, u32> {
    let mut at = HashMap::new();
    for place in 0..requests.capacity() {
        let Some(times) = requests.at::<t::block_times>(place) else {
            continue;
        };
        if times.t_issue > 0 && predecessors.is_own(times.dev, times.t_issue) {
            *at.entry(times.dev).or_default() += 1;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::host::device_names::fake::Sys;
    use nfscope_model::Scheme;

    const NUMBER: u32 = 259 << 20;

    fn rows(requests: u64) -> Vec<Row> {
        let mut h = Histogram::new(Scheme::TIME);
        (h.counts[40], h.sum) = (requests, requests as f64);
        let row = Row {
            queue: h.clone(),
            device: h,
            bytes: requests * 4096,
            fua: requests,
        };
        vec![row; OPS.len()]
    }

    #[test]
    fn a_device_that_takes_a_number_over_has_not_done_the_requests_of_the_one_before() {
        let sys = Sys::new("block");
        let mut devices = DeviceNames::below(&sys.0);
        let mut predecessors = Predecessors::default();
        let mut done = |counted: u64| {
            devices.begin();
            let own = predecessors.without(NUMBER, rows(counted), &mut devices)?;
            assert_eq!(own[1].bytes, own[1].fua * 4096);
            assert_eq!(own[1].queue.count(), own[1].fua);
            Some((devices.name(NUMBER), own[1].device.count()))
        };
        let is = |name: &str, n| Some((name.to_owned(), n));
        assert_eq!(done(3), is("259:0", 3), "/sys does not show it");
        sys.add(NUMBER, "nvme0n1");
        assert_eq!(done(10), is("nvme0n1", 10));
        sys.remove(NUMBER, "nvme0n1");
        assert_eq!(done(12), None, "no series of a device that is gone");
        sys.add(NUMBER, "nvme1n1");
        assert_eq!(done(12), is("nvme1n1", 0));
        assert_eq!(done(15), is("nvme1n1", 3));
        sys.remove(NUMBER, "nvme1n1");
        sys.add(NUMBER, "nvme1n1");
        assert_eq!(done(20), is("nvme1n1", 0));
        assert_eq!(done(21), is("nvme1n1", 1));
        assert!(!predecessors.is_own(NUMBER, 1));
        assert!(predecessors.is_own(NUMBER, u64::MAX));
        assert!(predecessors.is_own(NUMBER + 1, 1));
    }
}
