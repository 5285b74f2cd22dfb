//! Answers after which a client asks again, locks that were granted, and calls that were refused, by client.

use super::decode::fill;
use super::nfsd::op_name;
use super::top_k::client_name;
use crate::linux::load::object::Loaded;
use crate::linux::load::program::Build;
use crate::nfs_names::status;
use nfscope_model::comes_again::comes_again;
use nfscope_model::{Snapshot, family as f};
use nfscope_probes::types as t;
use std::collections::BTreeMap;

/// Limit of series of rows that were removed. With as many rows in the table there are 512.
const MOST_REMOVED: usize = 256;

/// A client and the kind of answer that is counted.
type Answer = (String, What);

/// Kinds of answers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// Answers, by version, operation and status.
    Again(&'static str, &'static str, String),
    /// Locks that were granted.
    Locks,
    /// Calls that were refused, by label `reason`.
    Refused(&'static str),
}

/// Counts of rows that were removed, so that new clients find room in the table.
#[derive(Debug, Default)]
pub struct ClientAnswers(BTreeMap<Answer, u64>);

impl ClientAnswers {
    /// Adds the families, and empties a table that is nearly full.
    pub fn read(&mut self, l: &Loaded, s: &mut Snapshot) {
        let Some(map) = l.map("nfsd_answers") else {
            return;
        };
        let keys = map.keys::<t::client_answer_key>();
        fill(map, keys.len(), "nfsd_answers", s);
        let answers = |value: &dyn Fn(&t::client_answer_key) -> Option<u64>| -> Vec<_> {
            let one = |key| {
                let n = value(key);
                Some((answer(key, l.build)?, n?))
            };
            keys.iter().filter_map(one).collect()
        };
        let told = self.with(answers(&|key| map.value(key)));
        for ((client, answer), n) in &told {
            let n = *n as f64;
            match answer {
                What::Locks => s.counter(&f::CLIENT_LOCKS, [client], n),
                What::Refused(why) => s.counter(&f::CLIENT_REFUSED, [client, why], n),
                What::Again(version, op, status) => {
                    s.counter(&f::CLIENT_RETRIED, [client, version, op, status], n);
                }
            }
        }
        if keys.len() >= map.capacity() as usize * 3 / 4 {
            self.keep(answers(&|key| map.take(key)), &told);
        }
    }

    /// Counts since the agent began.
    fn with(&self, rows: Vec<(Answer, u64)>) -> BTreeMap<Answer, u64> {
        let mut all = self.0.clone();
        for (answer, n) in rows {
            *all.entry(answer).or_insert(0) += n;
        }
        all
    }

    /// Keeps the counts of rows that were removed. If there are too many, all begin at 0 again, except for counts after the last reading,
    /// `told`.
    fn keep(&mut self, removed: Vec<(Answer, u64)>, told: &BTreeMap<Answer, u64>) {
        self.0 = self.with(removed);
        if self.0.len() > MOST_REMOVED {
            for (answer, n) in &mut self.0 {
                *n = n.saturating_sub(told.get(answer).copied().unwrap_or(0));
            }
            self.0.retain(|_, n| *n > 0);
        }
    }
}

/// Client and kind of answer of a row; `None` for a row without a series.
fn answer(key: &t::client_answer_key, build: Build) -> Option<Answer> {
    let client = client_name(key.client);
    if key.row == t::op_row::OP_ROWS.0 {
        return Some((client, What::Refused(refused_for(key.status)?)));
    }
    let (version, op) = op_name(key.row, build)?;
    if key.status == 0 {
        return Some((client, What::Locks));
    }
    let status = status(version == "3", key.status);
    comes_again(op, &status)?;
    Some((client, What::Again(version, op, status)))
}

/// `enum refused_for` of nfsd.h.
fn refused_for(why: u32) -> Option<&'static str> {
    ["format", "auth", "arguments"]
        .get((why as usize).checked_sub(1)?)
        .copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_counts_the_statuses_after_which_a_client_comes_again() {
        for code in (0..20_000).chain([u32::MAX]) {
            // LOCK: the one operation that is asked for again after NFS4ERR_DENIED.
            let again = |v3| comes_again("lock", &status(v3, code)).is_some();
            let counted = nfscope_probes::comes_again(code);
            assert_eq!(counted, again(true) || again(false), "{code}");
        }
    }

    #[test]
    fn calls_that_are_refused_have_a_row_that_no_operation_has() {
        let key = |why| t::client_answer_key {
            client: [0, 0x0109_090a_ffff_0000],
            row: t::op_row::OP_ROWS.0,
            status: why,
        };
        let told = |why| answer(&key(why), Build::Btf).map(|(_, what)| what);
        for (why, reason) in [(1, "format"), (2, "auth"), (3, "arguments")] {
            assert_eq!(told(why), Some(What::Refused(reason)));
        }
        assert_eq!(told(0), None);
        assert_eq!(told(4), None);
    }

    fn locks(client: usize, n: u64) -> (Answer, u64) {
        (
            (
                format!("10.9.{}.{}", client / 256, client % 256),
                What::Locks,
            ),
            n,
        )
    }

    #[test]
    fn rows_that_are_removed_take_no_count_with_them() {
        let mut answers = ClientAnswers::default();
        let told = answers.with(vec![locks(1, 3), locks(2, 5)]);
        // A row may count another answer between the reading and its removal.
        answers.keep(vec![locks(1, 4), locks(2, 5)], &told);
        let all = answers.with(vec![locks(1, 2), locks(3, 1)]);
        let all: Vec<_> = all.into_values().collect();
        assert_eq!(all, [6, 5, 1]);
    }

    #[test]
    fn with_too_many_series_all_begin_anew_with_what_was_not_told() {
        let mut answers = ClientAnswers::default();
        for first in [0, 190] {
            let rows = |n| (first..first + 190).map(|c| locks(c, n)).collect();
            let told = answers.with(rows(7));
            answers.keep(rows(8), &told);
        }
        // Answers of the first clients had all been published; the last answer of each other client had not.
        assert_eq!(answers.0.len(), 190);
        assert!(answers.0.values().all(|n| *n == 1));
    }
}
