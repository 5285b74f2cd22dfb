//! `/stuck`: the requests that threads of the server have had in hand for long.

use crate::service::endpoint::{Asked, Endpoint, Refusal, Reply, Served};
use nfscope_api::access::Access;
use nfscope_api::stuck_query::Over;
use nfscope_model::HeldRequests;
use nfscope_model::status::Status;
use nfscope_source::hostname;
use serde::Serialize;
use std::collections::BTreeMap;

pub(super) struct Stuck;

/// Answer with the names of clients.
#[derive(Serialize)]
struct Named<'a> {
    #[serde(flatten)]
    held: &'a HeldRequests,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    names: BTreeMap<&'a str, String>,
}

impl Endpoint for Stuck {
    const PATH: &str = "/stuck";
    const ABOUT: &str =
        "JSON: requests in hand for a second or longer, for <code>nfscope stuck</code>";
    const HELP: &str = "\
requests that a thread has been serving for longer than over=1s,
the oldest first: client, operation, inode, export and the cause
of the wait, as JSON";
    const ACCESS: Access = Access::Details;
    // Answers are paced, because the probes look at the stack of each thread.
    const SERVED: Served = Served::Paced;
    type Query = Over;

    async fn answer(asked: &Asked, Over(over): Over) -> Result<Reply, Refusal> {
        if asked.source.status() == Status::Attaching {
            return Reply::json(&HeldRequests {
                host: hostname::own_name(),
                over_seconds: over.as_secs_f64(),
                unknown: Some("the agent is attaching its probes".to_owned()),
                ..HeldRequests::default()
            });
        }
        let held = asked.source.on_thread(move |r| r.source.held(over)).await?;
        let known = asked.source.names();
        let clients = held.requests.iter().filter_map(|r| r.client.as_deref());
        let late = held.unacknowledged.iter().flatten();
        let named = clients
            .chain(late.map(|c| c.client.as_str()))
            .filter_map(|c| Some((c, known.client(c)?)));
        let names: BTreeMap<_, _> = named.collect();
        Reply::json(&Named { held: &held, names })
    }
}
