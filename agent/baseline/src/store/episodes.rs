//! Episodes of findings beside the recordings: the agent's history keeps them, exports do not have them.
//!
//! Their table is made with the first episode. It belongs to no version of the schema: a store without it has no episodes, and releases
//! that do not know it read the recordings all the same.

use crate::store::database::Store;
use crate::store::error::Error;
use rusqlite::{OptionalExtension, params};

/// `ended_ms` is NULL while the finding is active.
const TABLE: &str = "CREATE TABLE IF NOT EXISTS episode (
        kind TEXT NOT NULL,
        began_ms INTEGER NOT NULL,
        ended_ms INTEGER,
        data TEXT NOT NULL,
        PRIMARY KEY (began_ms, kind)
    ) STRICT, WITHOUT ROWID";

/// A finding from its begin to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEpisode {
    /// Kind of the finding.
    pub kind: String,
    /// Begin, in milliseconds since 1970.
    pub began_ms: i64,
    /// End; `None` if it was active when it was written last.
    pub ended_ms: Option<i64>,
    /// The episode as JSON.
    pub json: String,
}

impl Store {
    /// Writes an episode in place of an earlier state of the same one.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn put_episode(&mut self, episode: &StoredEpisode) -> Result<(), Error> {
        let e = episode;
        self.db.execute_batch(TABLE).map_err(self.wrong())?;
        self.db
            .execute(
                "INSERT OR REPLACE INTO episode (kind, began_ms, ended_ms, data) VALUES (?1, ?2, ?3, ?4)",
                params![e.kind, e.began_ms, e.ended_ms, e.json],
            )
            .map(drop)
            .map_err(self.wrong())
    }

    /// Episodes that overlap this time, the latest first, at most this number.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn episodes(
        &self,
        from_ms: i64,
        to_ms: i64,
        most: usize,
    ) -> Result<Vec<StoredEpisode>, Error> {
        if !self.has_episodes()? {
            return Ok(Vec::new());
        }
        let sql = "SELECT kind, began_ms, ended_ms, data FROM episode
            WHERE began_ms < ?2 AND (ended_ms IS NULL OR ended_ms > ?1) ORDER BY began_ms DESC, kind LIMIT ?3";
        let mut all = self.db.prepare(sql).map_err(self.wrong())?;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let rows = all.query_map(params![from_ms, to_ms, most], |r| {
            Ok(StoredEpisode {
                kind: r.get(0)?,
                began_ms: r.get(1)?,
                ended_ms: r.get(2)?,
                json: r.get(3)?,
            })
        });
        rows.and_then(Iterator::collect).map_err(self.wrong())
    }

    fn has_episodes(&self) -> Result<bool, Error> {
        let table = "SELECT 1 FROM sqlite_schema WHERE name = 'episode'";
        let found = self.db.query_row(table, [], |r| r.get::<_, i64>(0));
        let found = found.optional().map_err(self.wrong())?;
        Ok(found.is_some())
    }

    /// Removes episodes that began before this time and are not active.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn forget_episodes(&mut self, before_ms: i64) -> Result<(), Error> {
        if !self.has_episodes()? {
            return Ok(());
        }
        let sql = "DELETE FROM episode WHERE began_ms < ?1 AND (ended_ms IS NULL OR ended_ms < ?1)";
        let removed = self.db.execute(sql, [before_ms]);
        removed.map(drop).map_err(self.wrong())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn episode(kind: &str, began_ms: i64, ended_ms: Option<i64>) -> StoredEpisode {
        StoredEpisode {
            kind: kind.to_owned(),
            began_ms,
            ended_ms,
            json: format!("{{\"began\":{began_ms}}}"),
        }
    }

    #[test]
    fn an_episode_is_kept_once_and_found_by_the_time_that_it_overlaps() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::create(&dir.path().join("store.db")).unwrap();
        store
            .put_episode(&episode("slow_disk", 1000, None))
            .unwrap();
        let ended = episode("slow_disk", 1000, Some(5000));
        store.put_episode(&ended).unwrap();
        let open = episode("slow_reply", 4000, None);
        store.put_episode(&open).unwrap();
        let all = store.episodes(0, i64::MAX, 10).unwrap();
        assert_eq!(all, [open.clone(), ended.clone()]);
        assert_eq!(store.episodes(0, i64::MAX, 1).unwrap(), [open.clone()]);
        assert_eq!(store.episodes(2000, 3000, 10).unwrap(), [ended]);
        assert_eq!(store.episodes(9000, 9500, 10).unwrap(), [open.clone()]);
        assert_eq!(store.episodes(0, 1000, 10).unwrap(), []);
        store.forget_episodes(3000).unwrap();
        assert_eq!(store.episodes(0, i64::MAX, 10).unwrap().len(), 2);
        store.forget_episodes(6000).unwrap();
        assert_eq!(store.episodes(0, i64::MAX, 10).unwrap(), []);
    }

    #[test]
    fn a_store_without_episodes_has_none_and_is_no_larger() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::create(&dir.path().join("store.db")).unwrap();
        assert_eq!(store.episodes(0, i64::MAX, 10).unwrap(), []);
        store.forget_episodes(1).unwrap();
        assert!(!store.has_episodes().unwrap());
    }
}
