//! The recordings that a comparison holds against each other.

use crate::series::SeriesSet;

/// Recordings on both sides.
#[derive(Debug, Clone, Copy)]
pub struct Sides<'a> {
    /// Before; at least one.
    pub before: &'a [SeriesSet],
    /// After; at least one.
    pub after: &'a [SeriesSet],
    /// Groups of recordings that are not compared. Within each nothing was changed, so that they tell how much recordings of an
    /// unchanged server differ.
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

    /// Those that are compared.
    pub(super) fn compared(&self) -> Vec<&SeriesSet> {
        self.before.iter().chain(self.after).collect()
    }

    /// True if the variance between recordings is known from recordings.
    pub(super) fn has_replicates(&self) -> bool {
        let more = |group: &[SeriesSet]| group.len() > 1;
        more(self.before) || more(self.after) || self.earlier.iter().any(|g| more(g))
    }
}
