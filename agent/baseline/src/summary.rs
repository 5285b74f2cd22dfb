//! What a baseline has to say by itself.

use crate::estimate;
use crate::estimate::{Value, per};
use crate::histogram_series::Spreads;
use crate::series;
use crate::series::Gap;
use crate::store::{Entry, Store};
use nfscope_model::family;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// One operation, over all versions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OpRow {
    /// Its name.
    pub op: String,
    /// How many there were.
    pub operations: f64,
    /// Its part of the time of all operations.
    pub share: f64,
    /// Operations a second.
    pub rate: Option<Value>,
    /// Mean duration, in seconds.
    pub mean: Option<Value>,
    /// Half of them took less, in seconds.
    pub p50: Option<Value>,
    /// All but a tenth.
    pub p90: Option<Value>,
    /// All but a hundredth.
    pub p99: Option<Value>,
    /// About how long two recordings have to be, in seconds, so that a change of its p99 by 10 % is found in four of five
    /// cases.
    pub seconds_to_find: Option<f64>,
}

/// What `nfscope baseline show` shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// What is known of it.
    #[serde(flatten)]
    pub entry: Entry,
    /// Where windows are missing.
    pub gaps: Vec<Gap>,
    /// NFS operations.
    pub operations: f64,
    /// NFS operations a second.
    pub rate: Option<Value>,
    /// By operation, those that take the most time first.
    pub ops: Vec<OpRow>,
}

/// Reads one baseline through.
///
/// # Errors
/// When there is none of that name, or it cannot be read.
pub fn summary(store: &Store, name: &str) -> anyhow::Result<Summary> {
    let entry = store.entry(name)?;
    let families = [&family::OP_DURATION.info, &family::RPC_DURATION.info];
    let c = series::read(store, &entry, &families)?;
    let seconds = &c.lengths;
    let ops: BTreeSet<&str> = c
        .labels(&family::OP_DURATION)
        .into_iter()
        .map(|[_, op]| op)
        .collect();
    let spreads: BTreeMap<&str, Spreads> = ops
        .into_iter()
        .filter_map(|op| Some((op, c.spreads(&family::OP_DURATION, |[_, o]| o == op)?)))
        .collect();
    let time: f64 = spreads.values().map(Spreads::sum).sum();
    let counts: Vec<f64> = (0..seconds.len())
        .map(|i| spreads.values().map(|s| s.counts[i]).sum())
        .collect();
    let mut rows: Vec<_> = spreads
        .iter()
        .filter(|(_, s)| s.count() > 0.0)
        .map(|(op, s)| OpRow {
            op: (*op).to_owned(),
            operations: s.count(),
            share: if time > 0.0 { s.sum() / time } else { 0.0 },
            rate: estimate::rate(s, seconds),
            mean: estimate::mean(s),
            p50: estimate::quantile(s, 0.5),
            p90: estimate::quantile(s, 0.9),
            p99: estimate::quantile(s, 0.99),
            seconds_to_find: estimate::windows_to_find(s, 0.99)
                .map(|n| n * seconds.iter().sum::<f64>() / seconds.len() as f64),
        })
        .collect();
    rows.sort_by(|a, b| b.share.total_cmp(&a.share));
    Ok(Summary {
        entry,
        gaps: c.gaps.clone(),
        operations: counts.iter().sum(),
        rate: per(&counts, seconds),
        ops: rows,
    })
}

impl Summary {
    /// Time that is missing between windows.
    pub fn missing(&self) -> Duration {
        Duration::from_secs_f64(self.gaps.iter().map(|g| g.seconds).sum())
    }
}
