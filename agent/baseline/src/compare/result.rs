//! The result of a comparison, shared by the terminal, JSON and the page.

use crate::durability::DurabilityChange;
use crate::recording::Metadata;
use crate::target_metric::Statistic;
use nfscope_model::phase;
use nfscope_stats::Interval;
use serde::Serialize;

/// A quantity of a subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Quantity {
    /// Events per second.
    Rate,
    /// Mean, in seconds.
    Mean,
    /// Mean of a total over operations, with the same mix of operations on both sides, in seconds.
    MeanAtOneMix,
    /// A quantile of a distribution, in seconds.
    Quantile {
        /// In percent: 50, 90, 99.
        percent: u8,
    },
    /// Seconds of one phase in one operation.
    Phase {
        /// cpu, runqueue, log, disk, lock.
        phase: &'static str,
    },
    /// A part of a whole, 0 to 1.
    Share,
}

impl Quantity {
    /// Returns true for sums of events, of which half a one is meaningful; false for times.
    pub(crate) fn is_count(&self) -> bool {
        matches!(self, Quantity::Rate | Quantity::Share)
    }
}

impl From<Statistic> for Quantity {
    fn from(of: Statistic) -> Quantity {
        match of {
            Statistic::Quantile(percent) => Quantity::Quantile { percent },
            Statistic::Mean => Quantity::Mean,
            Statistic::Rate => Quantity::Rate,
        }
    }
}

/// Subject of a quantity; rows of one subject are adjacent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum Subject {
    /// An operation of one version.
    Op {
        /// Version.
        version: String,
        /// Name in lower case.
        op: String,
    },
    /// Requests of one version, from arrival to reply.
    Requests {
        /// Version.
        version: String,
    },
    /// Waits of requests for a thread, all pools.
    Queue,
    /// Waits for the log of one file system or pool.
    Log {
        /// Type of the file system.
        fs: String,
        /// Volume of the file system.
        volume: String,
    },
    /// Requests for stable storage: stable WRITEs, and COMMITs.
    SyncWrites,
    /// Failures of one operation.
    Errors {
        /// Version.
        version: String,
        /// Name in lower case.
        op: String,
    },
    /// Calls that got no or no proper answer.
    Dropped {
        /// Reason: dropped, deferred, garbage, auth.
        reason: String,
    },
    /// Calls that clients retransmitted, and that were answered from the cache of replies.
    Replays,
    /// Results of a workload that the client measured itself.
    Workload {
        /// Job of the workload.
        job: String,
        /// `read`, `write` and so on.
        operation: String,
    },
    /// Operations of a workload that failed.
    WorkloadErrors {
        /// Job of the workload.
        job: String,
    },
}

/// The conclusion that the statistics support.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Shorter than before.
    Better,
    /// Longer than before.
    Worse,
    /// More than before, which is neither good nor bad in itself.
    More,
    /// Less than before.
    Less,
    /// The difference may be random.
    NoEvidence,
    /// A difference, if there is one, is below the smallest that matters.
    Small,
    /// Too few independent observations for a verdict.
    Few,
    /// Too few values, or not measured on one side.
    NotComparable,
    /// The primary quantity was not found, or could not be tested, so this row was not tested.
    NotTested,
    /// The variance between recordings of an unchanged server is not known.
    NotJudged,
}

impl Verdict {
    /// Returns true if there is evidence of a change.
    pub fn is_change(self) -> bool {
        matches!(
            self,
            Verdict::Better | Verdict::Worse | Verdict::More | Verdict::Less
        )
    }
}

/// A quantity before and after.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Subject of the quantity.
    #[serde(flatten)]
    pub subject: Subject,
    /// The quantity.
    #[serde(flatten)]
    pub quantity: Quantity,
    /// Value before; `None` if it was not measured.
    pub before: Option<Interval>,
    /// Value after; `None` if it was not measured.
    pub after: Option<Interval>,
    /// Ratio of after to before.
    pub ratio: Option<Interval>,
    /// Probability of a difference at least as large without a relevant change, corrected for multiple comparisons (Holm).
    pub p: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
    /// True for a quantity that is tested first: that of `--primary`, or else the mean of the subject that took the most time. Its `p`,
    /// `finds` and `components` are those of any change, however small.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub primary: bool,
    /// True for a change of the primary quantity that is not shown to be larger than the least one that matters.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub may_be_small: bool,
    /// Smallest change that four of five such comparisons would have found (0.1 for 10 %), for a row without evidence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finds: Option<f64>,
    /// Independent stretches, before and after; for several recordings the fewest.
    pub stretches: [Option<f64>; 2],
    /// Variances of the quantity, with several recordings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub components: Option<Components>,
    /// Reason why the row is not comparable, or a note on its verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Row {
    /// Returns true if the quantity became worse, and by more than the least change that matters.
    pub fn is_worse(&self) -> bool {
        self.verdict == Verdict::Worse && !self.may_be_small
    }
}

/// Standard deviations of a quantity, relative to its value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Components {
    /// Within a recording: the precision of its own value.
    pub within: f64,
    /// Between recordings of an unchanged server, beyond that.
    pub between: f64,
    /// Recordings on each side that find a change of 10 % in four of five comparisons of as many quantities as this one; `None` if no
    /// number does.
    pub recordings_to_find: Option<f64>,
    /// Recordings on each side if `--primary` names this quantity.
    pub recordings_to_find_first: Option<f64>,
}

/// A side of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Side {
    /// Metadata of the first recording.
    pub metadata: Metadata,
    /// Names of all recordings of this side.
    pub recordings: Vec<String>,
    /// Windows in all its recordings.
    pub windows: usize,
    /// Seconds of these windows.
    pub seconds: f64,
    /// NFS operations in them; those of the workload if no server was recorded.
    pub operations: f64,
    /// Clients with operations in them, `other` counted once.
    pub clients: usize,
}

/// A confounder or a defect of a recording that makes the comparison less certain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Caveat {
    /// durability, empty, load, mix, size, stability, clients, coverage, host, kernel, agent, threads, drift, warmup, gaps, lost, errors, order,
    /// overlap, same, hours, weekdays, replicates, primary, workload, write_cache.
    pub kind: &'static str,
    /// Description with the figures of both sides.
    pub text: String,
}

/// Two distributions over the same buckets, for an overlay.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Subject of the distributions.
    pub title: String,
    /// Upper edge of each bucket, in seconds.
    pub edges: Vec<f64>,
    /// Values per bucket before.
    pub before: Vec<f64>,
    /// Values per bucket after.
    pub after: Vec<f64>,
    /// p50 and p99 of each side, as in the table; `None` if there are too few values.
    pub marks: [Option<[f64; 2]>; 2],
}

/// Mean time of an operation by phase, before and after, in seconds: cpu, runqueue, log, disk, lock; `None`: not measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Bars {
    /// Subject of the bars.
    pub title: String,
    /// Before.
    pub before: [Option<f64>; phase::OPS],
    /// After.
    pub after: [Option<f64>; phase::OPS],
}

/// A quantity over time: seconds since the recording began, and the value (NaN if there was none).
#[derive(Debug, Clone, PartialEq)]
pub struct TimeSeries {
    /// Subject of the lines.
    pub title: String,
    /// Quantity whose changes during a recording are searched: `operations per second`, `write mean`.
    pub what: String,
    /// True for seconds of latency, false for events per second.
    pub latency: bool,
    /// Points before.
    pub before: Vec<(f64, f64)>,
    /// Points after.
    pub after: Vec<(f64, f64)>,
    /// Times of changes during a recording, before and after: seconds since the recording began.
    pub changes: [Vec<f64>; 2],
}

impl Comparison {
    /// Paragraphs of the headline: the difference in durability, if there is one, and the rest.
    pub(super) fn paragraphs(&self) -> (Option<&str>, &str) {
        let durability = self.durability.as_ref().map(|d| d.text.as_str());
        let rest = durability.and_then(|text| self.headline.strip_prefix(text));
        (
            durability.filter(|_| rest.is_some()),
            rest.unwrap_or(&self.headline).trim_start(),
        )
    }
}

/// A quantity in each recording of both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct Dots {
    /// Subject of the dots.
    pub title: String,
    /// The quantity.
    pub quantity: Quantity,
    /// Values before and after, by recording; `None` if a recording has none.
    pub values: [Vec<Option<Interval>>; 2],
}

/// A comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The difference in the durability of acknowledged writes; `None` without a known one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub durability: Option<DurabilityChange>,
    /// The reason why nothing is judged: an unknown variance between recordings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_judged: Option<String>,
    /// Differences in durability, in failures and in the work, and then the changes of latencies.
    pub headline: String,
    /// Caveats, which make the comparison less certain.
    pub caveats: Vec<Caveat>,
    /// Changes by up to this count as none.
    pub min_effect: f64,
    /// The side before.
    pub before: Side,
    /// The side after.
    pub after: Side,
    /// All compared quantities, subjects in order of importance.
    pub rows: Vec<Row>,
    /// Advice on the next recordings, if they would help.
    pub next: Vec<String>,
    /// Statistical methods with their sources. The terminal shows the first entry only.
    pub method: Vec<String>,
    /// Operations that are not compared because they take hardly any time.
    pub left_out: Vec<String>,
    /// True if every WRITE on both sides asked to be durable, and the server kept its word as far as is known.
    #[serde(skip)]
    pub durable_writes: bool,
    /// The quantity that the first page is about, in each recording.
    #[serde(skip)]
    pub dots: Option<Dots>,
    /// Distributions of the subjects that take the most time.
    #[serde(skip)]
    pub curves: Vec<Curve>,
    /// Phases of the same operations.
    #[serde(skip)]
    pub bars: Vec<Bars>,
    /// Rates and latencies over time.
    #[serde(skip)]
    pub time_series: Vec<TimeSeries>,
}
