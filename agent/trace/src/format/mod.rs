//! The file: Parquet, one row for each operation. docs/trace.md describes it for other programs.

mod columns;
mod encodings;
mod error;
mod pages;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use error::Error;
pub use read::Reader;
pub use write::Writer;

/// Version of the format. A reader refuses a higher one.
pub const VERSION: u32 = 1;
/// Key of the file's metadata that has the version of the format.
pub const VERSION_KEY: &str = "nfscope.trace.version";
/// Key of the file's metadata that has the [`Header`](crate::Header) as JSON.
pub const HEADER_KEY: &str = "nfscope.trace.header";

/// Operations of a row group, which the writer keeps in memory: 200 bytes each with the columns made of them.
const ROW_GROUP: usize = 128 * 1024;
/// Operations that the writer keeps beside a row group to put late ones in their place.
const LOOKAHEAD: usize = 32 * 1024;
/// Most operations of a row group that a reader takes; another program may have written the file.
const LARGEST_ROW_GROUP: i64 = 64 * 1024 * 1024;
/// Largest uncompressed page that a reader takes, in bytes. The writer makes pages of 1 MiB.
const LARGEST_PAGE: u64 = 16 << 20;
/// Largest footer that a reader takes, in bytes: 2 KiB for each row group, and the clients.
const LARGEST_FOOTER: u64 = 16 << 20;
/// Rows that are decoded at once.
const BATCH: usize = 4096;
