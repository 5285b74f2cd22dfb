//! `/breakdown`: operations by client, export, operation, user or file, one line per interval.

use crate::service::endpoint::{Asked, Content, Endpoint, Refusal, Reply, Served};
use nfscope_api::access::Access;
use nfscope_api::breakdown_query::Query;
use nfscope_api::link::Why;

pub(super) struct Breakdown;

impl Endpoint for Breakdown {
    const PATH: &str = "/breakdown";
    const ABOUT: &str = "operations by client, export, user or file, while you listen";
    const HELP: &str = "\
operations by client, export, op, version, user or file while a
client reads, one JSON object per line (by=client,op)";
    const CONTENT: Content = Content::Lines;
    const ACCESS: Access = Access::Details;
    const SERVED: Served = Served::Stream;
    type Query = Query;

    fn access(query: &Query) -> Access {
        match query.is_private() {
            true => Access::FileNames,
            false => Access::Details,
        }
    }

    async fn answer(asked: &Asked, query: Query) -> Result<Reply, Refusal> {
        let lines = asked.source.on_thread(|r| r.breakdown(query)).await?;
        Ok(Reply::Lines(
            lines.map_err(Refusal::with(Why::Unavailable))?,
        ))
    }
}
