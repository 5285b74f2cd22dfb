//! Export of a baseline to a file, and import into another store.

use crate::recording::Metadata;
use crate::store::database::{Store, beside};
use crate::store::entry::Entry;
use crate::store::error::{Error, broken_rule};
use crate::store::schema::{BUSY_TIMEOUT, Journal};
use crate::store::write;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, ffi};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

const MAGIC: &[u8; 16] = b"SQLite format 3\0";

impl Store {
    /// Writes one baseline to a file of its own, which appears only when it is complete.
    ///
    /// # Errors
    /// When there is no such baseline, when the file is there and `force` is not, or when it cannot be written.
    pub fn export(&self, name: &str, file: &Path, force: bool) -> Result<Entry, Error> {
        let entry = self.entry(name)?;
        if file.exists() && !force {
            return Err(Error::Exists(file.to_owned()));
        }
        // Another name for the same file counts as well: all other baselines would be lost.
        if let (Ok(this), Ok(store)) = (file.canonicalize(), self.path.canonicalize())
            && this == store
        {
            return Err(Error::Itself(file.to_owned()));
        }
        self.write_to(&entry, file)
            .map_err(|e| e.beside_store(file))?;
        Ok(entry)
    }

    fn write_to(&self, entry: &Entry, file: &Path) -> Result<(), Error> {
        let dir = match file.parent() {
            Some(p) if !p.as_os_str().is_empty() => p,
            _ => Path::new("."),
        };
        let temp = temp_dir(dir, ".nfscope-export-").map_err(|e| Error::io("write", file, &e))?;
        let part = temp.path().join("baseline");
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let mut out = Store::open_as(&part, file, flags, Journal::Delete)?;
        out.receive(self, &[(entry.clone(), entry.metadata.name.clone())])?;
        out.db.close().map_err(|(_, e)| Error::sqlite(file, &e))?;
        fs::rename(&part, file).map_err(|e| Error::io("write", file, &e))?;
        // The directory entry must survive a power failure, as the content does.
        File::open(dir)
            .and_then(|d| d.sync_all())
            .map_err(|e| Error::io("write", file, &e))
    }

    /// Imports the baselines of a file and returns their names. The file is not changed, whatever its schema.
    ///
    /// # Errors
    /// When the file is no store or damaged, a name is in use, or the store cannot be written.
    pub fn import(&mut self, file: &Path, name: Option<&str>) -> Result<Vec<String>, Error> {
        self.read_from(file, name).map_err(|e| e.beside_store(file))
    }

    fn read_from(&mut self, file: &Path, name: Option<&str>) -> Result<Vec<String>, Error> {
        sqlite(file)?;
        let dir = self.path.parent().unwrap_or(Path::new(".")).to_owned();
        let temp = temp_dir(&dir, ".nfscope-import-").map_err(|e| Error::io("write", &dir, &e))?;
        let copy = temp.path().join("baseline");
        self.copy(file, &copy)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
        let from = Store::open_as(&copy, file, flags, Journal::Keep)?;
        from.verify()?;
        let entries = from.list()?;
        if entries.is_empty() || (entries.len() > 1 && name.is_some()) {
            return Err(Error::Other {
                path: file.to_owned(),
                why: match entries.len() {
                    0 => "there is no baseline in it".to_owned(),
                    n => format!("there are {n} baselines in it: leave out --name"),
                },
            });
        }
        let named: Vec<_> = entries
            .into_iter()
            .map(|e| {
                let name = name.unwrap_or(&e.metadata.name).to_owned();
                (e, name)
            })
            .collect();
        self.receive(&from, &named)?;
        Ok(named.into_iter().map(|(_, name)| name).collect())
    }

    /// Copies a store that another process may be writing.
    fn copy(&self, file: &Path, copy: &Path) -> Result<(), Error> {
        // The latest windows of a store in use are in the write-ahead log, and move to the file at checkpoints.
        let log = beside(file, "-wal");
        if !log.exists() {
            return copied(file, copy, &self.path);
        }
        match backup(file, copy) {
            Ok(()) => Ok(()),
            // The index of the log cannot be written without permission. A plain copy is consistent unless another user writes now.
            Err(e) if matches!(Error::sqlite(file, &e), Error::Denied { .. }) => {
                copied(file, copy, &self.path)?;
                copied(&log, &beside(copy, "-wal"), &self.path)
            }
            Err(e) => Err(match Error::sqlite(file, &e) {
                Error::Full(_) => Error::Full(self.path.clone()),
                other => other,
            }),
        }
    }

    /// Copies all of these baselines or none from another store, under these names.
    fn receive(&mut self, from: &Store, all: &[(Entry, String)]) -> Result<(), Error> {
        let path = self.path.clone();
        let wrong = |e: rusqlite::Error| Error::sqlite(&path, &e);
        let t = self.db.transaction().map_err(wrong)?;
        // The transaction shows series and windows of one moment: a recording in progress goes on meanwhile.
        let _moment = from.db.unchecked_transaction().map_err(from.wrong())?;
        for (entry, name) in all {
            let metadata = Metadata {
                name: name.clone(),
                ..entry.metadata.clone()
            };
            let mut row = write::row(&metadata, None, from.ended(entry.id)?);
            let id = match write::insert(&t, &row) {
                Err(e) if broken_rule(&e) => return Err(Error::Taken(name.clone())),
                other => other.map_err(wrong)?,
            };
            let series = from.series(entry)?;
            row.parts.series = write::insert_series(&t, id, &series, 0).map_err(wrong)?;
            for w in from.stored(entry) {
                let w = w?;
                let length = Duration::from_nanos(w.length_ns.unsigned_abs());
                let parts = write::put_window(&t, id, row.parts, w.began_ms, length, &w.data);
                row.parts = parts.map_err(wrong)?;
            }
            write::update(&t, id, &row).map_err(wrong)?;
        }
        t.commit().map_err(wrong)
    }

    fn ended(&self, baseline: i64) -> Result<Option<String>, Error> {
        let sql = "SELECT ended FROM baseline WHERE id = ?1";
        self.db
            .query_row(sql, [baseline], |r| r.get(0))
            .map_err(self.wrong())
    }
}

/// A directory beside the final file, so that a rename puts a complete file into place. It is removed when dropped.
fn temp_dir(parent: &Path, prefix: &str) -> std::io::Result<TempDir> {
    tempfile::Builder::new().prefix(prefix).tempdir_in(parent)
}

/// Rejects a file that is not an SQLite file before it is copied.
fn sqlite(file: &Path) -> Result<(), Error> {
    let mut head = Vec::new();
    File::open(file)
        .and_then(|f| f.take(MAGIC.len() as u64).read_to_end(&mut head))
        .map_err(|e| Error::io("read", file, &e))?;
    match head == MAGIC {
        true => Ok(()),
        false => Err(Error::NotSqlite(file.to_owned())),
    }
}

/// Copies a consistent snapshot of all pages.
fn backup(file: &Path, copy: &Path) -> rusqlite::Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let from = Connection::open_with_flags(file, flags)?;
    from.busy_timeout(BUSY_TIMEOUT)?;
    let mut to = Connection::open(copy)?;
    let done = Backup::new(&from, &mut to)?.step(-1)?;
    match done {
        StepResult::Done => Ok(()),
        _ => Err(rusqlite::Error::SqliteFailure(
            ffi::Error::new(ffi::SQLITE_BUSY),
            None,
        )),
    }
}

fn copied(from: &Path, to: &Path, store: &Path) -> Result<(), Error> {
    match fs::copy(from, to) {
        Ok(_) => Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::StorageFull => Err(Error::Full(store.to_owned())),
        Err(e) => Err(Error::io("read", from, &e)),
    }
}
