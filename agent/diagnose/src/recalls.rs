//! Delegations that the server recalled from clients, and pNFS layouts that it granted them.

use crate::ratio::sum;
use nfscope_model::window_parts::{histograms, numbers};
use nfscope_model::{Histogram, Window, family as f};

/// Recalls of one client.
#[derive(Debug, Clone, PartialEq)]
pub struct Holder {
    /// Label `client`.
    pub name: String,
    /// Number of recalls.
    pub recalls: f64,
    /// Time of those that ended, added up; `None` where it is not measured.
    pub seconds: Option<f64>,
    /// Recalls that had not ended when the window did.
    pub pending: f64,
}

/// Recalls of delegations in a window.
#[derive(Debug, Clone, Default)]
pub struct Recalls {
    /// Number of recalls.
    pub recalls: f64,
    /// Times of recalls after which the client returned the delegation.
    pub returned: Option<Histogram>,
    /// Delegations that were revoked.
    pub revoked: f64,
    /// Recalls that had not ended when the window did.
    pub pending: f64,
    /// Age of the oldest pending recall.
    pub oldest: f64,
    /// Clients with recalls, those that have not answered first, then those that took longest.
    pub holders: Vec<Holder>,
}

impl Recalls {
    /// Recalls of a window; `None` if they are not counted.
    pub fn of(w: &Window) -> Option<Recalls> {
        let recalls = w.delta.value(&f::DELEGATION_RECALLS, [])?;
        let of_client = |family, name| w.delta.value(family, [name]).unwrap_or(0.0).max(0.0);
        let holders = numbers(w, &f::CLIENT_RECALLS).map(|([name], recalls)| Holder {
            name: name.to_owned(),
            recalls,
            seconds: w.delta.value(&f::CLIENT_RECALL_SECONDS, [name]),
            pending: of_client(&f::CLIENT_RECALLS_PENDING, name),
        });
        let mut holders: Vec<_> = holders
            .filter(|h| h.recalls > 0.0 || h.pending > 0.0)
            .collect();
        holders.sort_by(|a, b| {
            let rank = |h: &Holder| (h.pending, h.seconds.unwrap_or(0.0));
            let ((a0, a1), (b0, b1)) = (rank(a), rank(b));
            b0.total_cmp(&a0).then(b1.total_cmp(&a1))
        });
        let returned = w.delta.hist(&f::RECALL_SECONDS, ["delegation", "returned"]);
        Some(Recalls {
            recalls: recalls.max(0.0),
            returned: returned.filter(|h| h.count() > 0).cloned(),
            revoked: (w.delta.value(&f::DELEGATIONS_REVOKED, [])).map_or(0.0, |n| n.max(0.0)),
            pending: (w.delta.value(&f::RECALLS_PENDING, ["delegation"])).unwrap_or(0.0),
            oldest: (w.delta.value(&f::OLDEST_RECALL, ["delegation"])).unwrap_or(0.0),
            holders,
        })
    }
}

/// Layouts, and the requests that they should have made unnecessary.
#[derive(Debug, Clone, Default)]
pub struct Layouts {
    /// Layouts granted in the window.
    pub granted: f64,
    /// Clients that were ever granted a layout.
    pub holders: Vec<String>,
    /// Least number of READs and WRITEs over NFSv4.1 and later that these clients sent.
    pub through_server: f64,
    /// All requests of these clients; `None` where they are not counted.
    pub requests: Option<f64>,
}

impl Layouts {
    /// Layouts of a window; `None` if there were LAYOUTGETs, and layouts are not counted.
    pub fn of(w: &Window) -> Option<Layouts> {
        let ops = |names: &'static [&str]| {
            let all = numbers_of_ops(w).filter(move |(version, op, _)| {
                matches!(*version, "4.1" | "4.2") && names.contains(op)
            });
            sum(all.map(|(.., n)| n))
        };
        let Some(granted) = w.delta.value(&f::LAYOUTS_GRANTED, []) else {
            return (ops(&["layoutget"]) == 0.0).then(Layouts::default);
        };
        let holders: Vec<_> = numbers(w, &f::CLIENT_LAYOUTS)
            .map(|([name], _)| name.to_owned())
            .collect();
        // Operations are counted by client, but not by client and kind: these clients sent those that all others together cannot have sent.
        let others = numbers(w, &f::CLIENT_OPS)
            .filter(|([name], _)| !holders.iter().any(|h| h == name))
            .map(|(_, n)| n);
        let through_server = match holders.is_empty() {
            true => 0.0,
            false => (ops(&["read", "write"]) - sum(others)).max(0.0),
        };
        let of_holders = |h: &String| w.delta.value(&f::CLIENT_REQUESTS, [h]);
        let requests: Option<Vec<f64>> = holders.iter().map(of_holders).collect();
        Some(Layouts {
            granted: granted.max(0.0),
            requests: requests
                .filter(|all| !all.is_empty())
                .map(|all| sum(all.into_iter())),
            holders,
            through_server,
        })
    }
}

fn numbers_of_ops(w: &Window) -> impl Iterator<Item = (&str, &str, f64)> {
    histograms(w, &f::OP_DURATION).map(|([version, op], h)| (version, op, h.count() as f64))
}
