//! Reads tables of the host so that a failure is never lost: [`failures`] lists each for `nfscope check`, and a metric counts it.
//!
//! A table that this host does not have is no failure. Tables are [`lossless`] text.

use crate::{bounded, lossless};
use nfscope_model::host_report::Fact;
use nfscope_model::{Snapshot, family as f};
use std::collections::BTreeMap;
use std::fs::{self, DirEntry, File};
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Bytes of a table: the mounts and clients of the largest servers have a few megabytes.
const MOST: u64 = 64 << 20;

/// Time limit of [`read_soon`].
const SOON: Duration = Duration::from_millis(50);

/// Failures of reading a table, and the reason of the last one.
#[derive(Debug, Default)]
struct Row {
    failures: u64,
    last: Option<String>,
}

static ROWS: Mutex<BTreeMap<&'static str, Row>> = Mutex::new(BTreeMap::new());

/// Counts the outcome of a reading. A table that is not there, or has just gone, is no failure.
fn noted<T>(table: &'static str, outcome: io::Result<T>) -> io::Result<T> {
    let mut rows = ROWS.lock().unwrap_or_else(PoisonError::into_inner);
    match &outcome {
        Ok(_) => rows.entry(table).or_default().last = None,
        Err(e) if is_absent(e) => {}
        Err(e) => {
            let row = rows.entry(table).or_default();
            row.failures = row.failures.saturating_add(1);
            row.last = Some(e.to_string());
        }
    }
    outcome
}

fn is_absent(e: &io::Error) -> bool {
    let errno = rustix::io::Errno::from_io_error(e);
    e.kind() == io::ErrorKind::NotFound
        || matches!(
            errno,
            Some(rustix::io::Errno::SRCH | rustix::io::Errno::NODEV | rustix::io::Errno::NXIO)
        )
}

/// The text of a table; `None` where this host has none, or where it cannot be read, which is counted.
pub fn read(table: &'static str) -> Option<String> {
    read_at(table, table)
}

/// The text of a table for which the kernel takes a lock that others may hold for long, such as `nfsd_mutex`: who starts or stops a server
/// whose threads hang has it. `None` where there is no answer within a moment, too: nothing waits for it, and that is no failure to read.
pub fn read_soon(table: &'static str) -> Option<String> {
    let path = Path::new(table);
    match bounded::within(path, SOON, || bounded::read_here(Path::new(table), MOST)) {
        Err(e) if e.kind() == io::ErrorKind::TimedOut => None,
        outcome => noted(table, outcome).map(lossless::owned).ok(),
    }
}

/// The text of one of several files that count as one table.
pub fn read_at(table: &'static str, path: impl AsRef<Path>) -> Option<String> {
    try_read_at(table, path).ok()
}

/// The text of one of several files that count as one table.
///
/// # Errors
/// Fails where the file is not there or cannot be read, never for what it contains.
pub fn try_read_at(table: &'static str, path: impl AsRef<Path>) -> io::Result<String> {
    let path = path.as_ref();
    let kernels = path.starts_with("/proc") || path.starts_with("/sys");
    let bytes = match kernels {
        true => bounded::read_here(path, MOST),
        false => bounded::read(path, MOST),
    };
    noted(table, bytes).map(lossless::owned)
}

/// A file of the kernel to be read in pieces.
///
/// # Errors
/// Fails where the file is not there or cannot be opened.
pub fn open(table: &'static str, path: impl AsRef<Path>) -> io::Result<File> {
    noted(table, File::open(path))
}

/// Counts a failure while a file of [`open`] was read.
pub fn failed(table: &'static str, e: io::Error) {
    // The error was counted, and is not needed any more.
    let _ = noted::<()>(table, Err(e));
}

/// Entries of a directory of the kernel, without those that cannot be read, which are counted.
///
/// # Errors
/// Fails where the directory is not there or cannot be read.
pub fn entries(
    table: &'static str,
    path: impl AsRef<Path>,
) -> io::Result<impl Iterator<Item = DirEntry>> {
    let entries = noted(table, fs::read_dir(path))?;
    Ok(entries.filter_map(move |entry| match entry {
        Ok(entry) => Some(entry),
        Err(e) => {
            failed(table, e);
            None
        }
    }))
}

/// Adds the number of failures of each table that this host has.
pub fn count(s: &mut Snapshot) {
    for (table, row) in ROWS.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        s.counter(&f::HOST_READ_ERRORS, [*table], row.failures as f64);
    }
}

/// Tables that could not be read at the last try, each with its reason; `None` without any.
pub fn failures() -> Option<Fact> {
    let rows = ROWS.lock().unwrap_or_else(PoisonError::into_inner);
    let failed =
        |(table, row): (&&'static str, &Row)| Some(format!("{table} ({})", row.last.as_ref()?));
    let failed: Vec<_> = rows.iter().filter_map(failed).collect();
    (!failed.is_empty()).then(|| Fact {
        name: "tables not read".into(),
        value: failed.join(", "),
        ok: false,
        fix: "let the agent read them (root may); what they have is unknown until then".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_cannot_be_read_is_told_and_counted_until_it_can() {
        const TABLE: &str = "a table of this test";
        let directory = std::env::temp_dir().join(format!("nfscope-table-{}", std::process::id()));
        assert_eq!(read_at(TABLE, &directory), None);
        let told = || failures().map_or(String::new(), |fact| fact.value);
        assert!(!told().contains(TABLE), "absent is no failure");
        let counted = || {
            let mut s = Snapshot::default();
            count(&mut s);
            let rows: Vec<_> = s.numbers(&f::HOST_READ_ERRORS).collect();
            rows.iter()
                .find(|([table], _)| *table == TABLE)
                .map(|row| row.1)
        };
        assert_eq!(counted(), None, "no series of a table that is not there");
        fs::create_dir_all(&directory).unwrap();
        assert_eq!(read_at(TABLE, &directory), None);
        assert!(told().contains("a table of this test (it is no regular file"));
        assert_eq!(counted(), Some(1.0));
        let file = directory.join("file");
        fs::write(&file, b"caf\xe9").unwrap();
        assert_eq!(read_at(TABLE, &file).unwrap(), "caf\\xe9");
        assert!(!told().contains(TABLE));
        assert_eq!(counted(), Some(1.0));
        fs::remove_dir_all(&directory).unwrap();
    }
}
