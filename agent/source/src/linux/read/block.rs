//! Block devices: requests, their time in the queue and in the device.

use super::decode::{fill, lost, time};
use crate::linux::host::procfs::DeviceNames;
use crate::linux::load::maps::Map;
use crate::linux::load::object::Loaded;
use nfscope_model::Snapshot;
use nfscope_model::family as f;
use nfscope_probes::types as t;
use std::collections::BTreeMap;

/// `enum block_op`.
const OPS: [&str; 5] = ["read", "write", "flush", "discard", "other"];

/// Reads the block devices.
pub fn read(l: &Loaded, s: &mut Snapshot, devices: &mut DeviceNames) {
    let maps = ["block_device", "block_row", "block_request"].map(|name| l.map(name));
    let [Some(index), Some(map), Some(requests)] = maps else {
        return;
    };
    let inflight = inflight(requests);
    let keys = index.keys::<u32>();
    let ops = OPS.len() as u32;
    for dev in &keys {
        let Some(number) = index.value::<u32>(dev) else {
            continue;
        };
        let device = devices.name(*dev);
        let mut fua = 0;
        for (op, name) in OPS.iter().enumerate() {
            let row = number * ops + op as u32;
            let row = map.total::<t::block_row>(index.capacity() * ops, row);
            let (queue, h) = (time(&row.queue), time(&row.device));
            if queue.count() == 0 && h.count() == 0 {
                continue;
            }
            s.histogram(&f::BLOCK_QUEUE, [&device, name], queue);
            s.histogram(&f::BLOCK_DEVICE, [&device, name], h);
            if *name != "flush" {
                s.counter(&f::BLOCK_BYTES, [&device, name], row.bytes as f64);
            }
            fua += row.fua;
        }
        let now = inflight.get(dev).copied().unwrap_or_default();
        s.gauge(&f::BLOCK_INFLIGHT, [&device], f64::from(now));
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

/// Requests at each device.
fn inflight(requests: &Map) -> BTreeMap<u32, u32> {
    let mut at = BTreeMap::new();
    for place in 0..requests.capacity() {
        let Some(times) = requests.at::<t::block_times>(place) else {
            continue;
        };
        if times.t_issue > 0 {
            *at.entry(times.dev).or_default() += 1;
        }
    }
    at
}
