//! Cost of distance for a client's opens: round trips to the server, one after the other. They are no fault of the server.
//!
//! A client walks a path with one request for each step, and waits for each reply: Irtegov et al., On one source of latency in NFSv4
//! client, 2017. The server sees these requests, and TCP the lowest time of a round trip. TCP's smoothed time also contains the time for
//! which a client delays its acknowledgements (RFC 1122, 4.2.3.2: up to half a second). For a quiet client on the same host that is
//! milliseconds.

use crate::breakdown::{Breakdown, Client};
use crate::thresholds::{DISTANT_RATIO, DISTANT_SECONDS, MIN_COUNT};
use nfscope_text::units::seconds;

/// Most clients that are named.
const NAMED: usize = 3;

/// Advice on changes that reduce the cost.
const ADVICE: &str = "a faster server changes little of that; fewer levels of directories, files that stay open, longer attribute caching (actimeo=) and a server nearby do";

/// Cost of the opens of an NFSv4 client.
#[derive(Debug, Clone, PartialEq)]
pub struct Distance {
    /// The client.
    pub client: String,
    /// Requests that an open waits for, one after the other, on average.
    pub round_trips: f64,
    /// Time of a round trip: the lowest that TCP has seen in the last minutes.
    pub round_trip_seconds: f64,
    /// Execution of the requests of an open on the server.
    pub server_seconds: f64,
}

impl Distance {
    /// Cost for a client; `None` if it opened next to nothing, or if its distance is not known.
    pub fn of(c: &Client) -> Option<Distance> {
        let requests = c.walks + c.opens;
        (requests >= MIN_COUNT && c.opens >= 1.0).then_some(())?;
        Some(Distance {
            client: c.name.clone(),
            round_trips: requests / c.opens,
            round_trip_seconds: c.min_rtt?,
            server_seconds: c.open_seconds? / c.opens,
        })
    }

    /// The time of an open outside the server.
    pub fn seconds(&self) -> f64 {
        self.round_trips * self.round_trip_seconds
    }

    /// Returns true if the distance is nearly all of an open.
    fn is_all(&self) -> bool {
        self.round_trip_seconds >= DISTANT_SECONDS
            && self.seconds() >= DISTANT_RATIO * self.server_seconds
    }

    fn sentence(&self) -> String {
        format!(
            "each open of {} costs {:.1} round trips of {} = {}, the server itself {}",
            self.client,
            self.round_trips,
            seconds(self.round_trip_seconds),
            seconds(self.seconds()),
            seconds(self.server_seconds)
        )
    }
}

/// Sentences about the most distant clients, with advice; empty without any.
pub fn sentences(b: &Breakdown) -> Vec<String> {
    let mut all: Vec<_> = (b.clients.iter())
        .filter_map(Distance::of)
        .filter(Distance::is_all)
        .collect();
    all.sort_by(|a, b| b.seconds().total_cmp(&a.seconds()));
    let more = all.len().saturating_sub(NAMED);
    let mut said: Vec<_> = all.iter().take(NAMED).map(Distance::sentence).collect();
    match more {
        0 => {}
        1 => said.push("one client more is as distant".into()),
        n => said.push(format!("{n} clients more are as distant")),
    }
    if !said.is_empty() {
        said.push(ADVICE.into());
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(name: &str, walks: f64, opens: f64, rtt: f64) -> Client {
        Client {
            name: name.into(),
            walks,
            opens,
            open_seconds: Some(opens * 0.4e-3),
            min_rtt: Some(rtt),
            ..Client::default()
        }
    }

    fn said(clients: Vec<Client>) -> Vec<String> {
        sentences(&Breakdown {
            clients,
            ..Breakdown::default()
        })
    }

    #[test]
    fn an_open_costs_its_round_trips() {
        let all = said(vec![client("10.0.0.7", 80.0, 10.0, 13.9e-3)]);
        assert_eq!(
            all,
            [
                "each open of 10.0.0.7 costs 9.0 round trips of 13.9 ms = 125 ms, the server itself 400 µs",
                ADVICE
            ]
        );
        let many = (0..5).map(|n| client(&format!("c{n}"), 80.0, 10.0, 0.01 * f64::from(n + 1)));
        let all = said(many.collect());
        assert!(all[0].starts_with("each open of c4 costs"), "{all:?}");
        assert_eq!(all[3], "2 clients more are as distant");
        assert_eq!(all.len(), 5);
    }

    #[test]
    fn nothing_is_said_of_clients_nearby_or_that_open_nothing() {
        for c in [
            // Clients without a sentence: in the same data centre, of a slow server, with too few requests, without opens, at an unknown
            // distance.
            client("near", 80.0, 10.0, 0.3e-3),
            client("slow", 80.0, 10.0, 13.9e-3 / 40.0 / 9.0),
            client("few", 8.0, 1.0, 13.9e-3),
            client("none", 80.0, 0.0, 13.9e-3),
            Client {
                open_seconds: None,
                ..client("unmeasured", 80.0, 10.0, 13.9e-3)
            },
            Client {
                min_rtt: None,
                ..client("unknown", 80.0, 10.0, 13.9e-3)
            },
            Client {
                open_seconds: Some(10.0 * 20e-3),
                ..client("served slowly", 80.0, 10.0, 13.9e-3)
            },
        ] {
            assert_eq!(said(vec![c.clone()]), [""; 0], "{c:?}");
        }
    }
}
