//! Points from bytes, whoever wrote them: wrong ones are an error, never a panic or a large allocation.

use crate::codec::{ADDED, Columns, Garbled, SPREAD, STOOD};
use crate::recording::Point;
use flate2::read::DeflateDecoder;
use std::io::Read;

/// Longest window in postcard; a busy server's is a thousandth of it.
const LARGEST: u64 = 64 << 20;
/// Most series in one window.
const MOST_POINTS: usize = 1 << 20;

/// Decodes the points of series that `keep` wants.
///
/// # Errors
/// When the bytes are not a window.
pub fn decode(data: &[u8], keep: impl Fn(u32) -> bool) -> Result<Vec<(u32, Point)>, Garbled> {
    let mut plain = Vec::with_capacity(4 * data.len());
    DeflateDecoder::new(data)
        .take(LARGEST)
        .read_to_end(&mut plain)
        .map_err(|_| Garbled("it does not inflate"))?;
    let c: Columns = postcard::from_bytes(&plain).map_err(|_| Garbled("not the columns of one"))?;
    let mut from = Cursor {
        numbers: c.numbers.iter(),
        exact: c.exact.iter(),
        buckets: c.buckets.iter(),
        counts: c.counts.iter(),
    };
    let mut points = Vec::new();
    let mut id = 0u32;
    for run in &c.runs {
        id = id.checked_add(run.skipped).ok_or(SHORT)?;
        if run.len as usize > MOST_POINTS || run.len as usize > from.numbers.len() {
            return Err(SHORT);
        }
        for _ in 0..run.len {
            let v = from.number()?;
            let kept = keep(id);
            let point = match run.kind {
                ADDED => Point::Added(v),
                STOOD => Point::Stood(v),
                kind => {
                    let scheme = *c
                        .schemes
                        .get(usize::from(kind - SPREAD))
                        .ok_or(Garbled("an unknown kind of series"))?;
                    Point::Spread {
                        scheme,
                        counts: from.spread(scheme.len, kept)?,
                        sum: v,
                    }
                }
            };
            if kept {
                points.push((id, point));
            }
            id = id.checked_add(1).ok_or(SHORT)?;
        }
    }
    Ok(points)
}

const SHORT: Garbled = Garbled("its columns do not fit each other");

struct Cursor<'a> {
    numbers: std::slice::Iter<'a, u64>,
    exact: std::slice::Iter<'a, f64>,
    buckets: std::slice::Iter<'a, u16>,
    counts: std::slice::Iter<'a, u64>,
}

impl Cursor<'_> {
    fn number(&mut self) -> Result<f64, Garbled> {
        let n = self.numbers.next().ok_or(SHORT)?;
        match n & 3 {
            0 => Ok((n >> 2) as f64),
            1 => Ok((n >> 2) as f64 / 1e9),
            2 => self.exact.next().copied().ok_or(SHORT),
            _ => Err(Garbled("a number of an unknown unit")),
        }
    }

    /// The next histogram's buckets, of so many; none where nobody wants them.
    fn spread(&mut self, of: usize, kept: bool) -> Result<Vec<(u16, u64)>, Garbled> {
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
        let mut spread = Vec::with_capacity(len);
        for (skipped, n) in buckets.iter().zip(counts) {
            let i = next.checked_add(*skipped).ok_or(SHORT)?;
            if usize::from(i) >= of {
                return Err(Garbled("a bucket that there is not"));
            }
            spread.push((i, *n));
            next = i.saturating_add(1);
        }
        Ok(spread)
    }
}
