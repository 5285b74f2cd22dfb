//! Kinds of a load.

/// Kind of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// Sync and async writes, reads and metadata of every sort.
    #[default]
    Mixed,
    /// 4 KiB writes with O_SYNC, and nothing else.
    SyncWrites,
}
