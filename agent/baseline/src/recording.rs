//! A baseline as it was recorded: what is known of it, and its windows.

use nfscope_model::{Histogram, Scheme, Sparse};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::time::Duration;

/// What is known of a recording beside its windows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Metadata {
    /// Its name, one of each in a store.
    pub name: String,
    /// When it began, in milliseconds since 1970 (UTC).
    pub began_ms: i64,
    /// The server's name.
    pub host: String,
    /// The server's kernel (uname -r); `None` where the agent did not say.
    pub kernel: Option<String>,
    /// The agent's release and commit.
    pub agent: String,
    /// The length that a window was to have; in JSON seconds.
    #[serde(rename = "interval_seconds", serialize_with = "seconds")]
    pub interval: Duration,
    /// What the user said of it.
    pub labels: BTreeMap<String, String>,
}

/// For JSON.
pub(super) fn seconds<S: Serializer>(d: &Duration, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_f64(d.as_secs_f64())
}

/// One series that appears in windows by its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesKey {
    /// The number.
    pub id: u32,
    /// Name of its family; one of a later version may be unknown here.
    pub family: String,
    /// Label values in the order of the family.
    pub labels: Vec<String>,
}

/// What one series did in a window.
#[derive(Debug, Clone, PartialEq)]
pub enum Sample {
    /// What was added to a counter.
    Counter(f64),
    /// A gauge, as it stood at the end.
    Gauge(f64),
    /// What was added to a histogram: buckets that are not empty, and the sum of the values in base units.
    Histogram {
        /// Bucket scheme.
        scheme: Scheme,
        /// Index and count of each bucket that has something, by index.
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

/// One window as it was recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedWindow {
    /// When it began, in milliseconds since 1970 (UTC).
    pub began_ms: i64,
    /// How long it was.
    pub length: Duration,
    /// Points by the number of their series. A series that has none was not measured in this window.
    pub samples: Vec<(u32, Sample)>,
}

/// A whole recording in memory, windows in order of time.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// What is known of it.
    pub metadata: Metadata,
    /// Series by number.
    pub series: Vec<SeriesKey>,
    /// Windows.
    pub windows: Vec<RecordedWindow>,
}
