//! Break-down on demand: operations by what somebody asks for, which is kept only while somebody does.

use crate::histogram::Histogram;
use crate::scheme::Scheme;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// What operations can be told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dimension {
    /// The client's address, `local` where there is none.
    Client,
    /// The export's path, `none` for operations without a file handle, `unknown` for a handle of no export known now.
    Export,
    /// As in the label `op`.
    Op,
    /// As in the label `version`.
    Version,
    /// The user id that the call carries.
    User,
    /// Inode number of the file or directory, `/` for the root of the export, `none` without a file handle, `unknown` where the
    /// file system's handles are.
    File,
}

impl Dimension {
    /// All of them, in the order of [`Keys`].
    pub const ALL: [Dimension; 6] = [
        Dimension::Client,
        Dimension::Export,
        Dimension::Op,
        Dimension::Version,
        Dimension::User,
        Dimension::File,
    ];

    /// As users write it.
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

    /// The one of that name.
    pub fn of(name: &str) -> Option<Dimension> {
        Dimension::ALL.into_iter().find(|d| d.name() == name)
    }

    /// True of what names people and their files.
    pub fn is_private(self) -> bool {
        matches!(self, Dimension::User | Dimension::File)
    }
}

/// A row's values, in the order of [`Dimension::ALL`]; empty where operations are not told apart by it.
pub type Keys = [String; 6];

/// What somebody wants broken down.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BreakdownWant {
    /// What operations are told apart by.
    pub by: BTreeSet<Dimension>,
    /// Only these, by the names of the label `op`; empty for all.
    pub ops: BTreeSet<String>,
    /// Only this client's.
    pub client: Option<IpAddr>,
    /// Whether the paths of files are wanted, too.
    pub paths: bool,
}

/// A file or directory by export and [`Dimension::File`].
pub type FileKey = (String, String);

/// What is known of a file's path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilePath {
    /// One of its paths. A client chose the name: it may have any character but NUL.
    Is(Arc<str>),
    /// It is being looked up.
    Coming,
    /// Why there is none.
    Unknown(Arc<str>),
}

/// Operations with the same keys.
#[derive(Debug, Clone, PartialEq)]
pub struct BreakdownRow {
    /// What they have in common.
    pub keys: Keys,
    /// How long they took.
    pub times: Histogram,
    /// Bytes that they moved.
    pub moved: Moved,
}

/// Bytes that READs returned and WRITEs stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// READ and READ_PLUS.
    pub read: u64,
    /// WRITE.
    pub written: u64,
}

impl std::ops::AddAssign for Moved {
    fn add_assign(&mut self, other: Moved) {
        self.read += other.read;
        self.written += other.written;
    }
}

/// What came since the last look.
#[derive(Debug, Clone, PartialEq)]
pub struct BreakdownBatch {
    /// Operations by their keys, each keys once.
    pub rows: Vec<BreakdownRow>,
    /// Paths of files of these rows or of earlier ones, where they are wanted. A file that is not here has its turn later.
    pub paths: HashMap<FileKey, FilePath>,
    /// Operations for which the table had no room.
    pub unplaced: Histogram,
    /// Bytes that these moved.
    pub unplaced_moved: Moved,
    /// Operations that are in neither.
    pub lost: u64,
    /// CPU time that keeping the rows has taken, as the probes estimate it.
    pub cost: Duration,
    /// Bytes of kernel memory that the tables take while somebody looks.
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
