//! `/snapshot`: every value, including those of single files and clients.

use crate::service::endpoint::{Asked, Endpoint, Refusal, Reply, Served};
use crate::service::source_thread::Part;
use anyhow::Context;
use nfscope_api::access::Access;

pub(super) struct Snapshot;

impl Endpoint for Snapshot {
    const PATH: &str = "/snapshot";
    const ABOUT: &str = "JSON: all values, for <code>nfscope top</code>";
    const HELP: &str = "every value, as JSON";
    const ACCESS: Access = Access::Details;
    const SERVED: Served = Served::Reading;
    type Query = ();

    async fn answer(asked: &Asked, (): ()) -> Result<Reply, Refusal> {
        let part = asked.source.part(Part::Snapshot).await?;
        let (made, body) = part.context("a reading has a snapshot")?;
        Ok(Reply::Part(made, body))
    }
}
