//! Answers after which a client asks again, and locks that were granted, by client.

use super::decode::fill;
use super::nfsd::op_name;
use super::top_k::address;
use crate::linux::load::object::Loaded;
use crate::nfs_names::status;
use nfscope_model::comes_again::comes_again;
use nfscope_model::{Snapshot, family as f};
use nfscope_probes::types as t;
use std::collections::BTreeMap;

/// Series at most, those with the highest counts.
const MOST_SERIES: usize = 512;

/// Adds the family. A table that is nearly full is emptied, so that new clients find room.
pub fn read(l: &Loaded, s: &mut Snapshot) {
    let Some(map) = l.map("nfsd_answers") else {
        return;
    };
    let keys = map.keys::<t::client_answer_key>();
    fill(map, keys.len(), "nfsd_answers", s);
    let (mut all, mut locks) = (BTreeMap::new(), BTreeMap::new());
    for key in &keys {
        let Some((version, op)) = op_name(key.row, l.build) else {
            continue;
        };
        let status = status(version == "3", key.status);
        let granted = key.status == 0;
        if !granted && comes_again(op, &status).is_none() {
            continue;
        }
        let client = address(key.client).map_or_else(|| "local".into(), |a| a.to_string());
        let n = map.value::<u64>(key).unwrap_or_default();
        match granted {
            true => *locks.entry(client).or_insert(0) += n,
            false => *all.entry((client, version, op, status)).or_insert(0) += n,
        }
    }
    for (client, n) in most(locks) {
        s.counter(&f::CLIENT_LOCKS, [&client], n as f64);
    }
    for ((client, version, op, status), n) in most(all) {
        s.counter(
            &f::CLIENT_RETRIED,
            [&client, version, op, &status],
            n as f64,
        );
    }
    if keys.len() >= map.capacity() as usize * 3 / 4 {
        map.clear();
    }
}

/// Returns the series with the highest counts.
fn most<K>(counts: BTreeMap<K, u64>) -> impl Iterator<Item = (K, u64)> {
    let mut all: Vec<_> = counts.into_iter().collect();
    all.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    all.into_iter().take(MOST_SERIES)
}
