//! Break-down on demand: operations grouped by the dimensions that a subscriber asks for. It is kept only while there is a subscriber.

use crate::histogram::Histogram;
use crate::scheme::Scheme;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Dimensions by which operations can be grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dimension {
    /// The client's address, `local` where there is none.
    Client,
    /// The export's path, `none` for operations without a file handle, `unknown` for a handle of no export known now.
    Export,
    /// Operation, as in the label `op`.
    Op,
    /// NFS version, as in the label `version`.
    Version,
    /// The user id that the call carries.
    User,
    /// Inode number of the file or directory, `/` for the root of the export, `none` without a file handle, `unknown` where nfscope cannot
    /// read the handles of the file system.
    File,
}

impl Dimension {
    /// All dimensions, in the order of [`Keys`].
    pub const ALL: [Dimension; 6] = [
        Dimension::Client,
        Dimension::Export,
        Dimension::Op,
        Dimension::Version,
        Dimension::User,
        Dimension::File,
    ];

    /// Name of the dimension as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Dimension::Client => "client",
            Dimension::Export => "export",
            Dimension::Op => "op",
            Dimension::Version => "version",
            Dimension::User => "user",
            Dimension::File => "file",
        }
    }

    /// Finds the dimension of this name.
    pub fn of(name: &str) -> Option<Dimension> {
        Dimension::ALL.into_iter().find(|d| d.name() == name)
    }

    /// True for dimensions that identify people and their files.
    pub fn is_private(self) -> bool {
        matches!(self, Dimension::User | Dimension::File)
    }
}

/// Values of a row, in the order of [`Dimension::ALL`]; empty for a dimension by which operations are not grouped.
pub type Keys = [String; 6];

/// Break-down that a subscriber asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BreakdownWant {
    /// Dimensions by which operations are grouped.
    pub by: BTreeSet<Dimension>,
    /// Operations to count, by the names of the label `op`; empty for all.
    pub ops: BTreeSet<String>,
    /// Client whose operations are counted; `None` for all.
    pub client: Option<IpAddr>,
    /// True if the paths of files are wanted, too.
    pub paths: bool,
}

/// A file or directory by export and [`Dimension::File`].
pub type FileKey = (String, String);

/// State of the search for a file's path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilePath {
    /// A path of the file. A client chose the name: it may have any character but NUL.
    Is(Arc<str>),
    /// The path is being looked up.
    Coming,
    /// The reason why there is no path.
    Unknown(Arc<str>),
}

/// Operations with the same keys.
#[derive(Debug, Clone, PartialEq)]
pub struct BreakdownRow {
    /// Keys that these operations have in common.
    pub keys: Keys,
    /// Durations of these operations.
    pub times: Histogram,
    /// Bytes that these operations moved.
    pub moved: Moved,
}

/// Bytes that READs returned and WRITEs stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// Bytes that READ and READ_PLUS returned.
    pub read: u64,
    /// Bytes that WRITE stored.
    pub written: u64,
}

impl std::ops::AddAssign for Moved {
    fn add_assign(&mut self, other: Moved) {
        self.read += other.read;
        self.written += other.written;
    }
}

/// Operations since the last reading of the break-down.
#[derive(Debug, Clone, PartialEq)]
pub struct BreakdownBatch {
    /// Operations grouped by their keys; each combination of keys once.
    pub rows: Vec<BreakdownRow>,
    /// Paths of files of these rows or of earlier ones, where they are wanted. A file without an entry is resolved in a later batch.
    pub paths: HashMap<FileKey, FilePath>,
    /// Operations for which the table had no room.
    pub unplaced: Histogram,
    /// Bytes that the operations of `unplaced` moved.
    pub unplaced_moved: Moved,
    /// Number of operations that are neither in `rows` nor in `unplaced`.
    pub lost: u64,
    /// CPU time that keeping the rows has taken, as the probes estimate it.
    pub cost: Duration,
    /// Bytes of kernel memory that the tables take while there is a subscriber.
    pub kernel_bytes: u64,
}

impl Default for BreakdownBatch {
    fn default() -> Self {
        BreakdownBatch {
            rows: Vec::new(),
            paths: HashMap::new(),
            unplaced: Histogram::new(Scheme::TIME),
            unplaced_moved: Moved::default(),
            lost: 0,
            cost: Duration::ZERO,
            kernel_bytes: 0,
        }
    }
}
