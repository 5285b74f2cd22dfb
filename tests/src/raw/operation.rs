//! What a client does again and again.

/// What a client does again and again.
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
    /// GETATTR, LOOKUP and ACCESS by turns, as a client that trusts nothing it remembers.
    Revalidate,
    /// READ of the file that all share, each one from another megabyte of it by default.
    Read,
    /// Over v3 a FILE_SYNC WRITE, over v4 an UNSTABLE one and a COMMIT, to a file of the client's own.
    Write,
    /// CREATE of a file in the directory that all share (v3).
    Create,
    /// RENAME of the client's own file to and fro, in the directory that all share (v3).
    Rename,
    /// A lease and a session of their own, which end at once (v4.1 and later).
    Session,
    /// TEST_STATEID of a state that nobody has (v4.1 and later), as a client that has lost its lease asks about each of its states.
    TestStateid,
    /// READDIRPLUS of the export from its beginning (v3).
    Readdir,
}

impl Operation {
    /// What is done at this step.
    pub(super) fn at(self, step: u32) -> Operation {
        match self {
            Operation::Revalidate => {
                [Operation::Getattr, Operation::Lookup, Operation::Access][step as usize % 3]
            }
            other => other,
        }
    }
}
