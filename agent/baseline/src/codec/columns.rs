//! The columns of a window, as postcard encodes them. This is a released file format: fields and their order must not change.

use nfscope_model::Scheme;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Error of a window that cannot be encoded or decoded.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("a window cannot be decoded: {0}")]
pub struct CodecError(pub(super) &'static str);

/// A run of consecutive series of one kind.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Run {
    /// Series numbers skipped since the end of the previous run.
    pub skipped: u32,
    pub len: u32,
    /// [`COUNTER`], [`GAUGE`], or [`FIRST_HISTOGRAM`] plus the index of the bucket scheme.
    pub kind: u8,
}

pub(super) const COUNTER: u8 = 0;
pub(super) const GAUGE: u8 = 1;
pub(super) const FIRST_HISTOGRAM: u8 = 2;

/// Similar values are adjacent, which makes deflate effective.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Columns {
    pub runs: Vec<Run>,
    pub schemes: Vec<Scheme>,
    /// Counters, gauges and sums, with their [`Unit`] in the lowest two bits.
    pub numbers: Vec<u64>,
    /// Numbers that fit no unit.
    pub exact: Vec<f64>,
    /// For each histogram: the number of non-empty buckets, then the number of buckets skipped before each.
    pub buckets: Vec<u16>,
    pub counts: Vec<u64>,
}

/// Unit of a number in a column.
pub(super) enum Unit {
    One = 0,
    Nanosecond = 1,
    /// The number is the next one of `exact`.
    Exact = 2,
}

/// Returns true if the values of the family are seconds, which are stored with a resolution of one nanosecond.
pub fn in_seconds(family: &str) -> bool {
    family.ends_with("_seconds") || family.ends_with("_seconds_total")
}
