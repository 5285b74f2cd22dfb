//! The entry of a baseline in a list.

use crate::recording::{Metadata, seconds};
use crate::store::process;
use crate::store::sums::{self, Parts};
use rusqlite::Row;
use rusqlite::types::Type;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// The state of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// In progress.
    Recording,
    /// The recording process ended unexpectedly; the recorded windows are complete.
    Interrupted,
    /// The recording reached the requested length or precision.
    Complete,
    /// The user stopped it early.
    Stopped,
    /// The recording did not reach the requested precision in time.
    Unreached,
    /// The stored data differ from the recorded ones.
    Damaged,
}

impl State {
    const ENDED: [State; 3] = [State::Complete, State::Stopped, State::Unreached];

    /// Name of the state in JSON and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Recording => "recording",
            State::Interrupted => "interrupted",
            State::Complete => "complete",
            State::Stopped => "stopped",
            State::Unreached => "unreached",
            State::Damaged => "damaged",
        }
    }

    fn read(ended: Option<&str>, recorder: Option<&str>) -> State {
        let known = |e: &str| State::ENDED.into_iter().find(|s| s.as_str() == e);
        match (ended.and_then(known), recorder.and_then(process::alive)) {
            (Some(state), _) => state,
            (None, Some(_)) => State::Recording,
            (None, None) => State::Interrupted,
        }
    }
}

/// A baseline in a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// Metadata of the recording.
    #[serde(flatten)]
    pub metadata: Metadata,
    /// State of the recording.
    pub state: State,
    /// Number of windows.
    pub windows: u64,
    /// Time that the windows cover.
    #[serde(rename = "seconds", serialize_with = "seconds")]
    pub length: Duration,
    #[serde(skip)]
    pub(super) id: i64,
    #[serde(skip)]
    pub(super) recorder: Option<String>,
    /// Checksums of its parts; `None` for a recording from before there were checksums.
    #[serde(skip)]
    pub(super) parts: Option<Parts>,
}

impl Entry {
    /// Returns true if the recording has checksums.
    pub fn has_checksums(&self) -> bool {
        self.parts.is_some()
    }

    /// An entry of no store.
    #[cfg(test)]
    pub(crate) fn without_store(metadata: Metadata, state: State) -> Entry {
        Entry {
            metadata,
            state,
            windows: 0,
            length: Duration::ZERO,
            id: 0,
            recorder: None,
            parts: None,
        }
    }
}

/// Query that [`entry`] reads, to be grouped by b.id. Sums are floating point: an integer sum of damaged lengths overflows, which would
/// make the whole list an error.
pub(super) fn select(sums: bool) -> String {
    let sums = match sums {
        true => "b.windows, b.length_ns, b.series_sum, b.windows_sum, b.checksum",
        false => "NULL, NULL, NULL, NULL, NULL",
    };
    format!(
        "SELECT b.id, b.name, b.began_ms, b.host, b.kernel, b.agent, b.interval_ns, b.labels, b.recorder, b.ended, count(w.seq),
         total(w.length_ns), coalesce(max(w.length_ns), 0), coalesce(min(w.length_ns), 0), {sums}
         FROM baseline b LEFT JOIN \"window\" w ON w.baseline = b.id"
    )
}

/// Longest window: intervals end at an hour, and an agent that does not answer for a year is not a gap but another recording.
const LONGEST_WINDOW_NS: i64 = 366 * 86_400 * 1_000_000_000;

pub(super) fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let (recorder, ended): (Option<String>, Option<String>) = (row.get(8)?, row.get(9)?);
    let labels: String = row.get(7)?;
    let interval_ns: i64 = row.get(6)?;
    let parsed = serde_json::from_str(&labels);
    let mut damaged = parsed.is_err() || interval_ns < 0;
    let metadata = Metadata {
        name: row.get(1)?,
        began_ms: row.get(2)?,
        host: row.get(3)?,
        kernel: row.get(4)?,
        agent: row.get(5)?,
        interval: Duration::from_nanos(interval_ns.unsigned_abs()),
        labels: parsed.unwrap_or_default(),
    };
    let (windows, length): (i64, f64) = (row.get(10)?, row.get(11)?);
    let (longest, shortest): (i64, i64) = (row.get(12)?, row.get(13)?);
    damaged |= shortest < 0 || longest > LONGEST_WINDOW_NS;
    let number = |column| row.get::<_, Option<i64>>(column);
    let stored = [14, 15, 16, 17, 18].map(number);
    let mut all = [None; 5];
    for (to, from) in all.iter_mut().zip(stored) {
        *to = from?;
    }
    let small = |n: i64| u32::try_from(n).ok();
    let mut parts = None;
    match all {
        // The recording was made before there were checksums.
        [None, None, None, None, None] => {}
        [
            Some(n),
            Some(length_ns),
            Some(series),
            Some(data),
            Some(sum),
        ] => {
            if let (Some(series), Some(data)) = (small(series), small(data)) {
                let of = Parts {
                    windows: n,
                    length_ns,
                    series,
                    data,
                };
                let stored = sums::Row {
                    metadata: metadata.clone(),
                    interval_ns,
                    labels,
                    recorder: recorder.clone(),
                    ended: ended.clone(),
                    parts: of,
                };
                // Sums of more than a hundred days are rounded, so lengths may differ slightly.
                let near = (length - length_ns as f64).abs() <= 1e-12 * length_ns as f64;
                damaged |= small(sum) != Some(stored.sum()) || n != windows || !near;
                parts = Some(of);
            } else {
                damaged = true;
            }
        }
        _ => damaged = true,
    }
    let state = match damaged {
        true => State::Damaged,
        false => State::read(ended.as_deref(), recorder.as_deref()),
    };
    Ok(Entry {
        metadata,
        state,
        windows: windows.unsigned_abs(),
        length: match parts {
            Some(parts) => Duration::from_nanos(parts.length_ns.unsigned_abs()),
            None => Duration::try_from_secs_f64(length / 1e9).unwrap_or_default(),
        },
        id: row.get(0)?,
        recorder,
        parts,
    })
}

/// Reads a column that contains JSON.
pub(super) fn json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text)
        .map_err(|e| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(e)))
}
