//! Sums of the frames of a script over all processes that ran it: a process that ends takes its counts along, and the next one begins with
//! zero.

use super::frame::{Frame, Table};
use std::collections::BTreeMap;
use std::ops::Bound;

/// Limit of names, so that clients who come and go cannot fill the memory.
const MOST_KEYS: usize = 65_536;

#[derive(Debug, Default, Clone, Copy)]
struct Total {
    /// Count of processes that have ended.
    before: u64,
    /// Count of the process that runs.
    now: u64,
}

impl Total {
    fn all(self) -> u64 {
        self.before + self.now
    }
}

/// Counts and histograms by key.
#[derive(Debug, Default)]
pub struct Totals {
    counts: BTreeMap<String, Total>,
    tables: BTreeMap<String, BTreeMap<u16, Total>>,
    gauges: BTreeMap<String, i64>,
}

impl Totals {
    /// Takes a frame's values in place of those of the frame before.
    pub fn add(&mut self, frame: &Frame) {
        for (key, value) in &frame.counts {
            if self.counts.contains_key(key) || self.counts.len() < MOST_KEYS {
                let total = self.counts.entry(key.clone()).or_default();
                // A count of one process never falls.
                total.now = total.now.max(*value);
            }
        }
        for (key, table) in &frame.tables {
            if self.tables.contains_key(key) || self.tables.len() < MOST_KEYS {
                self.add_table(key, table);
            }
        }
        self.gauges = frame.gauges.clone();
    }

    fn add_table(&mut self, key: &str, table: &Table) {
        let rows = self.tables.entry(key.to_owned()).or_default();
        for (bucket, n) in table {
            let total = rows.entry(*bucket).or_default();
            total.now = total.now.max(*n);
        }
    }

    /// Notes that the process has ended: the next one begins with zero.
    pub fn restart(&mut self) {
        let all = self.tables.values_mut().flat_map(BTreeMap::values_mut);
        for total in self.counts.values_mut().chain(all) {
            total.before = total.all();
            total.now = 0;
        }
        self.gauges.clear();
    }

    /// Count of this key; 0 if it has none.
    pub fn count(&self, key: &str) -> u64 {
        self.counts.get(key).map_or(0, |t| t.all())
    }

    /// A value of the last frame.
    pub fn gauge(&self, key: &str) -> Option<i64> {
        self.gauges.get(key).copied()
    }

    /// Counts of this name: their other fields, and the value.
    pub fn counts<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (Vec<&'a str>, u64)> {
        under(&self.counts, name).map(|(fields, t)| (fields, t.all()))
    }

    /// Values of this name in the last frame.
    pub fn gauges<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (Vec<&'a str>, i64)> {
        under(&self.gauges, name).map(|(fields, v)| (fields, *v))
    }

    /// Histograms of this name.
    pub fn tables<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (Vec<&'a str>, Table)> {
        under(&self.tables, name).map(|(fields, rows)| {
            let rows = rows.iter().map(|(bucket, t)| (*bucket, t.all()));
            (fields, rows.collect())
        })
    }

    /// Histogram of a key; empty if it has none.
    pub fn table(&self, key: &str) -> Table {
        let rows = self.tables.get(key).into_iter().flatten();
        rows.map(|(bucket, t)| (*bucket, t.all())).collect()
    }
}

/// Entries whose key is this name, or begins with it and a tab; with the fields behind.
fn under<'a, T>(
    all: &'a BTreeMap<String, T>,
    name: &'a str,
) -> impl Iterator<Item = (Vec<&'a str>, &'a T)> {
    let from = (Bound::Included(name), Bound::Unbounded);
    let from = all.range::<str, _>(from);
    from.take_while(move |(key, _)| key.starts_with(name))
        .filter_map(move |(key, value)| {
            let fields = key[name.len()..].strip_prefix('\t')?;
            Some((fields.split('\t').collect(), value))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(count: u64, rows: &[(u16, u64)]) -> Frame {
        let mut frame = Frame::default();
        frame.counts.insert("n\ta".into(), count);
        frame.counts.insert("n2\ta".into(), 1);
        frame.tables.insert("t\t3\tx".into(), rows.to_vec());
        frame.gauges.insert("g".into(), -2);
        frame
    }

    #[test]
    fn a_new_process_adds_to_what_the_old_one_had() {
        let mut totals = Totals::default();
        totals.add(&frame(5, &[(1, 2)]));
        totals.add(&frame(7, &[(1, 3), (4, 1)]));
        assert_eq!(totals.count("n\ta"), 7);
        assert_eq!(totals.gauge("g"), Some(-2));
        totals.restart();
        assert_eq!((totals.count("n\ta"), totals.gauge("g")), (7, None));
        totals.add(&frame(2, &[(4, 1)]));
        assert_eq!(totals.counts("n").collect::<Vec<_>>(), [(vec!["a"], 9)]);
        let tables: Vec<_> = totals.tables("t").collect();
        assert_eq!(tables, [(vec!["3", "x"], vec![(1, 3), (4, 2)])]);
        // A key that is missing in a frame keeps its value.
        totals.add(&Frame::default());
        assert_eq!(totals.count("n\ta"), 9);
    }

    #[test]
    fn names_have_a_bound() {
        let mut totals = Totals::default();
        for i in 0..3 {
            let mut frame = Frame::default();
            let keys = (0..30_000).map(|n| (format!("n\t{i}-{n}"), 1));
            frame.counts.extend(keys);
            totals.add(&frame);
        }
        assert_eq!(totals.counts.len(), MOST_KEYS);
    }
}
