//! `/slow`: slow operations as they happen.

use crate::service::endpoint::{Asked, Content, Endpoint, Refusal, Reply, Served};
use nfscope_api::access::Access;
use nfscope_api::link::Why;
use nfscope_model::SlowFilter;

pub(super) struct Slow;

impl Endpoint for Slow {
    const PATH: &str = "/slow";
    const ABOUT: &str =
        "JSON lines: every operation over 10 ms as it happens, for <code>nfscope slow</code>";
    const HELP: &str = "\
slow operations as they happen, one JSON object per line, until
the client disconnects; at most 8 clients, 5 of one address";
    const CONTENT: Content = Content::Lines;
    const ACCESS: Access = Access::Details;
    const SERVED: Served = Served::Stream;
    type Query = SlowFilter;

    async fn answer(asked: &Asked, want: SlowFilter) -> Result<Reply, Refusal> {
        let lines = asked.source.on_thread(|r| r.slow(want)).await?;
        Ok(Reply::Lines(
            lines.map_err(Refusal::with(Why::Unavailable))?,
        ))
    }
}
