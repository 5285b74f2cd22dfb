//! Decodes the samples of a window. Invalid input from any file is an error, never a panic or a large allocation.

use crate::codec::columns::{COUNTER, CodecError, Columns, FIRST_HISTOGRAM, GAUGE};
use crate::recording::Sample;
use flate2::read::DeflateDecoder;
use std::io::Read;

/// Limit for an uncompressed window; a busy server needs a thousandth of it.
const LARGEST: u64 = 64 << 20;
/// Limit for the series of one window.
const MOST_POINTS: usize = 1 << 20;

/// Limit for the values of one bucket in one window: sums of 65,536 windows fit into 64 bits. Even a server with a million times the load
/// of any present one stays below.
const MOST_VALUES: u64 = 1 << 48;

/// Decodes the samples of the series that `keep` selects.
///
/// # Errors
/// When the bytes are not a valid window.
pub fn decode(data: &[u8], keep: impl Fn(u32) -> bool) -> Result<Vec<(u32, Sample)>, CodecError> {
    let mut plain = Vec::with_capacity(4 * data.len());
    DeflateDecoder::new(data)
        .take(LARGEST)
        .read_to_end(&mut plain)
        .map_err(|_| CodecError("it does not inflate"))?;
    let c: Columns =
        postcard::from_bytes(&plain).map_err(|_| CodecError("not the columns of one"))?;
    let mut from = Cursor {
        numbers: c.numbers.iter(),
        exact: c.exact.iter(),
        buckets: c.buckets.iter(),
        counts: c.counts.iter(),
    };
    let mut samples = Vec::new();
    let mut id = 0u32;
    for run in &c.runs {
        id = id.checked_add(run.skipped).ok_or(SHORT)?;
        if run.len as usize > MOST_POINTS || run.len as usize > from.numbers.len() {
            return Err(SHORT);
        }
        for _ in 0..run.len {
            let v = from.number()?;
            let kept = keep(id);
            let sample = match run.kind {
                COUNTER => Sample::Counter(v),
                GAUGE => Sample::Gauge(v),
                kind => {
                    let scheme = *c
                        .schemes
                        .get(usize::from(kind - FIRST_HISTOGRAM))
                        .ok_or(CodecError("an unknown kind of series"))?;
                    Sample::Histogram {
                        scheme,
                        counts: from.histogram(scheme.len, kept)?,
                        sum: v,
                    }
                }
            };
            if kept {
                samples.push((id, sample));
            }
            id = id.checked_add(1).ok_or(SHORT)?;
        }
    }
    Ok(samples)
}

const SHORT: CodecError = CodecError("its columns do not fit each other");

struct Cursor<'a> {
    numbers: std::slice::Iter<'a, u64>,
    exact: std::slice::Iter<'a, f64>,
    buckets: std::slice::Iter<'a, u16>,
    counts: std::slice::Iter<'a, u64>,
}

impl Cursor<'_> {
    fn number(&mut self) -> Result<f64, CodecError> {
        let n = self.numbers.next().ok_or(SHORT)?;
        match n & 3 {
            0 => Ok((n >> 2) as f64),
            1 => Ok((n >> 2) as f64 / 1e9),
            2 => self.exact.next().copied().ok_or(SHORT),
            _ => Err(CodecError("a number of an unknown unit")),
        }
    }

    /// The buckets of the next histogram, which has `of` buckets; empty if they are not kept.
    fn histogram(&mut self, of: usize, kept: bool) -> Result<Vec<(u16, u64)>, CodecError> {
        let len = usize::from(*self.buckets.next().ok_or(SHORT)?);
        let (buckets, counts) = (self.buckets.as_slice(), self.counts.as_slice());
        if buckets.len() < len || counts.len() < len {
            return Err(SHORT);
        }
        let (buckets, more) = buckets.split_at(len);
        let (counts, rest) = counts.split_at(len);
        (self.buckets, self.counts) = (more.iter(), rest.iter());
        if !kept {
            return Ok(Vec::new());
        }
        let mut next = 0u16;
        let mut filled = Vec::with_capacity(len);
        for (skipped, n) in buckets.iter().zip(counts) {
            let i = next.checked_add(*skipped).ok_or(SHORT)?;
            if usize::from(i) >= of {
                return Err(CodecError("a bucket that there is not"));
            }
            if *n > MOST_VALUES {
                return Err(CodecError("more values than there can be"));
            }
            filled.push((i, *n));
            next = i.saturating_add(1);
        }
        Ok(filled)
    }
}
