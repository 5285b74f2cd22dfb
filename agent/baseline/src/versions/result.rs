//! The result of a comparison of versions; its JSON has these fields.

use crate::versions::block::Metric;
use crate::versions::distance::Distance;
use crate::versions::scale::Scale;
use nfscope_stats::mean_interval::Interval;
use serde::Serialize;
use std::collections::BTreeMap;

/// A comparison with its conditions and results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Conditions of the comparison.
    #[serde(flatten)]
    pub setting: Setting,
    /// Each load.
    pub loads: Vec<LoadResult>,
    /// Comparisons that p values are corrected for.
    pub comparisons: usize,
    /// Throughput against threads, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<Scale>,
}

/// The conditions of a comparison.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Setting {
    /// `SERVER:/EXPORT`
    pub source: String,
    /// Versions that were measured; ratios are to the first.
    pub versions: Vec<String>,
    /// Versions and loads that were asked for and not measured, with the reason.
    pub left_out: Vec<LeftOut>,
    /// Rounds that count; each has a block of every version.
    pub rounds: usize,
    /// Length of a block.
    pub runtime_seconds: f64,
    /// Threads of the loads.
    pub threads: u32,
    /// Seed of the random order.
    pub seed: u64,
    /// More options of the mounts.
    pub mount_options: Option<String>,
    /// URL of the server's agent; `None` if only the replies of the server are known.
    pub agent: Option<String>,
    /// Shortest of several TCP handshakes with the server; `None` if its port does not answer.
    pub round_trip_seconds: Option<f64>,
    /// Relative half width that the intervals were to reach.
    pub until_ci: Option<f64>,
    /// True if the intervals reached it.
    pub reached: Option<bool>,
    /// Warnings for the reader.
    pub warnings: Vec<String>,
}

/// A version or a load without figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeftOut {
    /// Version or load: `4.2`, or `open-4 over 3`.
    pub what: String,
    /// Error of the server or the client.
    pub why: String,
}

/// Results of one load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoadResult {
    /// Name of the load.
    pub load: String,
    /// Sentence that defines an operation.
    pub operation: String,
    /// Each quantity of each version.
    pub rows: Vec<Row>,
    /// RPCs per operation, by version and procedure.
    pub rpcs: BTreeMap<String, BTreeMap<String, f64>>,
    /// Cost of the distance for calls that were measured one by one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub distance: Vec<Distance>,
}

/// A quantity of a version.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The quantity.
    pub metric: Metric,
    /// The version.
    pub version: String,
    /// Mean of the blocks, with its 95 % interval; without one for fewer than six rounds.
    pub mean: Interval,
    /// Ratio to the first version, by pairs within rounds; `None` for the first one itself.
    pub ratio: Option<f64>,
    /// Ends of the ratio's 95 % interval; `None` for fewer than six rounds.
    pub interval: Option<[f64; 2]>,
    /// Corrected p value of a difference beyond 2 %.
    pub p: Option<f64>,
    /// Verdict about the ratio.
    pub verdict: Verdict,
    /// Smallest ratio above 1 that this number of rounds finds in four of five measurements; `None` unless nothing was found.
    pub finds: Option<f64>,
}

/// Verdict about a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The version that others are compared with.
    Base,
    /// There is evidence that it is better.
    Better,
    /// There is evidence that it is worse.
    Worse,
    /// There is a difference of at most 2 %.
    TooSmall,
    /// There is no evidence of a difference.
    NoEvidence,
    /// Too few rounds for a verdict.
    TooFew,
}

impl Verdict {
    /// Word for the verdict in tables.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Base => "",
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::TooSmall => "too small",
            Verdict::NoEvidence => "no evidence",
            Verdict::TooFew => "too few rounds",
        }
    }
}
