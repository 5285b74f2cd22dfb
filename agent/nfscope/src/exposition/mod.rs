//! Snapshots as Prometheus expositions: classic text, OpenMetrics text and Prometheus protobuf.

mod buckets;
mod encoder;
mod format;
mod negotiation;
mod self_metrics;

pub use format::Format;
pub use negotiation::negotiate;
pub use self_metrics::describe;

use encoder::{Collector, Naming};
use nfscope_model::Snapshot;
use prometheus_client::encoding::{prometheus_protobuf, text};
use prometheus_client::registry::Registry;
use std::sync::Arc;

/// The whole exposition of a snapshot.
///
/// # Errors
/// When the encoder refuses a series, which a snapshot cannot make it do; the caller answers 500 and goes on.
pub fn encode(snapshot: &Arc<Snapshot>, format: Format) -> anyhow::Result<Vec<u8>> {
    let naming = match format {
        Format::Plain => Naming::Whole,
        Format::OpenMetrics | Format::Protobuf => Naming::InParts,
    };
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Collector::new(snapshot.clone(), naming)));
    if format == Format::Protobuf {
        return prometheus_protobuf::encode_to_vec(&registry).map_err(|e| anyhow::anyhow!("{e}"));
    }
    let mut out = String::new();
    text::encode_registry(&mut out, &registry)?;
    if format == Format::OpenMetrics {
        text::encode_eof(&mut out)?;
    }
    Ok(out.into_bytes())
}
