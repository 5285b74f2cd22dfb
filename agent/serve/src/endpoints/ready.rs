//! `/-/ready`: says whether the probes are attached, under the path of Prometheus and similar programs.

use crate::service::endpoint::{Asked, Content, Endpoint, Refusal, Reply, Served};
use nfscope_api::link::Why;
use nfscope_model::status::Status;

pub(super) struct Ready;

impl Endpoint for Ready {
    const PATH: &str = "/-/ready";
    const ABOUT: &str = "200 once the probes are attached";
    const HELP: &str = "200 once the probes are attached";
    const CONTENT: Content = Content::Word;
    const SERVED: Served = Served::Each;
    type Query = ();

    async fn answer(asked: &Asked, (): ()) -> Result<Reply, Refusal> {
        match asked.source.status() {
            Status::Attaching => Err(Refusal::new(
                Why::Unavailable,
                "nfscope is attaching its probes.",
            )),
            Status::Running(_) => Ok(Reply::Body("nfscope is ready.\n".into())),
        }
    }
}
