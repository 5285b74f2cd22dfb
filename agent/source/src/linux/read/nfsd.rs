//! NFS operations, requests and threads, and the own counts of the kernel's NFS server. Probe sched measures the phases of operations: it
//! adds to the rows of probe nfsd and has no map of its own.

use super::decode::{lost, monotonic_ns, seconds, sizes, time};
use crate::linux::host::procfs::{self, KernelCounts};
use crate::linux::load::object::Loaded;
use crate::linux::load::program::Build;
use crate::nfs_names::{STABILITIES, status};
use nfscope_model::family as f;
use nfscope_model::{Histogram, Scheme, Snapshot, op, phase};
use nfscope_probes::types as t;
use std::collections::{BTreeMap, BTreeSet};

const VERSIONS: [&str; 5] = ["3", "4.0", "4.1", "4.2", "4"];

/// Counts of the probes, for a comparison with the kernel's counts.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Timed {
    /// NFSv3 procedures.
    pub v3: u64,
    /// NFSv4 component ops with a number of the RFCs.
    pub v4: u64,
    /// Requests to servers in other network namespaces.
    pub elsewhere: u64,
    /// Requests in `elsewhere` that are of NFSv3, without NFSACL.
    pub elsewhere_v3: u64,
    /// Requests of all versions.
    pub rpcs: u64,
    /// Bytes read and written.
    pub io: [u64; 2],
}

/// Phases that the probes distinguish from sleep here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Phases {
    /// True if the wait for a CPU is distinguished from sleep.
    pub runqueue: bool,
    /// True if the wait for a log is distinguished from other sleep.
    pub log: bool,
}

/// Data that the attached programs give.
#[derive(Debug, Clone, Copy)]
pub struct Told {
    /// Phases of operations, if they are measured.
    pub phases: Option<Phases>,
    /// True if waits for daemons are measured.
    pub upcalls: bool,
    /// True if arrivals of requests are seen, so that their wait for a thread is known.
    pub arrivals: bool,
}

/// Values that one reading leaves to the next.
#[derive(Debug, Default)]
pub struct Earlier {
    /// Counters that are made of several values. These are not read at one moment, so that the counters could seem to fall.
    least: BTreeMap<Counted, f64>,
    /// Rows of the operation table that are in use.
    rows: BTreeSet<u32>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Counted {
    /// CPU time of a row of the operation table.
    Cpu(u32),
    /// Time in which all threads of a pool were busy.
    Saturated(u32),
    /// Requests of a version's sessions that were sent while another slot was free.
    Free(&'static str),
}

impl Earlier {
    fn clamp(&mut self, what: Counted, n: f64) -> f64 {
        let known = self.least.entry(what).or_default();
        *known = known.max(n);
        *known
    }
}

/// Minor version and number of an NFSv4 operation's row.
fn v4_op(row: u32) -> Option<(u32, u32)> {
    use t::op_row as R;
    let first = R::ROW_V4.0 + R::FIRST_V4_OP.0;
    let at = row.checked_sub(first).filter(|_| row < R::ROW_V4_NULL.0)?;
    Some((at / R::V4_OPS.0, R::FIRST_V4_OP.0 + at % R::V4_OPS.0))
}

/// Version and name of a row of the operation table; `None` behind its end.
pub fn op_name(row: u32, build: Build) -> Option<(&'static str, &'static str)> {
    use t::op_row as R;
    let acl = R::ROW_ACL.0;
    if let Some(name) = op::V3_PROCS.get(row as usize) {
        return Some(("3", name));
    }
    if (acl..acl + R::ACL_PROCS.0).contains(&row) {
        return Some(("3", op::ACL_PROCS[(row - acl) as usize]));
    }
    if row == R::ROW_V4_NULL.0 {
        return Some(("4", "null"));
    }
    if let Some((minor, num)) = v4_op(row) {
        let name = if num == R::V4_ILLEGAL.0 {
            "illegal"
        } else {
            op::v4_op(num as usize)?
        };
        let version = match build {
            // The raw build cannot read the minor version.
            Build::Raw => "4",
            Build::Btf => VERSIONS[1 + minor as usize],
        };
        return Some((version, name));
    }
    None
}

/// True if the kernel may have counted an operation of this row, in any minor version. A table of hundreds of rows in dozens of shards is
/// not read for the others. NULL, ACL and unknown operations are not in the kernel's counts.
fn may_have(kernel: Option<&KernelCounts>, row: u32) -> bool {
    use t::op_row as R;
    let counted = |counts: &[u64], number: u32| {
        counts.is_empty() || counts.get(number as usize).is_none_or(|n| *n > 0)
    };
    match kernel {
        Some(k) if row < op::V3_PROCS.len() as u32 => counted(&k.proc3, row),
        Some(k) => match v4_op(row) {
            Some((_, number)) if number != R::V4_ILLEGAL.0 => counted(&k.proc4ops, number),
            _ => true,
        },
        None => true,
    }
}

/// Reads NFS operations, requests and threads; operations with their phases if these are measured.
pub fn read(
    l: &Loaded,
    s: &mut Snapshot,
    told: Told,
    earlier: &mut Earlier,
    kernel: Option<&KernelCounts>,
) -> Timed {
    let mut timed = Timed::default();
    if let Some(map) = l.map("nfsd_op") {
        // The table has 250 histograms, of which a server uses thirty: a row is read from its first operation on.
        let rows = t::op_row::OP_ROWS.0;
        let wanted: Vec<u32> = (0..rows)
            .filter(|row| earlier.rows.contains(row) || may_have(kernel, *row))
            .collect();
        let totals = map.totals::<t::op_times>(rows, &wanted);
        for (row, times) in wanted.into_iter().zip(totals) {
            let Some((version, op)) = op_name(row, l.build) else {
                continue;
            };
            let h = time(&times.duration);
            let n = h.count();
            if n == 0 {
                continue;
            }
            // The kernel's counts may begin again, with the server.
            earlier.rows.insert(row);
            match (version, op) {
                ("3", o) if !op::ACL_PROCS.contains(&o) => timed.v3 += n,
                ("3", _) | (_, "null" | "illegal") => {}
                _ => timed.v4 += n,
            }
            if let Some(p) = told.phases {
                let wait = |i: usize| seconds(times.wait_ns[i]);
                let [runqueue, log, disk, lock, throttle, upcall, recall, reclaim] =
                    std::array::from_fn(wait);
                let on = h.sum - times.wait_ns.iter().map(|ns| seconds(*ns)).sum::<f64>();
                let on = earlier.clamp(Counted::Cpu(row), on);
                // A wait that cannot be distinguished from sleep counts as sleep.
                let unless = |known: bool, v: f64| if known { 0.0 } else { v };
                let lock = lock + unless(p.runqueue, runqueue) + unless(p.log, log);
                let phases = [
                    ("cpu", on, true),
                    ("runqueue", runqueue, p.runqueue),
                    ("log", log, p.log),
                    ("disk", disk, true),
                    ("throttle", throttle, throttle > 0.0),
                    ("upcall", upcall, upcall > 0.0),
                    ("recall", recall, recall > 0.0),
                    ("reclaim", reclaim, reclaim > 0.0),
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
        let mut errors = BTreeMap::<_, u64>::new();
        for key in map.keys::<t::error_key>() {
            let n = map.value::<u64>(&key).unwrap_or_default();
            *errors.entry((key.row, key.status)).or_default() += n;
        }
        for ((row, code), n) in errors {
            if let Some((version, op)) = op_name(row, l.build) {
                let status = status(version == "3", code);
                s.counter(&f::OP_ERRORS, [version, op, &status], n as f64);
            }
        }
    }
    if let Some(map) = l.map("nfsd_version") {
        let all: Vec<u32> = (0..VERSIONS.len() as u32).collect();
        let totals = map.totals::<t::version_row>(VERSIONS.len() as u32, &all);
        for (version, row) in VERSIONS.iter().zip(totals) {
            timed.rpcs += row.residence.count.iter().sum::<u64>();
            timed.io[0] += row.read_bytes;
            timed.io[1] += row.write_bytes;
            requests(s, version, &row, l.build, told, earlier);
        }
    }
    if told.upcalls {
        upcalls(l, s);
    }
    pools(l, s, told.arrivals, earlier);
    if let Some(map) = l.map("nfsd_event") {
        use t::event as E;
        let count = |e: E| map.sum(&e) as f64;
        s.counter(&f::RPC_DROPPED, ["dropped"], count(E::EV_DROPPED));
        s.counter(&f::RPC_DROPPED, ["deferred"], count(E::EV_DEFERRED));
        s.counter(&f::RPC_NO_CLOCK, [], count(E::EV_NO_CLOCK));
        let events = [
            ("record", E::EV_RECORD_FAILED.0),
            ("arrival_merged", E::EV_ARRIVAL_MERGED.0),
            ("arrival_unknown", E::EV_ARRIVAL_UNKNOWN.0),
            ("pool_outside", E::EV_POOL_OUTSIDE.0),
            ("late", E::EV_SKIPPED.0),
            ("map_full", E::EV_ERROR_FULL.0),
            ("client_full", E::EV_CLIENT_FULL.0),
            ("recall_full", E::EV_RECALL_FULL.0),
            ("wait_outside", E::EV_WAIT_OUTSIDE.0),
        ];
        lost(l, "nfsd_event", "nfsd", s, &events);
        timed.elsewhere_v3 = map.sum(&E::EV_ELSEWHERE_V3);
        timed.elsewhere = timed.elsewhere_v3 + map.sum(&E::EV_ELSEWHERE);
        let labels = ["nfsd", "other_netns"];
        s.counter(&f::EVENTS_LOST, labels, timed.elsewhere as f64);
    }
    timed
}

/// Reads the RPC requests of one version.
fn requests(
    s: &mut Snapshot,
    version: &'static str,
    row: &t::version_row,
    build: Build,
    told: Told,
    earlier: &mut Earlier,
) {
    let residence = time(&row.residence);
    // A version without any request has no series, as with operations.
    if residence.count() == 0 {
        return;
    }
    s.histogram(&f::RPC_DURATION, [version], residence);
    let is_told = |phase: &str| match phase {
        "queue" => told.arrivals,
        "upcall" => told.upcalls,
        _ => true,
    };
    let phases = phase::OF_RPC.iter().zip(row.phase_ns);
    for (phase, ns) in phases.filter(|(phase, _)| is_told(phase)) {
        s.counter(&f::RPC_PHASE, [version, phase], seconds(ns));
    }
    s.counter(&f::RPC_RECEIVED_BYTES, [version], row.received_bytes as f64);
    s.counter(&f::RPC_SENT_BYTES, [version], row.sent_bytes as f64);
    if version != "3" {
        s.histogram(&f::COMPOUND_DURATION, [version], time(&row.compound));
        let ops = sizes(Scheme::COUNT, &row.compound_ops, row.compound_ops_sum);
        s.histogram(&f::COMPOUND_OPS, [version], ops);
    }
    // The raw build cannot read a COMPOUND's arguments, and earlier versions have no sessions.
    if build == Build::Btf && matches!(version, "4.1" | "4.2") {
        let used = slots_used(row);
        let (all, full) = (used.count(), row.slots_full);
        s.histogram(&f::SESSION_SLOTS_USED, [version], used);
        // The probe adds to both values one after the other.
        let free = earlier.clamp(Counted::Free(version), all.saturating_sub(full) as f64);
        s.counter(&f::SESSION_REQUESTS, [version, "free"], free);
        s.counter(&f::SESSION_REQUESTS, [version, "full"], full as f64);
        s.counter(&f::SESSION_REPLAYS, [version], row.replays as f64);
    }
    // With BTF such requests are NULL, or cannot be decoded.
    let without_minor_version = build == Build::Btf && version == "4";
    for (op, h) in [
        ("read", sizes(Scheme::SIZE, &row.read_size, row.read_bytes)),
        (
            "write",
            sizes(Scheme::SIZE, &row.write_size, row.write_bytes),
        ),
    ] {
        if !without_minor_version || h.count() > 0 {
            s.histogram(&f::IO_SIZE, [version, op], h);
        }
    }
    // The raw build cannot read the stability that a WRITE asked for.
    if build == Build::Btf && !without_minor_version {
        for (i, how) in STABILITIES.iter().enumerate() {
            let (n, bytes) = (row.stable_writes[i], row.stable_bytes[i]);
            s.counter(&f::WRITE, [version, how], n as f64);
            s.counter(&f::WRITE_BYTES, [version, how], bytes as f64);
        }
    }
}

/// Requests by slots in use. A request uses at least one slot, although a client may say less.
fn slots_used(row: &t::version_row) -> Histogram {
    let mut used = Histogram::new(Scheme::COUNT);
    used.sum = row.slots_more_sum as f64;
    let (_, more) = used
        .counts
        .split_at_mut(Scheme::COUNT.len - row.slots_more.len());
    more.copy_from_slice(&row.slots_more);
    for (slots, n) in row.slots.iter().enumerate() {
        let slots = slots.max(1) as f64;
        used.counts[Scheme::COUNT.bucket(slots)] += n;
        used.sum += slots * *n as f64;
    }
    used
}

/// Names of enum upcall.
const UPCALLS: [&str; 8] = [
    "other",
    "client",
    "groups",
    "export",
    "handle",
    "idmap",
    "gss",
    "client_tracking",
];

/// Reads the upcalls of nfsd threads by daemon, and their waits. A daemon that was never asked has no series.
fn upcalls(l: &Loaded, s: &mut Snapshot) {
    let Some(map) = l.map("nfsd_upcalls") else {
        return;
    };
    for (i, name) in (0u32..).zip(UPCALLS) {
        let row = map.value::<t::upcall_row>(&i).unwrap_or_default();
        let wait = time(&row.wait);
        if row.asked > 0 {
            s.counter(&f::UPCALL_ASKED, [name], row.asked as f64);
        }
        if row.asked > 0 || wait.count() > 0 {
            s.histogram(&f::UPCALL_WAIT, [name], wait);
        }
    }
}

/// Reads the threads of each pool.
fn pools(l: &Loaded, s: &mut Snapshot, arrivals: bool, earlier: &mut Earlier) {
    let listed = procfs::pool_threads();
    let (Some(rows), Some(now)) = (l.map("nfsd_pool"), l.map("nfsd_pool_now")) else {
        return;
    };
    for i in 0..now.capacity() {
        let row = rows.total::<t::pool_row>(now.capacity(), i);
        let queue = time(&row.queue);
        let state = now.at::<t::pool_now>(i).unwrap_or_default();
        let running = match &listed {
            Some(l) => l.get(i as usize).copied(),
            None => (state.threads > 0).then_some(state.threads),
        };
        let pool = i.to_string();
        if running.is_none() && queue.count() == 0 {
            continue;
        }
        if arrivals {
            s.histogram(&f::RPC_QUEUE, [&pool], queue);
        }
        if let Some(n) = running {
            s.gauge(&f::THREADS, [&pool], f64::from(n));
            let limit = if state.limit > 0 { state.limit } else { n };
            s.gauge(&f::THREADS_LIMIT, [&pool], f64::from(limit));
        }
        // The raw build has no atomics that return a value, and counts no busy threads.
        if l.build == Build::Btf {
            let mut saturated = state.saturated_ns;
            if state.saturated_since > 0 {
                saturated += monotonic_ns().saturating_sub(state.saturated_since);
            }
            s.gauge(&f::THREADS_BUSY, [&pool], (state.busy as i64).max(0) as f64);
            s.counter(&f::THREAD_BUSY, [&pool], seconds(row.busy_ns));
            let saturated = earlier.clamp(Counted::Saturated(i), seconds(saturated));
            s.counter(&f::THREADS_SATURATED, [&pool], saturated);
        }
    }
}

/// Adds the kernel's own counters that belong to the contract.
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
    fn slots_in_use_are_told_one_by_one_or_by_powers_of_two() {
        let mut row = t::version_row::default();
        for (slots, n) in [(0, 1), (1, 2), (3, 4), (8, 8)] {
            row.slots[slots] = n;
        }
        // Requests with 9 and with 2,000 slots.
        (row.slots_more[0], row.slots_more[7], row.slots_more_sum) = (1, 1, 2009);
        let used = slots_used(&row);
        assert_eq!(used.counts, [3, 0, 4, 8, 1, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(used.sum, 3.0 + 12.0 + 64.0 + 2009.0);
    }

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
        // Each row has an operation, and no two rows have the same.
        let all: Vec<_> = (0..R::OP_ROWS.0).map(|r| at(r).unwrap()).collect();
        let names: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(names.len(), all.len());
        assert_eq!(at(R::OP_ROWS.0), None);
        assert_eq!(op_name(R::ROW_V4.0 + 38, Build::Raw), Some(("4", "write")));
    }
}
