//! Reads baselines from the store.

use crate::codec;
use crate::recording::{RecordedWindow, Recording, SeriesKey};
use crate::store::database::Store;
use crate::store::entry::{Entry, json};
use crate::store::error::Error;
use nfscope_model::family;
use rusqlite::{Row, params};
use std::collections::VecDeque;
use std::time::Duration;

/// Windows per query.
const BATCH: i64 = 64;

impl Store {
    /// Reads a whole recording.
    ///
    /// # Errors
    /// When there is no baseline with this name, or it cannot be read.
    pub fn recording(&self, name: &str) -> Result<Recording, Error> {
        let entry = self.entry(name)?;
        Ok(Recording {
            series: self.series(&entry)?,
            windows: self.windows(&entry, |_| true).collect::<Result<_, _>>()?,
            metadata: entry.metadata,
        })
    }

    /// Series of a baseline, by number.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn series(&self, of: &Entry) -> Result<Vec<SeriesKey>, Error> {
        let sql = "SELECT id, family, labels FROM line WHERE baseline = ?1 ORDER BY id";
        let mut series = self.db.prepare_cached(sql).map_err(self.wrong())?;
        let line = |row: &Row<'_>| {
            Ok(SeriesKey {
                id: row.get(0)?,
                family: family::current_name(&row.get::<_, String>(1)?).to_owned(),
                labels: json(row, 2)?,
            })
        };
        let rows = series.query_map([of.id], line).map_err(self.wrong())?;
        rows.collect::<Result<_, _>>().map_err(self.wrong())
    }

    /// Windows of a baseline in order of time, with the samples of the series that `keep` selects.
    pub fn windows<K: Fn(u32) -> bool>(&self, of: &Entry, keep: K) -> Windows<'_, K> {
        Windows {
            store: self,
            baseline: of.id,
            keep,
            next: 0,
            read: VecDeque::new(),
        }
    }

    pub(super) fn batch(&self, baseline: i64, from: i64) -> Result<VecDeque<StoredWindow>, Error> {
        let sql = "SELECT seq, began_ms, length_ns, data FROM \"window\"
            WHERE baseline = ?1 AND seq >= ?2 ORDER BY seq LIMIT ?3";
        let mut some = self.db.prepare_cached(sql).map_err(self.wrong())?;
        let kept = |row: &Row<'_>| {
            Ok(StoredWindow {
                seq: row.get(0)?,
                began_ms: row.get(1)?,
                length_ns: row.get(2)?,
                data: row.get(3)?,
            })
        };
        let rows = some
            .query_map(params![baseline, from, BATCH], kept)
            .map_err(self.wrong())?;
        rows.collect::<Result<_, _>>().map_err(self.wrong())
    }
}

/// A window as stored, still encoded.
#[derive(Debug)]
pub(super) struct StoredWindow {
    pub seq: i64,
    pub began_ms: i64,
    pub length_ns: u64,
    pub data: Vec<u8>,
}

/// The iterator of [`Store::windows`].
#[derive(Debug)]
pub struct Windows<'a, K> {
    store: &'a Store,
    baseline: i64,
    keep: K,
    next: i64,
    read: VecDeque<StoredWindow>,
}

impl<K: Fn(u32) -> bool> Iterator for Windows<'_, K> {
    type Item = Result<RecordedWindow, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.read.is_empty() {
            match self.store.batch(self.baseline, self.next) {
                Ok(read) => self.read = read,
                Err(e) => return Some(Err(e)),
            }
        }
        let kept = self.read.pop_front()?;
        self.next = kept.seq + 1;
        let samples = codec::decode(&kept.data, &self.keep);
        Some(match samples {
            Ok(samples) => Ok(RecordedWindow {
                began_ms: kept.began_ms,
                length: Duration::from_nanos(kept.length_ns),
                samples,
            }),
            Err(e) => Err(Error::garbled(&self.store.path, &e)),
        })
    }
}
