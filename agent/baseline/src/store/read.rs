//! A baseline from the store.

use crate::codec;
use crate::recording::{Line, Recorded, Take};
use crate::store::{Entry, Error, Store};
use rusqlite::types::Type;
use rusqlite::{Row, params};
use serde::de::DeserializeOwned;
use std::collections::VecDeque;
use std::time::Duration;

/// Windows that are read from the store at a time.
const AT_ONCE: i64 = 64;

impl Store {
    /// A whole recording.
    ///
    /// # Errors
    /// When there is none of that name, or it cannot be read.
    pub fn take(&self, name: &str) -> Result<Take, Error> {
        let entry = self.entry(name)?;
        Ok(Take {
            lines: self.lines(&entry)?,
            windows: self.windows(&entry, |_| true).collect::<Result<_, _>>()?,
            about: entry.about,
        })
    }

    /// Series of a baseline, by number.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn lines(&self, of: &Entry) -> Result<Vec<Line>, Error> {
        let sql = "SELECT id, family, labels FROM line WHERE baseline = ?1 ORDER BY id";
        let mut lines = self.db.prepare_cached(sql).map_err(self.wrong())?;
        let line = |row: &Row<'_>| {
            Ok(Line {
                id: row.get(0)?,
                family: row.get(1)?,
                labels: json(row, 2)?,
            })
        };
        let rows = lines.query_map([of.id], line).map_err(self.wrong())?;
        rows.collect::<Result<_, _>>().map_err(self.wrong())
    }

    /// Windows of a baseline in order of time, with the points of those series that `keep` wants.
    pub fn windows<K: Fn(u32) -> bool>(&self, of: &Entry, keep: K) -> Windows<'_, K> {
        Windows {
            store: self,
            baseline: of.id,
            keep,
            next: 0,
            read: VecDeque::new(),
        }
    }

    pub(super) fn some(&self, baseline: i64, from: i64) -> Result<VecDeque<Kept>, Error> {
        let sql = "SELECT seq, began_ms, length_ns, data FROM \"window\"
            WHERE baseline = ?1 AND seq >= ?2 ORDER BY seq LIMIT ?3";
        let mut some = self.db.prepare_cached(sql).map_err(self.wrong())?;
        let kept = |row: &Row<'_>| {
            Ok(Kept {
                seq: row.get(0)?,
                began_ms: row.get(1)?,
                length_ns: row.get(2)?,
                data: row.get(3)?,
            })
        };
        let rows = some
            .query_map(params![baseline, from, AT_ONCE], kept)
            .map_err(self.wrong())?;
        rows.collect::<Result<_, _>>().map_err(self.wrong())
    }
}

/// A window as it lies in the store.
#[derive(Debug)]
pub(super) struct Kept {
    pub seq: i64,
    pub began_ms: i64,
    pub length_ns: u64,
    pub data: Vec<u8>,
}

/// See [`Store::windows`].
#[derive(Debug)]
pub struct Windows<'a, K> {
    store: &'a Store,
    baseline: i64,
    keep: K,
    next: i64,
    read: VecDeque<Kept>,
}

impl<K: Fn(u32) -> bool> Iterator for Windows<'_, K> {
    type Item = Result<Recorded, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.read.is_empty() {
            match self.store.some(self.baseline, self.next) {
                Ok(read) => self.read = read,
                Err(e) => return Some(Err(e)),
            }
        }
        let kept = self.read.pop_front()?;
        self.next = kept.seq + 1;
        let points = codec::decode(&kept.data, &self.keep);
        Some(match points {
            Ok(points) => Ok(Recorded {
                began_ms: kept.began_ms,
                length: Duration::from_nanos(kept.length_ns),
                points,
            }),
            Err(e) => Err(Error::garbled(&self.store.path, &e)),
        })
    }
}

/// A column with JSON in it.
pub(super) fn json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text)
        .map_err(|e| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(e)))
}
