//! Fills a snapshot from the totals of scripts and from `kstat`: one file for each script's subject.

pub mod accounting;
pub mod block;
pub mod held;
pub mod kernel;
pub mod nfs;
pub mod rpc;
pub mod zfs;

use super::frame::Table;
use nfscope_model::{Histogram, Scheme};

/// A histogram of durations from its table and its sum.
fn time(table: &Table, sum_ns: u64) -> Histogram {
    let mut h = Histogram::new(Scheme::TIME);
    h.add(table, seconds(sum_ns));
    h
}

/// A histogram of sizes or small counts.
fn sizes(scheme: Scheme, table: &Table, sum: u64) -> Histogram {
    let mut h = Histogram::new(scheme);
    h.add(table, sum as f64);
    h
}

/// Nanoseconds in seconds.
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
