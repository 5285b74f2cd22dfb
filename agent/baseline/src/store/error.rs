//! Errors of a store; each message says what to do.

use crate::codec::CodecError;
use rusqlite::ErrorCode;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Reason why a store cannot be used.
#[derive(Debug, Error)]
pub enum Error {
    /// The file does not exist.
    #[error(
        "no baselines at {0}: record one with `nfscope baseline record NAME`, or name another file with --store"
    )]
    Missing(PathBuf),
    /// The file is not an SQLite file.
    #[error("{0} is no store of baselines: it is not an SQLite file")]
    NotSqlite(PathBuf),
    /// The file is an SQLite file of another program.
    #[error("{0} is no store of baselines: it is an SQLite file of another program")]
    Foreign(PathBuf),
    /// The file was written by a later version.
    #[error(
        "{path} was written by a later nfscope (schema {schema}, this one knows {known}): use that release or a later one"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Schema of the file.
        schema: i64,
        /// Newest schema that this program knows.
        known: i64,
    },
    /// Pages or windows of the file are damaged.
    #[error(
        "{path} is damaged ({why}): move it away, and use a copy or `nfscope baseline import` of an export"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Damage that was found.
        why: String,
    },
    /// The disk is full.
    #[error(
        "the disk is full, cannot write {0}: free some space there, or keep baselines elsewhere with --store FILE"
    )]
    Full(PathBuf),
    /// The system failed to read or write. SQLite reports this, too, if there is no space for the index of the write-ahead log.
    #[error("cannot read or write {path} ({why}): is the disk full, or failing?")]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of SQLite.
        why: String,
    },
    /// Permission is denied, or there is no such directory.
    #[error("cannot {what} {path} ({why}): run as root, or name a file of your own (--store FILE)")]
    Denied {
        /// Action: open, write, create.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        why: String,
    },
    /// Permission is denied, or there is no such directory, for the file of an export or import.
    #[error("cannot {what} {path} ({why}): run as root, or name a file that you may {what}")]
    File {
        /// Action: open, write, read.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        why: String,
    },
    /// Another process has kept the file locked for too long.
    #[error("another process keeps {0} locked: try again when that has ended")]
    Busy(PathBuf),
    /// The name is in use.
    #[error(
        "there is a baseline `{0}` already: choose another name, or remove it with `nfscope baseline rm {0}`"
    )]
    Taken(String),
    /// The target file exists.
    #[error("{0} exists already: name another file, or replace it with --force")]
    Exists(PathBuf),
    /// The target is the store itself; all other baselines would be lost.
    #[error("{0} is the store itself: name another file")]
    Itself(PathBuf),
    /// No baseline has that name.
    #[error("no baseline is called `{name}`{hint}")]
    Unknown {
        /// Name that was asked for.
        name: String,
        /// A similar name, or the command that lists all baselines.
        hint: String,
    },
    /// The baseline is being recorded.
    #[error("`{name}` is being recorded: end that first (kill {pid}, or Ctrl-C where it runs)")]
    Recording {
        /// The baseline.
        name: String,
        /// PID of the recording process.
        pid: u32,
    },
    /// The baseline was removed during the recording.
    #[error("baseline `{0}` was removed while it was being recorded")]
    Removed(String),
    /// Any other error.
    #[error("cannot use {path}: {why}")]
    Other {
        /// The file.
        path: PathBuf,
        /// The error of SQLite or of the operating system.
        why: String,
    },
}

impl Error {
    /// Drops the advice `--store FILE` if the error is about the file of an export or import, where that option changes nothing.
    pub(super) fn beside_store(self, file: &Path) -> Error {
        match self {
            Error::Denied { what, path, why } if path == file => Error::File { what, path, why },
            Error::Full(path) if path == file => Error::File {
                what: "write",
                path,
                why: "the disk is full".to_owned(),
            },
            other => other,
        }
    }

    /// Converts an SQLite error on this file.
    pub(super) fn sqlite(path: &Path, e: &rusqlite::Error) -> Error {
        let path = path.to_owned();
        let why = e.to_string();
        match e.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Error::NotSqlite(path),
            Some(ErrorCode::DatabaseCorrupt) => Error::Damaged { path, why },
            Some(ErrorCode::DiskFull) => Error::Full(path),
            Some(ErrorCode::SystemIoFailure) => Error::Io { path, why },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Busy(path),
            Some(ErrorCode::CannotOpen) => Error::Denied {
                what: "open",
                path,
                why,
            },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Error::Denied {
                what: "write",
                path,
                why,
            },
            _ => match e {
                // A value has another type than the schema says.
                rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::IntegralValueOutOfRange(..) => Error::Damaged { path, why },
                _ => Error::Other { path, why },
            },
        }
    }

    /// Converts an I/O error on this file.
    pub(super) fn io(what: &'static str, path: &Path, e: &io::Error) -> Error {
        let path = path.to_owned();
        let why = e.to_string();
        match e.kind() {
            io::ErrorKind::StorageFull => Error::Full(path),
            io::ErrorKind::NotFound if what == "read" => Error::Other { path, why },
            _ => Error::Denied { what, path, why },
        }
    }

    /// Converts the error of a window that does not decode.
    pub(super) fn garbled(path: &Path, e: &CodecError) -> Error {
        Error::Damaged {
            path: path.to_owned(),
            why: e.to_string(),
        }
    }
}

/// Returns true if an SQLite error is a violated constraint of the schema.
pub(super) fn broken_rule(e: &rusqlite::Error) -> bool {
    e.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
}
