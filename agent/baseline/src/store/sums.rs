//! Checksums: of each window, of the names of its series, and of each recording as a whole.
//!
//! SQLite checks the structure of its pages and not their content: a flipped bit in a number gives another number. CRC-32 finds every such
//! bit and all but one of 4 thousand million other faults.

use crate::recording::Metadata;
use crc32fast::Hasher;

/// Hash of bytes in a fixed order; every field has its length before it.
#[derive(Default)]
struct Fields(Hasher);

impl Fields {
    fn text(mut self, text: Option<&str>) -> Self {
        match text {
            Some(text) => {
                self.0.update(&(text.len() as u64 + 1).to_le_bytes());
                self.0.update(text.as_bytes());
            }
            None => self.0.update(&0u64.to_le_bytes()),
        }
        self
    }

    fn number(mut self, n: i64) -> Self {
        self.0.update(&n.to_le_bytes());
        self
    }

    fn sum(self) -> u32 {
        self.0.finalize()
    }
}

/// The checksum of a window.
pub(super) fn window(seq: i64, began_ms: i64, length_ns: i64, data: &[u8]) -> u32 {
    let mut fields = Fields::default()
        .number(seq)
        .number(began_ms)
        .number(length_ns);
    fields.0.update(data);
    fields.sum()
}

/// The checksum of all windows up to this one.
pub(super) fn next_window(before: u32, window: u32) -> u32 {
    let fields = Fields::default();
    fields.number(before.into()).number(window.into()).sum()
}

/// The checksum of all series up to this one; in the order of their numbers.
pub(super) fn next_series(before: u32, id: u32, family: &str, labels: &str) -> u32 {
    Fields::default()
        .number(before.into())
        .number(id.into())
        .text(Some(family))
        .text(Some(labels))
        .sum()
}

/// Checksums and sizes of a recording's parts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Parts {
    /// Number of windows.
    pub windows: i64,
    /// Sum of their lengths.
    pub length_ns: i64,
    /// Checksum of all series.
    pub series: u32,
    /// Checksum of all windows.
    pub data: u32,
}

impl Parts {
    /// Parts with one more window.
    pub(super) fn with_window(self, length_ns: i64, window: u32) -> Parts {
        Parts {
            windows: self.windows + 1,
            length_ns: self.length_ns.saturating_add(length_ns),
            data: next_window(self.data, window),
            ..self
        }
    }
}

/// The row of a recording, as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub metadata: Metadata,
    pub interval_ns: i64,
    /// Labels as JSON.
    pub labels: String,
    pub recorder: Option<String>,
    pub ended: Option<String>,
    pub parts: Parts,
}

impl Row {
    /// Checksum of the row.
    pub(super) fn sum(&self) -> u32 {
        let m = &self.metadata;
        Fields::default()
            .text(Some(&m.name))
            .number(m.began_ms)
            .text(Some(&m.host))
            .text(m.kernel.as_deref())
            .text(Some(&m.agent))
            .number(self.interval_ns)
            .text(Some(&self.labels))
            .text(self.recorder.as_deref())
            .text(self.ended.as_deref())
            .number(self.parts.windows)
            .number(self.parts.length_ns)
            .number(self.parts.series.into())
            .number(self.parts.data.into())
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_counts() {
        let data = *b"a window";
        let sum = window(1, 2, 3, &data);
        for bit in 0..8 * data.len() {
            let mut other = data;
            other[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(window(1, 2, 3, &other), sum);
        }
        assert_ne!(window(2, 2, 3, &data), sum);
        // A letter that moves from one field to the next changes the checksum.
        assert_ne!(next_series(0, 1, "ab", "c"), next_series(0, 1, "a", "bc"));
        assert_ne!(
            next_window(next_window(0, 1), 2),
            next_window(next_window(0, 2), 1)
        );
    }
}
