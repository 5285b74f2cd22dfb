//! Encodes the samples of a window.

use crate::codec::columns::{COUNTER, CodecError, Columns, FIRST_HISTOGRAM, GAUGE, Run, Unit};
use crate::recording::Sample;
use flate2::Compression;
use flate2::read::DeflateEncoder;
use nfscope_model::Scheme;
use std::io::Read;

/// Up to this limit every integer has an exact float.
const WHOLE: f64 = 9_007_199_254_740_992.0;

/// Encodes samples in the order of their series numbers; the flag says whether the value is in seconds.
///
/// # Errors
/// When series or buckets are not in order.
pub fn encode<'a>(
    samples: impl IntoIterator<Item = (u32, bool, &'a Sample)>,
) -> Result<Vec<u8>, CodecError> {
    let mut c = Columns::default();
    let mut next = 0;
    for (id, seconds, sample) in samples {
        let kind = match sample {
            Sample::Counter(v) => {
                c.number(*v, seconds);
                COUNTER
            }
            Sample::Gauge(v) => {
                c.number(*v, seconds);
                GAUGE
            }
            Sample::Histogram {
                scheme,
                counts,
                sum,
            } => {
                c.number(*sum, seconds);
                c.histogram(counts)?;
                c.scheme(*scheme)?
            }
        };
        let skipped = id
            .checked_sub(next)
            .ok_or(CodecError("series out of order"))?;
        match c.runs.last_mut() {
            Some(run) if skipped == 0 && run.kind == kind => run.len += 1,
            _ => c.runs.push(Run {
                skipped,
                len: 1,
                kind,
            }),
        }
        next = id.checked_add(1).ok_or(CodecError("too many series"))?;
    }
    let plain = postcard::to_stdvec(&c).map_err(|_| CodecError("it does not fit"))?;
    let mut data = Vec::new();
    DeflateEncoder::new(&plain[..], Compression::default())
        .read_to_end(&mut data)
        .map_err(|_| CodecError("it does not deflate"))?;
    Ok(data)
}

impl Columns {
    fn number(&mut self, v: f64, seconds: bool) {
        let ns = (v * 1e9).round();
        let (n, unit) = match v {
            _ if (0.0..WHOLE).contains(&v) && v.fract() == 0.0 => (v as u64, Unit::One),
            _ if (0.0..WHOLE).contains(&ns) && (seconds || ns / 1e9 == v) => {
                (ns as u64, Unit::Nanosecond)
            }
            _ => {
                self.exact.push(v);
                (0, Unit::Exact)
            }
        };
        self.numbers.push(n << 2 | unit as u64);
    }

    fn histogram(&mut self, counts: &[(u16, u64)]) -> Result<(), CodecError> {
        let len = u16::try_from(counts.len()).map_err(|_| CodecError("too many buckets"))?;
        self.buckets.push(len);
        let mut next = 0u16;
        for (i, n) in counts {
            let skipped = i
                .checked_sub(next)
                .ok_or(CodecError("buckets out of order"))?;
            self.buckets.push(skipped);
            self.counts.push(*n);
            next = i.saturating_add(1);
        }
        Ok(())
    }

    fn scheme(&mut self, scheme: Scheme) -> Result<u8, CodecError> {
        let at = self.schemes.iter().position(|s| *s == scheme);
        let at = at.unwrap_or_else(|| {
            self.schemes.push(scheme);
            self.schemes.len() - 1
        });
        u8::try_from(at + usize::from(FIRST_HISTOGRAM))
            .map_err(|_| CodecError("too many bucket schemes"))
    }
}
