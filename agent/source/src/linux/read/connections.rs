//! Connections of the NFS server: open ones, the kernel's limit, and the reasons for which connections were closed.
//!
//! Open connections are counted in the server's own lists (`svc_serv`, net/sunrpc), at each reading. Programs count accepted and closed
//! ones at the events.

use super::transports;
use super::unacknowledged::Stalled;
use crate::linux::load::object::Loaded;
use nfscope_model::{Snapshot, family as f};
use nfscope_probes::types as t;

/// `enum transport` of nfsd.h.
const TRANSPORTS: [&str; 4] = ["tcp", "rdma", "udp", "other"];
const UDP: usize = 2;
/// `enum closed_by` of nfsd.h.
const CLOSED_BY: [&str; 5] = ["client", "limit", "idle", "error", "shutdown"];

/// The kernel's own limit of connections without a valid file handle (svc_check_conn_limits() from 6.12 on).
const UNPROVEN: u32 = 64;

/// Data on connections that this host gives.
#[derive(Debug, Clone, Copy)]
pub struct Told {
    /// True if accepted connections are counted.
    pub accepted: bool,
    /// True if closed connections and their reasons are counted.
    pub closed: bool,
    /// True if the limit is for connections without a valid file handle alone.
    pub limits_unproven: bool,
    /// Limit of clients that have series of their own.
    pub most_clients: usize,
}

/// Adds the connections. Open ones are missing if no server runs here, or its threads are in another process namespace.
pub fn read(l: &Loaded, told: Told, stalled: &mut Stalled, s: &mut Snapshot) {
    let now = transports::now(l);
    if let Some(now) = &now {
        add_open(now, told, s);
        stalled.read(l, now, told.most_clients, s);
    }
    let Some(counts) = l.get::<t::transport_counts>(".data.nfsd_xprt_count") else {
        return;
    };
    for (i, transport) in TRANSPORTS.into_iter().enumerate() {
        let in_use = now.is_some_and(|n| n.listening[i] > 0) || counts.accepted[i] > 0;
        if i == UDP || !(i == 0 || in_use) {
            continue;
        }
        if told.accepted {
            let n = counts.accepted[i] as f64;
            s.counter(&f::CONNECTIONS_ACCEPTED, [transport], n);
        }
        for (why, n) in CLOSED_BY.into_iter().zip(counts.closed[i]) {
            if told.closed {
                s.counter(&f::CONNECTIONS_CLOSED, [transport, why], n as f64);
            }
        }
    }
}

fn add_open(now: &t::transports_now, told: Told, s: &mut Snapshot) {
    for (i, transport) in TRANSPORTS.into_iter().enumerate() {
        let other = transport == "other";
        if !other || now.listening[i] > 0 {
            s.gauge(&f::LISTENERS, [transport], now.listening[i] as f64);
        }
        if i != UDP && (!other || now.open[i] > 0) {
            s.gauge(&f::CONNECTIONS, [transport], now.open[i] as f64);
        }
    }
    let which = match told.limits_unproven {
        true => "unproven",
        false => "all",
    };
    let limit = f64::from(limit(now, told.limits_unproven));
    // The value is signed, as in the kernel: its count can fall below zero.
    let limited = f64::from(now.limited as i32);
    s.gauge(&f::LIMITED_CONNECTIONS, [which], limited);
    s.gauge(&f::CONNECTION_LIMIT, [which], limit);
    s.counter(&f::LISTENER_DROPS, [], now.drops as f64);
}

/// Limit of connections, as in svc_check_conn_limits() in net/sunrpc/svc_xprt.c.
fn limit(now: &t::transports_now, unproven: bool) -> u32 {
    match (now.most, unproven) {
        (0, true) => UNPROVEN,
        (0, false) => now.threads.saturating_add(3).saturating_mul(20),
        (most, _) => most,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_the_kernels() {
        let server = |threads, most| t::transports_now {
            threads,
            most,
            ..t::transports_now::default()
        };
        assert_eq!(limit(&server(8, 0), false), 220);
        assert_eq!(limit(&server(8, 0), true), 64);
        assert_eq!(limit(&server(8, 1000), false), 1000);
        assert_eq!(limit(&server(8, 1000), true), 1000);
        assert_eq!(limit(&server(u32::MAX, 0), false), u32::MAX);
    }

    #[test]
    fn a_transport_that_nobody_uses_has_no_series_but_the_usual_ones() {
        let mut now = t::transports_now {
            server: 1,
            threads: 8,
            limited: 5,
            ..t::transports_now::default()
        };
        now.listening[0] = 2;
        now.open[0] = 5;
        let told = Told {
            accepted: true,
            closed: true,
            limits_unproven: false,
            most_clients: 100,
        };
        let mut s = Snapshot::default();
        add_open(&now, told, &mut s);
        assert_eq!(s.value(&f::CONNECTIONS, ["tcp"]), Some(5.0));
        assert_eq!(s.value(&f::CONNECTIONS, ["rdma"]), Some(0.0));
        assert_eq!(s.value(&f::CONNECTIONS, ["udp"]), None);
        assert_eq!(s.value(&f::CONNECTIONS, ["other"]), None);
        assert_eq!(s.value(&f::LISTENERS, ["udp"]), Some(0.0));
        assert_eq!(s.value(&f::LIMITED_CONNECTIONS, ["all"]), Some(5.0));
        assert_eq!(s.value(&f::CONNECTION_LIMIT, ["all"]), Some(220.0));
        now.limited = u32::MAX - 1;
        let mut s = Snapshot::default();
        add_open(&now, told, &mut s);
        assert_eq!(s.value(&f::LIMITED_CONNECTIONS, ["all"]), Some(-2.0));
    }
}
