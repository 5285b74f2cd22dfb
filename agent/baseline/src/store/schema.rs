//! The schema of a store, its migrations, and the check of a file's schema.

use crate::store::error::Error;
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;
use std::time::{Duration, Instant};

/// `nfsb`, in the header of every store and export.
pub const APPLICATION_ID: i32 = 0x6e66_7362;
/// Longest wait for another writer.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(30);
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// Migrations from each version of the schema to the next, starting with an empty file. Released steps never change.
pub(super) const STEPS: &[&str] = &["
    -- A number is never given twice: who still records a removed baseline must not write into another.
    CREATE TABLE baseline (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL UNIQUE,
        began_ms INTEGER NOT NULL,
        host TEXT NOT NULL,
        kernel TEXT,
        agent TEXT NOT NULL,
        interval_ns INTEGER NOT NULL,
        labels TEXT NOT NULL,
        recorder TEXT,
        ended TEXT
    ) STRICT;
    CREATE TABLE line (
        baseline INTEGER NOT NULL REFERENCES baseline ON DELETE CASCADE,
        id INTEGER NOT NULL,
        family TEXT NOT NULL,
        labels TEXT NOT NULL,
        PRIMARY KEY (baseline, id)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE \"window\" (
        id INTEGER PRIMARY KEY,
        baseline INTEGER NOT NULL REFERENCES baseline ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        began_ms INTEGER NOT NULL,
        length_ns INTEGER NOT NULL,
        data BLOB NOT NULL
    ) STRICT;
    -- Counting windows and their lengths reads this alone.
    CREATE INDEX window_in_time ON \"window\" (baseline, seq, began_ms, length_ns);
",
"
    -- Of what was recorded before there were checksums they are NULL.
    ALTER TABLE baseline ADD COLUMN windows INTEGER;
    ALTER TABLE baseline ADD COLUMN length_ns INTEGER;
    ALTER TABLE baseline ADD COLUMN series_sum INTEGER;
    ALTER TABLE baseline ADD COLUMN windows_sum INTEGER;
    ALTER TABLE baseline ADD COLUMN checksum INTEGER;
    ALTER TABLE \"window\" ADD COLUMN checksum INTEGER;
"];

/// First schema with checksums.
pub(super) const SCHEMA_WITH_SUMS: usize = 2;

/// Journal mode of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Journal {
    /// Write-ahead log, for concurrent readers and a writer.
    Wal,
    /// No journal after it is closed: an export is a single file.
    Delete,
    /// The mode stays unchanged.
    Keep,
    /// Mode and schema stay unchanged: the file cannot be written.
    ReadOnly,
}

/// The state of a file when it is opened.
#[derive(Debug, PartialEq, Eq)]
enum State {
    Empty,
    Schema(usize),
}

fn state(db: &Connection, path: &Path, steps: &[&str]) -> Result<State, Error> {
    let number = |sql| db.query_row(sql, [], |r| r.get::<_, i64>(0));
    let read = || {
        Ok((
            number("PRAGMA application_id")?,
            number("PRAGMA user_version")?,
            number("SELECT count(*) FROM sqlite_schema")?,
        ))
    };
    let (application, schema, tables) = read().map_err(|e| Error::sqlite(path, &e))?;
    match (application, schema, tables) {
        (0, 0, 0) => Ok(State::Empty),
        (id, _, _) if id != i64::from(APPLICATION_ID) => Err(Error::Foreign(path.to_owned())),
        _ => match usize::try_from(schema) {
            Ok(n) if (1..=steps.len()).contains(&n) => Ok(State::Schema(n)),
            Ok(n) if n > 0 => Err(Error::Newer {
                path: path.to_owned(),
                schema,
                known: steps.len() as i64,
            }),
            _ => Err(Error::Damaged {
                path: path.to_owned(),
                why: format!("it has schema {schema}"),
            }),
        },
    }
}

/// Migrates an empty file or an older store to the last of `steps`, and returns its schema. A file of another program is not changed.
pub(super) fn prepare(
    db: &mut Connection,
    path: &Path,
    journal: Journal,
    steps: &[&str],
) -> Result<usize, Error> {
    let wrong = |e: rusqlite::Error| Error::sqlite(path, &e);
    db.busy_timeout(BUSY_TIMEOUT).map_err(wrong)?;
    // State and schema are read in one transaction: another process may be creating the store, and a half of one looks like another
    // program's file.
    let before = {
        let reading = db.transaction().map_err(wrong)?;
        state(&reading, path, steps)?
    };
    if before == State::Empty {
        if matches!(journal, Journal::Keep | Journal::ReadOnly) {
            return Err(Error::Missing(path.to_owned()));
        }
        // A page of 16 KiB holds several windows, and removed baselines free their pages.
        db.execute_batch("PRAGMA page_size = 16384; PRAGMA auto_vacuum = INCREMENTAL")
            .map_err(wrong)?;
    }
    match journal {
        Journal::Wal => retry_while_busy(|| db.execute_batch("PRAGMA journal_mode = WAL")),
        Journal::Delete => retry_while_busy(|| db.execute_batch("PRAGMA journal_mode = DELETE")),
        Journal::Keep | Journal::ReadOnly => Ok(()),
    }
    .map_err(wrong)?;
    db.execute_batch(
        "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;
         PRAGMA wal_autocheckpoint = 64",
    )
    .map_err(wrong)?;
    match (journal, before) {
        (Journal::ReadOnly, State::Schema(n)) => Ok(n),
        (_, State::Schema(n)) if n == steps.len() => Ok(n),
        // A user with read permission only reads the older form.
        (Journal::Keep, State::Schema(n)) => match migrate(db, path, steps) {
            Ok(()) => Ok(steps.len()),
            Err(Error::Denied { .. } | Error::Full(_)) => Ok(n),
            Err(e) => Err(e),
        },
        _ => migrate(db, path, steps).map(|()| steps.len()),
    }
}

fn migrate(db: &mut Connection, path: &Path, steps: &[&str]) -> Result<(), Error> {
    let wrong = |e: rusqlite::Error| Error::sqlite(path, &e);
    let t = db
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(wrong)?;
    // Another process may have migrated the file meanwhile.
    let done = match state(&t, path, steps)? {
        State::Empty => 0,
        State::Schema(n) => n,
    };
    for step in &steps[done..] {
        t.execute_batch(step).map_err(wrong)?;
    }
    t.pragma_update(None, "application_id", APPLICATION_ID)
        .and_then(|()| t.pragma_update(None, "user_version", steps.len() as i64))
        .map_err(wrong)?;
    t.commit().map_err(wrong)
}

/// Retries while the file is locked: SQLite does not wait by itself when two processes change the journal mode.
fn retry_while_busy(mut f: impl FnMut() -> rusqlite::Result<()>) -> rusqlite::Result<()> {
    let begun = Instant::now();
    loop {
        match f() {
            Err(e)
                if e.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
                    && begun.elapsed() < BUSY_TIMEOUT =>
            {
                std::thread::sleep(RETRY_INTERVAL);
            }
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATER: &[&str] = &[
        STEPS[0],
        STEPS[1],
        "ALTER TABLE baseline ADD COLUMN weather TEXT NOT NULL DEFAULT 'fair'",
    ];

    fn open(path: &Path, steps: &[&str]) -> Result<Connection, Error> {
        let mut db = Connection::open(path).unwrap();
        prepare(&mut db, path, Journal::Wal, steps).map(|_| db)
    }

    #[test]
    fn an_older_store_is_brought_forward_and_a_newer_one_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store.db");
        let insert = "INSERT INTO baseline (name, began_ms, host, agent, interval_ns, labels)
            VALUES ('a', 0, 'h', 'v', 1, '{}')";
        open(&path, STEPS).unwrap().execute_batch(insert).unwrap();
        let weather = |db: &Connection| {
            db.query_row("SELECT weather FROM baseline", [], |r| {
                r.get::<_, String>(0)
            })
        };
        assert_eq!(weather(&open(&path, LATER).unwrap()).unwrap(), "fair");
        // The migration ran only once.
        assert_eq!(weather(&open(&path, LATER).unwrap()).unwrap(), "fair");
        let e = open(&path, STEPS).unwrap_err().to_string();
        assert!(
            e.contains("later nfscope (schema 3, this one knows 2)"),
            "{e}"
        );
    }

    #[test]
    fn a_step_that_fails_leaves_the_store_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store.db");
        open(&path, STEPS).unwrap();
        let half = "CREATE TABLE more (x); INSERT INTO nowhere VALUES (1)";
        assert!(open(&path, &[STEPS[0], STEPS[1], half]).is_err());
        let db = open(&path, STEPS).unwrap();
        let more = "SELECT count(*) FROM sqlite_schema WHERE name = 'more'";
        let count: i64 = db.query_row(more, [], |r| r.get(0)).unwrap();
        assert_eq!(count, 0);
    }

    #[test]
    fn the_file_of_another_program_stays_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("other.db");
        let theirs = Connection::open(&path).unwrap();
        theirs.execute_batch("CREATE TABLE t (x)").unwrap();
        drop(theirs);
        let before = std::fs::read(&path).unwrap();
        assert!(matches!(open(&path, STEPS), Err(Error::Foreign(_))));
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
}
