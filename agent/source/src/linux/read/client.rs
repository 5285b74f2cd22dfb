//! This host as a client: the RPCs of its NFS mounts by mount, version and procedure. They come from probe `client`, or if it is not
//! supported from the sums that the kernel keeps for each mount.

use super::client_totals::{MountKey, Names, OpTotals, Totals};
use super::decode::{fill, lost, seconds, text, time};
use crate::linux::host::mountstats::{self, MountStats};
use crate::linux::load::maps::Map;
use crate::linux::load::object::Loaded;
use crate::mounts::Mounts;
use nfscope_model::Snapshot;
use nfscope_model::family as f;
use nfscope_probes::types as t;
use std::collections::{BTreeMap, BTreeSet};

/// Procedures of one RPC client: `CLIENT_PROCS` in client.h.
const PROCS: u32 = 96;

/// Counts of this host's mounts, and the mounts of RPC clients.
#[derive(Debug, Default)]
pub struct ClientView {
    /// Counts that no table has any more: those of mounts that have ended, and recalls.
    ended: Totals,
    /// Recalls by device number, at the last reading.
    recalls: BTreeMap<u32, u64>,
    /// Mounts of RPC clients, by the client's number and its address in the kernel. The first name stays: a counter must not move.
    known: BTreeMap<(u32, u64), MountKey>,
    /// RPC clients of the last reading that had no name yet.
    unnamed: BTreeSet<(u32, u64)>,
    /// Numbers of ended RPC clients that could not be given back.
    kept: BTreeSet<u32>,
    names: Names,
}

impl ClientView {
    /// Reads the probe's tables.
    pub fn read(&mut self, l: &Loaded, recalls: Option<&Loaded>, s: &mut Snapshot) {
        // mountstats is read before the tables: its reading makes the probe fill in what is mounted.
        let _ = mountstats::read();
        let sources = nfs_sources();
        let maps = ["client_mount", "client_rpc", "client_clnt"].map(|name| l.map(name));
        let [Some(mounts), Some(rows), Some(numbers)] = maps else {
            return;
        };
        s.gauge(&f::VIEW_SOURCE_INFO, ["tracepoints"], 1.0);
        let mut now = Totals::default();
        let (mut keys, mut gone) = (BTreeMap::new(), BTreeSet::new());
        let mut by_dev = BTreeMap::new();
        let mut unnamed = BTreeSet::new();
        for n in 1..mounts.capacity() {
            if mounts.first_word(mounts.capacity(), n) == 0 || self.kept.contains(&n) {
                continue;
            }
            let Some(mount) = mounts.at::<t::client_mount>(n) else {
                continue;
            };
            let Some(key) = self.key((n, mount.clnt), &mount, &sources, &mut unnamed) else {
                continue;
            };
            if mount.gone > 0 {
                gone.insert(n);
            }
            let to = if mount.gone > 0 {
                &mut self.ended
            } else {
                &mut now
            };
            let total = to.mounts.entry(key.clone()).or_default();
            total.backlog.merge(&time(&mount.backlog));
            total.round_trip.merge(&time(&mount.round_trip));
            total.slot_wait.merge(&time(&mount.slot_wait));
            if mount.gone == 0 && mount.min_rtt_us > 0 {
                let rtt = f64::from(mount.min_rtt_us) / 1e6;
                total.network = Some(total.network.map_or(rtt, |n| n.min(rtt)));
            }
            by_dev.insert(mount.dev, key.clone());
            keys.insert(n, key);
        }
        self.unnamed = unnamed;
        let mut used = 0;
        let mut free = Vec::new();
        for n in 1..rows.capacity() {
            let mount = rows.first_word(rows.capacity(), n) as u32;
            used += usize::from(mount != 0);
            let (Some(key), Some(row)) = (keys.get(&mount), rows.at::<t::client_rpc>(n)) else {
                continue;
            };
            let is_gone = gone.contains(&mount);
            let to = if is_gone { &mut self.ended } else { &mut now };
            add(to, key, &row);
            if is_gone {
                free.push(n);
            }
        }
        for n in gone {
            self.known.retain(|(number, _), _| *number != n);
            if !give_back(l, n, mounts, rows, &free) {
                self.kept.insert(n);
            }
        }
        fill(numbers, keys.len(), "client_clnt", s);
        fill(rows, used, "client_rpc", s);
        use t::client_event as E;
        lost(
            l,
            "client_event",
            "client",
            s,
            &[
                ("client_mounts_full", E::EV_CLIENT_MOUNTS_FULL.0),
                ("map_full", E::EV_CLIENT_ROWS_FULL.0),
            ],
        );
        if let Some(map) = recalls.and_then(|l| l.map("recall_dev")) {
            self.recalled(map, &by_dev);
        }
        now.add(&self.ended);
        now.publish(&mut self.names, true, s);
    }

    /// Mount of an RPC client. `None` for a client without a name yet: a mount that was just made is in mountstats at the next reading.
    fn key(
        &mut self,
        id: (u32, u64),
        mount: &t::client_mount,
        sources: &BTreeMap<u32, String>,
        unnamed: &mut BTreeSet<(u32, u64)>,
    ) -> Option<MountKey> {
        if let Some(key) = self.known.get(&id) {
            return Some(key.clone());
        }
        let source = sources.get(&mount.dev);
        let told = mount.minor > 0 && (mount.dev == 0 || source.is_some());
        if !told && mount.gone == 0 && !self.unnamed.contains(&id) {
            unnamed.insert(id);
            return None;
        }
        let version = match (mount.version, mount.minor.checked_sub(1)) {
            (4, Some(minor)) => format!("4.{minor}"),
            (version, _) => version.to_string(),
        };
        let name = source.cloned().unwrap_or_else(|| text(&mount.address));
        let key = MountKey {
            mount: name,
            version,
        };
        self.known.insert(id, key.clone());
        Some(key)
    }

    /// Adds recalls since the last reading to the mounts of these device numbers, which may be another mount's later.
    fn recalled(&mut self, map: &Map, by_dev: &BTreeMap<u32, MountKey>) {
        let all = self.ended.recalls.get_or_insert(0);
        for dev in map.keys::<u32>() {
            let n = map.value::<u64>(&dev).unwrap_or(0);
            let last = self.recalls.insert(dev, n).unwrap_or(0);
            // The table of a probe that was attached again begins at 0.
            let came = if n >= last { n - last } else { n };
            match by_dev.get(&dev).filter(|_| dev != 0) {
                Some(key) => self.ended.mounts.entry(key.clone()).or_default().recalls += came,
                None => *all += came,
            }
        }
    }

    /// Reads the kernel's sums for each mount in place of the probe.
    pub fn read_mountstats(&mut self, s: &mut Snapshot) {
        s.gauge(&f::VIEW_SOURCE_INFO, ["mountstats"], 1.0);
        let totals = of_mountstats(&mountstats::read(), &Mounts::read());
        totals.publish(&mut self.names, false, s);
    }
}

/// Sources of NFS mounts, by device number.
fn nfs_sources() -> BTreeMap<u32, String> {
    let mounts = Mounts::read();
    let nfs = mounts.iter().filter(|m| m.fs == "nfs" || m.fs == "nfs4");
    nfs.map(|m| (m.dev, m.source.clone())).collect()
}

/// Adds a row to its mount and its procedure.
fn add(to: &mut Totals, key: &MountKey, row: &t::client_rpc) {
    let mount = to.mounts.entry(key.clone()).or_default();
    mount.retransmits += row.retransmissions;
    mount.timeouts += row.timeouts;
    mount.errors += row.errors;
    mount.sent += row.sent_bytes;
    mount.received += row.received_bytes;
    let execute = time(&row.execute);
    // NULL has no name in the kernel's table (net/sunrpc/clnt.c, rpcproc_null).
    let name = match text(&row.name).to_ascii_lowercase() {
        name if name.is_empty() => "null".to_owned(),
        name => name,
    };
    let op = to.ops.entry((key.clone(), name)).or_default();
    op.add(&OpTotals {
        rpcs: execute.count(),
        backlog: seconds(row.backlog_ns),
        round_trip: seconds(row.round_trip_ns),
        execute: execute.sum,
        durations: execute,
    });
}

/// Makes room for another RPC client. Returns false if this process may not.
fn give_back(l: &Loaded, n: u32, mounts: &Map, rows: &Map, free: &[u32]) -> bool {
    let maps = ["client_row", "client_free", "client_free_row"].map(|name| l.map(name));
    let [Some(cells), Some(free_mounts), Some(free_rows)] = maps else {
        return false;
    };
    if !(n * PROCS..(n + 1) * PROCS).all(|cell| cells.zero(cell)) {
        return false;
    }
    for row in free {
        if rows.first_word(rows.capacity(), *row) as u32 == n && rows.zero(*row) {
            free_rows.queue_row(*row);
        }
    }
    mounts.zero(n) && free_mounts.queue_row(n)
}

/// Sums by mount; a file system that is mounted in several places counts once.
fn of_mountstats(stats: &[MountStats], mounts: &Mounts) -> Totals {
    let mut all = Totals::default();
    let mut seen = BTreeSet::new();
    let ms = |n: u64| n as f64 / 1e3;
    for m in stats {
        let dev = mounts.iter().filter(|x| x.point == m.point).last();
        if dev.is_some_and(|x| !seen.insert(x.dev)) {
            continue;
        }
        let key = MountKey {
            mount: m.source.clone(),
            version: m.version.clone(),
        };
        let mount = all.mounts.entry(key.clone()).or_default();
        for op in &m.ops {
            mount.retransmits += op.transmissions.saturating_sub(op.ops);
            mount.timeouts += op.timeouts;
            mount.errors += op.errors;
            mount.sent += op.sent;
            mount.received += op.received;
            let to = all.ops.entry((key.clone(), op.name.clone())).or_default();
            to.add(&OpTotals {
                rpcs: op.ops,
                backlog: ms(op.backlog),
                round_trip: ms(op.round_trip),
                execute: ms(op.execute),
                ..OpTotals::default()
            });
        }
    }
    all
}
