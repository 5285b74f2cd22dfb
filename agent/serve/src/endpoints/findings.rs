//! `/findings`: the causes of slow requests, now and before.

use crate::service::endpoint::{Asked, Endpoint, Refusal, Reply, Served};
use nfscope_api::named_text;
use nfscope_diagnose::tracker::FindingTracker;
use nfscope_model::status::Status;

pub(super) struct Findings;

impl Endpoint for Findings {
    const PATH: &str = "/findings";
    const ABOUT: &str = "JSON: what makes requests slow, now and before";
    const HELP: &str = "\
active and past findings, and the predicted gain of changes
(worth, or worth_unknown with the reason; worth_at), as JSON";
    const SERVED: Served = Served::Shared;
    type Query = ();

    async fn answer(asked: &Asked, (): ()) -> Result<Reply, Refusal> {
        if asked.source.status() == Status::Attaching {
            return Reply::json(&FindingTracker::default().report());
        }
        let work = asked
            .source
            .on_thread(|r| r.worth.body(&r.windows.findings));
        let mut body = work.await?.map_err(anyhow::Error::from)?;
        let names = asked.source.names();
        named_text::in_json(&mut body, &|address| names.client(address));
        Reply::json(&body)
    }
}
