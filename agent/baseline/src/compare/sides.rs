//! Recordings that are compared with each other.

use crate::series::SeriesSet;

/// Recordings on both sides.
#[derive(Debug, Clone, Copy)]
pub struct Sides<'a> {
    /// Recordings before; at least one.
    pub before: &'a [SeriesSet],
    /// Recordings after; at least one.
    pub after: &'a [SeriesSet],
    /// Groups of recordings that are not compared. Nothing was changed within each group, so they show how much recordings of an unchanged
    /// server differ.
    pub earlier: &'a [Vec<SeriesSet>],
}

impl Sides<'_> {
    /// Every recording: before, after, then the earlier ones.
    pub(super) fn all(&self) -> Vec<&SeriesSet> {
        let earlier = self.earlier.iter().flatten();
        self.before
            .iter()
            .chain(self.after)
            .chain(earlier)
            .collect()
    }

    /// Recordings that are compared.
    pub(super) fn compared(&self) -> Vec<&SeriesSet> {
        self.before.iter().chain(self.after).collect()
    }

    /// Returns true if recordings show the variance between recordings.
    pub(super) fn has_replicates(&self) -> bool {
        let more = |group: &[SeriesSet]| group.len() > 1;
        more(self.before) || more(self.after) || self.earlier.iter().any(|g| more(g))
    }
}
