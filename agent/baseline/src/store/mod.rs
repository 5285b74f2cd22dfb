//! Where baselines are kept: one SQLite file, every window in a transaction of its own that survives a power failure.

mod entry;
mod error;
mod process;
mod read;
mod schema;
mod transfer;
mod write;

pub use entry::{Entry, State};
pub use error::Error;
pub use read::Windows;
pub use schema::APPLICATION_ID;
pub use schema::PATIENCE;
pub use write::Recording;

use entry::{ENTRY, entry};
use nfscope_text::suggest::near;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, params};
use schema::{Journal, STEPS};
use std::fs;
use std::path::{Path, PathBuf};

/// Where baselines are, unless told otherwise.
pub const DEFAULT: &str = "/var/lib/nfscope/baselines.db";

/// An open store.
#[derive(Debug)]
pub struct Store {
    db: Connection,
    /// As errors name it.
    path: PathBuf,
}

impl Store {
    /// Opens a store to write, and makes it where there is none.
    ///
    /// # Errors
    /// When it cannot be written, or is none.
    pub fn create(path: &Path) -> Result<Store, Error> {
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir).map_err(|e| Error::io("create", dir, &e))?;
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        Store::open_as(path, path, flags, Journal::Wal)
    }

    /// Opens a store to read, or to remove from.
    ///
    /// # Errors
    /// When it is not there, or is none.
    pub fn open(path: &Path) -> Result<Store, Error> {
        match fs::metadata(path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::Missing(path.to_owned()));
            }
            Err(e) => return Err(Error::io("read", path, &e)),
            Ok(_) => {}
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
        match Store::open_as(path, path, flags, Journal::Keep) {
            // Who may read the file and not its directory has no place for the index of the write-ahead log, and
            // needs none where there is no such log.
            Err(Error::Denied { .. }) if !beside(path, "-wal").exists() => {
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
                Store::open_as(&immutable(path), path, flags, Journal::Keep)
            }
            other => other,
        }
    }

    fn open_as(at: &Path, path: &Path, flags: OpenFlags, journal: Journal) -> Result<Store, Error> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut db = Connection::open_with_flags(at, flags).map_err(|e| Error::sqlite(path, &e))?;
        schema::prepare(&mut db, path, journal, STEPS)?;
        Ok(Store {
            db,
            path: path.to_owned(),
        })
    }

    fn wrong(&self) -> impl Fn(rusqlite::Error) -> Error + use<> {
        let path = self.path.clone();
        move |e| Error::sqlite(&path, &e)
    }

    /// Every baseline, in the order in which they began.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn list(&self) -> Result<Vec<Entry>, Error> {
        let sql = format!("{ENTRY} GROUP BY b.id ORDER BY b.began_ms, b.id");
        let mut all = self.db.prepare(&sql).map_err(self.wrong())?;
        let rows = all.query_map([], entry).map_err(self.wrong())?;
        rows.collect::<Result<_, _>>().map_err(self.wrong())
    }

    /// One baseline.
    ///
    /// # Errors
    /// When there is none of that name, with the nearest that there is.
    pub fn entry(&self, name: &str) -> Result<Entry, Error> {
        let sql = format!("{ENTRY} WHERE b.name = ?1 GROUP BY b.id");
        let found = self.db.query_row(&sql, [name], entry).optional();
        if let Some(entry) = found.map_err(self.wrong())? {
            return Ok(entry);
        }
        let names: Vec<_> = self.list()?.into_iter().map(|e| e.about.name).collect();
        let hint = match near(name, names.iter().map(String::as_str)) {
            Some(known) => format!("; did you mean `{known}`?"),
            None => "; see `nfscope baseline list`".to_owned(),
        };
        Err(Error::Unknown {
            name: name.to_owned(),
            hint,
        })
    }

    /// Removes baselines, all of them or none, and gives their room back.
    ///
    /// # Errors
    /// When there is none of a name, when one is being recorded, or when the store cannot be written.
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
        let t = self.db.transaction().map_err(&wrong)?;
        for id in gone {
            t.execute("DELETE FROM baseline WHERE id = ?1", params![id])
                .map_err(&wrong)?;
        }
        t.commit().map_err(&wrong)?;
        // Each step gives one page back.
        let vacuum = || {
            let mut vacuum = self.db.prepare("PRAGMA incremental_vacuum")?;
            let mut steps = vacuum.query([])?;
            while steps.next()?.is_some() {}
            Ok(())
        };
        vacuum().map_err(wrong)
    }
}

/// A file of SQLite's beside this one.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// How SQLite is told that nobody writes this file.
fn immutable(path: &Path) -> PathBuf {
    let path = path.to_string_lossy();
    let path = path
        .replace('%', "%25")
        .replace('?', "%3f")
        .replace('#', "%23");
    format!("file:{path}?immutable=1").into()
}

/// True where an error of SQLite is a rule of the schema that was broken.
fn broken_rule(e: &rusqlite::Error) -> bool {
    e.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
}
