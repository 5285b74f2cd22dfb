//! Slow operations: asks the probes for them, and reads the ring of events.

use super::nfsd::op_name;
use super::top_k::address;
use crate::clock::both;
use crate::linux::host::file_handle::{Exports, Handle};
use crate::linux::load::object::Loaded;
use crate::linux::load::program::Build;
use crate::linux::load::ring::Ring;
use crate::nfs_names::{STABILITIES, status};
use anyhow::Context;
use nfscope_model::{OpArguments, OpPhases, SlowBatch, SlowFilter, SlowOp};
use nfscope_probes::types as t;
use std::hash::{DefaultHasher, Hasher};
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

/// Bytes of the ring: room for some twenty thousand events, a burst between two calls.
const RING_BYTES: u32 = 4 << 20;

const NONE: t::slow_want = t::slow_want {
    over_ns: u64::MAX,
    client: [0; 2],
    per_second: 0,
    rows: [0; WORDS],
};
/// Words of a set of rows of the operation table.
pub(super) const WORDS: usize = t::op_row::OP_ROWS.0.div_ceil(64) as usize;

/// Subscription to slow operations, with its ring.
pub struct Listening {
    ring: Ring,
    left_out: u64,
    over: Duration,
}

/// Request to the probes for a filter.
///
/// # Errors
/// Fails for an operation that is in no table.
fn wanted(filter: &SlowFilter, l: &Loaded) -> anyhow::Result<t::slow_want> {
    Ok(t::slow_want {
        over_ns: u64::try_from(filter.over.as_nanos()).unwrap_or(u64::MAX - 1),
        per_second: u64::from(filter.per_second),
        client: filter.client.map_or([0; 2], key),
        rows: rows(filter.ops.iter(), l.build)?,
    })
}

/// Rows of these operations, as bits; all rows for none.
///
/// # Errors
/// Fails for an operation that is in no table.
pub(super) fn rows<'a>(
    ops: impl Iterator<Item = &'a String>,
    build: Build,
) -> anyhow::Result<[u64; WORDS]> {
    let wanted: Vec<&str> = ops.map(String::as_str).collect();
    let (mut unknown, mut rows) = (wanted.clone(), [0; WORDS]);
    for row in 0..t::op_row::OP_ROWS.0 {
        let Some((_, op)) = op_name(row, build) else {
            continue;
        };
        unknown.retain(|u| *u != op);
        if wanted.is_empty() || wanted.contains(&op) {
            rows[row as usize / 64] |= 1 << (row % 64);
        }
    }
    anyhow::ensure!(
        unknown.is_empty(),
        "no operation is called {}",
        unknown.join(", ")
    );
    Ok(rows)
}

/// Address in the form of the probes.
pub(super) fn key(a: IpAddr) -> [u64; 2] {
    let bytes = match a {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
    .octets();
    let half = |i: usize| {
        let mut b = [0u8; 8];
        b.copy_from_slice(&bytes[i..i + 8]);
        u64::from_ne_bytes(b)
    };
    [half(0), half(8)]
}

impl Listening {
    /// Makes a ring, gives it to the probes and sets the request.
    ///
    /// # Errors
    /// Fails if the kernel refuses a map, or the filter names an unknown operation.
    pub fn start(l: &Loaded, filter: &SlowFilter) -> anyhow::Result<Self> {
        let want = wanted(filter, l)?;
        let ring = l.open_ring("nfsd_slow_ring", RING_BYTES).context(
            "cannot make a ring for slow operations; an agent with --no-late-attach has given up the right to",
        )?;
        let listening = Listening {
            ring,
            left_out: left_out(l),
            over: filter.over,
        };
        match l.set(".data.nfsd_slow_want", &want) {
            Ok(()) => Ok(listening),
            Err(e) => {
                l.close_ring("nfsd_slow_ring");
                Err(e)
            }
        }
    }

    /// Changes the request.
    ///
    /// # Errors
    /// Fails as [`Listening::start`].
    pub fn change(&mut self, l: &Loaded, filter: &SlowFilter) -> anyhow::Result<()> {
        l.set(".data.nfsd_slow_want", &wanted(filter, l)?)?;
        self.over = filter.over;
        Ok(())
    }

    /// Duration above which operations are reported.
    pub fn over(&self) -> Duration {
        self.over
    }

    /// Ends the events, and frees the ring.
    pub fn stop(self, l: &Loaded) {
        // A failed write does no harm: the section exists as long as the probe does.
        let _ = l.set(".data.nfsd_slow_want", &NONE);
        l.close_ring("nfsd_slow_ring");
    }

    /// Operations since the last call. `phases`: operations are split into phases here.
    pub fn take(&mut self, l: &Loaded, exports: &mut Exports, phases: bool) -> SlowBatch {
        let mut ops = Vec::new();
        let now = both();
        for e in self.ring.take::<t::slow_event>() {
            ops.extend(decode(&e, l, exports, phases, now));
        }
        let n = left_out(l);
        let left_out = n.saturating_sub(std::mem::replace(&mut self.left_out, n));
        SlowBatch { ops, left_out }
    }
}

fn left_out(l: &Loaded) -> u64 {
    l.get::<t::slow_count>(".data.nfsd_slow_count")
        .map_or(0, |c| c.left_out)
}

/// `now`: one moment on both clocks.
fn decode(
    e: &t::slow_event,
    l: &Loaded,
    exports: &mut Exports,
    phases: bool,
    now: (u64, SystemTime),
) -> Option<SlowOp> {
    let (version, op) = op_name(e.row, l.build)?;
    let handle = e
        .handle
        .get(..e.handle_size as usize)
        .and_then(Handle::parse);
    let ago = Duration::from_nanos(now.0.saturating_sub(e.end_ns));
    let export = handle.and_then(|h| exports.path(h.export).map(str::to_owned));
    let moved = matches!(op, "read" | "write" | "read_plus");
    Some(SlowOp {
        at: now.1.checked_sub(ago).unwrap_or(now.1),
        client: address(e.client),
        version: version.to_owned(),
        op: op.to_owned(),
        dataset: handle
            .and_then(|h| exports.file_system(h.export))
            .filter(|fs| fs.kind == "zfs")
            .map(|fs| fs.source.clone()),
        export,
        inode: handle.and_then(|h| exports.file_name(h.export, &h.file?).inode()),
        path: None,
        xid: (e.xid != 0).then(|| u32::from_be(e.xid)),
        bytes: moved.then_some(u64::from(e.bytes)),
        stability: (op == "write")
            .then(|| STABILITIES.get(e.stability as usize))
            .flatten()
            .map(|s| (*s).to_owned()),
        status: match e.status {
            0 => "ok".to_owned(),
            s => status(version == "3", s),
        },
        duration: Duration::from_nanos(e.ns),
        phases: phases.then(|| {
            let waits = e.wait_ns.map(Duration::from_nanos);
            let [runqueue, log, disk, lock, throttle, upcall, recall, reclaim] = waits;
            OpPhases {
                cpu: Duration::from_nanos(e.ns).saturating_sub(waits.iter().sum()),
                runqueue,
                log,
                disk,
                throttle,
                upcall,
                recall,
                reclaim,
                lock,
            }
        }),
        arguments: arguments(e),
    })
}

fn arguments(e: &t::slow_event) -> OpArguments {
    let range = e.asks == t::slow_asks::ASKS_RANGE;
    let size = e.asks == t::slow_asks::ASKS_SIZE;
    OpArguments {
        handle: hash(&e.handle, e.handle_size),
        other_handle: hash(&e.other, e.other_size),
        offset: range.then_some(e.offset),
        length: range.then_some(e.length),
        size: size.then_some(e.offset),
        status_code: e.status,
    }
}

/// Hash of all bytes of a file handle; `None` without one.
fn hash(handle: &[u8], size: u32) -> Option<u64> {
    let bytes = handle.get(..size as usize).filter(|b| !b.is_empty())?;
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    Some(hasher.finish())
}
