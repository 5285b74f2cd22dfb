//! Maps and kernel counters into a snapshot. Nothing here meets libbpf but through [`load`](crate::linux::load::load)'s readers.

use crate::linux::host::procfs as proc;
use crate::linux::host::procfs::{DeviceNames, KernelCounts};
use crate::linux::load::loader::Loaded;
use crate::linux::load::maps;
use crate::linux::load::pod;
use crate::linux::load::program::Build;
use crate::linux::read::nfs_status as names;
use nfscope_model::family as f;
use nfscope_model::{Histogram, Scheme, Snapshot, op, phase};
use nfscope_probes::{TimeHist, types as t};
use std::collections::BTreeMap;

const VERSIONS: [&str; 5] = ["3", "4.0", "4.1", "4.2", "4"];
pub const STABILITIES: [&str; 3] = ["unstable", "data_sync", "file_sync"];
const BLOCK_OPS: [&str; 5] = ["read", "write", "flush", "discard", "other"];

/// Operations that the probes timed, to compare with what the kernel counted.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Timed {
    /// NFSv3 procedures.
    pub v3: u64,
    /// NFSv4 component ops with a number of the RFCs.
    pub v4: u64,
}

/// Durations, summed over CPUs.
pub fn time<'a, T: TimeHist + 'a>(rows: impl Iterator<Item = &'a T>) -> Histogram {
    let mut h = Histogram::new(Scheme::TIME);
    let mut ns = 0u64;
    for r in rows {
        let (sum, counts) = r.parts();
        for (a, b) in h.counts.iter_mut().zip(counts) {
            *a += b;
        }
        ns += sum;
    }
    h.sum = ns as f64 / 1e9;
    h
}

/// Buckets of a size or count, summed over CPUs.
fn sizes<'a>(scheme: Scheme, rows: impl Iterator<Item = (&'a [u64], u64)>) -> Histogram {
    let mut h = Histogram::new(scheme);
    for (counts, sum) in rows {
        for (a, b) in h.counts.iter_mut().zip(counts) {
            *a += b;
        }
        h.sum += sum as f64;
    }
    h
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// What of a wait the probes can tell here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Phases {
    /// The wait for a processor apart from sleep.
    pub runqueue: bool,
    /// The wait for a log apart from other sleep.
    pub log: bool,
}

/// Counters that are made of more than one value, not read at one moment, so that they could seem to fall. From one
/// reading to the next.
#[derive(Debug, Default)]
pub struct NeverLess(BTreeMap<Counted, f64>);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Counted {
    /// Processor time of a row of the operation table.
    Cpu(u32),
    /// Time in which all threads of a pool were busy.
    Saturated(u32),
}

impl NeverLess {
    fn of(&mut self, what: Counted, seconds: f64) -> f64 {
        let known = self.0.entry(what).or_default();
        *known = known.max(seconds);
        *known
    }
}

/// Version and name of a row of the operation table; `None` for rows between the tables.
pub fn op_name(row: u32, build: Build) -> Option<(&'static str, &'static str)> {
    use t::op_row as R;
    let (acl, v4, per, illegal, null) = (
        R::ROW_ACL.0,
        R::ROW_V4.0,
        R::V4_OPS.0,
        R::V4_ILLEGAL.0,
        R::ROW_V4_NULL.0,
    );
    if let Some(name) = op::V3_PROCS.get(row as usize) {
        return Some(("3", name));
    }
    if (acl..acl + R::ACL_PROCS.0).contains(&row) {
        return Some(("3", op::ACL_PROCS[(row - acl) as usize]));
    }
    if row == null {
        return Some(("4", "null"));
    }
    if (v4..null).contains(&row) {
        let (minor, num) = ((row - v4) / per, (row - v4) % per);
        let name = if num == illegal {
            "illegal"
        } else {
            op::v4_op(num as usize)?
        };
        let version = match build {
            // That build cannot read the minor version.
            Build::Raw => "4",
            Build::Btf => VERSIONS[1 + minor as usize],
        };
        return Some((version, name));
    }
    None
}

/// NFS operations, requests and threads; operations with their phases where these are told.
pub fn nfsd(l: &Loaded, s: &mut Snapshot, phases: Option<Phases>, never: &mut NeverLess) -> Timed {
    let mut timed = Timed::default();
    if let Some(map) = l.map("nfsd_op") {
        for row in 0..t::op_row::OP_ROWS.0 {
            let Some((version, op)) = op_name(row, l.build) else {
                continue;
            };
            let rows = maps::per_cpu::<t::op_times>(map, &row.to_ne_bytes());
            let h = time(rows.iter().map(|r| &r.duration));
            let n = h.count();
            // 250 histograms, of which a server uses thirty: one appears with its first operation.
            if n == 0 {
                continue;
            }
            match (version, op) {
                ("3", o) if !op::ACL_PROCS.contains(&o) => timed.v3 += n,
                ("3", _) | (_, "null" | "illegal") => {}
                _ => timed.v4 += n,
            }
            if let Some(p) = phases {
                let wait = |i: usize| seconds(rows.iter().map(|r| r.wait_ns[i]).sum());
                let [runqueue, log, disk, lock] = [0, 1, 2, 3].map(wait);
                let on = h.sum - (runqueue + log + disk + lock);
                let on = never.of(Counted::Cpu(row), on);
                // What is not told apart is a sleep like others.
                let apart = |told: bool, v: f64| if told { 0.0 } else { v };
                let lock = lock + apart(p.runqueue, runqueue) + apart(p.log, log);
                let told = [
                    ("cpu", on, true),
                    ("runqueue", runqueue, p.runqueue),
                    ("log", log, p.log),
                    ("disk", disk, true),
                    ("lock", lock, true),
                ];
                for (phase, v, _) in told.iter().filter(|(_, _, told)| *told) {
                    s.counter(&f::OP_PHASE, [version, op, phase], *v);
                }
            }
            s.histogram(&f::OP_DURATION, [version, op], h);
        }
    }
    if let Some(map) = l.map("nfsd_op_error") {
        for key in maps::keys::<t::error_key>(map) {
            let Some((version, op)) = op_name(key.row, l.build) else {
                continue;
            };
            let n: u64 = maps::per_cpu::<u64>(map, pod::bytes_of(&key)).iter().sum();
            let status = names::status(version == "3", key.status);
            s.counter(&f::OP_ERRORS, [version, op, &status], n as f64);
        }
    }
    if let Some(map) = l.map("nfsd_version") {
        for (i, version) in VERSIONS.iter().enumerate() {
            let rows = maps::per_cpu::<t::version_row>(map, &(i as u32).to_ne_bytes());
            crate::linux::read::nfsd::version(s, version, &rows, l.build);
        }
    }
    pools(l, s, never);
    if let Some(map) = l.map("nfsd_event") {
        use t::event as E;
        let count = |e: E| -> f64 {
            maps::per_cpu::<u64>(map, &e.0.to_ne_bytes())
                .iter()
                .sum::<u64>() as f64
        };
        s.counter(&f::RPC_DROPPED, ["dropped"], count(E::EV_DROPPED));
        s.counter(&f::RPC_DROPPED, ["deferred"], count(E::EV_DEFERRED));
        let events = [
            ("record", E::EV_RECORD_FAILED.0),
            ("arrival_merged", E::EV_ARRIVAL_MERGED.0),
            ("arrival_unknown", E::EV_ARRIVAL_UNKNOWN.0),
            ("pool_outside", E::EV_POOL_OUTSIDE.0),
            ("late", E::EV_SKIPPED.0),
            ("map_full", E::EV_ERROR_FULL.0),
            ("client_full", E::EV_CLIENT_FULL.0),
            ("wait_outside", E::EV_WAIT_OUTSIDE.0),
        ];
        lost(l, "nfsd_event", "nfsd", s, &events);
    }
    timed
}

fn version(s: &mut Snapshot, version: &str, rows: &[t::version_row], build: Build) {
    let sum = |get: fn(&t::version_row) -> u64| rows.iter().map(get).sum::<u64>();
    let residence = time(rows.iter().map(|r| &r.residence));
    // The row of requests without a minor version, and in the raw build those of the minor versions.
    let always = match build {
        Build::Btf => version != "4",
        Build::Raw => matches!(version, "3" | "4"),
    };
    if !always && residence.count() == 0 {
        return;
    }
    s.histogram(&f::RPC_DURATION, [version], residence);
    for (i, phase) in phase::OF_RPC.iter().enumerate() {
        let ns: u64 = rows.iter().map(|r| r.phase_ns[i]).sum();
        s.counter(&f::RPC_PHASE, [version, phase], seconds(ns));
    }
    s.counter(
        &f::RPC_RECEIVED_BYTES,
        [version],
        sum(|r| r.received_bytes) as f64,
    );
    s.counter(&f::RPC_SENT_BYTES, [version], sum(|r| r.sent_bytes) as f64);
    if version != "3" {
        let compound = time(rows.iter().map(|r| &r.compound));
        s.histogram(&f::COMPOUND_DURATION, [version], compound);
        let ops = rows
            .iter()
            .map(|r| (&r.compound_ops[..], r.compound_ops_sum));
        s.histogram(&f::COMPOUND_OPS, [version], sizes(Scheme::COUNT, ops));
    }
    for (op, h) in [
        (
            "read",
            sizes(
                Scheme::SIZE,
                rows.iter().map(|r| (&r.read_size[..], r.read_bytes)),
            ),
        ),
        (
            "write",
            sizes(
                Scheme::SIZE,
                rows.iter().map(|r| (&r.write_size[..], r.write_bytes)),
            ),
        ),
    ] {
        if always || h.count() > 0 {
            s.histogram(&f::IO_SIZE, [version, op], h);
        }
    }
    // The raw build cannot read what a WRITE asked for.
    if build == Build::Btf && always {
        for (i, how) in STABILITIES.iter().enumerate() {
            let n: u64 = rows.iter().map(|r| r.stable_writes[i]).sum();
            let bytes: u64 = rows.iter().map(|r| r.stable_bytes[i]).sum();
            s.counter(&f::WRITE, [version, how], n as f64);
            s.counter(&f::WRITE_BYTES, [version, how], bytes as f64);
        }
    }
}

fn pools(l: &Loaded, s: &mut Snapshot, never: &mut NeverLess) {
    let listed = proc::pool_threads();
    let (Some(rows), Some(now)) = (l.map("nfsd_pool"), l.map("nfsd_pool_now")) else {
        return;
    };
    use libbpf_rs::MapCore;
    for i in 0..rows.max_entries() {
        let key = i.to_ne_bytes();
        let per_cpu = maps::per_cpu::<t::pool_row>(rows, &key);
        let queue = time(per_cpu.iter().map(|r| &r.queue));
        let state = maps::value::<t::pool_now>(now, &key).unwrap_or_default();
        let running = match &listed {
            Some(l) => l.get(i as usize).copied(),
            None => (state.threads > 0).then_some(state.threads),
        };
        let pool = i.to_string();
        if running.is_none() && queue.count() == 0 {
            continue;
        }
        s.histogram(&f::RPC_QUEUE, [&pool], queue);
        if let Some(n) = running {
            s.gauge(&f::THREADS, [&pool], f64::from(n));
            let limit = if state.limit > 0 { state.limit } else { n };
            s.gauge(&f::THREADS_LIMIT, [&pool], f64::from(limit));
        }
        // The raw build has no atomics that return a value, and counts no busy threads.
        if l.build == Build::Btf {
            let busy_ns: u64 = per_cpu.iter().map(|r| r.busy_ns).sum();
            let mut saturated = state.saturated_ns;
            if state.saturated_since > 0 {
                saturated += monotonic_ns().saturating_sub(state.saturated_since);
            }
            s.gauge(&f::THREADS_BUSY, [&pool], (state.busy as i64).max(0) as f64);
            s.counter(&f::THREAD_BUSY, [&pool], seconds(busy_ns));
            let saturated = never.of(Counted::Saturated(i), seconds(saturated));
            s.counter(&f::THREADS_SATURATED, [&pool], saturated);
        }
    }
}

/// The kernel's own counters that belong to the contract.
pub fn kernel(k: &KernelCounts, s: &mut Snapshot) {
    for (result, n) in ["hit", "miss", "nocache"].iter().zip(k.reply_cache) {
        s.counter(&f::REPLY_CACHE, [result], n as f64);
    }
    s.counter(&f::RPC_DROPPED, ["garbage"], k.rpc[2] as f64);
    s.counter(&f::RPC_DROPPED, ["auth"], (k.rpc[3] + k.rpc[4]) as f64);
}

/// Block devices.
pub fn block(l: &Loaded, s: &mut Snapshot, devices: &mut DeviceNames) {
    let Some(map) = l.map("block_device_op") else {
        return;
    };
    let keys = maps::keys::<t::block_key>(map);
    let mut by_device: BTreeMap<u32, (i64, u64)> = BTreeMap::new();
    for key in &keys {
        let rows = maps::per_cpu::<t::block_row>(map, pod::bytes_of(key));
        let (device, op) = (
            devices.name(key.dev),
            BLOCK_OPS.get(key.op as usize).copied().unwrap_or("other"),
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

pub fn lost(l: &Loaded, map: &str, probe: &str, s: &mut Snapshot, events: &[(&str, u32)]) {
    let Some(map) = l.map(map) else { return };
    for (reason, e) in events {
        let n: u64 = maps::per_cpu::<u64>(map, &e.to_ne_bytes()).iter().sum();
        s.counter(&f::EVENTS_LOST, [probe, reason], n as f64);
    }
}

pub fn fill(map: &libbpf_rs::MapHandle, entries: usize, name: &str, s: &mut Snapshot) {
    use libbpf_rs::MapCore;
    s.gauge(&f::MAP_ENTRIES, [name], entries as f64);
    s.gauge(&f::MAP_CAPACITY, [name], f64::from(map.max_entries()));
}

/// CLOCK_MONOTONIC, the clock of the probes.
pub fn monotonic_ns() -> u64 {
    let mut t = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the clock exists on every Linux, and `t` is valid for writing.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_named_by_version_and_operation() {
        use t::op_row as R;
        let at = |r| op_name(r, Build::Btf);
        assert_eq!(at(7), Some(("3", "write")));
        assert_eq!(at(R::ROW_ACL.0 + 1), Some(("3", "getacl")));
        assert_eq!(at(R::ROW_V4.0 + 38), Some(("4.0", "write")));
        assert_eq!(
            at(R::ROW_V4.0 + 2 * R::V4_OPS.0 + 71),
            Some(("4.2", "clone"))
        );
        assert_eq!(
            at(R::ROW_V4.0 + R::V4_OPS.0 + R::V4_ILLEGAL.0),
            Some(("4.1", "illegal"))
        );
        assert_eq!(at(R::ROW_V4_NULL.0), Some(("4", "null")));
        assert_eq!(at(R::ROW_V4.0 + 1), None);
        assert_eq!(op_name(R::ROW_V4.0 + 38, Build::Raw), Some(("4", "write")));
    }

    #[test]
    fn the_probes_count_in_the_buckets_of_the_model() {
        let edges = nfscope_probes::time_edges::edges_ns();
        assert_eq!(edges.len() + 1, Scheme::TIME.len);
        for (i, &edge) in edges.iter().enumerate() {
            assert_eq!(edge, (Scheme::TIME.edge(i) * 1e9).floor() as u64);
            // An edge belongs to the bucket below it, in the kernel as in Rust.
            assert_eq!(nfscope_probes::time_bucket(edge), i, "{edge} ns");
            assert_eq!(
                nfscope_probes::time_bucket(edge + 1),
                i + 1,
                "{} ns",
                edge + 1
            );
        }
        let mut x = 1u64;
        for _ in 0..200_000 {
            x = x
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let ns = x >> (x & 63);
            let want = edges
                .iter()
                .position(|&e| ns <= e)
                .unwrap_or(Scheme::TIME.len - 1);
            assert_eq!(nfscope_probes::time_bucket(ns), want, "{ns} ns");
        }
        for v in (0..70_000).chain([1 << 29, 1 << 30, (1 << 30) + 1, u64::MAX]) {
            assert_eq!(
                nfscope_probes::size_bucket(v, 32),
                Scheme::SIZE.bucket(v as f64),
                "{v} bytes"
            );
        }
    }
}
