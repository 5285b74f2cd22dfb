//! Block devices: requests, their time in the queue and in the device.

use super::decode::{fill, lost, time};
use crate::linux::host::procfs::DeviceNames;
use crate::linux::load::object::Loaded;
use nfscope_model::Snapshot;
use nfscope_model::family as f;
use nfscope_probes::types as t;
use std::collections::BTreeMap;

/// `enum block_op`.
const OPS: [&str; 5] = ["read", "write", "flush", "discard", "other"];

/// Reads the block devices.
pub fn read(l: &Loaded, s: &mut Snapshot, devices: &mut DeviceNames) {
    let Some(map) = l.map("block_device_op") else {
        return;
    };
    let keys = map.keys::<t::block_key>();
    let mut by_device: BTreeMap<u32, (i64, u64)> = BTreeMap::new();
    for key in &keys {
        let rows = map.per_cpu::<t::block_row>(key);
        let (device, op) = (
            devices.name(key.dev),
            OPS.get(key.op as usize).copied().unwrap_or("other"),
        );
        let sum =
            |get: fn(&t::block_row) -> u64| rows.iter().map(get).fold(0u64, u64::wrapping_add);
        let queue = time(rows.iter().map(|r| &r.queue));
        let h = time(rows.iter().map(|r| &r.device));
        s.histogram(&f::BLOCK_QUEUE, [&device, op], queue);
        s.histogram(&f::BLOCK_DEVICE, [&device, op], h);
        s.counter(&f::BLOCK_BYTES, [&device, op], sum(|r| r.bytes) as f64);
        let d = by_device.entry(key.dev).or_default();
        d.0 += sum(|r| r.issued).wrapping_sub(sum(|r| r.ended)) as i64;
        d.1 += sum(|r| r.fua);
    }
    for (dev, (inflight, fua)) in by_device {
        let device = devices.name(dev);
        s.gauge(&f::BLOCK_INFLIGHT, [&device], inflight.max(0) as f64);
        s.counter(&f::BLOCK_FUA, [&device], fua as f64);
    }
    fill(map, keys.len(), "block_device_op", s);
    use t::block_event as E;
    lost(
        l,
        "block_event",
        "block",
        s,
        &[
            ("map_full", E::EV_BLOCK_FULL.0),
            ("unmatched", E::EV_BLOCK_UNMATCHED.0),
        ],
    );
}
