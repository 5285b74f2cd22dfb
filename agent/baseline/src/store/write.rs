//! Writes baselines to the store.

use crate::codec::{encode, in_seconds};
use crate::recording::{Metadata, Recording, Sample, SeriesKey};
use crate::store::database::Store;
use crate::store::entry::State;
use crate::store::error::{Error, broken_rule};
use crate::store::process;
use crate::store::schema::BUSY_TIMEOUT;
use nfscope_model::Window;
use rusqlite::{Connection, TransactionBehavior, params};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

/// How long a window waits for another writer before the caller decides whether to go on.
const WINDOW_BUSY_TIMEOUT: Duration = Duration::from_secs(1);

/// A baseline that is being recorded.
#[derive(Debug)]
pub struct RecordingWriter {
    store: Store,
    id: i64,
    name: String,
    windows: i64,
    series: SeriesIds,
}

/// Assigns numbers to series, by family and labels.
#[derive(Debug, Default)]
struct SeriesIds {
    ids: BTreeMap<String, HashMap<Vec<String>, u32>>,
    next: u32,
}

impl SeriesIds {
    /// The number of a series; a new series is appended to `new`.
    fn id(&mut self, family: &str, labels: &[String], new: &mut Vec<SeriesKey>) -> u32 {
        if let Some(id) = self.ids.get(family).and_then(|f| f.get(labels)) {
            return *id;
        }
        let id = self.next;
        self.next += 1;
        let of = self.ids.entry(family.to_owned()).or_default();
        of.insert(labels.to_owned(), id);
        new.push(SeriesKey {
            id,
            family: family.to_owned(),
            labels: labels.to_owned(),
        });
        id
    }

    /// Withdraws the numbers that were assigned last.
    fn forget(&mut self, new: &[SeriesKey]) {
        for l in new {
            if let Some(of) = self.ids.get_mut(&l.family) {
                of.remove(&l.labels);
            }
        }
        self.next -= new.len() as u32;
    }
}

impl RecordingWriter {
    /// Creates a baseline in the store.
    ///
    /// # Errors
    /// When the name is in use, or the store cannot be written.
    pub fn begin(store: Store, metadata: &Metadata) -> Result<RecordingWriter, Error> {
        let id = insert(&store.db, metadata, Some(&process::this()), None);
        let id = id.map_err(|e| store.refused(&e, &metadata.name))?;
        store
            .db
            .busy_timeout(WINDOW_BUSY_TIMEOUT)
            .map_err(store.wrong())?;
        Ok(RecordingWriter {
            store,
            id,
            name: metadata.name.clone(),
            windows: 0,
            series: SeriesIds::default(),
        })
    }

    /// Number of windows that are written.
    pub fn windows(&self) -> u64 {
        self.windows.unsigned_abs()
    }

    /// Writes a window. When this returns, the window survives a power failure.
    ///
    /// # Errors
    /// When it cannot be written; earlier windows are kept. If another process has the store locked for more than a second,
    /// the call may be repeated.
    pub fn add(&mut self, began_ms: i64, window: &Window) -> Result<(), Error> {
        let mut new = Vec::new();
        let mut samples: Vec<(u32, bool, Sample)> = Vec::new();
        let mut seen = HashSet::new();
        for (family, all) in window.delta.all() {
            for s in all {
                let id = self.series.id(family, &s.labels, &mut new);
                // An agent must not send a series twice; if it does, the first one counts.
                if seen.insert(id) {
                    samples.push((id, in_seconds(family), Sample::from(&s.sample)));
                }
            }
        }
        samples.sort_by_key(|p| p.0);
        let data = encode(samples.iter().map(|(id, s, p)| (*id, *s, p)))
            .map_err(|e| Error::garbled(&self.store.path, &e))?;
        let (id, seq) = (self.id, self.windows);
        let write = |db: &mut Connection| {
            let t = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            insert_series(&t, id, &new)?;
            put_window(&t, id, seq, began_ms, window.length, &data)?;
            t.commit()
        };
        if let Err(e) = write(&mut self.store.db) {
            self.series.forget(&new);
            return Err(match broken_rule(&e) {
                true => Error::Removed(self.name.clone()),
                false => Error::sqlite(&self.store.path, &e),
            });
        }
        self.windows += 1;
        Ok(())
    }

    /// Ends the recording. A recording without windows is removed.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn end(self, state: State) -> Result<(), Error> {
        let sql = match self.windows {
            0 => "DELETE FROM baseline WHERE id = ?1 AND ?2 IS NOT NULL",
            _ => "UPDATE baseline SET ended = ?2, recorder = NULL WHERE id = ?1",
        };
        let db = &self.store.db;
        db.busy_timeout(BUSY_TIMEOUT).map_err(self.store.wrong())?;
        self.store
            .db
            .execute(sql, params![self.id, state.as_str()])
            .map_err(self.store.wrong())?;
        Ok(())
    }
}

impl Store {
    /// Writes a whole recording in one transaction.
    ///
    /// # Errors
    /// When its name is in use, or the store cannot be written.
    pub fn put(&mut self, recording: &Recording) -> Result<(), Error> {
        let (path, name) = (self.path.clone(), recording.metadata.name.clone());
        let wrong = |e: rusqlite::Error| match broken_rule(&e) {
            true => Error::Taken(name.clone()),
            false => Error::sqlite(&path, &e),
        };
        let seconds: HashSet<u32> = recording
            .series
            .iter()
            .filter(|l| in_seconds(&l.family))
            .map(|l| l.id)
            .collect();
        let t = self.db.transaction().map_err(wrong)?;
        let id = insert(
            &t,
            &recording.metadata,
            None,
            Some(State::Complete.as_str()),
        )
        .map_err(wrong)?;
        insert_series(&t, id, &recording.series).map_err(wrong)?;
        for (seq, w) in (0..).zip(&recording.windows) {
            let samples = w.samples.iter().map(|(i, p)| (*i, seconds.contains(i), p));
            let data = encode(samples).map_err(|e| Error::garbled(&path, &e))?;
            put_window(&t, id, seq, w.began_ms, w.length, &data).map_err(wrong)?;
        }
        t.commit().map_err(wrong)
    }

    /// The error for a baseline of this name that was not inserted.
    pub(super) fn refused(&self, e: &rusqlite::Error, name: &str) -> Error {
        match broken_rule(e) {
            true => Error::Taken(name.to_owned()),
            false => Error::sqlite(&self.path, e),
        }
    }
}

/// Inserts a baseline and returns its number.
pub(super) fn insert(
    db: &Connection,
    metadata: &Metadata,
    recorder: Option<&str>,
    ended: Option<&str>,
) -> rusqlite::Result<i64> {
    db.execute(
        "INSERT INTO baseline (name, began_ms, host, kernel, agent, interval_ns, labels, recorder, ended)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            metadata.name,
            metadata.began_ms,
            metadata.host,
            metadata.kernel,
            metadata.agent,
            ns(metadata.interval),
            serde_json::json!(metadata.labels).to_string(),
            recorder,
            ended,
        ],
    )?;
    Ok(db.last_insert_rowid())
}

pub(super) fn insert_series(
    db: &Connection,
    baseline: i64,
    all: &[SeriesKey],
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO line (baseline, id, family, labels) VALUES (?1, ?2, ?3, ?4)";
    let mut statement = db.prepare_cached(sql)?;
    for l in all {
        let labels = serde_json::json!(l.labels).to_string();
        statement.execute(params![baseline, l.id, l.family, labels])?;
    }
    Ok(())
}

pub(super) fn put_window(
    db: &Connection,
    baseline: i64,
    seq: i64,
    began_ms: i64,
    length: Duration,
    data: &[u8],
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO \"window\" (baseline, seq, began_ms, length_ns, data)
        VALUES (?1, ?2, ?3, ?4, ?5)";
    let mut window = db.prepare_cached(sql)?;
    window.execute(params![baseline, seq, began_ms, ns(length), data])?;
    Ok(())
}

fn ns(d: Duration) -> i64 {
    i64::try_from(d.as_nanos()).unwrap_or(i64::MAX)
}
