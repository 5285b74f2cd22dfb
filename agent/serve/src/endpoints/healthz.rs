//! `/healthz`: says whether NFS operations are timed, and whether the server serves all requests.

use crate::service::endpoint::{Asked, Content, Endpoint, Refusal, Reply, Served};
use nfscope_api::link::Why;

pub(super) struct Healthz;

impl Endpoint for Healthz {
    const PATH: &str = "/healthz";
    const ABOUT: &str = "200 while NFS operations are being timed; degraded while requests are stuck, in grace or while the server stops";
    const HELP: &str = "\
200 while NFS operations are being timed, else 503 and the reason;
the text is ok, or degraded while requests are stuck in the server,
while the server is in its grace period, or while it has been
starting or stopping for a second or longer";
    const CONTENT: Content = Content::Word;
    const SERVED: Served = Served::Each;
    type Query = ();

    async fn answer(asked: &Asked, (): ()) -> Result<Reply, Refusal> {
        let health = asked.source.status().health();
        health.map_err(|why| Refusal::new(Why::Unavailable, why))?;
        // A degraded server still gets 200, because the agent works: a supervisor that restarted the agent would only lose sight of the
        // server.
        let text = match asked.source.degraded() {
            Some(why) => format!("degraded: {why}\n"),
            None => "ok\n".to_owned(),
        };
        Ok(Reply::Body(text.into()))
    }
}
