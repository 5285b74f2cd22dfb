//! What a comparison says: the same for the terminal, for JSON and for the page.

use crate::recording::About;
use serde::Serialize;

/// A value with its interval, in base units (seconds, events per second, or a ratio).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The value itself.
    pub value: f64,
    /// Lower end of its 95 % confidence interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// What is compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Quantity {
    /// Events a second.
    Rate,
    /// Mean, in seconds.
    Mean,
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

/// What the quantity is of; rows of one subject stand together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum Subject {
    /// One operation of one version.
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
    /// Waits for the log of one filesystem.
    Log {
        /// Kind of filesystem.
        fs: String,
        /// Its volume.
        volume: String,
    },
    /// What clients want durable: WRITEs that must be, and COMMITs.
    SyncWrites,
}

/// What the statistics allow to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Shorter than before.
    Better,
    /// Longer than before.
    Worse,
    /// More of it than before, which is neither good nor bad in itself.
    More,
    /// Less of it.
    Less,
    /// Nothing that chance would not do as well.
    NoEvidence,
    /// Too little of it, or not measured on one side.
    NotComparable,
}

/// One quantity before and after.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// What it is of.
    #[serde(flatten)]
    pub subject: Subject,
    /// Which quantity.
    #[serde(flatten)]
    pub quantity: Quantity,
    /// Before; `None` where not measured.
    pub before: Option<Estimate>,
    /// After.
    pub after: Option<Estimate>,
    /// After over before.
    pub ratio: Option<Estimate>,
    /// Probability of a difference as large where there is none that matters, corrected for the number of comparisons (Holm).
    pub p: Option<f64>,
    /// What may be said.
    pub verdict: Verdict,
    /// Why it is not comparable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// One side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Side {
    /// What is known of the recording.
    pub about: About,
    /// Windows in it.
    pub windows: usize,
    /// Seconds of them.
    pub seconds: f64,
    /// NFS operations in them.
    pub operations: f64,
    /// Clients with operations in them, `other` counted once.
    pub clients: usize,
}

/// A difference between the two sides that is none of what was to be compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// load, mix, clients, kernel, agent, threads, drift, gaps, lost.
    pub kind: &'static str,
    /// In words, with both sides' figures.
    pub text: String,
}

/// Two distributions over the same buckets, for an overlay.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// What of.
    pub title: String,
    /// Upper edge of each bucket, in seconds.
    pub edges: Vec<f64>,
    /// Values per bucket before.
    pub before: Vec<f64>,
    /// Values per bucket after.
    pub after: Vec<f64>,
}

/// Where an operation's mean time goes, before and after, in seconds: cpu, runqueue, log, disk, lock; `None`: not told apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Bars {
    /// What of.
    pub title: String,
    /// Before.
    pub before: [Option<f64>; 5],
    /// After.
    pub after: [Option<f64>; 5],
}

/// One quantity over time: seconds since the recording began, value (NaN where there was none).
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    /// What of.
    pub title: String,
    /// True for seconds of latency, false for events a second.
    pub latency: bool,
    /// Before.
    pub before: Vec<(f64, f64)>,
    /// After.
    pub after: Vec<(f64, f64)>,
}

/// A comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// One paragraph: what changed.
    pub answer: String,
    /// What makes the comparison doubtful.
    pub warnings: Vec<Warning>,
    /// Before.
    pub before: Side,
    /// After.
    pub after: Side,
    /// All that was compared, subjects in order of importance.
    pub rows: Vec<Row>,
    /// How: methods with their sources, one sentence each; the first sums up and is all that the terminal shows.
    pub method: Vec<String>,
    /// Operations that were left out because they hardly take any time.
    pub left_out: Vec<String>,
    /// Distributions of what takes the most time.
    #[serde(skip)]
    pub curves: Vec<Curve>,
    /// Phases of the same operations.
    #[serde(skip)]
    pub bars: Vec<Bars>,
    /// Rates and latencies over time.
    #[serde(skip)]
    pub courses: Vec<Course>,
}
