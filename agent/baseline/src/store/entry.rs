//! What a list of baselines says of each.

use crate::recording as take;
use crate::recording::About;
use crate::store::{process, read};
use rusqlite::Row;
use serde::Serialize;
use std::time::Duration;

/// How a recording stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It goes on.
    Recording,
    /// Its process ended without a word; what is there is whole.
    Interrupted,
    /// It has what was asked for.
    Complete,
    /// The user ended it before.
    Stopped,
    /// Its interval did not become as narrow as asked for.
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
    /// What is known of it.
    #[serde(flatten)]
    pub about: About,
    /// How it stands.
    pub state: State,
    /// Windows in it.
    pub windows: u64,
    /// Time that they cover.
    #[serde(rename = "seconds", serialize_with = "take::seconds")]
    pub length: Duration,
    #[serde(skip)]
    pub(super) id: i64,
    #[serde(skip)]
    pub(super) recorder: Option<String>,
}

/// What [`entry`] reads, to be grouped by b.id.
pub(super) const ENTRY: &str = "SELECT b.id, b.name, b.began_ms, b.host, b.kernel, b.agent, b.interval_ns, b.labels, b.recorder,
    b.ended, count(w.seq), coalesce(sum(w.length_ns), 0)
    FROM baseline b LEFT JOIN \"window\" w ON w.baseline = b.id";

pub(super) fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let (recorder, ended): (Option<String>, Option<String>) = (row.get(8)?, row.get(9)?);
    Ok(Entry {
        about: About {
            name: row.get(1)?,
            began_ms: row.get(2)?,
            host: row.get(3)?,
            kernel: row.get(4)?,
            agent: row.get(5)?,
            interval: Duration::from_nanos(row.get(6)?),
            labels: read::json(row, 7)?,
        },
        state: State::read(ended.as_deref(), recorder.as_deref()),
        windows: row.get(10)?,
        length: Duration::from_nanos(row.get(11)?),
        id: row.get(0)?,
        recorder,
    })
}
