//! The summary of one baseline.

use crate::estimate;
use crate::estimate::{Value, per};
use crate::histogram_series::HistogramSeries;
use crate::series;
use crate::series::{Gap, SeriesSet};
use crate::store::{Entry, Store};
use crate::workload;
use nfscope_model::family;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// An operation, over all versions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OpRow {
    /// Name of the operation.
    pub op: String,
    /// Number of operations.
    pub operations: f64,
    /// Share of the time of all operations.
    pub share: f64,
    /// Operations per second.
    pub rate: Option<Value>,
    /// Mean duration, in seconds.
    pub mean: Option<Value>,
    /// Median duration, in seconds.
    pub p50: Option<Value>,
    /// 90 % quantile, in seconds.
    pub p90: Option<Value>,
    /// 99 % quantile, in seconds.
    pub p99: Option<Value>,
    /// Estimated length of each of two recordings, in seconds, that detects a change of p99 by 10 % with a power of 80 %.
    pub seconds_to_find: Option<f64>,
}

/// The content of `nfscope baseline show`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Metadata and state.
    #[serde(flatten)]
    pub entry: Entry,
    /// Gaps in which windows are missing.
    pub gaps: Vec<Gap>,
    /// NFS operations.
    pub operations: f64,
    /// NFS operations per second.
    pub rate: Option<Value>,
    /// Operations, in order of total time.
    pub ops: Vec<OpRow>,
    /// Results of a workload that the client measured itself, in order of its time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workload: Vec<WorkloadRow>,
}

/// An operation of a job of a workload, as the client measured it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkloadRow {
    /// The job.
    pub job: String,
    /// Failed operations of the job, of all kinds.
    pub errors: f64,
    /// Bytes per second, while the job was at work.
    pub bytes_per_second: Option<Value>,
    /// Statistics of the operation; shares are of the workload's time.
    #[serde(flatten)]
    pub row: OpRow,
}

/// Reads a baseline and summarizes it.
///
/// # Errors
/// When there is no baseline with this name, or it cannot be read.
pub fn summary(store: &Store, name: &str) -> anyhow::Result<Summary> {
    let entry = store.entry(name)?;
    let mut families = vec![&family::OP_DURATION.info, &family::RPC_DURATION.info];
    families.extend(workload::FAMILIES);
    let c = series::read(store, &entry, &families)?;
    let seconds = &c.lengths;
    let ops: BTreeSet<&str> = c
        .labels(&family::OP_DURATION)
        .into_iter()
        .map(|[_, op]| op)
        .collect();
    let histograms: BTreeMap<&str, HistogramSeries> = ops
        .into_iter()
        .filter_map(|op| Some((op, c.histograms(&family::OP_DURATION, |[_, o]| o == op)?)))
        .collect();
    let time: f64 = histograms.values().map(HistogramSeries::sum).sum();
    let counts: Vec<f64> = (0..seconds.len())
        .map(|i| histograms.values().map(|s| s.counts[i]).sum())
        .collect();
    let mut rows: Vec<_> = histograms
        .iter()
        .filter(|(_, s)| s.count() > 0.0)
        .map(|(op, s)| row(op, s, time, seconds, seconds))
        .collect();
    rows.sort_by(|a, b| b.share.total_cmp(&a.share));
    Ok(Summary {
        entry,
        gaps: c.gaps.clone(),
        // The sum of no values is -0, so 0 is added.
        operations: counts.iter().sum::<f64>() + 0.0,
        rate: per(&counts, seconds),
        ops: rows,
        workload: of_workload(&c),
    })
}

fn row(op: &str, s: &HistogramSeries, time: f64, active: &[f64], lengths: &[f64]) -> OpRow {
    OpRow {
        op: op.to_owned(),
        operations: s.count(),
        share: if time > 0.0 { s.sum() / time } else { 0.0 },
        rate: estimate::rate(s, active),
        mean: estimate::mean(s),
        p50: estimate::quantile(s, 0.5),
        p90: estimate::quantile(s, 0.9),
        p99: estimate::quantile(s, 0.99),
        seconds_to_find: estimate::windows_to_find(s, 0.99)
            .map(|n| n * lengths.iter().sum::<f64>() / lengths.len() as f64),
    }
}

fn of_workload(c: &SeriesSet) -> Vec<WorkloadRow> {
    let keys = c.labels(&workload::DURATION);
    let each = keys.into_iter().filter_map(|[job, operation]| {
        let s = c.histograms(&workload::DURATION, |l| l == [job, operation])?;
        Some((job, operation, s))
    });
    let all: Vec<_> = each.collect();
    let time: f64 = all.iter().map(|(_, _, s)| s.sum()).sum();
    let row = |(job, operation, s): &(&str, &str, HistogramSeries)| {
        let active = c.numbers(&workload::SECONDS, |l| l == [*job, *operation])?;
        let bytes = c.numbers(&workload::BYTES, |l| l == [*job, *operation]);
        Some(WorkloadRow {
            job: (*job).to_owned(),
            errors: c.total(&workload::ERRORS, |[j]| j == *job),
            bytes_per_second: bytes.and_then(|b| per(&b, &active)),
            row: row(operation, s, time, &active, &c.lengths),
        })
    };
    let mut rows: Vec<_> = all.iter().filter_map(row).collect();
    rows.sort_by(|a, b| b.row.share.total_cmp(&a.row.share));
    rows
}

impl Summary {
    /// Total length of all gaps.
    pub fn missing(&self) -> Duration {
        Duration::from_secs_f64(self.gaps.iter().map(|g| g.seconds).sum())
    }
}
