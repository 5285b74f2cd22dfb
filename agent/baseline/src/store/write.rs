//! Writes baselines to the store.

use crate::codec::{encode, in_seconds};
use crate::recording::{Metadata, Recording, Sample, SeriesKey};
use crate::store::database::Store;
use crate::store::entry::{Entry, State};
use crate::store::error::{Error, broken_rule};
use crate::store::process;
use crate::store::schema::BUSY_TIMEOUT;
use crate::store::sums::{self, Parts, Row};
use nfscope_model::Window;
use rusqlite::{Connection, TransactionBehavior, params};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

/// Time that a window waits for another writer before the caller decides whether to go on.
const WINDOW_BUSY_TIMEOUT: Duration = Duration::from_secs(1);

/// A baseline that is being recorded.
#[derive(Debug)]
pub struct RecordingWriter {
    store: Store,
    id: i64,
    name: String,
    series: SeriesIds,
    row: Row,
}

/// Assigns numbers to series, by family and labels.
#[derive(Debug, Default)]
struct SeriesIds {
    ids: BTreeMap<String, HashMap<Vec<String>, u32>>,
    next: u32,
}

impl SeriesIds {
    /// Number of a series; a new series is appended to `new`.
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
        let row = row(metadata, Some(process::this()), None);
        let id = insert(&store.db, &row);
        let id = id.map_err(|e| store.refused(&e, &metadata.name))?;
        store
            .db
            .busy_timeout(WINDOW_BUSY_TIMEOUT)
            .map_err(store.wrong())?;
        Ok(RecordingWriter {
            store,
            id,
            name: metadata.name.clone(),
            series: SeriesIds::default(),
            row,
        })
    }

    /// Number of windows that are written.
    pub fn windows(&self) -> u64 {
        self.row.parts.windows.unsigned_abs()
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
        let id = self.id;
        let mut row = self.row.clone();
        let mut write = |db: &mut Connection| {
            let t = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            row.parts.series = insert_series(&t, id, &new, row.parts.series)?;
            row.parts = put_window(&t, id, row.parts, began_ms, window.length, &data)?;
            update(&t, id, &row)?;
            t.commit()
        };
        match write(&mut self.store.db) {
            Ok(()) => {
                self.row = row;
                Ok(())
            }
            Err(e) => {
                self.series.forget(&new);
                // A checkpoint moves the log's content to its place in the file, which frees space for the next attempt.
                if matches!(Error::sqlite(&self.store.path, &e), Error::Full(_)) {
                    let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
                    let _ = self.store.db.query_row(checkpoint, [], |_| Ok(()));
                }
                Err(match broken_rule(&e) {
                    true => Error::Removed(self.name.clone()),
                    false => Error::sqlite(&self.store.path, &e),
                })
            }
        }
    }

    /// Ends the recording. A recording without windows is removed.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn end(mut self, state: State) -> Result<(), Error> {
        let db = &self.store.db;
        db.busy_timeout(BUSY_TIMEOUT).map_err(self.store.wrong())?;
        self.row.ended = Some(state.as_str().to_owned());
        self.row.recorder = None;
        match self.row.parts.windows {
            0 => db
                .execute("DELETE FROM baseline WHERE id = ?1", [self.id])
                .map(|_| ()),
            _ => update(db, self.id, &self.row),
        }
        .map_err(self.store.wrong())
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
        let ended = State::Complete.as_str().to_owned();
        let mut row = row(&recording.metadata, None, Some(ended));
        let id = insert(&t, &row).map_err(wrong)?;
        let mut series = recording.series.clone();
        series.sort_by_key(|l| l.id);
        row.parts.series = insert_series(&t, id, &series, 0).map_err(wrong)?;
        for w in &recording.windows {
            let samples = w.samples.iter().map(|(i, p)| (*i, seconds.contains(i), p));
            let data = encode(samples).map_err(|e| Error::garbled(&path, &e))?;
            let parts = put_window(&t, id, row.parts, w.began_ms, w.length, &data);
            row.parts = parts.map_err(wrong)?;
        }
        update(&t, id, &row).map_err(wrong)?;
        t.commit().map_err(wrong)
    }

    /// Adds labels to a recording that has ended.
    ///
    /// # Errors
    /// When it has no checksums, or the store cannot be written.
    pub fn add_labels(
        &mut self,
        to: &Entry,
        labels: BTreeMap<String, String>,
    ) -> Result<(), Error> {
        let mut metadata = to.metadata.clone();
        metadata.labels.extend(labels);
        let mut row = row(&metadata, None, Some(to.state.as_str().to_owned()));
        row.parts = to.parts.ok_or_else(|| Error::Damaged {
            path: self.path.clone(),
            why: format!("`{}` has no checksums", to.metadata.name),
        })?;
        let path = self.path.clone();
        let wrong = |e: rusqlite::Error| Error::sqlite(&path, &e);
        let t = self.db.transaction().map_err(wrong)?;
        let sql = "UPDATE baseline SET labels = ?2 WHERE id = ?1";
        t.execute(sql, params![to.id, row.labels]).map_err(wrong)?;
        update(&t, to.id, &row).map_err(wrong)?;
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

/// The row of a new baseline.
pub(super) fn row(metadata: &Metadata, recorder: Option<String>, ended: Option<String>) -> Row {
    Row {
        metadata: metadata.clone(),
        interval_ns: ns(metadata.interval),
        labels: serde_json::json!(metadata.labels).to_string(),
        recorder,
        ended,
        parts: Parts::default(),
    }
}

/// Inserts a baseline and returns its number.
pub(super) fn insert(db: &Connection, row: &Row) -> rusqlite::Result<i64> {
    let m = &row.metadata;
    db.execute(
        "INSERT INTO baseline (name, began_ms, host, kernel, agent, interval_ns, labels)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            m.name,
            m.began_ms,
            m.host,
            m.kernel,
            m.agent,
            row.interval_ns,
            row.labels
        ],
    )?;
    let id = db.last_insert_rowid();
    update(db, id, row)?;
    Ok(id)
}

/// Writes the columns that change while a baseline is recorded, and the checksum of its row.
pub(super) fn update(db: &Connection, id: i64, row: &Row) -> rusqlite::Result<()> {
    let sql = "UPDATE baseline SET recorder = ?2, ended = ?3, windows = ?4, length_ns = ?5, series_sum = ?6, windows_sum = ?7,
         checksum = ?8 WHERE id = ?1";
    let mut statement = db.prepare_cached(sql)?;
    let parts = &row.parts;
    statement.execute(params![
        id,
        row.recorder,
        row.ended,
        parts.windows,
        parts.length_ns,
        parts.series,
        parts.data,
        row.sum()
    ])?;
    Ok(())
}

/// Inserts series in the order of their numbers; returns the checksum of all up to the last.
pub(super) fn insert_series(
    db: &Connection,
    baseline: i64,
    all: &[SeriesKey],
    mut sum: u32,
) -> rusqlite::Result<u32> {
    let sql = "INSERT INTO line (baseline, id, family, labels) VALUES (?1, ?2, ?3, ?4)";
    let mut statement = db.prepare_cached(sql)?;
    for l in all {
        let labels = serde_json::json!(l.labels).to_string();
        statement.execute(params![baseline, l.id, l.family, labels])?;
        sum = sums::next_series(sum, l.id, &l.family, &labels);
    }
    Ok(sum)
}

/// Inserts the next window.
pub(super) fn put_window(
    db: &Connection,
    baseline: i64,
    parts: Parts,
    began_ms: i64,
    length: Duration,
    data: &[u8],
) -> rusqlite::Result<Parts> {
    let sql = "INSERT INTO \"window\" (baseline, seq, began_ms, length_ns, data, checksum)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let mut window = db.prepare_cached(sql)?;
    let (seq, length_ns) = (parts.windows, ns(length));
    let sum = sums::window(seq, began_ms, length_ns, data);
    window.execute(params![baseline, seq, began_ms, length_ns, data, sum])?;
    Ok(parts.with_window(length_ns, sum))
}

fn ns(d: Duration) -> i64 {
    i64::try_from(d.as_nanos()).unwrap_or(i64::MAX)
}
