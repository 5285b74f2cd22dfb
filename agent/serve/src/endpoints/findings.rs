//! `/findings`: the causes of slow requests, now and before.

use crate::service::endpoint::{Asked, Endpoint, Refusal, Reply, Served};
use nfscope_api::access::Access;
use nfscope_api::findings_query::FindingsQuery;
use nfscope_api::named_text;
use nfscope_diagnose::tracker::FindingTracker;
use nfscope_model::status::Status;

pub(super) struct Findings;

impl Endpoint for Findings {
    const PATH: &str = "/findings";
    const ABOUT: &str = "JSON: what makes requests slow, now and before";
    const HELP: &str = "\
active and past findings with the clients, exports and operations
behind them (who), and what changes would be worth (worth, or
worth_unknown with the reason; worth_at), as JSON; files=true adds
users and files to who";
    const SERVED: Served = Served::Shared;
    type Query = FindingsQuery;

    fn access(query: &FindingsQuery) -> Access {
        match query.files {
            true => Access::FileNames,
            false => Access::Everybody,
        }
    }

    async fn answer(asked: &Asked, query: FindingsQuery) -> Result<Reply, Refusal> {
        if asked.source.status() == Status::Attaching {
            return Reply::json(&FindingTracker::default().report());
        }
        let names = asked.source.names();
        let known = names.clone();
        let work = asked.source.on_thread(move |r| {
            let mut report = r.windows.findings.report();
            for who in report.who() {
                if !query.files {
                    who.remove_private();
                }
                who.set_names(|c| known.client(c), |u| known.user(u));
            }
            r.worth.body(report)
        });
        let mut body = work.await?.map_err(anyhow::Error::from)?;
        named_text::in_json(&mut body, &|address| names.client(address));
        Reply::json(&body)
    }
}
