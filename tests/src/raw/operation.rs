//! Operations that a client repeats.

/// Operation that a client repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Operation {
    /// NULL.
    Null,
    /// GETATTR of the export.
    Getattr,
    /// LOOKUP of the client's own file.
    Lookup,
    /// ACCESS of the export.
    Access,
    /// GETATTR, LOOKUP and ACCESS by turns, as a client that trusts none of its caches.
    Revalidate,
    /// READ of the shared file, each one from another megabyte of it by default.
    Read,
    /// FILE_SYNC WRITE over v3, UNSTABLE WRITE and COMMIT over v4, to a file of the client's own.
    Write,
    /// CREATE of a file in the shared directory (v3).
    Create,
    /// RENAME of the client's own file to and fro, in the shared directory (v3).
    Rename,
    /// Lease and session of its own, which end at once (v4.1 and later).
    Session,
    /// TEST_STATEID of a state that no client has (v4.1 and later), as from a client that has lost its lease and checks each of its
    /// states.
    TestStateid,
    /// READDIRPLUS of the export from its beginning (v3).
    Readdir,
}

impl Operation {
    /// Operation at this step.
    pub(super) fn at(self, step: u32) -> Operation {
        match self {
            Operation::Revalidate => {
                [Operation::Getattr, Operation::Lookup, Operation::Access][step as usize % 3]
            }
            other => other,
        }
    }
}
