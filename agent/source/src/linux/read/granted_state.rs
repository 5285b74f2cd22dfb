//! State that the NFSv4 server has granted and taken back, as the probes count it: delegations, layouts, recalls, and the last run of the
//! laundromat. The state that clients hold at the moment is in [`nfs4_state`](crate::linux::host::nfs4_state).

use super::decode::{fill, monotonic_ns, seconds, time};
use super::top_k::client_name;
use crate::linux::host::procfs;
use crate::linux::load::maps::Map;
use crate::linux::load::object::Loaded;
use nfscope_model::family as f;
use nfscope_model::{Laundromat, Snapshot};
use nfscope_probes::types as t;
use std::collections::BTreeMap;

/// Label `state` by `enum state_kind`.
const KINDS: [&str; 2] = ["delegation", "layout"];

/// Recalls that have not ended.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Pending {
    count: u64,
    /// Begin of the oldest recall; 0 without one.
    since: u64,
}

impl Pending {
    fn add(&mut self, since: u64) {
        self.count += 1;
        if self.since == 0 || since < self.since {
            self.since = since;
        }
    }
}

/// Adds the families whose programs are `attached`: unknown is not zero. At most `most_clients` clients have series.
pub fn read(l: &Loaded, attached: &dyn Fn(&str) -> bool, most_clients: usize, s: &mut Snapshot) {
    let maps = ["nfsd_state", "nfsd_recalls", "nfsd_holder"].map(|name| l.map(name));
    let [Some(rows), Some(recalls), Some(holders)] = maps else {
        return;
    };
    let row = |kind: t::state_kind| rows.value::<t::state_row>(&kind.0).unwrap_or_default();
    let delegations = row(t::state_kind::STATE_DELEGATION);
    let layouts = row(t::state_kind::STATE_LAYOUT);
    let mut count = |family, program, n: u64| {
        if attached(program) {
            s.counter(family, [], n as f64);
        }
    };
    count(
        &f::DELEGATIONS_RETURNED,
        "nfsd_deleg_back",
        delegations.ended,
    );
    count(
        &f::DELEGATION_RECALLS,
        "nfsd_deleg_ask",
        delegations.recalls,
    );
    count(
        &f::DELEGATIONS_REVOKED,
        "nfsd_deleg_take",
        delegations.forfeited,
    );
    count(&f::LAYOUTS_GRANTED, "nfsd_layout_new", layouts.granted[0]);
    count(&f::LAYOUTS_ENDED, "nfsd_layout_end", layouts.ended);
    count(&f::LAYOUT_RECALLS, "nfsd_layout_ask", layouts.recalls);
    count(
        &f::LAYOUT_RECALLS_FAILED,
        "nfsd_layout_out",
        layouts.forfeited,
    );
    for (i, (kind, program)) in [
        ("read", "nfsd_deleg_r"),
        ("write", "nfsd_deleg_w"),
        ("directory", "nfsd_deleg_dir"),
    ]
    .into_iter()
    .enumerate()
    {
        if attached(program) {
            s.counter(
                &f::DELEGATIONS_GRANTED,
                [kind],
                delegations.granted[i] as f64,
            );
        }
    }
    let ends = [
        ["nfsd_deleg_ask", "nfsd_deleg_back"],
        ["nfsd_layout_ask", "nfsd_layout_got"],
    ];
    let (pending, by_client) = pending(recalls, s);
    let now = monotonic_ns();
    for (i, row) in [&delegations, &layouts].into_iter().enumerate() {
        if !ends[i].iter().all(|program| attached(program)) {
            continue;
        }
        s.histogram(
            &f::RECALL_SECONDS,
            [KINDS[i], "returned"],
            time(&row.returned),
        );
        s.histogram(&f::RECALL_SECONDS, [KINDS[i], "taken"], time(&row.taken));
        s.gauge(&f::RECALLS_PENDING, [KINDS[i]], pending[i].count as f64);
        let age = match pending[i].since {
            0 => 0.0,
            since => seconds(now.saturating_sub(since)),
        };
        s.gauge(&f::OLDEST_RECALL, [KINDS[i]], age);
    }
    clients(holders, &by_client, attached, most_clients, s);
    if let Some(age) = laundromat(l).and_then(|l| l.idle_seconds) {
        s.gauge(&f::LAUNDROMAT_AGE, [], age);
    }
}

/// Recalls under way by kind, and those of delegations by client.
fn pending(recalls: &Map, s: &mut Snapshot) -> ([Pending; 2], BTreeMap<[u64; 2], Pending>) {
    let mut all = [Pending::default(); 2];
    let mut by_client: BTreeMap<[u64; 2], Pending> = BTreeMap::new();
    let keys = recalls.keys::<t::state_key>();
    fill(recalls, keys.len(), "nfsd_recalls", s);
    for r in keys
        .iter()
        .filter_map(|key| recalls.value::<t::state_recall>(key))
    {
        let Some(of_kind) = all.get_mut(r.kind as usize) else {
            continue;
        };
        of_kind.add(r.since);
        if r.kind == t::state_kind::STATE_DELEGATION.0 {
            by_client.entry(r.client).or_default().add(r.since);
        }
    }
    (all, by_client)
}

/// Adds series of the clients with the longest recalls.
fn clients(
    holders: &Map,
    pending: &BTreeMap<[u64; 2], Pending>,
    attached: &dyn Fn(&str) -> bool,
    most: usize,
    s: &mut Snapshot,
) {
    let keys = holders.keys::<t::state_client_key>();
    fill(holders, keys.len(), "nfsd_holder", s);
    let rows = keys.iter().filter_map(|key| {
        let row = holders.value::<t::state_client>(key)?;
        Some((key.client, row))
    });
    let mut rows: Vec<_> = rows.collect();
    // The order of clients without recalls stays the same from one reading to the next.
    rows.sort_unstable_by_key(|(client, row)| {
        (
            std::cmp::Reverse((row.ended_ns, row.recalls, row.layouts)),
            *client,
        )
    });
    for (client, row) in rows.iter().take(most) {
        let name = client_name(*client);
        if attached("nfsd_deleg_ask") && row.recalls > 0 {
            s.counter(&f::CLIENT_RECALLS, [&name], row.recalls as f64);
            s.counter(&f::CLIENT_RECALL_SECONDS, [&name], seconds(row.ended_ns));
            let pending = pending.get(client).copied().unwrap_or_default();
            s.gauge(&f::CLIENT_RECALLS_PENDING, [&name], pending.count as f64);
        }
        if attached("nfsd_layout_new") && row.layouts > 0 {
            s.counter(&f::CLIENT_LAYOUTS, [&name], row.layouts as f64);
        }
    }
    // Later clients need room: the table is cleared, and each client begins at 0 again.
    if keys.len() >= holders.capacity() as usize * 3 / 4 {
        holders.clear();
    }
}

/// Last run of the laundromat; `None` if it has not run since the probes attached, or no server runs.
pub fn laundromat(l: &Loaded) -> Option<Laundromat> {
    let last = l.map("nfsd_laundry")?.value::<t::state_laundry>(&0u32)?;
    if procfs::no_server_runs() {
        // The last run belongs to a server that has stopped.
        l.map("nfsd_laundry")?.zero(0);
        return None;
    }
    since(last, monotonic_ns())
}

fn since(last: t::state_laundry, now: u64) -> Option<Laundromat> {
    let ago = |at: u64| seconds(now.saturating_sub(at));
    let running = last.begun > last.ended;
    (last.begun > 0 || last.ended > 0).then(|| Laundromat {
        idle_seconds: (last.ended > 0).then(|| ago(last.ended)),
        running_seconds: running.then(|| ago(last.begun)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_recall_counts() {
        let mut all = Pending::default();
        for since in [500, 200, 900] {
            all.add(since);
        }
        assert_eq!(
            all,
            Pending {
                count: 3,
                since: 200
            }
        );
    }

    #[test]
    fn a_laundromat_that_hangs_is_told_from_one_that_waits() {
        let at = |begun, ended| since(t::state_laundry { begun, ended }, 100_000_000_000);
        assert_eq!(at(0, 0), None);
        let waits = at(40_000_000_000, 41_000_000_000).unwrap();
        assert_eq!(
            (waits.idle_seconds, waits.running_seconds),
            (Some(59.0), None)
        );
        let hangs = at(70_000_000_000, 41_000_000_000).unwrap();
        assert_eq!(
            (hangs.idle_seconds, hangs.running_seconds),
            (Some(59.0), Some(30.0))
        );
        // The beginning of the run was not seen.
        assert_eq!(at(0, 99_000_000_000).unwrap().idle_seconds, Some(1.0));
        // The first run that was seen has not ended.
        let first = at(70_000_000_000, 0).unwrap();
        assert_eq!(
            (first.idle_seconds, first.running_seconds),
            (None, Some(30.0))
        );
    }
}
