//! `/recordings`: the baselines that the page can open.

use crate::api::access::Access;
use crate::api::link::Why;
use crate::service::endpoint::{Asked, Endpoint, Refusal, Reply, Served};

/// The reason where the agent looks for no recordings.
pub(super) const NO_RECORDINGS: &str =
    "this agent shows no recordings; `nfscope baseline open NAME` does";

pub(super) struct Recordings;

impl Endpoint for Recordings {
    const PATH: &str = "/recordings";
    const ABOUT: &str = "JSON: the baselines that the page can open";
    const HELP: &str = "the baselines that the page can open, as JSON";
    const ACCESS: Access = Access::Details;
    const SERVED: Served = Served::Disk;
    type Query = ();

    async fn answer(asked: &Asked, (): ()) -> Result<Reply, Refusal> {
        let recordings = asked.source.recordings();
        let recordings = recordings.ok_or_else(|| Refusal::new(Why::Absent, NO_RECORDINGS))?;
        let list = recordings.list().await.map_err(Refusal::with(Why::Busy))?;
        Ok(Reply::Body(list.into()))
    }
}
