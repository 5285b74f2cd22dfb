//! Baselines out of a store into a file of their own, and into another store.

use crate::name;
use crate::recording::About;
use crate::store::schema::{Journal, PATIENCE};
use crate::store::{Entry, Error, Store, beside, write};
use crate::temp_dir::Scratch;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, ffi};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::time::Duration;

const MAGIC: &[u8; 16] = b"SQLite format 3\0";

impl Store {
    /// Writes one baseline to a file that has nothing else in it; the file appears when it is whole.
    ///
    /// # Errors
    /// When there is no such baseline, when the file is there and `force` is not, or when it cannot be written.
    pub fn export(&self, name: &str, file: &Path, force: bool) -> Result<Entry, Error> {
        let entry = self.entry(name)?;
        if file.exists() && !force {
            return Err(Error::Exists(file.to_owned()));
        }
        // By whatever name: all other baselines would be gone.
        if let (Ok(this), Ok(store)) = (file.canonicalize(), self.path.canonicalize())
            && this == store
        {
            return Err(Error::Itself(file.to_owned()));
        }
        let dir = match file.parent() {
            Some(p) if !p.as_os_str().is_empty() => p,
            _ => Path::new("."),
        };
        let scratch = Scratch::within(dir, "export").map_err(|e| Error::io("write", file, &e))?;
        let part = scratch.path().join("baseline");
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let mut out = Store::open_as(&part, file, flags, Journal::Delete)?;
        out.receive(self, &[(entry.clone(), entry.about.name.clone())])?;
        out.db.close().map_err(|(_, e)| Error::sqlite(file, &e))?;
        fs::rename(&part, file).map_err(|e| Error::io("write", file, &e))?;
        // The name of the file is to survive a power failure as its content does.
        File::open(dir)
            .and_then(|d| d.sync_all())
            .map_err(|e| Error::io("write", file, &e))?;
        Ok(entry)
    }

    /// Reads the baselines of a file into this store; says their names. The file stays as it is, whatever its schema.
    ///
    /// # Errors
    /// When it is no file of baselines or damaged, when a name is taken, or when the store cannot be written.
    pub fn import(&mut self, file: &Path, name: Option<&str>) -> Result<Vec<String>, Error> {
        sqlite(file)?;
        let dir = self.path.parent().unwrap_or(Path::new(".")).to_owned();
        let scratch = Scratch::within(&dir, "import").map_err(|e| Error::io("write", &dir, &e))?;
        let copy = scratch.path().join("baseline");
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
                    n => format!("there are {n} baselines in it: leave out --as"),
                },
            });
        }
        let named: Vec<_> = entries
            .into_iter()
            .map(|e| {
                let name = name.unwrap_or(&e.about.name).to_owned();
                (e, name)
            })
            .collect();
        self.receive(&from, &named)?;
        Ok(named.into_iter().map(|(_, name)| name).collect())
    }

    /// Copies a file that others may write meanwhile.
    fn copy(&self, file: &Path, copy: &Path) -> Result<(), Error> {
        // A store that is in use has its latest windows there, and moves them into the file now and then.
        let log = beside(file, "-wal");
        if !log.exists() {
            return copied(file, copy, &self.path);
        }
        match backup(file, copy) {
            Ok(()) => Ok(()),
            // Where there is no right to the index of the log: nobody can write there, unless another user does.
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

    /// Copies baselines from another store under these names, all of them or none.
    fn receive(&mut self, from: &Store, all: &[(Entry, String)]) -> Result<(), Error> {
        let path = self.path.clone();
        let wrong = |e: rusqlite::Error| Error::sqlite(&path, &e);
        let t = self.db.transaction().map_err(wrong)?;
        for (entry, name) in all {
            let about = About {
                name: name.clone(),
                ..entry.about.clone()
            };
            let ended = from.ended(entry.id)?;
            let id = match write::insert(&t, &about, None, ended.as_deref()) {
                Err(e) if crate::store::broken_rule(&e) => return Err(Error::Taken(name.clone())),
                other => other.map_err(wrong)?,
            };
            write::lines(&t, id, &from.lines(entry)?).map_err(wrong)?;
            let mut next = 0;
            loop {
                let some = from.some(entry.id, next)?;
                let Some(last) = some.back() else { break };
                next = last.seq + 1;
                for w in some {
                    let length = Duration::from_nanos(w.length_ns);
                    write::put_window(&t, id, w.seq, w.began_ms, length, &w.data).map_err(wrong)?;
                }
            }
        }
        t.commit().map_err(wrong)
    }

    fn ended(&self, baseline: i64) -> Result<Option<String>, Error> {
        let sql = "SELECT ended FROM baseline WHERE id = ?1";
        self.db
            .query_row(sql, [baseline], |r| r.get(0))
            .map_err(self.wrong())
    }

    /// Looks at every page and every window.
    fn verify(&self) -> Result<(), Error> {
        let damaged = |why: String| Error::Damaged {
            path: self.path.clone(),
            why,
        };
        match first_fault(&self.db).map_err(self.wrong())?.as_str() {
            "ok" => {}
            why => return Err(damaged(why.lines().next().unwrap_or_default().to_owned())),
        }
        for entry in self.list()? {
            name::check(&entry.about.name).map_err(damaged)?;
            let lines = self.lines(&entry)?;
            let known: HashSet<u32> = lines.iter().map(|l| l.id).collect();
            for w in self.windows(&entry, |_| true) {
                if !w?.points.iter().all(|(id, _)| known.contains(id)) {
                    return Err(damaged("a window has a series without a name".to_owned()));
                }
            }
        }
        Ok(())
    }
}

fn first_fault(db: &Connection) -> rusqlite::Result<String> {
    db.query_row("PRAGMA quick_check(1)", [], |r| r.get(0))
}

/// Says early what is no SQLite file, however large.
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

/// All pages as they are at one moment.
fn backup(file: &Path, copy: &Path) -> rusqlite::Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let from = Connection::open_with_flags(file, flags)?;
    from.busy_timeout(PATIENCE)?;
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
