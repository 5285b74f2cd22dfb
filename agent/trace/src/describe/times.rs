//! Arrivals over time: gaps, bursts, and the working set of each interval.

use super::sketch::{Distinct, Distribution, mix};
use crate::operation::Operation;
use serde::Serialize;

/// Lengths of the intervals in which arrivals are counted, in nanoseconds: 10 ms to 60 s.
const SCALES: [u64; 5] = [
    10_000_000,
    100_000_000,
    1_000_000_000,
    10_000_000_000,
    60_000_000_000,
];

/// Arrivals in intervals of one length.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Burst {
    /// Length of an interval, in seconds.
    pub seconds: f64,
    /// Index of dispersion: variance of the counts over their mean. Arrivals at random have 1; `None` with fewer than ten intervals.
    pub dispersion: Option<f64>,
    /// Most operations of an interval.
    pub most: u64,
}

#[derive(Clone, Default)]
struct Counter {
    interval: u64,
    count: u64,
    intervals: u64,
    sum: f64,
    squares: f64,
    most: u64,
}

impl Counter {
    fn add(&mut self, interval: u64) {
        // An arrival that comes too late belongs to an interval that is counted; it goes into the current one.
        if interval > self.interval {
            self.close();
            self.intervals += interval - self.interval - 1;
            self.interval = interval;
        }
        self.count += 1;
    }

    fn close(&mut self) {
        let count = self.count as f64;
        self.intervals += 1;
        self.sum += count;
        self.squares += count * count;
        self.most = self.most.max(self.count);
        self.count = 0;
    }

    /// The last interval is not whole, and is left out.
    fn finish(&self, scale: u64) -> Burst {
        let n = self.intervals as f64;
        let mean = self.sum / n;
        let variance = (self.squares - n * mean * mean) / (n - 1.0);
        let is_known = self.intervals >= 10 && mean > 0.0;
        Burst {
            seconds: scale as f64 / 1e9,
            dispersion: is_known.then(|| variance.max(0.0) / mean),
            most: self.most.max(self.count),
        }
    }
}

/// Most intervals of the course; then each two become one.
const COURSE: usize = 128;
/// Bytes of a block of the working set.
pub const BLOCK: u64 = 64 << 10;
/// Blocks of one operation that are counted; longer ones than 64 MiB do not exist in the protocol's practice.
const MOST_BLOCKS: u64 = 1024;

/// Interval of the course.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Interval {
    /// Operations.
    pub operations: u64,
    /// Distinct files, to 2.3 %.
    pub files: f64,
    /// Distinct bytes that were read or written, in blocks of 64 KiB, to 2.3 %.
    pub bytes: f64,
    /// Distinct bytes from the beginning of the trace up to the end of this interval.
    pub bytes_so_far: f64,
}

/// Working set over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Course {
    /// Seconds of an interval.
    pub seconds: f64,
    /// Intervals in order.
    pub intervals: Vec<Interval>,
    /// Distinct files of the whole trace, to 2.3 %.
    pub files: f64,
    /// Distinct bytes of the whole trace that were read or written, in blocks of 64 KiB, to 2.3 %.
    pub bytes: f64,
}

#[derive(Clone, Default)]
struct Part {
    operations: u64,
    files: Distinct,
    blocks: Distinct,
}

/// Observes arrivals.
pub struct Times {
    last: Option<u64>,
    gaps: Distribution,
    counters: [Counter; SCALES.len()],
    parts: Vec<Part>,
    /// Length of a part, in nanoseconds.
    each: u64,
}

impl Default for Times {
    fn default() -> Times {
        Times {
            last: None,
            gaps: Distribution::default(),
            counters: Default::default(),
            parts: Vec::new(),
            each: 1_000_000_000,
        }
    }
}

impl Times {
    /// Adds an operation.
    pub fn add(&mut self, o: &Operation) {
        if let Some(last) = self.last {
            self.gaps.add(o.arrival.saturating_sub(last));
        }
        self.last = Some(self.last.unwrap_or(0).max(o.arrival));
        for (counter, scale) in self.counters.iter_mut().zip(SCALES) {
            counter.add(o.arrival / scale);
        }
        while o.arrival / self.each >= COURSE as u64 {
            self.halve();
        }
        let at = (o.arrival / self.each) as usize;
        while self.parts.len() <= at {
            self.parts.push(Part::default());
        }
        let part = &mut self.parts[at];
        part.operations += 1;
        let Some(file) = o.file else { return };
        let hash = mix(file);
        part.files.add(hash);
        if !o.op.is_read() && !o.op.is_write() || !o.succeeded() {
            return;
        }
        if let Some((offset, end)) = o.offset.zip(o.end())
            && end > offset
        {
            let (first, last) = (offset / BLOCK, (end - 1) / BLOCK);
            for block in first..=last.min(first + MOST_BLOCKS) {
                part.blocks.add(mix(hash ^ mix(block)));
            }
        }
    }

    fn halve(&mut self) {
        self.each *= 2;
        let old = std::mem::take(&mut self.parts);
        let mut old = old.into_iter();
        while let Some(mut part) = old.next() {
            if let Some(second) = old.next() {
                part.operations += second.operations;
                part.files.merge(&second.files);
                part.blocks.merge(&second.blocks);
            }
            self.parts.push(part);
        }
    }

    /// Gaps between arrivals in nanoseconds, bursts, and the course.
    pub fn finish(self) -> (Distribution, Vec<Burst>, Course) {
        let bursts = self.counters.iter().zip(SCALES);
        let bursts = bursts.map(|(c, scale)| c.finish(scale)).collect();
        let (mut files, mut blocks) = (Distinct::default(), Distinct::default());
        let mut intervals = Vec::new();
        for part in &self.parts {
            files.merge(&part.files);
            blocks.merge(&part.blocks);
            intervals.push(Interval {
                operations: part.operations,
                files: part.files.count(),
                bytes: part.blocks.count() * BLOCK as f64,
                bytes_so_far: blocks.count() * BLOCK as f64,
            });
        }
        let course = Course {
            seconds: self.each as f64 / 1e9,
            intervals,
            files: files.count(),
            bytes: blocks.count() * BLOCK as f64,
        };
        (self.gaps, bursts, course)
    }
}
