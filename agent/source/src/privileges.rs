//! What this process may do, and how little of it is kept.

pub use crate::linux::host::capabilities::{confine, drop_all, fact, may_read_maps, require};
