//! State of this host's page cache over a window, which shows whether more memory would save reads.
//!
//! The kernel counts pages of files that are read again soon after it dropped them for lack of room (mm/workingset.c, a refault). Files
//! that are read for the first time, or once in a long while, have none: memory would not have kept them.

use crate::ratio::part;

/// Page cache of a host without ZFS, whose own cache is not part of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PageCache {
    /// Bytes of memory.
    pub total: f64,
    /// Bytes of memory that nothing uses, at the end of the window.
    pub free: f64,
    /// Bytes of files that were read in the window and had been dropped not long before.
    pub read_again: f64,
}

impl PageCache {
    /// The part of these bytes read that had been in memory not long before, 0 to 1.
    pub fn again(&self, read: f64) -> f64 {
        part(self.read_again, read).min(1.0)
    }
}
