//! Replies that wait for a client's acknowledgement, by client.
//!
//! TCP says when data last arrived at the client while some was on its way (`delivered_mstamp`). Data that arrives behind a lost packet
//! counts there, too. Therefore the oldest byte without an acknowledgement is also compared from reading to reading. Both give a time for
//! which at least nothing was acknowledged, and the longer one is reported.

use super::top_k::client_name;
use super::transports;
use crate::clock;
use crate::linux::load::object::Loaded;
use nfscope_model::{Snapshot, Unacknowledged, family as f};
use nfscope_probes::types as t;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// Silence of a connection that is reported: no delayed acknowledgement and nearly no round trip is as long.
const REPORTED_SECONDS: f64 = 1.0;

/// Connections that wait for an acknowledgement: their oldest byte without one, and the reading that saw it first.
#[derive(Debug, Default)]
pub struct Stalled {
    oldest: HashMap<u64, (u32, Duration)>,
}

impl Stalled {
    /// Adds the families; none if this kernel does not have the data.
    pub fn read(&mut self, l: &Loaded, now: &t::transports_now, most: usize, s: &mut Snapshot) {
        let Some(waits) = self.now(l, now) else {
            return;
        };
        s.gauge(&f::UNACKED_CONNECTIONS, [], waits.len() as f64);
        for c in by_client(waits).iter().take(most) {
            let client = [c.client.as_str()];
            s.gauge(&f::UNACKED_BYTES, client, c.bytes);
            s.gauge(&f::UNACKED_SECONDS, client, c.seconds);
            s.gauge(&f::UNACKED_RETRANSMISSIONS, client, c.retransmissions);
            s.gauge(&f::UNACKED_ZERO_WINDOW, client, c.zero_window_bytes);
        }
    }

    /// Connections that wait now; `None` if this kernel does not have the data.
    fn now(&mut self, l: &Loaded, now: &t::transports_now) -> Option<Vec<(t::unacked, f64)>> {
        let map = l.map("nfsd_unacked").filter(|_| now.unacked_known != 0)?;
        let rows: Vec<_> = (0..now.unacked.min(map.capacity()))
            .filter_map(|i| map.value::<t::unacked>(&i))
            .collect();
        Some(self.waits(&rows, clock::now()))
    }

    /// Connections on which nothing has been acknowledged for a long time, each with that time in seconds.
    fn waits(&mut self, rows: &[t::unacked], at: Duration) -> Vec<(t::unacked, f64)> {
        let before = std::mem::take(&mut self.oldest);
        let mut waits = Vec::new();
        for row in rows {
            let seen = match before.get(&row.xprt) {
                Some((first, since)) if *first == row.first => *since,
                _ => at,
            };
            self.oldest.insert(row.xprt, (row.first, seen));
            let since = match row.delivered_us {
                0 => seen,
                us => seen.min(Duration::from_micros(us)),
            };
            let seconds = at.saturating_sub(since).as_secs_f64();
            if seconds >= REPORTED_SECONDS {
                waits.push((*row, seconds));
            }
        }
        waits
    }
}

/// Clients of the server's connections on which nothing is acknowledged, longest first; `None` if this host does not have the data.
pub fn now(l: &Loaded, stalled: &mut Stalled, most: usize) -> Option<Vec<Unacknowledged>> {
    let mut all = by_client(stalled.now(l, &transports::now(l)?)?);
    all.truncate(most);
    Some(all)
}

/// Clients, the longest time first.
fn by_client(waits: Vec<(t::unacked, f64)>) -> Vec<Unacknowledged> {
    let mut all: BTreeMap<String, Unacknowledged> = BTreeMap::new();
    for (row, seconds) in waits {
        let name = client_name(row.client);
        let c = all.entry(name.clone()).or_insert(Unacknowledged {
            client: name,
            ..Unacknowledged::default()
        });
        let bytes = f64::from(row.bytes);
        c.bytes += bytes;
        c.seconds = c.seconds.max(seconds);
        c.retransmissions = c.retransmissions.max(f64::from(row.retransmits));
        if row.window == 0 {
            c.zero_window_bytes += bytes;
        }
    }
    let mut all: Vec<_> = all.into_values().collect();
    all.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: [u64; 2] = [0, (0x0200_090a_u64) << 32 | 0xffff_0000];

    fn row(xprt: u64, first: u32, delivered_us: u64) -> t::unacked {
        t::unacked {
            xprt,
            client: CLIENT,
            delivered_us,
            first,
            bytes: 1000,
            retransmits: 3,
            window: 65536,
        }
    }

    fn at(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn the_time_without_an_acknowledgement_is_tcps_own_or_that_between_readings() {
        let mut stalled = Stalled::default();
        // TCP's time says that nothing has arrived since 2.0 s.
        let waits = stalled.waits(&[row(1, 7, 2_000_000), row(2, 7, 99_500_000)], at(100.0));
        assert_eq!(
            waits.iter().map(|(r, s)| (r.xprt, *s)).collect::<Vec<_>>(),
            [(1, 98.0)]
        );
        // A packet that arrives behind a lost one moves TCP's time, and not the oldest byte.
        let waits = stalled.waits(&[row(2, 7, 109_900_000)], at(110.0));
        assert_eq!(waits.iter().map(|(_, s)| *s).collect::<Vec<_>>(), [10.0]);
        // The oldest byte was acknowledged: another one waits now.
        assert_eq!(stalled.waits(&[row(2, 8, 119_900_000)], at(120.0)).len(), 0);
        // No data is on its way since the client takes no more: only readings show for how long.
        assert_eq!(stalled.waits(&[row(3, 9, 0)], at(130.0)).len(), 0);
        assert_eq!(stalled.waits(&[row(3, 9, 0)], at(131.5)).len(), 1);
        // A connection that is gone is forgotten, with the time of its address.
        assert_eq!(stalled.waits(&[], at(140.0)).len(), 0);
        assert_eq!(stalled.waits(&[row(3, 9, 0)], at(150.0)).len(), 0);
    }

    #[test]
    fn connections_of_a_client_add_up() {
        let mut closed = row(2, 0, 0);
        closed.window = 0;
        closed.retransmits = 0;
        let all = by_client(vec![(row(1, 0, 0), 4.0), (closed, 2.0)]);
        let expected = Unacknowledged {
            client: "10.9.0.2".into(),
            bytes: 2000.0,
            seconds: 4.0,
            retransmissions: 3.0,
            zero_window_bytes: 1000.0,
        };
        assert_eq!(all, [expected]);
    }
}
