//! Calls that the server refused before it executed anything, in all and by client.

use crate::ratio::sum;
use nfscope_model::window_parts::numbers;
use nfscope_model::{Window, family as f};
use std::collections::BTreeMap;

/// Calls that one client sent and the server refused.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OfClient {
    /// Label `client`.
    pub client: String,
    /// Calls of a wrong form: no such RPC version, program, version or procedure, or no call at all.
    pub format: f64,
    /// Calls whose credentials were refused.
    pub auth: f64,
    /// Calls whose arguments could not be decoded.
    pub arguments: f64,
}

impl OfClient {
    /// Sum of all refused calls.
    pub fn all(&self) -> f64 {
        self.format + self.auth + self.arguments
    }
}

/// Refused calls in a window.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Refused {
    /// All refused calls: the kernel's count, or the sum of the clients' calls if that is more.
    pub count: f64,
    /// Calls whose credentials were refused.
    pub auth: f64,
    /// Clients that sent refused calls, the most first. Some clients may have no room in the kernel's table.
    pub clients: Vec<OfClient>,
}

impl Refused {
    /// Refused calls of a window; `None` if they are not counted.
    pub fn of(w: &Window) -> Option<Refused> {
        let mut counted = numbers(w, &f::RPC_DROPPED)
            .filter(|([why], _)| matches!(*why, "garbage" | "auth"))
            .peekable();
        let kernel = counted.peek().is_some();
        let (mut garbage, mut auth) = (0.0, 0.0);
        for ([why], n) in counted {
            match why {
                "auth" => auth += n,
                _ => garbage += n,
            }
        }
        let mut clients: BTreeMap<&str, OfClient> = BTreeMap::new();
        for ([client, why], n) in numbers(w, &f::CLIENT_REFUSED).filter(|(_, n)| *n > 0.0) {
            let of = clients.entry(client).or_insert_with(|| OfClient {
                client: client.to_owned(),
                ..OfClient::default()
            });
            match why {
                "auth" => of.auth += n,
                "arguments" => of.arguments += n,
                _ => of.format += n,
            }
        }
        let mut clients: Vec<_> = clients.into_values().collect();
        clients.sort_by(|a, b| b.all().total_cmp(&a.all()));
        let of_clients = |n: fn(&OfClient) -> f64| sum(clients.iter().map(n));
        // The kernel's count does not include calls whose arguments cannot be decoded.
        let auth = auth.max(of_clients(|c| c.auth));
        let count = garbage.max(of_clients(|c| c.format)) + auth + of_clients(|c| c.arguments);
        (kernel || !clients.is_empty()).then_some(Refused {
            count,
            auth,
            clients,
        })
    }
}
