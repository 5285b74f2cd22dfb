//! The columns of a window, as postcard writes them. Stores have them: their fields and order never change.

use nfscope_model::Scheme;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What a window cannot be read from.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("a window cannot be decoded: {0}")]
pub struct CodecError(pub(super) &'static str);

/// Consecutive series of one kind.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Run {
    /// Numbers between the end of the run before and this one.
    pub skipped: u32,
    pub len: u32,
    /// [`COUNTER`], [`GAUGE`], or from [`FIRST_HISTOGRAM`] on a histogram of one of the schemes.
    pub kind: u8,
}

pub(super) const COUNTER: u8 = 0;
pub(super) const GAUGE: u8 = 1;
pub(super) const FIRST_HISTOGRAM: u8 = 2;

/// Like stands beside like, which is what deflate makes use of.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Columns {
    pub runs: Vec<Run>,
    pub schemes: Vec<Scheme>,
    /// Counters, gauges and sums, with their [`Unit`] in the lowest two bits.
    pub numbers: Vec<u64>,
    /// Those that are of no unit.
    pub exact: Vec<f64>,
    /// Of each histogram: how many buckets have something, and how many were skipped before each.
    pub buckets: Vec<u16>,
    pub counts: Vec<u64>,
}

/// What a number in a column counts.
pub(super) enum Unit {
    One = 0,
    Nanosecond = 1,
    /// The next exact number.
    Exact = 2,
}

/// True where values of the family are seconds, which are kept to a nanosecond.
pub fn in_seconds(family: &str) -> bool {
    family.ends_with("_seconds") || family.ends_with("_seconds_total")
}
