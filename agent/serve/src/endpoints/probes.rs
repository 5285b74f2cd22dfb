//! `/probes`: every probe program, its state, and the reason for it.

use crate::service::endpoint::{Asked, Endpoint, Refusal, Reply, Served};
use nfscope_model::ProbeStatus;
use serde::Serialize;

pub(super) struct Probes;

#[derive(Serialize)]
struct Body<'a> {
    times_operations: bool,
    /// Reason why operations are not timed; empty where they are.
    reason: &'a str,
    probes: &'a [ProbeStatus],
}

impl Endpoint for Probes {
    const PATH: &str = "/probes";
    const ABOUT: &str = "JSON: every probe program, its state and the reason";
    const HELP: &str = "state and reason of every probe program, as JSON";
    const SERVED: Served = Served::Each;
    type Query = ();

    async fn answer(asked: &Asked, (): ()) -> Result<Reply, Refusal> {
        let status = asked.source.status();
        let health = status.health();
        let body = Body {
            times_operations: health.is_ok(),
            reason: health.as_ref().err().map_or("", String::as_str),
            probes: status.probes(),
        };
        let text = serde_json::to_vec_pretty(&body).map_err(anyhow::Error::from)?;
        Ok(Reply::Body(text.into()))
    }
}
