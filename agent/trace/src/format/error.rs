//! Errors of files.

use std::io;
use std::path::PathBuf;

/// Error of a trace's file, with what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be opened, read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The file is no Parquet file, or its end is missing.
    #[error(
        "{}: no trace, or one that was not ended: a Parquet file ends with PAR1; fix: make it again, and let its writer end", path.display()
    )]
    NoTrace {
        /// The file.
        path: PathBuf,
    },
    /// A Parquet file that is no trace.
    #[error("{}: a Parquet file, but no trace of nfscope: {reason}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Part that is missing.
        reason: String,
    },
    /// A trace of a later nfscope.
    #[error("{}: format {version} of traces is newer than this nfscope, which reads up to {}; fix: use a newer nfscope", path.display(), super::VERSION)]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// A trace that is damaged.
    #[error("{}: the trace is damaged: {reason}; fix: copy it again, or make it again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Place and kind of the damage.
        reason: String,
    },
    /// A trace that cannot be written.
    #[error("cannot write the trace: {0}")]
    Write(String),
}
