//! `/metrics`: the exposition for Prometheus, or a part of it.

use crate::exposition::Collectors;
use crate::service::endpoint::{Asked, Content, Endpoint, Refusal, Reply, Served};
use crate::service::source_thread::{MAX_PARTS, Part};
use nfscope_api::link::Why;

pub(super) struct Metrics;

impl Endpoint for Metrics {
    const PATH: &str = "/metrics";
    const ABOUT: &str = "for Prometheus: text, OpenMetrics, native histograms";
    const HELP: &str = "\
for Prometheus: text, OpenMetrics, native histograms; collect[]=op
and exclude[]=clients select parts of it: op, rpc, threads, log,
zfs, block, mounts, clients, exports, cpu, findings, coverage,
agent";
    const CONTENT: Content = Content::Exposition;
    const SERVED: Served = Served::Reading;
    type Query = Collectors;

    async fn answer(asked: &Asked, some: Collectors) -> Result<Reply, Refusal> {
        let part = asked.source.part(Part::Metrics(asked.format, some)).await?;
        let (made, body) = part.ok_or_else(|| {
            let text = format!(
                "at most {MAX_PARTS} different parts of the metrics are made of one reading; try again"
            );
            Refusal::new(Why::Crowded, text)
        })?;
        Ok(Reply::Part(made, body))
    }
}
