//! Clients and exports from the probes' tables: the counts of each, and which of them have series of their own.

use super::decode::fill;
use crate::linux::host::file_handle::{Exports, NO_EXPORT};
use crate::linux::load::maps::Map;
use crate::linux::load::object::Loaded;
use crate::linux::load::program::Build;
use crate::linux::read::unsafe_writes::Durable;
use crate::top_k::{Sum, TopK};
use nfscope_model::Snapshot;
use nfscope_model::family as f;
use nfscope_model::family::Family;
use nfscope_probes::types as t;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// Accounts of clients and exports, from one reading to the next.
#[derive(Debug)]
pub struct ClientAccounting {
    clients: TopK,
    exports: TopK,
    /// Rows at the last reading.
    before: HashMap<([u64; 2], u64), Before>,
    /// WRITEs and COMMITs that clients take for durable, by export, since they were taken.
    durable: BTreeMap<String, Durable>,
    epoch: u32,
    /// Requests without a row, at the last reading.
    full: f64,
    at: Duration,
}

/// Values of a row at the last reading.
#[derive(Debug, Clone, Copy, Default)]
struct Before {
    requests_ops: u64,
    sum: Sum,
    durable: Durable,
}

/// `REQUEST_BITS` of nfsd.h.
const REQUEST_BITS: u32 = 32;

/// Requests and operations between two readings of the word that has both.
fn requests_and_ops(now: u64, before: u64) -> (u64, u64) {
    let delta = now.wrapping_sub(before);
    (delta & ((1 << REQUEST_BITS) - 1), delta >> REQUEST_BITS)
}

/// Section with `session_rows` of nfsd/client_accounting.h.
const SESSION_ROWS: &str = ".bss.nfsd_rows";
/// `CLIENT_SEEN_SHIFT` of nfsd.h.
const CLIENT_SEEN_SHIFT: u32 = 30;

/// Time for which a round-trip time is reported after the client's last request.
const RTT_LASTS: Duration = Duration::from_secs(300);

/// Address in a key of the probes; `None` for a transport without one.
pub fn address(client: [u64; 2]) -> Option<IpAddr> {
    let mut bytes = [0u8; 16];
    bytes[..8].copy_from_slice(&client[0].to_ne_bytes());
    bytes[8..].copy_from_slice(&client[1].to_ne_bytes());
    let v6 = Ipv6Addr::from(bytes);
    (!v6.is_unspecified()).then(|| v6.to_canonical())
}

/// Value of the label `client`.
pub fn client_name(client: [u64; 2]) -> String {
    address(client).map_or_else(|| "local".into(), |a| a.to_string())
}

impl ClientAccounting {
    /// Makes accounts with at most this number of clients and of exports that have series.
    pub fn new(max_clients: usize, max_exports: usize) -> Self {
        ClientAccounting {
            clients: TopK::new(max_clients),
            exports: TopK::new(max_exports),
            before: HashMap::new(),
            durable: BTreeMap::new(),
            epoch: 1,
            full: 0.0,
            at: Duration::ZERO,
        }
    }

    /// Limits the clients and exports that have series from now on.
    pub fn limit(&mut self, max_clients: usize, max_exports: usize) {
        self.clients.limit(max_clients);
        self.exports.limit(max_exports);
    }

    /// Notes that the values of the last reading have been published.
    pub fn publish(&mut self) {
        self.clients.publish();
        self.exports.publish();
    }

    /// WRITEs and COMMITs of each export that clients take for durable, since the last call.
    pub fn take_durable(&mut self) -> BTreeMap<String, Durable> {
        std::mem::take(&mut self.durable)
    }

    /// Reads the probes' tables.
    pub fn read(&mut self, l: &Loaded, exports: &mut Exports, s: &mut Snapshot) {
        let maps = ["nfsd_version", "nfsd_client", "nfsd_client_row"].map(|name| l.map(name));
        let [Some(versions), Some(index), Some(map)] = maps else {
            return;
        };
        let total = total(versions);
        let keys = index.keys::<t::client_key>().into_iter();
        let mut named: Vec<_> = keys
            .filter_map(|k| Some((index.value::<u32>(&k)?, k)))
            .collect();
        // Rows are read in the order of memory, of which a piece at a time is mapped.
        named.sort_unstable_by_key(|(row, _)| *row);
        let sessions = l.map(SESSION_ROWS);
        let more = |row: u32| -> t::session_row {
            sessions
                .and_then(|rows| rows.element(row))
                .unwrap_or_default()
        };
        let named = named.into_iter();
        let rows: Vec<_> = named
            .map(|(row, k)| (k, client(map, index.capacity(), row), more(row)))
            .collect();
        let (mut by_client, mut by_export) = (BTreeMap::new(), BTreeMap::new());
        let mut rtt: HashMap<String, (u32, u32)> = HashMap::new();
        let mut min_rtt: HashMap<String, (u32, u32)> = HashMap::new();
        let mut slots: HashMap<String, (u32, u32)> = HashMap::new();
        for (key, row, more) in &rows {
            let sum = Sum {
                ns: row.ns,
                reply_ns: row.reply_ns,
                slots_free: more.slots_free,
                slots_full: more.slots_full,
                v3_walks: more.v3_walks,
                v4_walks: more.v4_walks,
                opens: more.opens,
                open_ns: more.open_ns,
                read_bytes: row.read_bytes,
                write_bytes: row.write_bytes,
                ..Sum::default()
            };
            let durable = Durable {
                all: more.stable,
                unwaited_writes: more.unwaited_writes,
                unwaited_commits: more.unwaited_commits,
            };
            let now = Before {
                requests_ops: row.requests_ops,
                sum,
                durable,
            };
            let before = self.before.insert((key.client, key.export), now);
            let before = before.unwrap_or_default();
            let (mut delta, durable) = (sum.since(before.sum), durable.since(before.durable));
            (delta.requests, delta.ops) = requests_and_ops(row.requests_ops, before.requests_ops);
            let client = client_name(key.client);
            let seen = Duration::from_nanos(u64::from(row.seen) << CLIENT_SEEN_SHIFT);
            for (times, us) in [(&mut rtt, row.srtt_us), (&mut min_rtt, min_rtt_us(more))] {
                if us > 0 && s.at.saturating_sub(seen) < RTT_LASTS {
                    let known = times.entry(client.clone()).or_default();
                    *known = (*known).max((row.seen, us));
                }
            }
            if more.slots > 0 {
                let known = slots.entry(client.clone()).or_default();
                *known = (*known).max((row.seen, more.slots));
            }
            // Idle rows are left out, because the kernel's list is read again for an export that is not in it.
            if delta.ops > 0 || delta.slots_free + delta.slots_full > 0 || durable.all > 0 {
                let export = match key.export {
                    NO_EXPORT => "none".to_owned(),
                    // Exports without a path share one name, because clients can make them up.
                    k => exports.path(k).unwrap_or("unknown").to_owned(),
                };
                if durable.all > 0 {
                    self.durable.entry(export.clone()).or_default().add(durable);
                }
                by_client.entry(client).or_insert(Sum::default()).add(delta);
                by_export.entry(export).or_insert(Sum::default()).add(delta);
            }
        }
        let since = s.at.saturating_sub(std::mem::replace(&mut self.at, s.at));
        for (kind, deltas) in [
            (&mut self.clients, &by_client),
            (&mut self.exports, &by_export),
        ] {
            kind.add(deltas, since);
            kind.settle(total);
        }
        self.clients.fill(
            s,
            &f::CLIENT_OPS,
            &f::CLIENT_OP_SECONDS,
            &f::CLIENT_EVICTIONS,
        );
        // The raw build cannot read a COMPOUND's file handle.
        if l.build == Build::Btf {
            self.exports.fill(
                s,
                &f::EXPORT_OPS,
                &f::EXPORT_OP_SECONDS,
                &f::EXPORT_EVICTIONS,
            );
        }
        // There is no series `other`: nfscope_io_size_bytes has the bytes of all.
        fill_bytes(&self.clients, &f::CLIENT_IO_BYTES, s);
        if l.build == Build::Btf {
            fill_bytes(&self.exports, &f::EXPORT_IO_BYTES, s);
        }
        // There is no series `other`: the phase reply has the time of all clients.
        for (name, named) in &self.clients.named {
            let seconds = named.sum.reply_ns as f64 / 1e9;
            s.counter(&f::CLIENT_REPLY_SECONDS, [name], seconds);
            fill_requests(name, named.sum, s);
            let (free, full) = (named.sum.slots_free, named.sum.slots_full);
            if free + full > 0 {
                s.counter(&f::CLIENT_SESSION_REQUESTS, [name, "free"], free as f64);
                s.counter(&f::CLIENT_SESSION_REQUESTS, [name, "full"], full as f64);
            }
            if let Some((_, granted)) = slots.get(name) {
                s.gauge(&f::CLIENT_SESSION_SLOTS, [name], f64::from(*granted));
            }
        }
        for name in self.clients.named.keys() {
            if let Some((_, srtt)) = rtt.get(name) {
                s.gauge(&f::CLIENT_RTT, [name], f64::from(*srtt) / 8.0 / 1e6);
            }
            if let Some((_, us)) = min_rtt.get(name) {
                s.gauge(&f::CLIENT_MIN_RTT, [name], f64::from(*us) / 1e6);
            }
        }
        fill(index, rows.len(), "nfsd_client", s);
        let full = s
            .value(&f::EVENTS_LOST, ["nfsd", "client_full"])
            .unwrap_or_default();
        let more = full > std::mem::replace(&mut self.full, full);
        if more || rows.len() >= index.capacity() as usize * 3 / 4 {
            self.begin_epoch(l);
        }
    }

    /// Gives every row back: connections then ask again for theirs. Operations meanwhile have no name and count for `other`.
    fn begin_epoch(&mut self, l: &Loaded) {
        let (Some(index), Some(map), Some(free)) = (
            l.map("nfsd_client"),
            l.map("nfsd_client_row"),
            l.map("nfsd_free_rows"),
        ) else {
            return;
        };
        self.before.clear();
        // The order matters: with queue and index empty no connection learns a row, and with the new epoch none knows one.
        free.drain_queue();
        index.clear();
        // The probes begin with 1. A failed write does no harm: the section exists as long as the probes do.
        self.epoch += 1;
        let _ = l.set(".data.nfsd_client_epoch", &self.epoch);
        map.zero_rows();
        if let Some(sessions) = l.map(SESSION_ROWS) {
            sessions.zero_rows();
        }
        free.queue_rows();
    }
}

/// Lowest round-trip time of a connection; 0 before TCP has measured one (all ones: tcp_init_sock() in net/ipv4/tcp.c).
fn min_rtt_us(row: &t::session_row) -> u32 {
    match row.min_rtt_us {
        u32::MAX => 0,
        us => us,
    }
}

/// Adds bytes that READs returned and WRITEs stored. Names without any get 0, so that a missing series means that bytes are not counted.
fn fill_bytes(of: &TopK, family: &Family<2>, s: &mut Snapshot) {
    for (name, named) in &of.named {
        for (op, bytes) in [
            ("read", named.sum.read_bytes),
            ("write", named.sum.write_bytes),
        ] {
            s.counter(family, [name, op], bytes as f64);
        }
    }
}

/// Adds the requests of a client by kind.
fn fill_requests(name: &str, sum: Sum, s: &mut Snapshot) {
    s.counter(&f::CLIENT_REQUESTS, [name], sum.requests as f64);
    for (version, walks) in [("3", sum.v3_walks), ("4", sum.v4_walks)] {
        if walks > 0 {
            s.counter(&f::CLIENT_WALKS, [name, version], walks as f64);
        }
    }
    if sum.opens > 0 {
        s.counter(&f::CLIENT_OPENS, [name], sum.opens as f64);
        s.counter(&f::CLIENT_OPEN_SECONDS, [name], sum.open_ns as f64 / 1e9);
    }
}

/// Sum of all present and former rows. It must be read before the rows: each request adds to its row first, and then to this sum.
/// Operations without a name yet therefore never count for `other`, which could not give them back.
fn total(versions: &Map) -> Sum {
    let mut sum = Sum::default();
    for version in 0..t::version::VERSIONS.0 {
        let row = versions.total::<t::version_row>(t::version::VERSIONS.0, version);
        sum.add(Sum {
            ops: row.accounted_ops,
            ns: row.accounted_ns,
            ..Sum::default()
        });
    }
    sum
}

/// Row of a table of `rows`, over all shards: the sum of the counts, and the last time.
fn client(map: &Map, rows: u32, row: u32) -> t::client_row {
    let mut all = t::client_row::default();
    for part in map
        .shards(rows, row)
        .filter_map(|i| map.at::<t::client_row>(i))
    {
        let requests_ops = all.requests_ops.wrapping_add(part.requests_ops);
        let (ns, reply_ns) = (all.ns + part.ns, all.reply_ns + part.reply_ns);
        let read_bytes = all.read_bytes + part.read_bytes;
        let write_bytes = all.write_bytes + part.write_bytes;
        if part.seen >= all.seen {
            all = part;
        }
        (all.requests_ops, all.ns, all.reply_ns) = (requests_ops, ns, reply_ns);
        (all.read_bytes, all.write_bytes) = (read_bytes, write_bytes);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds a request as the probe does: nfsd/client_accounting.h.
    fn add(word: u64, ops: u64) -> u64 {
        word.wrapping_add(ops << REQUEST_BITS | 1)
    }

    #[test]
    fn requests_and_operations_share_a_word_that_may_overflow() {
        let before = add(add(0, 3), 1);
        assert_eq!(requests_and_ops(before, 0), (2, 4));
        // The word has nearly four billion requests, and its operations are near their limit, too.
        let before = (u64::from(u32::MAX - 1) << REQUEST_BITS) | u64::from(u32::MAX);
        let now = (0..5).fold(before, |word, _| add(word, 4));
        assert!(now < before);
        assert_eq!(requests_and_ops(now, before), (5, 20));
        // Sum of two shards, of which one overflowed.
        let (one, two) = (add(before, 7), add(9, 2));
        let all = one.wrapping_add(two);
        assert_eq!(requests_and_ops(all, before.wrapping_add(9)), (2, 9));
        assert_eq!(requests_and_ops(all, all), (0, 0));
    }

    #[test]
    fn addresses() {
        let v4 = [0u64, u64::from_ne_bytes([0, 0, 0xff, 0xff, 10, 0, 0, 7])];
        assert_eq!(address(v4).unwrap().to_string(), "10.0.0.7");
        let v6 = [(0xfe80u64 << 48).to_be(), 1u64.to_be()];
        assert_eq!(address(v6).unwrap().to_string(), "fe80::1");
        assert_eq!(address([0, 0]), None);
    }
}
