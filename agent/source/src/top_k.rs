//! The busiest clients and exports: the names that have series of their own, and the counts of `other`.

use nfscope_model::Snapshot;
use nfscope_model::family::Family;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// Operations and their time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    pub ops: u64,
    pub ns: u64,
    /// Time to send replies.
    pub reply_ns: u64,
    /// Requests of a session: those that were sent while another slot was free, and those with every slot in use.
    pub slots_free: u64,
    pub slots_full: u64,
    /// All requests.
    pub requests: u64,
    /// Requests that only walk a path, over NFSv3 and NFSv4.
    pub v3_walks: u64,
    pub v4_walks: u64,
    /// Requests with an OPEN.
    pub opens: u64,
    /// Time of requests with an OPEN and of `v4_walks`.
    pub open_ns: u64,
    /// Bytes that READs returned.
    pub read_bytes: u64,
    /// Bytes that WRITEs stored.
    pub write_bytes: u64,
}

impl Sum {
    pub fn add(&mut self, other: Sum) {
        self.ops += other.ops;
        self.ns += other.ns;
        self.reply_ns += other.reply_ns;
        self.slots_free += other.slots_free;
        self.slots_full += other.slots_full;
        self.requests += other.requests;
        self.v3_walks += other.v3_walks;
        self.v4_walks += other.v4_walks;
        self.opens += other.opens;
        self.open_ns += other.open_ns;
        self.read_bytes += other.read_bytes;
        self.write_bytes += other.write_bytes;
    }
}

impl Sum {
    pub fn since(self, before: Sum) -> Sum {
        Sum {
            ops: self.ops.saturating_sub(before.ops),
            ns: self.ns.saturating_sub(before.ns),
            reply_ns: self.reply_ns.saturating_sub(before.reply_ns),
            slots_free: self.slots_free.saturating_sub(before.slots_free),
            slots_full: self.slots_full.saturating_sub(before.slots_full),
            requests: self.requests.saturating_sub(before.requests),
            v3_walks: self.v3_walks.saturating_sub(before.v3_walks),
            v4_walks: self.v4_walks.saturating_sub(before.v4_walks),
            opens: self.opens.saturating_sub(before.opens),
            open_ns: self.open_ns.saturating_sub(before.open_ns),
            read_bytes: self.read_bytes.saturating_sub(before.read_bytes),
            write_bytes: self.write_bytes.saturating_sub(before.write_bytes),
        }
    }
}

/// Time after which work counts half when the busiest are chosen.
const HALF_LIFE: Duration = Duration::from_secs(300);
/// Factor by which a newcomer must be busier, so that two equal names do not take turns.
const MARGIN: f64 = 1.1;

/// Account of a name.
#[derive(Debug, Default)]
pub struct Named {
    /// Counts since the name has series.
    pub sum: Sum,
    /// Part of the counts that has been published.
    published: Sum,
}

/// The busiest `most` names of one kind. In any period the total is the sum of what the names and `other` gained, and none of them ever
/// falls: a name that loses its series takes along its published counts, and leaves the rest to `other`.
#[derive(Debug)]
pub struct TopK {
    most: usize,
    pub named: BTreeMap<String, Named>,
    /// Weight of each name in the choice.
    weight: HashMap<String, f64>,
    evictions: u64,
    /// Counts of names while they had series, with those that have lost them.
    credited: Sum,
    other: Sum,
}

impl TopK {
    pub fn new(most: usize) -> Self {
        TopK {
            most,
            named: BTreeMap::new(),
            weight: HashMap::new(),
            evictions: 0,
            credited: Sum::default(),
            other: Sum::default(),
        }
    }

    /// Adds the counts of each name since the last reading, `since` ago.
    pub fn add(&mut self, deltas: &BTreeMap<String, Sum>, since: Duration) {
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

    /// Gives the busiest of `active` series, in place of names that are not as busy any more.
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
                    Some((least, lw)) if w > lw * MARGIN => self.evict(&least),
                    _ => return,
                }
            }
            self.named.insert(name.clone(), Named::default());
        }
    }

    /// Removes a name's series.
    fn evict(&mut self, name: &str) {
        if let Some(n) = self.named.remove(name) {
            self.credited.ops -= n.sum.ops - n.published.ops;
            self.credited.ns -= n.sum.ns - n.published.ns;
            self.credited.reply_ns -= n.sum.reply_ns - n.published.reply_ns;
        }
        self.evictions += 1;
    }

    /// Limits the names to `most` from now on; the least busy of too many lose their series at once.
    pub fn limit(&mut self, most: usize) {
        self.most = most;
        let weight = |name: &String| self.weight.get(name).copied().unwrap_or_default();
        let mut names: Vec<_> = self.named.keys().map(|n| (weight(n), n.clone())).collect();
        names.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (_, name) in names.iter().skip(most) {
            self.evict(name);
        }
    }

    /// Notes that the present sums have been published.
    pub fn publish(&mut self) {
        for named in self.named.values_mut() {
            named.published = named.sum;
        }
    }

    /// Sets `other` to the part of `total` without a name. It never falls: the rows may be ahead of totals that were read before.
    pub fn settle(&mut self, total: Sum) {
        let unnamed = |total: u64, credited| total.saturating_sub(credited);
        self.other.ops = self.other.ops.max(unnamed(total.ops, self.credited.ops));
        self.other.ns = self.other.ns.max(unnamed(total.ns, self.credited.ns));
    }

    pub fn fill(
        &self,
        s: &mut Snapshot,
        ops: &Family<1>,
        seconds: &Family<1>,
        evictions: &Family<0>,
    ) {
        for (name, named) in &self.named {
            s.counter(ops, [name], named.sum.ops as f64);
            s.counter(seconds, [name], named.sum.ns as f64 / 1e9);
        }
        s.counter(ops, ["other"], self.other.ops as f64);
        s.counter(seconds, ["other"], self.other.ns as f64 / 1e9);
        s.counter(evictions, [], self.evictions as f64);
    }
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
            ..Sum::default()
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

    /// Counts between two publications of a name that lost its series count for `other`.
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
    fn another_limit_holds_at_once_and_nothing_is_lost() {
        let mut b = TopK::new(1);
        b.add(&deltas(&[("a", 9), ("b", 5), ("c", 7)]), Duration::ZERO);
        b.settle(sum(21));
        b.publish();
        b.limit(3);
        b.add(&deltas(&[("b", 5), ("c", 7)]), Duration::from_secs(1));
        b.settle(sum(33));
        assert_eq!(names(&b), ["a", "b", "c"]);
        b.limit(1);
        b.settle(sum(33));
        assert_eq!(names(&b), ["c"]);
        // `other` has 12 of the first reading, and the 5 of b that were not published; a takes its 9 along.
        assert_eq!((b.named["c"].sum.ops, b.other.ops), (7, 12 + 5));
        assert_eq!(b.evictions, 2);
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
}
