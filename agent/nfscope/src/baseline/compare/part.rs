//! Recording of a comparison, or a part of one.

use nfscope_baseline::compare::FAMILIES;
use nfscope_baseline::series::{self, Grid, SeriesSet};
use nfscope_baseline::slice::Slice;
use nfscope_baseline::store::{Entry, Store};

/// Recording, or a part of it.
pub(super) struct Part {
    pub(super) entry: Entry,
    pub(super) slice: Option<Slice>,
}

impl Part {
    pub(super) fn read(&self, store: &Store, grid: Option<Grid>) -> anyhow::Result<SeriesSet> {
        let part = self.slice.map(|s| s.of(self.entry.metadata.began_ms));
        series::read_part(store, &self.entry, FAMILIES, part, grid)
    }
}
