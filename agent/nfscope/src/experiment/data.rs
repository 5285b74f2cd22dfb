//! Checks of a run's data: it has enough operations. Also the labels of numbers that its load printed.

use anyhow::ensure;
use nfscope_baseline::series;
use nfscope_baseline::store::{Entry, Store};
use nfscope_model::family as f;
use nfscope_text::units::many;
use std::collections::BTreeMap;

/// Prefix of labels of a baseline that hold numbers of the load.
pub(super) const LOAD: &str = "load.";

/// Operations of a recording by name, the most frequent first.
///
/// # Errors
/// When the store cannot be read.
pub(super) fn operations(store: &Store, entry: &Entry) -> anyhow::Result<Vec<(String, f64)>> {
    let c = series::read(store, entry, &[&f::OP_DURATION.info])?;
    let mut all: BTreeMap<String, f64> = BTreeMap::new();
    for ([_, op], h) in c.totals(&f::OP_DURATION) {
        *all.entry(op.to_owned()).or_default() += h.count() as f64;
    }
    let mut all: Vec<_> = all.into_iter().filter(|(_, n)| *n > 0.0).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    Ok(all)
}

/// Checks that a recording has at least `least` operations. A run with fewer says nothing about its levels.
///
/// # Errors
/// When the recording has fewer, or the store cannot be read.
pub(super) fn enough(store: &Store, entry: &Entry, least: u64) -> anyhow::Result<()> {
    let all: f64 = operations(store, entry)?.iter().map(|(_, n)| n).sum();
    ensure!(
        all >= least as f64,
        "{} in {}, and a run needs {least}; fix: see that the load reaches this server, and that its agent times operations",
        many(all, "operation"),
        nfscope_text::units::length(entry.length)
    );
    Ok(())
}
