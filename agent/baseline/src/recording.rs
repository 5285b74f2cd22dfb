//! A recording: metadata, series and windows.

use nfscope_model::{Histogram, Scheme, Sparse};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::time::Duration;

/// Metadata of a recording.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Metadata {
    /// Name, unique in a store.
    pub name: String,
    /// Begin in milliseconds since 1970 (UTC).
    pub began_ms: i64,
    /// Name of the server.
    pub host: String,
    /// Kernel of the server (uname -r); `None` if the agent did not report it.
    pub kernel: Option<String>,
    /// Release and commit of the agent.
    pub agent: String,
    /// Nominal length of a window; seconds in JSON.
    #[serde(rename = "interval_seconds", serialize_with = "seconds")]
    pub interval: Duration,
    /// Labels given by the user.
    pub labels: BTreeMap<String, String>,
}

/// Label of a recording that was made of classic histograms, which have few edges.
pub const CLASSIC: (&str, &str) = ("histograms", "classic");

impl Metadata {
    /// Returns true if histograms have few edges, so that quantiles are guesses.
    pub fn has_few_edges(&self) -> bool {
        self.labels.get(CLASSIC.0).is_some_and(|v| v == CLASSIC.1)
    }
}

/// Serializes a duration as seconds.
pub(super) fn seconds<S: Serializer>(d: &Duration, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_f64(d.as_secs_f64())
}

/// Identifies one series; windows refer to it by number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesKey {
    /// Number of the series.
    pub id: u32,
    /// Name of the metric family; unknown here if a later version recorded it.
    pub family: String,
    /// Label values in the order of the family.
    pub labels: Vec<String>,
}

/// The value of one series in one window.
#[derive(Debug, Clone, PartialEq)]
pub enum Sample {
    /// Increase of a counter.
    Counter(f64),
    /// A gauge at the end of the window.
    Gauge(f64),
    /// Increase of a histogram.
    Histogram {
        /// Bucket scheme.
        scheme: Scheme,
        /// Index and count of each bucket that is not empty, ordered by index.
        counts: Sparse,
        /// Sum in base units.
        sum: f64,
    },
}

impl Sample {
    /// The histogram of a [`Sample::Histogram`].
    pub fn histogram(&self) -> Option<Histogram> {
        let Sample::Histogram {
            scheme,
            counts,
            sum,
        } = self
        else {
            return None;
        };
        let mut h = Histogram::new(*scheme);
        h.add(counts, *sum);
        Some(h)
    }
}

impl From<&nfscope_model::Sample> for Sample {
    fn from(sample: &nfscope_model::Sample) -> Sample {
        match sample {
            nfscope_model::Sample::Counter(v) => Sample::Counter(*v),
            nfscope_model::Sample::Gauge(v) => Sample::Gauge(*v),
            nfscope_model::Sample::Histogram(h) => Sample::Histogram {
                scheme: h.scheme,
                counts: h.sparse(),
                sum: h.sum,
            },
        }
    }
}

/// A window as it was recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedWindow {
    /// Begin in milliseconds since 1970 (UTC).
    pub began_ms: i64,
    /// Length of the window.
    pub length: Duration,
    /// Samples by series number. A series without a sample was not measured in this window.
    pub samples: Vec<(u32, Sample)>,
}

/// A whole recording in memory, windows in order of time.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// Metadata of the recording.
    pub metadata: Metadata,
    /// Series of the recording.
    pub series: Vec<SeriesKey>,
    /// Windows.
    pub windows: Vec<RecordedWindow>,
}
