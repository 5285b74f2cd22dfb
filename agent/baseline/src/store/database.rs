//! An open store: create, list, remove.

use crate::store::entry::{Entry, State, entry, select};
use crate::store::error::Error;
use crate::store::process;
use crate::store::schema::{self, Journal, SCHEMA_WITH_SUMS, STEPS};
use nfscope_text::suggest::near;
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Default path of the store.
pub const DEFAULT: &str = "/var/lib/nfscope/baselines.db";

/// An open store.
#[derive(Debug)]
pub struct Store {
    pub(super) db: Connection,
    /// Path that errors show.
    pub(super) path: PathBuf,
    /// True if the file has checksums: it is of this schema, or could be migrated to it.
    pub(super) sums: bool,
    /// True if the disk had no room even for the index of the log: the file is open for reading alone.
    no_room: bool,
}

impl Store {
    /// Opens a store for writing, and creates it if it does not exist.
    ///
    /// # Errors
    /// When it cannot be written, or the file is not a store.
    pub fn create(path: &Path) -> Result<Store, Error> {
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir).map_err(|e| Error::io("create", dir, &e))?;
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        Store::open_as(path, path, flags, Journal::Wal)
    }

    /// Opens an existing store.
    ///
    /// # Errors
    /// When it does not exist, or the file is not a store.
    pub fn open(path: &Path) -> Result<Store, Error> {
        exists(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
        Store::open_as(path, path, flags, Journal::Keep).or_else(|e| Store::without_log(path, e))
    }

    /// Opens an existing store for reading alone: whatever its schema, the file stays as it is.
    ///
    /// # Errors
    /// When it does not exist, or the file is not a store.
    pub fn read(path: &Path) -> Result<Store, Error> {
        exists(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        Store::open_as(path, path, flags, Journal::ReadOnly)
            .or_else(|e| Store::without_log(path, e))
    }

    /// Opens a store without its write-ahead log, after an error because of that log.
    fn without_log(path: &Path, error: Error) -> Result<Store, Error> {
        match error {
            // A user who may not write to the directory cannot create the index of the write-ahead log, and no user can on a full disk.
            // Without such a log the index is not needed.
            e @ (Error::Denied { .. } | Error::Full(_) | Error::Io { .. })
                if fs::metadata(beside(path, "-wal")).map_or(0, |m| m.len()) == 0 =>
            {
                let no_room = !matches!(e, Error::Denied { .. }) && is_full(path);
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
                let store = Store::open_as(&immutable(path), path, flags, Journal::ReadOnly)?;
                Ok(Store { no_room, ..store })
            }
            other => Err(other),
        }
    }

    pub(super) fn open_as(
        at: &Path,
        path: &Path,
        flags: OpenFlags,
        journal: Journal,
    ) -> Result<Store, Error> {
        if flags.contains(OpenFlags::SQLITE_OPEN_CREATE) {
            create_private(at);
        }
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut db = Connection::open_with_flags(at, flags).map_err(|e| Error::sqlite(path, &e))?;
        let schema = schema::prepare(&mut db, path, journal, STEPS)?;
        Ok(Store {
            sums: schema >= SCHEMA_WITH_SUMS,
            db,
            path: path.to_owned(),
            no_room: false,
        })
    }

    pub(super) fn wrong(&self) -> impl Fn(rusqlite::Error) -> Error + use<> {
        let path = self.path.clone();
        move |e| Error::sqlite(&path, &e)
    }

    pub(super) fn damaged(&self, why: impl Into<String>) -> Error {
        Error::Damaged {
            path: self.path.clone(),
            why: why.into(),
        }
    }

    /// All baselines, in order of their start.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn list(&self) -> Result<Vec<Entry>, Error> {
        let sql = format!(
            "{} GROUP BY b.id ORDER BY b.began_ms, b.id",
            select(self.sums)
        );
        let mut all = self.db.prepare(&sql).map_err(self.wrong())?;
        let rows = all.query_map([], entry).map_err(self.wrong())?;
        let entries: Vec<Entry> = rows.collect::<Result<_, _>>().map_err(self.wrong())?;
        // A reader of a page does not notice a lost row. Names are in an index, too, so their number is compared.
        let sql = "SELECT count(name) FROM baseline INDEXED BY sqlite_autoindex_baseline_1";
        let names: i64 = self
            .db
            .query_row(sql, [], |r| r.get(0))
            .map_err(self.wrong())?;
        match usize::try_from(names) == Ok(entries.len()) {
            true => Ok(entries),
            false => Err(self.damaged("the list of baselines does not fit its index")),
        }
    }

    /// The entry of one baseline.
    ///
    /// # Errors
    /// When there is no baseline with this name; the error suggests a similar name.
    pub fn entry(&self, name: &str) -> Result<Entry, Error> {
        let sql = format!("{} WHERE b.name = ?1 GROUP BY b.id", select(self.sums));
        let found = self.db.query_row(&sql, [name], entry).optional();
        if let Some(entry) = found.map_err(self.wrong())? {
            return Ok(entry);
        }
        let names: Vec<_> = self.list()?.into_iter().map(|e| e.metadata.name).collect();
        let hint = match near(name, names.iter().map(String::as_str)) {
            Some(known) => format!("; did you mean `{known}`?"),
            None => "; see `nfscope baseline list`".to_owned(),
        };
        Err(Error::Unknown {
            name: name.to_owned(),
            hint,
        })
    }

    /// Removes all of these baselines or none, and frees their space.
    ///
    /// # Errors
    /// When a name is unknown, a baseline is being recorded, or the store cannot be written.
    pub fn remove(&mut self, names: &[String]) -> Result<(), Error> {
        let wrong = self.wrong();
        let mut gone = Vec::new();
        for name in names {
            let entry = self.entry(name)?;
            if let Some(pid) = entry
                .recorder
                .as_deref()
                .filter(|_| entry.state == State::Recording)
                .and_then(process::alive)
            {
                let name = name.clone();
                return Err(Error::Recording { name, pid });
            }
            gone.push(entry.id);
        }
        drop(wrong);
        if self.no_room {
            return self.delete_in_place(&gone);
        }
        match self.delete(&gone) {
            // Removing frees space. If there is no space for the log of changes, changes are made in place. A failing disk does not count
            // as full.
            Err(Error::Full(_) | Error::Io { .. }) if is_full(&self.path) => {
                self.delete_in_place(&gone)
            }
            other => other,
        }
    }

    fn delete(&mut self, ids: &[i64]) -> Result<(), Error> {
        let wrong = self.wrong();
        let t = self.db.transaction().map_err(&wrong)?;
        for id in ids {
            t.execute("DELETE FROM baseline WHERE id = ?1", params![id])
                .map_err(&wrong)?;
        }
        t.commit().map_err(&wrong)?;
        // Each step of the vacuum frees one page.
        let vacuum = || {
            let mut vacuum = self.db.prepare("PRAGMA incremental_vacuum")?;
            let mut steps = vacuum.query([])?;
            while steps.next()?.is_some() {}
            Ok(())
        };
        // An error is ignored, because the baselines are removed already: the next recording uses their pages, or the next removal frees
        // them.
        let _: rusqlite::Result<()> = vacuum();
        Ok(())
    }

    /// Removes baselines without a file beside the database. A power failure or a kill in that moment damages the database, so this is the
    /// last resort.
    fn delete_in_place(&mut self, ids: &[i64]) -> Result<(), Error> {
        // The index of the log in shared memory is avoided: it would need a file, too.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        self.db = Connection::open_in_memory().map_err(self.wrong())?;
        let alone = Connection::open_with_flags(&self.path, flags).map_err(self.wrong())?;
        alone
            .execute_batch(
                "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = MEMORY; PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL",
            )
            .map_err(self.wrong())?;
        self.db = alone;
        self.delete(ids)?;
        // The log is turned on again with the space that there is now. If it is not enough, the next writer does this.
        let _ = self.db.execute_batch("PRAGMA journal_mode = WAL");
        Ok(())
    }
}

/// Creates a missing file for its owner and group alone: baselines have addresses of clients and paths of exports. SQLite creates its other
/// files with the same mode.
fn create_private(path: &Path) {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o640);
    // An error is ignored, because SQLite opens the file next, and reports it.
    let _ = options.open(path);
}

fn exists(path: &Path) -> Result<(), Error> {
    match fs::metadata(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Err(Error::Missing(path.to_owned())),
        Err(e) => Err(Error::io("read", path, &e)),
        Ok(_) => Ok(()),
    }
}

/// Returns true if there is no room for a small file beside the database.
fn is_full(path: &Path) -> bool {
    let probe = beside(path, "-room");
    let written = fs::write(&probe, [0; 65_536]);
    // The probe file is removed. It did not exist before, or it is left over from a probe that was killed.
    let _ = fs::remove_file(&probe);
    written.is_err_and(|e| e.kind() == std::io::ErrorKind::StorageFull)
}

/// Path of a file that SQLite keeps beside the database.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// URI by which SQLite opens the file as immutable: no process writes it.
fn immutable(path: &Path) -> PathBuf {
    let path = path.to_string_lossy();
    let path = path
        .replace('%', "%25")
        .replace('?', "%3f")
        .replace('#', "%23");
    format!("file:{path}?immutable=1").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_store_is_for_their_owner_and_group() {
        let name = format!("nfscope-modes-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let path = directory.join("store");
        let store = Store::create(&path);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        fs::remove_dir_all(&directory).unwrap();
        assert!(store.is_ok());
        assert_eq!(mode & 0o137, 0, "{mode:o}");
    }
}
