//! Clients and exports: the busiest have a series of their own, all others count for `other`.

use crate::illumos::totals::Totals;
use crate::top_k::{Sum, TopK};
use nfscope_model::Snapshot;
use nfscope_model::family as f;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// Accounts of clients or of exports, from one reading to the next.
#[derive(Debug)]
struct Kind {
    top: TopK,
    before: HashMap<String, Sum>,
}

/// Accounts of clients and exports.
#[derive(Debug)]
pub struct Accounting {
    clients: Kind,
    exports: Kind,
    at: Duration,
}

impl Kind {
    fn new(most: usize) -> Self {
        Kind {
            top: TopK::new(most),
            before: HashMap::new(),
        }
    }

    /// Reads the counts of clients or exports. `name` is that of the counts in the script, without its end.
    fn read(&mut self, totals: &Totals, name: &str, since: Duration, all: Sum) {
        let mut deltas = BTreeMap::new();
        let (ops, ns) = (format!("{name}_ops"), format!("{name}_ns"));
        for (fields, n) in totals.counts(&ops) {
            let label = match fields[..] {
                // The translators write these words for a transport that they do not know, and for a request outside of all exports.
                ["unknown" | "<unknown>"] if name == "client" => "local",
                ["<unknown>"] => "none",
                [known] => known,
                _ => continue,
            };
            let sum = Sum {
                ops: n,
                ns: totals.count(&format!("{ns}\t{}", fields[0])),
                ..Sum::default()
            };
            let before = self.before.insert(fields[0].to_owned(), sum);
            let delta = sum.since(before.unwrap_or_default());
            if delta.ops > 0 {
                let of = deltas.entry(label.to_owned());
                of.or_insert_with(Sum::default).add(delta);
            }
        }
        self.top.add(&deltas, since);
        self.top.settle(all);
    }
}

impl Accounting {
    /// Makes accounts with at most this number of clients and of exports that have series.
    pub fn new(max_clients: usize, max_exports: usize) -> Self {
        Accounting {
            clients: Kind::new(max_clients),
            exports: Kind::new(max_exports),
            at: Duration::ZERO,
        }
    }

    /// Limits the clients and exports that have series from now on.
    pub fn limit(&mut self, max_clients: usize, max_exports: usize) {
        self.clients.top.limit(max_clients);
        self.exports.top.limit(max_exports);
    }

    /// Notes that the values of the last reading have been published.
    pub fn publish(&mut self) {
        self.clients.top.publish();
        self.exports.top.publish();
    }

    /// Reads the totals of script `nfs`; `exports` is true if the script knows exports.
    pub fn read(&mut self, totals: &Totals, exports: bool, s: &mut Snapshot) {
        let all = Sum {
            ops: totals
                .tables("op")
                .flat_map(|(_, table)| table)
                .map(|(_, n)| n)
                .sum(),
            ns: totals.counts("op_ns").map(|(_, ns)| ns).sum(),
            ..Sum::default()
        };
        let since = s.at.saturating_sub(std::mem::replace(&mut self.at, s.at));
        self.clients.read(totals, "client", since, all);
        self.clients.top.fill(
            s,
            &f::CLIENT_OPS,
            &f::CLIENT_OP_SECONDS,
            &f::CLIENT_EVICTIONS,
        );
        if exports {
            self.exports.read(totals, "export", since, all);
            self.exports.top.fill(
                s,
                &f::EXPORT_OPS,
                &f::EXPORT_OP_SECONDS,
                &f::EXPORT_EVICTIONS,
            );
        }
    }
}
