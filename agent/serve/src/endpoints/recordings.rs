//! `/recordings`: the baselines that the page can open.

use crate::service::endpoint::{Asked, Endpoint, Refusal, Reply, Served};
use nfscope_api::access::Access;
use nfscope_api::link::Why;
use nfscope_baseline::store::Error;

/// Reason for an agent without a store of recordings.
pub(super) const NO_RECORDINGS: &str =
    "this agent shows no recordings; `nfscope baseline open NAME` does";

/// Refusal for a recording that cannot be read: there is none of this name, or no store, or the store cannot be read now.
pub(super) fn refusal(e: anyhow::Error) -> Refusal {
    let absent = e.chain().any(|cause| {
        matches!(
            cause.downcast_ref::<Error>(),
            Some(Error::Unknown { .. } | Error::Missing(_))
        )
    });
    Refusal::with(if absent { Why::Absent } else { Why::Busy })(e)
}

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
        let list = recordings.list().await.map_err(refusal)?;
        Ok(Reply::Body(list.into()))
    }
}
