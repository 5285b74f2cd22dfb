//! The result of a comparison of versions; its JSON is this, field by field.

use crate::versions::block::Metric;
use crate::versions::distance::Distance;
use crate::versions::scale::Scale;
use nfscope_stats::mean_interval::Interval;
use serde::Serialize;
use std::collections::BTreeMap;

/// What was compared, and what was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Under which conditions.
    #[serde(flatten)]
    pub setting: Setting,
    /// Each load.
    pub loads: Vec<LoadResult>,
    /// Comparisons that p values are corrected for.
    pub comparisons: usize,
    /// Throughput against threads, if that was asked for.
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
    /// What was asked for and not measured, with the reason.
    pub left_out: Vec<LeftOut>,
    /// Rounds that count; each has a block of every version.
    pub rounds: usize,
    /// Length of a block.
    pub runtime_seconds: f64,
    /// Threads of the loads.
    pub threads: u32,
    /// Of the random order.
    pub seed: u64,
    /// More options of the mounts.
    pub mount_options: Option<String>,
    /// The server's agent; `None` where nothing is known of the server but its replies.
    pub agent: Option<String>,
    /// The shortest of several TCP handshakes with the server; `None` where its port does not answer.
    pub round_trip_seconds: Option<f64>,
    /// What the intervals were to reach.
    pub until_ci: Option<f64>,
    /// Whether they did.
    pub reached: Option<bool>,
    /// What the reader must know.
    pub warnings: Vec<String>,
}

/// A version or a load without figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeftOut {
    /// `4.2`, or `open-4 over 3`.
    pub what: String,
    /// What the server or the client said.
    pub why: String,
}

/// One load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoadResult {
    /// Its name.
    pub load: String,
    /// What one operation is.
    pub operation: String,
    /// Each quantity of each version.
    pub rows: Vec<Row>,
    /// RPCs for each operation, by version and procedure.
    pub rpcs: BTreeMap<String, BTreeMap<String, f64>>,
    /// What the distance to the server makes of calls that were measured one by one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub distance: Vec<Distance>,
}

/// A quantity of a version.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Which.
    pub metric: Metric,
    /// Of which version.
    pub version: String,
    /// Mean of the blocks, with its 95 % interval; without one for fewer than six rounds.
    pub mean: Interval,
    /// Over that of the first version, by pairs within rounds; `None` for the first one itself.
    pub ratio: Option<f64>,
    /// Ends of its 95 % interval; `None` for fewer than six rounds.
    pub interval: Option<[f64; 2]>,
    /// Corrected p value of a difference beyond 2 %.
    pub p: Option<f64>,
    /// What to say of it.
    pub verdict: Verdict,
    /// Smallest ratio above 1 that as many rounds find in four of five measurements; `None` unless nothing was found.
    pub finds: Option<f64>,
}

/// What to say of a ratio.
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
    /// No evidence of a difference.
    NoEvidence,
    /// Too few rounds for a verdict.
    TooFew,
}

impl Verdict {
    /// For people.
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
