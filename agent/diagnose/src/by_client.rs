//! Clients one by one: the sum of all hides the work of a single one.
//!
//! Operations of clients by kind are counted only while `nfscope diagnose` watches. A window has the requests of NFSv4 clients that only
//! walk a path.

use crate::attribution::Attribution;
use crate::breakdown::{Breakdown, mean, part, sum};
use crate::thresholds::{BEGIN_SHARE, END_SHARE, MIN_COUNT};
use std::collections::BTreeMap;

/// Operations of one client, counted while a window was watched.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClientOps {
    /// The client.
    pub client: String,
    /// Number and seconds of its operations, by the label `op`.
    pub ops: BTreeMap<String, (f64, f64)>,
}

impl ClientOps {
    /// Number of these operations.
    pub fn count(&self, names: &[&str]) -> f64 {
        sum(names.iter().filter_map(|n| Some(self.ops.get(*n)?.0)))
    }

    /// Number of all operations that `is` does not accept.
    pub fn count_of_others(&self, is: impl Fn(&str) -> bool) -> f64 {
        let others = self.ops.iter().filter(|(op, _)| !is(op));
        sum(others.map(|(_, (n, _))| *n))
    }

    /// Requests: those of sessions have one SEQUENCE each. Others are counted by operation.
    pub fn requests(&self) -> f64 {
        match self.count(&["sequence"]) {
            0.0 => self.count_of_others(|_| false),
            sessions => sessions,
        }
    }

    /// Seconds of these operations that nothing slow explains. All such operations of the window have the same unexplained part.
    pub fn unattributed(&self, names: &[&str], b: &Breakdown, a: &Attribution) -> f64 {
        let of = |name: &&str| {
            let (_, seconds) = self.ops.get(*name)?;
            let all = || b.ops_named(std::slice::from_ref(name));
            let quick = sum(all().map(|o| (a.unattributed(o) - o.phases.disk).max(0.0)));
            Some(seconds * part(quick, sum(all().map(|o| o.seconds))).min(1.0))
        };
        sum(names.iter().filter_map(of))
    }
}

/// A client whose requests are mostly of one kind, and its part of residence with these.
#[derive(Debug, Clone, PartialEq)]
pub struct Mostly {
    /// The client.
    pub client: String,
    /// Part of its requests that are of this kind, 0 to 1.
    pub of_requests: f64,
    /// Time of these requests as a part of residence, 0 to 1.
    pub share: f64,
}

/// The client with the largest share among those whose requests are mostly (`ratio`) of one kind. `of` gives the number of a client's
/// requests of this kind, and their seconds.
pub fn mostly(
    b: &Breakdown,
    counted: Option<&Counted>,
    ratio: f64,
    active: bool,
    of: impl Fn(&ClientOps) -> (f64, f64),
) -> Option<Mostly> {
    let counted = counted?;
    let clients = counted.clients.iter().filter_map(|c| {
        let (n, seconds) = of(c);
        let of_requests = part(n, c.requests()).min(1.0);
        let share = part(mean(seconds, counted.length), mean(b.residence, b.length)).min(1.0);
        let is = n >= MIN_COUNT && of_requests >= ratio && share >= begin(active);
        is.then(|| Mostly {
            client: c.client.clone(),
            of_requests,
            share,
        })
    });
    clients.max_by(|a, b| a.share.total_cmp(&b.share))
}

/// Share of residence from which on one client is a finding.
pub fn begin(active: bool) -> f64 {
    if active { END_SHARE } else { BEGIN_SHARE }
}

/// Operations of clients that were counted while a window was watched.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counted {
    /// Time for which they were counted, in seconds.
    pub length: f64,
    /// The clients.
    pub clients: Vec<ClientOps>,
}
