//! Snapshots as Prometheus expositions: classic text, OpenMetrics text and Prometheus protobuf.

mod buckets;
mod classic_edges;
mod collectors;
mod encoder;
mod format;
mod negotiation;
pub mod reference;
mod self_metrics;

pub use collectors::Collectors;
pub use format::Format;
pub use negotiation::{accepts_gzip, negotiate};
pub use self_metrics::describe;

use encoder::{Collector, Naming};
use nfscope_model::{Snapshot, family};
use prometheus_client::encoding::{prometheus_protobuf, text};
use prometheus_client::registry::Registry;
use std::sync::Arc;

/// Encodes a whole snapshot.
///
/// # Errors
/// When the encoder refuses a series, which no snapshot causes; the caller answers 500 and goes on.
pub fn encode(snapshot: &Arc<Snapshot>, format: Format) -> anyhow::Result<Vec<u8>> {
    encode_some(snapshot, format, &Collectors::default())
}

/// Encodes the families of a snapshot that these collectors have.
///
/// # Errors
/// Errors of [`encode`].
pub fn encode_some(
    snapshot: &Arc<Snapshot>,
    format: Format,
    collectors: &Collectors,
) -> anyhow::Result<Vec<u8>> {
    let naming = match format {
        Format::Plain => Naming::Whole,
        Format::OpenMetrics | Format::Protobuf => Naming::InParts,
    };
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Collector::new(
        snapshot.clone(),
        naming,
        collectors.clone(),
    )));
    if format == Format::Protobuf {
        return prometheus_protobuf::encode_to_vec(&registry).map_err(|e| anyhow::anyhow!("{e}"));
    }
    let mut out = String::new();
    text::encode_registry(&mut out, &registry)?;
    let mut out = summaries(&out);
    if format == Format::OpenMetrics {
        text::encode_eof(&mut out)?;
    }
    Ok(out.into_bytes())
}

/// Turns families without classic edges into summaries. In text a histogram must have the bucket `+Inf`, which only repeats the count. The
/// encoder has no summaries.
fn summaries(text: &str) -> String {
    let no_edges =
        |info: &&&family::Info| classic_edges::of(info).is_some_and(|g| g.edges.is_empty());
    let families: Vec<[String; 2]> = family::ALL
        .iter()
        .filter(no_edges)
        .map(|f| {
            [
                format!("# TYPE {} ", f.name),
                format!("{}_bucket{{", f.name),
            ]
        })
        .collect();
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let of = |i: usize| families.iter().find(|f| line.starts_with(&*f[i]));
        if of(1).is_some() {
            continue;
        }
        match of(0) {
            Some([kind, _]) => {
                out += kind;
                out += "summary\n";
            }
            None => out += line,
        }
    }
    out
}
