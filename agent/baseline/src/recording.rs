//! A baseline as it was recorded: what is known of it, and its windows.

use nfscope_model::{Histogram, Scheme, Sparse};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::time::Duration;

/// What is known of a recording beside its windows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct About {
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
pub struct Line {
    /// The number.
    pub id: u32,
    /// Name of its family; one of a later version may be unknown here.
    pub family: String,
    /// Label values in the order of the family.
    pub labels: Vec<String>,
}

/// What one series did in a window.
#[derive(Debug, Clone, PartialEq)]
pub enum Point {
    /// What was added to a counter.
    Added(f64),
    /// A gauge, as it stood at the end.
    Stood(f64),
    /// What was added to a histogram: buckets that are not empty, and the sum of the values in base units.
    Spread {
        /// Bucket scheme.
        scheme: Scheme,
        /// Index and count of each bucket that has something, by index.
        counts: Sparse,
        /// Sum in base units.
        sum: f64,
    },
}

impl Point {
    /// The histogram of a [`Point::Spread`].
    pub fn histogram(&self) -> Option<Histogram> {
        let Point::Spread {
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

/// One window as it was recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// When it began, in milliseconds since 1970 (UTC).
    pub began_ms: i64,
    /// How long it was.
    pub length: Duration,
    /// Points by the number of their series. A series that has none was not measured in this window.
    pub points: Vec<(u32, Point)>,
}

/// A whole recording in memory, windows in order of time.
#[derive(Debug, Clone, PartialEq)]
pub struct Take {
    /// What is known of it.
    pub about: About,
    /// Series by number.
    pub lines: Vec<Line>,
    /// Windows.
    pub windows: Vec<Recorded>,
}
