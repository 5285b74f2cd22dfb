//! Reads baselines from the store.

use crate::codec;
use crate::recording::{RecordedWindow, Recording, SeriesKey};
use crate::store::database::Store;
use crate::store::entry::{Entry, State, json};
use crate::store::error::Error;
use crate::store::sums::{self, Parts};
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
        self.undamaged(of)?;
        let sql = "SELECT id, family, labels FROM line WHERE baseline = ?1 ORDER BY id";
        let mut series = self.db.prepare_cached(sql).map_err(self.wrong())?;
        let mut sum = 0;
        let line = |row: &Row<'_>| {
            let (id, family, labels): (u32, String, String) =
                (row.get(0)?, row.get(1)?, row.get(2)?);
            sum = sums::next_series(sum, id, &family, &labels);
            Ok(SeriesKey {
                id,
                family: family::current_name(&family).to_owned(),
                labels: json(row, 2)?,
            })
        };
        let rows = series.query_map([of.id], line).map_err(self.wrong())?;
        let all = rows.collect::<Result<_, _>>().map_err(self.wrong())?;
        // A recording in progress has more series by now than when its entry was read.
        match of.parts {
            Some(parts) if parts.series != sum && of.state != State::Recording => Err(self
                .damaged(format!(
                    "the series of `{}` are not those that were recorded",
                    of.metadata.name
                ))),
            _ => Ok(all),
        }
    }

    fn undamaged(&self, of: &Entry) -> Result<(), Error> {
        match of.state {
            State::Damaged => Err(self.damaged(format!(
                "the recording `{}` is not what was recorded",
                of.metadata.name
            ))),
            _ => Ok(()),
        }
    }

    /// End of the last window of a baseline, in milliseconds since 1970; `None` without a window.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn ended_ms(&self, of: &Entry) -> Result<Option<i64>, Error> {
        let sql = "SELECT max(began_ms + length_ns / 1000000) FROM \"window\" WHERE baseline = ?1";
        let end = self.db.query_row(sql, [of.id], |row| row.get(0));
        end.map_err(self.wrong())
    }

    /// Windows of a baseline in order of time, with the samples of the series that `keep` selects.
    pub fn windows<K: Fn(u32) -> bool>(&self, of: &Entry, keep: K) -> Windows<'_, K> {
        Windows {
            store: self,
            baseline: of.id,
            keep,
            next: 0,
            read: VecDeque::new(),
            entry: of.clone(),
            parts: Parts::default(),
            ended: false,
        }
    }

    /// Passes all measurements of a baseline on as bytes: its time and host, its series and its windows. Its name and its labels are left
    /// out, so that a copy under another name has the same content.
    ///
    /// # Errors
    /// When it cannot be read, or differs from what was recorded.
    pub fn content(&self, of: &Entry, mut to: impl FnMut(&[u8])) -> Result<(), Error> {
        let mut text = |text: &str| {
            to(&(text.len() as u64).to_le_bytes());
            to(text.as_bytes());
        };
        let m = &of.metadata;
        text(&m.host);
        text(m.kernel.as_deref().unwrap_or_default());
        text(&m.agent);
        for series in self.series(of)? {
            text(&series.id.to_string());
            text(&series.family);
            text(&serde_json::json!(series.labels).to_string());
        }
        for window in self.stored(of) {
            let window = window?;
            to(&window.began_ms.to_le_bytes());
            to(&window.length_ns.to_le_bytes());
            to(&(window.data.len() as u64).to_le_bytes());
            to(&window.data);
        }
        Ok(())
    }

    /// Windows as they are stored, checked.
    pub(super) fn stored(&self, of: &Entry) -> impl Iterator<Item = Result<StoredWindow, Error>> {
        let mut windows = self.windows(of, |_: u32| false);
        std::iter::from_fn(move || windows.next_stored())
    }

    pub(super) fn batch(&self, baseline: i64, from: i64) -> Result<VecDeque<StoredWindow>, Error> {
        let sum = if self.sums { "checksum" } else { "NULL" };
        let sql = format!(
            "SELECT seq, began_ms, length_ns, data, {sum} FROM \"window\"
             WHERE baseline = ?1 AND seq >= ?2 ORDER BY seq LIMIT ?3"
        );
        let mut some = self.db.prepare_cached(&sql).map_err(self.wrong())?;
        let kept = |row: &Row<'_>| {
            Ok(StoredWindow {
                seq: row.get(0)?,
                began_ms: row.get(1)?,
                length_ns: row.get(2)?,
                data: row.get(3)?,
                checksum: row.get(4)?,
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
    pub length_ns: i64,
    pub data: Vec<u8>,
    /// Checksum; `None` for a window from before there were checksums.
    pub checksum: Option<u32>,
}

impl StoredWindow {
    pub(super) fn sum(&self) -> u32 {
        sums::window(self.seq, self.began_ms, self.length_ns, &self.data)
    }
}

/// The iterator of [`Store::windows`].
#[derive(Debug)]
pub struct Windows<'a, K> {
    store: &'a Store,
    baseline: i64,
    keep: K,
    next: i64,
    read: VecDeque<StoredWindow>,
    entry: Entry,
    /// Checksums of the windows so far.
    parts: Parts,
    ended: bool,
}

impl<K> Windows<'_, K> {
    /// Checks a window against its checksum and its place in the sequence.
    fn check(&mut self, window: &StoredWindow) -> Result<(), Error> {
        let damaged = |why: &str| {
            let name = &self.entry.metadata.name;
            Err(self
                .store
                .damaged(format!("window {} of `{name}` {why}", window.seq)))
        };
        if window.seq != self.next {
            return damaged("does not follow the one before");
        }
        if window.length_ns < 0 {
            return damaged("has an impossible length");
        }
        let sum = window.sum();
        match (window.checksum, self.entry.parts) {
            (Some(stored), Some(_)) if stored == sum => {}
            (None, None) => {}
            _ => return damaged("is not what was recorded"),
        }
        self.parts = self.parts.with_window(window.length_ns, sum);
        Ok(())
    }

    /// Checks that no window is missing at the end.
    fn check_end(&self) -> Result<(), Error> {
        let parts = self.entry.parts.map(|parts| Parts {
            series: self.parts.series,
            ..parts
        });
        match (self.entry.state, parts) {
            (State::Recording, _) | (_, None) => Ok(()),
            (_, Some(parts)) if parts == self.parts => Ok(()),
            _ => Err(self.store.damaged(format!(
                "`{}` does not have the windows that were recorded",
                self.entry.metadata.name
            ))),
        }
    }
}

impl<K> Windows<'_, K> {
    /// The next window, checked, as it is stored.
    fn next_stored(&mut self) -> Option<Result<StoredWindow, Error>> {
        if self.ended {
            return None;
        }
        if self.read.is_empty() {
            let read = self.store.undamaged(&self.entry);
            match read.and_then(|()| self.store.batch(self.baseline, self.next)) {
                Ok(read) => self.read = read,
                Err(e) => {
                    self.ended = true;
                    return Some(Err(e));
                }
            }
        }
        let Some(kept) = self.read.pop_front() else {
            self.ended = true;
            return self.check_end().err().map(Err);
        };
        if let Err(e) = self.check(&kept) {
            self.ended = true;
            return Some(Err(e));
        }
        self.next = kept.seq + 1;
        Some(Ok(kept))
    }
}

impl<K: Fn(u32) -> bool> Iterator for Windows<'_, K> {
    type Item = Result<RecordedWindow, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let kept = match self.next_stored()? {
            Ok(kept) => kept,
            Err(e) => return Some(Err(e)),
        };
        let samples = codec::decode(&kept.data, &self.keep);
        Some(match samples {
            Ok(samples) => Ok(RecordedWindow {
                began_ms: kept.began_ms,
                length: Duration::from_nanos(kept.length_ns.unsigned_abs()),
                samples,
            }),
            Err(e) => Err(Error::garbled(&self.store.path, &e)),
        })
    }
}
