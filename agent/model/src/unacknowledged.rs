//! Replies that wait in the server's TCP until a client acknowledges them. For the server these requests have ended.

use crate::family as f;
use crate::window_parts::numbers;
use crate::{Snapshot, Window};
use serde::{Deserialize, Serialize};

/// A client that acknowledges nothing: the sum of its connections on which nothing is acknowledged.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unacknowledged {
    /// Client's address without port.
    pub client: String,
    /// Bytes that TCP keeps for the client, sent or not.
    pub bytes: f64,
    /// Seconds for which at least nothing has been acknowledged, on the connection where that is longest.
    pub seconds: f64,
    /// Retransmissions of the oldest of these bytes, on the connection where that is most.
    pub retransmissions: f64,
    /// Bytes of connections whose client announces that it takes no more for now (a window of zero).
    pub zero_window_bytes: f64,
}

impl Unacknowledged {
    /// Clients of a reading or of a window's end, the longest time first; `None` where this is not measured.
    pub fn all(s: &Snapshot) -> Option<Vec<Unacknowledged>> {
        s.value(&f::UNACKED_CONNECTIONS, [])?;
        let value = |family, client: &str| {
            s.value(family, [client])
                .filter(|n| n.is_finite())
                .unwrap_or(0.0)
        };
        let mut all: Vec<_> = (s.numbers(&f::UNACKED_SECONDS))
            .filter(|(_, seconds)| seconds.is_finite() && *seconds > 0.0)
            .map(|([client], seconds)| Unacknowledged {
                client: client.to_owned(),
                bytes: value(&f::UNACKED_BYTES, client),
                seconds,
                retransmissions: value(&f::UNACKED_RETRANSMISSIONS, client),
                zero_window_bytes: value(&f::UNACKED_ZERO_WINDOW, client),
            })
            .collect();
        all.sort_by(|a, b| {
            b.seconds
                .total_cmp(&a.seconds)
                .then(a.client.cmp(&b.client))
        });
        Some(all)
    }
}

/// Names of transports in use whose replies cannot be followed to the client.
pub fn unseen_transports(w: &Window) -> Vec<&'static str> {
    let in_use =
        |family, transport: &str| numbers(w, family).any(|([t], n)| t == transport && n > 0.0);
    let mut all = Vec::new();
    if in_use(&f::CONNECTIONS, "rdma") {
        all.push("RDMA");
    }
    if in_use(&f::LISTENERS, "udp") {
        all.push("UDP");
    }
    all
}
