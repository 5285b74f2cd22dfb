//! The busiest clients and exports: who has a series of its own, and what counts for `other`.

use super::decode::fill;
use crate::linux::host::file_handle::{Exports, NO_EXPORT};
use crate::linux::load::maps::Map;
use crate::linux::load::object::Loaded;
use crate::linux::load::program::Build;
use nfscope_model::Snapshot;
use nfscope_model::family as f;
use nfscope_model::family::Family;
use nfscope_probes::types as t;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// Operations and their time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sum {
    ops: u64,
    ns: u64,
    /// Sending replies.
    reply_ns: u64,
}

impl Sum {
    fn add(&mut self, other: Sum) {
        self.ops += other.ops;
        self.ns += other.ns;
        self.reply_ns += other.reply_ns;
    }
}

impl Sum {
    fn since(self, before: Sum) -> Sum {
        Sum {
            ops: self.ops.saturating_sub(before.ops),
            ns: self.ns.saturating_sub(before.ns),
            reply_ns: self.reply_ns.saturating_sub(before.reply_ns),
        }
    }
}

/// How fast yesterday's work is forgotten when the busiest are chosen.
const HALF_LIFE: Duration = Duration::from_secs(300);
/// How much busier a newcomer must be, so that two of a size do not take turns.
const MARGIN: f64 = 1.1;

/// A name's account.
#[derive(Debug, Default)]
struct Named {
    /// What it has, since it is named.
    sum: Sum,
    /// What of that has been published.
    published: Sum,
}

/// The busiest `most` names of one kind. In any span of time what was counted is the sum of what the named and `other`
/// gained, and none of them ever falls: a name that loses its series takes along what was published of it, and leaves the rest to `other`.
#[derive(Debug)]
struct TopK {
    most: usize,
    named: BTreeMap<String, Named>,
    /// What each name counts for in the choice.
    weight: HashMap<String, f64>,
    evictions: u64,
    /// What named ones did while they were named, those included that are so no more.
    credited: Sum,
    other: Sum,
}

impl TopK {
    fn new(most: usize) -> Self {
        TopK {
            most,
            named: BTreeMap::new(),
            weight: HashMap::new(),
            evictions: 0,
            credited: Sum::default(),
            other: Sum::default(),
        }
    }

    /// Adds what each name did since the last reading, `since` ago.
    fn add(&mut self, deltas: &BTreeMap<String, Sum>, since: Duration) {
        let fade = 0.5f64.powf(since.as_secs_f64() / HALF_LIFE.as_secs_f64());
        self.weight.retain(|_, w| {
            *w *= fade;
            *w > 0.01
        });
        // The least busy of too many names are forgotten: they would not be chosen.
        let bound = 4 * self.most + 4096;
        if self.weight.len() > bound {
            let mut all: Vec<f64> = self.weight.values().copied().collect();
            all.sort_by(f64::total_cmp);
            let least = all[all.len() - bound / 2];
            self.weight.retain(|_, w| *w > least);
        }
        for (name, d) in deltas {
            *self.weight.entry(name.clone()).or_default() += d.ops as f64;
        }
        self.choose(deltas.keys());
        for (name, d) in deltas {
            if let Some(named) = self.named.get_mut(name) {
                named.sum.add(*d);
                self.credited.add(*d);
            }
        }
    }

    /// Gives the busiest of `active` a place, in front of those that are not as busy any more.
    fn choose<'a>(&mut self, active: impl Iterator<Item = &'a String>) {
        let weight = |name: &str| self.weight.get(name).copied().unwrap_or_default();
        let mut new: Vec<(&String, f64)> = active
            .filter(|n| !self.named.contains_key(*n))
            .map(|n| (n, weight(n)))
            .collect();
        if new.is_empty() {
            return;
        }
        new.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut old: Vec<(String, f64)> =
            self.named.keys().map(|n| (n.clone(), weight(n))).collect();
        old.sort_by(|a, b| a.1.total_cmp(&b.1));
        let mut old = old.into_iter();
        for (name, w) in new {
            if self.named.len() >= self.most {
                match old.next() {
                    Some((least, lw)) if w > lw * MARGIN => {
                        if let Some(n) = self.named.remove(&least) {
                            self.credited.ops -= n.sum.ops - n.published.ops;
                            self.credited.ns -= n.sum.ns - n.published.ns;
                            self.credited.reply_ns -= n.sum.reply_ns - n.published.reply_ns;
                        }
                        self.evictions += 1;
                    }
                    _ => return,
                }
            }
            self.named.insert(name.clone(), Named::default());
        }
    }

    /// The sums as they stand now have been published.
    fn publish(&mut self) {
        for named in self.named.values_mut() {
            named.published = named.sum;
        }
    }

    /// What is not named, of `total`. It never falls: the rows may be ahead of totals that were read before.
    fn settle(&mut self, total: Sum) {
        let unnamed = |total: u64, credited| total.saturating_sub(credited);
        self.other.ops = self.other.ops.max(unnamed(total.ops, self.credited.ops));
        self.other.ns = self.other.ns.max(unnamed(total.ns, self.credited.ns));
    }

    fn fill(&self, s: &mut Snapshot, ops: &Family<1>, seconds: &Family<1>, evictions: &Family<0>) {
        for (name, named) in &self.named {
            s.counter(ops, [name], named.sum.ops as f64);
            s.counter(seconds, [name], named.sum.ns as f64 / 1e9);
        }
        s.counter(ops, ["other"], self.other.ops as f64);
        s.counter(seconds, ["other"], self.other.ns as f64 / 1e9);
        s.counter(evictions, [], self.evictions as f64);
    }
}

/// Clients and exports, from one reading to the next.
#[derive(Debug)]
pub struct ClientAccounting {
    clients: TopK,
    exports: TopK,
    /// Rows as they were read last.
    before: HashMap<([u64; 2], u64), Sum>,
    epoch: u32,
    /// Requests without a row, at the last reading.
    full: f64,
    at: Duration,
}

/// `CLIENT_SEEN_SHIFT` of nfsd.h.
const CLIENT_SEEN_SHIFT: u32 = 30;

/// How long a round-trip time is reported after the client's last request.
const RTT_LASTS: Duration = Duration::from_secs(300);

/// The address in a key of the probes; `None` for a transport without one.
pub fn address(client: [u64; 2]) -> Option<IpAddr> {
    let mut bytes = [0u8; 16];
    bytes[..8].copy_from_slice(&client[0].to_ne_bytes());
    bytes[8..].copy_from_slice(&client[1].to_ne_bytes());
    let v6 = Ipv6Addr::from(bytes);
    (!v6.is_unspecified()).then(|| v6.to_canonical())
}

impl ClientAccounting {
    /// With at most so many of each.
    pub fn new(max_clients: usize, max_exports: usize) -> Self {
        ClientAccounting {
            clients: TopK::new(max_clients),
            exports: TopK::new(max_exports),
            before: HashMap::new(),
            epoch: 1,
            full: 0.0,
            at: Duration::ZERO,
        }
    }

    /// What was read last has been published.
    pub fn publish(&mut self) {
        self.clients.publish();
        self.exports.publish();
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
        // As they lie in memory, of which a piece at a time is mapped.
        named.sort_unstable_by_key(|(row, _)| *row);
        let named = named.into_iter();
        let rows: Vec<_> = named
            .map(|(row, k)| (k, client(map, index.capacity(), row)))
            .collect();
        let (mut by_client, mut by_export) = (BTreeMap::new(), BTreeMap::new());
        let mut rtt: HashMap<String, (u32, u32)> = HashMap::new();
        for (key, row) in &rows {
            let sum = Sum {
                ops: row.ops,
                ns: row.ns,
                reply_ns: row.reply_ns,
            };
            let before = self.before.insert((key.client, key.export), sum);
            let delta = sum.since(before.unwrap_or_default());
            let client = address(key.client).map_or_else(|| "local".into(), |a| a.to_string());
            let seen = Duration::from_nanos(u64::from(row.seen) << CLIENT_SEEN_SHIFT);
            if row.srtt_us > 0 && s.at.saturating_sub(seen) < RTT_LASTS {
                let known = rtt.entry(client.clone()).or_default();
                *known = (*known).max((row.seen, row.srtt_us));
            }
            // Not for a row that stands still: the kernel's list is read again for an export that is not in it.
            if delta.ops > 0 {
                let export = match key.export {
                    NO_EXPORT => "none".to_owned(),
                    // One name for all that have none, because clients can make them up.
                    k => exports.path(k).unwrap_or("unknown").to_owned(),
                };
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
        // That build cannot read a COMPOUND's file handle.
        if l.build == Build::Btf {
            self.exports.fill(
                s,
                &f::EXPORT_OPS,
                &f::EXPORT_OP_SECONDS,
                &f::EXPORT_EVICTIONS,
            );
        }
        // Without `other`: what all clients took is the phase reply.
        for (name, named) in &self.clients.named {
            let seconds = named.sum.reply_ns as f64 / 1e9;
            s.counter(&f::CLIENT_REPLY_SECONDS, [name], seconds);
        }
        for name in self.clients.named.keys() {
            if let Some((_, srtt)) = rtt.get(name) {
                s.gauge(&f::CLIENT_RTT, [name], f64::from(*srtt) / 8.0 / 1e6);
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

    /// Gives every row back: connections then ask anew for theirs. What is added meanwhile has no name and counts for
    /// `other`.
    fn begin_epoch(&mut self, l: &Loaded) {
        let (Some(index), Some(map), Some(free)) = (
            l.map("nfsd_client"),
            l.map("nfsd_client_row"),
            l.map("nfsd_free_rows"),
        ) else {
            return;
        };
        self.before.clear();
        // In this order: with queue and index empty no connection learns a row, and with the new epoch none knows one.
        free.drain_queue();
        index.clear();
        // The probes begin with 1. The section exists as long as they do: what cannot be written could not be read.
        self.epoch += 1;
        let _ = l.set(".data.nfsd_client_epoch", &self.epoch);
        map.zero_rows();
        free.queue_rows();
    }
}

/// What all rows hold and held. To be read before them: each request adds here after it has added to its row, so that what
/// has no name yet never counts for `other`, which could not give it back.
fn total(versions: &Map) -> Sum {
    let mut sum = Sum::default();
    for version in 0..t::version::VERSIONS.0 {
        let row = versions.total::<t::version_row>(t::version::VERSIONS.0, version);
        sum.add(Sum {
            ops: row.accounted_ops,
            ns: row.accounted_ns,
            reply_ns: 0,
        });
    }
    sum
}

/// A row, of so many, of all shards: what was counted in each, and what was seen last.
fn client(map: &Map, rows: u32, row: u32) -> t::client_row {
    let mut all = t::client_row::default();
    for part in map
        .shards(rows, row)
        .filter_map(|i| map.at::<t::client_row>(i))
    {
        let (ops, ns) = (all.ops + part.ops, all.ns + part.ns);
        let reply_ns = all.reply_ns + part.reply_ns;
        if part.seen >= all.seen {
            all = part;
        }
        (all.ops, all.ns, all.reply_ns) = (ops, ns, reply_ns);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deltas(of: &[(&str, u64)]) -> BTreeMap<String, Sum> {
        of.iter()
            .map(|&(n, ops)| (n.to_owned(), sum(ops)))
            .collect()
    }

    fn sum(ops: u64) -> Sum {
        Sum {
            ops,
            ns: ops * 1000,
            reply_ns: ops * 10,
        }
    }

    fn names(b: &TopK) -> Vec<&str> {
        b.named.keys().map(String::as_str).collect()
    }

    #[test]
    fn all_have_a_series_while_there_is_room() {
        let mut b = TopK::new(3);
        b.add(&deltas(&[("a", 5), ("b", 1)]), Duration::ZERO);
        b.add(&deltas(&[("b", 1), ("c", 9)]), Duration::from_secs(1));
        b.settle(sum(16));
        assert_eq!(names(&b), ["a", "b", "c"]);
        assert_eq!(b.named["b"].sum.ops, 2);
        assert_eq!((b.other.ops, b.evictions), (0, 0));
    }

    #[test]
    fn the_busiest_keep_theirs_and_nothing_is_lost() {
        let mut b = TopK::new(2);
        b.add(
            &deltas(&[("a", 5), ("b", 50), ("c", 7), ("d", 1)]),
            Duration::ZERO,
        );
        assert_eq!(names(&b), ["b", "c"]);
        b.settle(sum(63));
        b.publish();
        assert_eq!(b.other.ops, 6);
        // d overtakes c; from here on c counts as other.
        b.add(&deltas(&[("d", 20)]), Duration::from_secs(1));
        b.settle(sum(83));
        assert_eq!(names(&b), ["b", "d"]);
        assert_eq!((b.named["d"].sum.ops, b.other.ops), (20, 6));
        assert_eq!(b.evictions, 1);
    }

    /// What a name gained between two publications and lost with its name counts for `other`.
    #[test]
    fn what_was_not_published_of_a_name_stays() {
        let mut b = TopK::new(1);
        b.add(&deltas(&[("a", 10)]), Duration::ZERO);
        b.settle(sum(10));
        b.publish();
        b.add(&deltas(&[("a", 4)]), Duration::from_secs(1));
        b.settle(sum(14));
        b.add(&deltas(&[("b", 100)]), Duration::from_secs(1));
        b.settle(sum(114));
        assert_eq!(names(&b), ["b"]);
        assert_eq!((b.named["b"].sum.ops, b.other.ops), (100, 4));
    }

    #[test]
    fn equals_do_not_take_turns() {
        let mut b = TopK::new(1);
        b.add(&deltas(&[("a", 100)]), Duration::ZERO);
        for _ in 0..20 {
            b.add(&deltas(&[("a", 100), ("b", 100)]), Duration::from_secs(2));
        }
        assert_eq!(names(&b), ["a"]);
        assert_eq!(b.evictions, 0);
    }

    #[test]
    fn work_of_long_ago_counts_less() {
        let mut b = TopK::new(1);
        b.add(&deltas(&[("a", 1000)]), Duration::ZERO);
        b.add(&deltas(&[("b", 100)]), 5 * HALF_LIFE);
        assert_eq!(names(&b), ["b"]);
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
