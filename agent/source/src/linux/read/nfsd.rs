//! NFS operations, requests and threads, and what the kernel's NFS server counts by itself. The phases of operations are
//! measured by probe sched, which adds to the rows of probe nfsd and has no map of its own.

use super::decode::{lost, monotonic_ns, seconds, sizes, time};
use super::nfs_status::status;
use crate::linux::host::procfs::{self, KernelCounts};
use crate::linux::load::object::Loaded;
use crate::linux::load::program::Build;
use nfscope_model::family as f;
use nfscope_model::{Scheme, Snapshot, op, phase};
use nfscope_probes::types as t;
use std::collections::BTreeMap;

const VERSIONS: [&str; 5] = ["3", "4.0", "4.1", "4.2", "4"];
/// `enum stable_how` of NFS, by number.
pub const STABILITIES: [&str; 3] = ["unstable", "data_sync", "file_sync"];

/// Operations that the probes timed, to compare with what the kernel counted.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Timed {
    /// NFSv3 procedures.
    pub v3: u64,
    /// NFSv4 component ops with a number of the RFCs.
    pub v4: u64,
}

/// Which phases the probes can tell from sleep here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Phases {
    /// The wait for a CPU apart from sleep.
    pub runqueue: bool,
    /// The wait for a log apart from other sleep.
    pub log: bool,
}

/// Counters that are made of more than one value, not read at one moment, so that they could seem to fall. From one
/// reading to the next.
#[derive(Debug, Default)]
pub struct Monotonic(BTreeMap<Counted, f64>);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Counted {
    /// CPU time of a row of the operation table.
    Cpu(u32),
    /// Time in which all threads of a pool were busy.
    Saturated(u32),
}

impl Monotonic {
    fn clamp(&mut self, what: Counted, seconds: f64) -> f64 {
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

/// NFS operations, requests and threads; operations with their phases where these are measured.
pub fn read(
    l: &Loaded,
    s: &mut Snapshot,
    phases: Option<Phases>,
    monotonic: &mut Monotonic,
) -> Timed {
    let mut timed = Timed::default();
    if let Some(map) = l.map("nfsd_op") {
        for row in 0..t::op_row::OP_ROWS.0 {
            let Some((version, op)) = op_name(row, l.build) else {
                continue;
            };
            let rows = map.per_cpu::<t::op_times>(&row);
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
                let on = monotonic.clamp(Counted::Cpu(row), on);
                // A wait that cannot be distinguished from sleep counts as sleep.
                let unless = |known: bool, v: f64| if known { 0.0 } else { v };
                let lock = lock + unless(p.runqueue, runqueue) + unless(p.log, log);
                let phases = [
                    ("cpu", on, true),
                    ("runqueue", runqueue, p.runqueue),
                    ("log", log, p.log),
                    ("disk", disk, true),
                    ("lock", lock, true),
                ];
                for (phase, v, _) in phases.iter().filter(|(_, _, known)| *known) {
                    s.counter(&f::OP_PHASE, [version, op, phase], *v);
                }
            }
            s.histogram(&f::OP_DURATION, [version, op], h);
        }
    }
    if let Some(map) = l.map("nfsd_op_error") {
        for key in map.keys::<t::error_key>() {
            let Some((version, op)) = op_name(key.row, l.build) else {
                continue;
            };
            let status = status(version == "3", key.status);
            s.counter(&f::OP_ERRORS, [version, op, &status], map.sum(&key) as f64);
        }
    }
    if let Some(map) = l.map("nfsd_version") {
        for (i, version) in VERSIONS.iter().enumerate() {
            let rows = map.per_cpu::<t::version_row>(&(i as u32));
            requests(s, version, &rows, l.build);
        }
    }
    pools(l, s, monotonic);
    if let Some(map) = l.map("nfsd_event") {
        use t::event as E;
        let count = |e: E| map.sum(&e) as f64;
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

/// RPC requests of one version.
fn requests(s: &mut Snapshot, version: &str, rows: &[t::version_row], build: Build) {
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

/// Threads of each pool.
fn pools(l: &Loaded, s: &mut Snapshot, monotonic: &mut Monotonic) {
    let listed = procfs::pool_threads();
    let (Some(rows), Some(now)) = (l.map("nfsd_pool"), l.map("nfsd_pool_now")) else {
        return;
    };
    for i in 0..rows.capacity() {
        let per_cpu = rows.per_cpu::<t::pool_row>(&i);
        let queue = time(per_cpu.iter().map(|r| &r.queue));
        let state = now.value::<t::pool_now>(&i).unwrap_or_default();
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
            let saturated = monotonic.clamp(Counted::Saturated(i), seconds(saturated));
            s.counter(&f::THREADS_SATURATED, [&pool], saturated);
        }
    }
}

/// Operations that the probes timed, of those that the kernel counted since the probes attached. `timed` was read between the
/// two readings `around` of the kernel's counts, and its operations go on: in between is exact.
pub fn coverage(l: &Loaded, timed: Timed, around: [&KernelCounts; 2], s: &mut Snapshot) {
    let Some(start) = &l.counted else { return };
    let counts = |of: fn(&KernelCounts) -> u64| around.map(|k| of(k).saturating_sub(of(start)));
    for (version, timed, [least, most]) in [
        ("3", timed.v3, counts(KernelCounts::v3)),
        ("4", timed.v4, counts(KernelCounts::v4)),
    ] {
        let counted = timed.clamp(least, most.max(least));
        // Nothing to cover says nothing about coverage.
        if counted > 0 {
            s.gauge(&f::COVERAGE, [version], timed as f64 / counted as f64);
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
}
