//! A window as bytes: postcard, column by column, deflated.
//!
//! A window stands for itself: it names the series that it has as runs of numbers, so that one that was not measured stays
//! different from one in which nothing happened. Zeros are not left out; in their column they deflate to nearly nothing.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

pub use decode::decode;
pub use encode::encode;

use crate::recording::Point;
use nfscope_model::{Sample, Scheme};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What a window cannot be read from.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("a window cannot be decoded: {0}")]
pub struct Garbled(&'static str);

/// Consecutive series of one kind.
#[derive(Debug, Serialize, Deserialize)]
struct Run {
    /// Numbers between the end of the run before and this one.
    skipped: u32,
    len: u32,
    /// [`ADDED`], [`STOOD`], or from [`SPREAD`] on a histogram of one of the schemes.
    kind: u8,
}

const ADDED: u8 = 0;
const STOOD: u8 = 1;
const SPREAD: u8 = 2;

/// Like stands beside like, which is what deflate makes use of.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Columns {
    runs: Vec<Run>,
    schemes: Vec<Scheme>,
    /// Counters, gauges and sums, with their [`Unit`] in the lowest two bits.
    numbers: Vec<u64>,
    /// Those that are of no unit.
    exact: Vec<f64>,
    /// Of each histogram: how many buckets have something, and how many were skipped before each.
    buckets: Vec<u16>,
    counts: Vec<u64>,
}

/// What a number in a column counts.
enum Unit {
    One = 0,
    Nanosecond = 1,
    /// The next exact number.
    Exact = 2,
}

/// The point of a series in a window.
pub fn point(sample: &Sample) -> Point {
    match sample {
        Sample::Counter(v) => Point::Added(*v),
        Sample::Gauge(v) => Point::Stood(*v),
        Sample::Histogram(h) => Point::Spread {
            scheme: h.scheme,
            counts: h.sparse(),
            sum: h.sum,
        },
    }
}

/// True where values of the family are seconds, which are kept to a nanosecond.
pub fn seconds(family: &str) -> bool {
    family.ends_with("_seconds") || family.ends_with("_seconds_total")
}
