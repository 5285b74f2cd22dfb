//! Baselines into the store.

use crate::codec;
use crate::codec::{encode, point};
use crate::recording::{About, Line, Point, Take};
use crate::store::schema::PATIENCE;
use crate::store::{Error, State, Store, broken_rule, process};
use nfscope_model::Window;
use rusqlite::{Connection, TransactionBehavior, params};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

/// How long a window waits for others that write, before whoever records is asked.
const MOMENT: Duration = Duration::from_secs(1);

/// A baseline that is being recorded.
#[derive(Debug)]
pub struct Recording {
    store: Store,
    id: i64,
    name: String,
    windows: i64,
    known: Lines,
}

/// Numbers of series, by family and labels.
#[derive(Debug, Default)]
struct Lines {
    ids: BTreeMap<String, HashMap<Vec<String>, u32>>,
    next: u32,
}

impl Lines {
    /// The number of a series; a new one is put into `new`.
    fn id(&mut self, family: &str, labels: &[String], new: &mut Vec<Line>) -> u32 {
        if let Some(id) = self.ids.get(family).and_then(|f| f.get(labels)) {
            return *id;
        }
        let id = self.next;
        self.next += 1;
        let of = self.ids.entry(family.to_owned()).or_default();
        of.insert(labels.to_owned(), id);
        new.push(Line {
            id,
            family: family.to_owned(),
            labels: labels.to_owned(),
        });
        id
    }

    /// Takes back the numbers that were given last.
    fn forget(&mut self, new: &[Line]) {
        for l in new {
            if let Some(of) = self.ids.get_mut(&l.family) {
                of.remove(&l.labels);
            }
        }
        self.next -= new.len() as u32;
    }
}

impl Recording {
    /// Takes a name in the store.
    ///
    /// # Errors
    /// When somebody has it, or the store cannot be written.
    pub fn begin(store: Store, about: &About) -> Result<Recording, Error> {
        let id = insert(&store.db, about, Some(&process::this()), None);
        let id = id.map_err(|e| store.refused(&e, &about.name))?;
        store.db.busy_timeout(MOMENT).map_err(store.wrong())?;
        Ok(Recording {
            store,
            id,
            name: about.name.clone(),
            windows: 0,
            known: Lines::default(),
        })
    }

    /// Windows that are safe.
    pub fn windows(&self) -> u64 {
        self.windows.unsigned_abs()
    }

    /// Adds a window. When this returns, no loss of power takes it away.
    ///
    /// # Errors
    /// When it could not be written; earlier windows stay. Where somebody else writes for more than a second, it may be
    /// tried again.
    pub fn add(&mut self, began_ms: i64, window: &Window) -> Result<(), Error> {
        let mut new = Vec::new();
        let mut points: Vec<(u32, bool, Point)> = Vec::new();
        let mut seen = HashSet::new();
        for (family, all) in window.delta.all() {
            for s in all {
                let id = self.known.id(family, &s.labels, &mut new);
                // An agent that tells a series twice would be wrong; the first one counts.
                if seen.insert(id) {
                    points.push((id, codec::seconds(family), point(&s.sample)));
                }
            }
        }
        points.sort_by_key(|p| p.0);
        let data = encode(points.iter().map(|(id, s, p)| (*id, *s, p)))
            .map_err(|e| Error::garbled(&self.store.path, &e))?;
        let (id, seq) = (self.id, self.windows);
        let write = |db: &mut Connection| {
            let t = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            lines(&t, id, &new)?;
            put_window(&t, id, seq, began_ms, window.length, &data)?;
            t.commit()
        };
        if let Err(e) = write(&mut self.store.db) {
            self.known.forget(&new);
            return Err(match broken_rule(&e) {
                true => Error::Removed(self.name.clone()),
                false => Error::sqlite(&self.store.path, &e),
            });
        }
        self.windows += 1;
        Ok(())
    }

    /// Ends it. One without windows leaves nothing behind.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn end(self, state: State) -> Result<(), Error> {
        let sql = match self.windows {
            0 => "DELETE FROM baseline WHERE id = ?1 AND ?2 IS NOT NULL",
            _ => "UPDATE baseline SET ended = ?2, recorder = NULL WHERE id = ?1",
        };
        let db = &self.store.db;
        db.busy_timeout(PATIENCE).map_err(self.store.wrong())?;
        self.store
            .db
            .execute(sql, params![self.id, state.as_str()])
            .map_err(self.store.wrong())?;
        Ok(())
    }
}

impl Store {
    /// Writes a whole recording at once.
    ///
    /// # Errors
    /// When its name is taken, or it cannot be written.
    pub fn put(&mut self, take: &Take) -> Result<(), Error> {
        let (path, name) = (self.path.clone(), take.about.name.clone());
        let wrong = |e: rusqlite::Error| match broken_rule(&e) {
            true => Error::Taken(name.clone()),
            false => Error::sqlite(&path, &e),
        };
        let seconds: HashSet<u32> = take
            .lines
            .iter()
            .filter(|l| codec::seconds(&l.family))
            .map(|l| l.id)
            .collect();
        let t = self.db.transaction().map_err(wrong)?;
        let id = insert(&t, &take.about, None, Some(State::Complete.as_str())).map_err(wrong)?;
        lines(&t, id, &take.lines).map_err(wrong)?;
        for (seq, w) in (0..).zip(&take.windows) {
            let points = w.points.iter().map(|(i, p)| (*i, seconds.contains(i), p));
            let data = encode(points).map_err(|e| Error::garbled(&path, &e))?;
            put_window(&t, id, seq, w.began_ms, w.length, &data).map_err(wrong)?;
        }
        t.commit().map_err(wrong)
    }

    /// Why a baseline of this name was not taken.
    pub(super) fn refused(&self, e: &rusqlite::Error, name: &str) -> Error {
        match broken_rule(e) {
            true => Error::Taken(name.to_owned()),
            false => Error::sqlite(&self.path, e),
        }
    }
}

/// A new baseline; says its number.
pub(super) fn insert(
    db: &Connection,
    about: &About,
    recorder: Option<&str>,
    ended: Option<&str>,
) -> rusqlite::Result<i64> {
    db.execute(
        "INSERT INTO baseline (name, began_ms, host, kernel, agent, interval_ns, labels, recorder, ended)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            about.name,
            about.began_ms,
            about.host,
            about.kernel,
            about.agent,
            ns(about.interval),
            serde_json::json!(about.labels).to_string(),
            recorder,
            ended,
        ],
    )?;
    Ok(db.last_insert_rowid())
}

pub(super) fn lines(db: &Connection, baseline: i64, all: &[Line]) -> rusqlite::Result<()> {
    let sql = "INSERT INTO line (baseline, id, family, labels) VALUES (?1, ?2, ?3, ?4)";
    let mut line = db.prepare_cached(sql)?;
    for l in all {
        let labels = serde_json::json!(l.labels).to_string();
        line.execute(params![baseline, l.id, l.family, labels])?;
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
