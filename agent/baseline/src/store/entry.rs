//! The entry of a baseline in a list.

use crate::recording::{Metadata, seconds};
use crate::store::process;
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
    /// Its process ended unexpectedly; the recorded windows are complete.
    Interrupted,
    /// It reached the requested length or precision.
    Complete,
    /// The user stopped it early.
    Stopped,
    /// It did not reach the requested precision in time.
    Unreached,
}

impl State {
    const ENDED: [State; 3] = [State::Complete, State::Stopped, State::Unreached];

    /// Its name in JSON and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Recording => "recording",
            State::Interrupted => "interrupted",
            State::Complete => "complete",
            State::Stopped => "stopped",
            State::Unreached => "unreached",
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

/// One baseline in a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// Its metadata.
    #[serde(flatten)]
    pub metadata: Metadata,
    /// Its state.
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
}

/// The query that [`entry`] reads, to be grouped by b.id.
pub(super) const ENTRY: &str = "SELECT b.id, b.name, b.began_ms, b.host, b.kernel, b.agent, b.interval_ns, b.labels, b.recorder,
    b.ended, count(w.seq), coalesce(sum(w.length_ns), 0)
    FROM baseline b LEFT JOIN \"window\" w ON w.baseline = b.id";

pub(super) fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let (recorder, ended): (Option<String>, Option<String>) = (row.get(8)?, row.get(9)?);
    Ok(Entry {
        metadata: Metadata {
            name: row.get(1)?,
            began_ms: row.get(2)?,
            host: row.get(3)?,
            kernel: row.get(4)?,
            agent: row.get(5)?,
            interval: Duration::from_nanos(row.get(6)?),
            labels: json(row, 7)?,
        },
        state: State::read(ended.as_deref(), recorder.as_deref()),
        windows: row.get(10)?,
        length: Duration::from_nanos(row.get(11)?),
        id: row.get(0)?,
        recorder,
    })
}

/// Reads a column that contains JSON.
pub(super) fn json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text)
        .map_err(|e| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(e)))
}
