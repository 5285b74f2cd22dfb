//! The store of baselines: one SQLite file. Every window is a transaction of its own that survives a power failure.

mod check;
mod database;
mod entry;
mod episodes;
mod error;
mod process;
mod read;
mod schema;
mod sums;
mod transfer;
mod write;

pub use check::Checked;
pub use database::{DEFAULT, Store};
pub use entry::{Entry, State};
pub use episodes::StoredEpisode;
pub use error::Error;
pub use read::Windows;
pub use schema::{APPLICATION_ID, BUSY_TIMEOUT};
pub use write::RecordingWriter;
