//! A recording as time series: the values of each series, window by window.

use crate::histogram_series::HistogramSeries;
use crate::recording::{Metadata, RecordedWindow, Sample, SeriesKey};
use crate::store::{Entry, Store};
use nfscope_model::family;
use nfscope_model::family::{Info, Kind};
use nfscope_model::{Family, Histogram, Scheme};
use serde::Serialize;
use std::ops::Range;

/// Most windows: those of longer recordings are merged while they are read, because no statistic needs more.
const MAX_WINDOWS: usize = 720;

/// Longest interval between two windows that is no gap: start times have a resolution of one millisecond.
const ROUNDING_MS: f64 = 2.0;

const HOUR_MS: i64 = 3_600_000;

/// Merging of windows while they are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grid {
    /// Number of consecutive windows that are merged into one.
    Windows(usize),
    /// Windows that begin in the same hour are merged.
    Hours,
}

/// The value of one series in one window; `Nothing` if it was not measured.
#[derive(Debug, Clone, Default, PartialEq)]
enum Cell {
    #[default]
    Nothing,
    Number(f64),
    Histogram(Histogram),
}

impl Cell {
    /// Merges a sample of the same (coarser) window.
    fn add(&mut self, sample: &Sample) {
        match (&mut *self, sample) {
            (Cell::Number(a), Sample::Counter(b)) => *a += b,
            (
                Cell::Histogram(h),
                Sample::Histogram {
                    scheme,
                    counts,
                    sum,
                },
            ) if h.scheme == *scheme => h.add(counts, *sum),
            // Windows of another version of the agent have another bucket scheme. Both are converted to a common scheme, if there is one.
            (Cell::Histogram(h), Sample::Histogram { scheme, .. })
                if h.scheme.common(scheme).is_some() =>
            {
                sample.histogram().iter().for_each(|other| h.merge(other));
            }
            (_, Sample::Counter(v) | Sample::Gauge(v)) => *self = Cell::Number(*v),
            (_, Sample::Histogram { .. }) => {
                *self = sample.histogram().map_or(Cell::Nothing, Cell::Histogram);
            }
        }
    }
}

/// A period that no window covers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gap {
    /// Begin in milliseconds since 1970 (UTC).
    pub began_ms: i64,
    /// Length in seconds.
    pub seconds: f64,
}

/// A recording, by series.
#[derive(Debug)]
pub struct SeriesSet {
    /// Metadata of the recording.
    pub metadata: Metadata,
    /// Windows that were recorded.
    pub windows: usize,
    /// Start of each (coarser) window, in seconds since the start of the recording.
    pub begins: Vec<f64>,
    /// Length of each window, in seconds.
    pub lengths: Vec<f64>,
    /// Gaps in which windows are missing.
    pub gaps: Vec<Gap>,
    /// Seconds of windows in which requests were not timed; these windows are left out.
    pub untimed: f64,
    series: Vec<SeriesKey>,
    /// Cells in the order of `series`.
    cells: Vec<Vec<Cell>>,
}

/// Position of each series in a list, by its number. Stores number series from zero.
#[derive(Debug, Clone)]
pub struct SeriesIndex(Vec<u32>);

const NOWHERE: u32 = u32::MAX;
/// Limit for series numbers, against damaged files.
const MAX_SERIES: usize = 1 << 20;

impl SeriesIndex {
    /// The index of these series.
    pub fn of(series: &[SeriesKey]) -> SeriesIndex {
        let mut index = Vec::new();
        for (at, key) in series.iter().enumerate() {
            let id = key.id as usize;
            if id < MAX_SERIES {
                index.resize(index.len().max(id + 1), NOWHERE);
                index[id] = at as u32;
            }
        }
        SeriesIndex(index)
    }

    /// The position of a series.
    pub fn get(&self, id: u32) -> Option<usize> {
        let at = self.0.get(id as usize).filter(|at| **at != NOWHERE);
        at.map(|at| *at as usize)
    }
}

impl SeriesSet {
    /// Collects `count` windows, in order of time.
    ///
    /// # Errors
    /// When a window cannot be read.
    pub fn from_windows(
        metadata: Metadata,
        series: Vec<SeriesKey>,
        count: usize,
        windows: impl IntoIterator<Item = anyhow::Result<RecordedWindow>>,
    ) -> anyhow::Result<SeriesSet> {
        let grid = Grid::Windows(count.div_ceil(MAX_WINDOWS).max(1));
        SeriesSet::on_grid(metadata, series, grid, windows)
    }

    /// Collects windows in order of time, and merges them to a grid.
    ///
    /// # Errors
    /// When a window cannot be read.
    pub fn on_grid(
        metadata: Metadata,
        series: Vec<SeriesKey>,
        grid: Grid,
        windows: impl IntoIterator<Item = anyhow::Result<RecordedWindow>>,
    ) -> anyhow::Result<SeriesSet> {
        let mut hour = None;
        let mut c = SeriesSet {
            metadata,
            windows: 0,
            begins: Vec::new(),
            lengths: Vec::new(),
            gaps: Vec::new(),
            untimed: 0.0,
            cells: vec![Vec::new(); series.len()],
            series,
        };
        let index = SeriesIndex::of(&c.series);
        // Series of requests exist from the moment on in which requests are timed.
        let timed: Vec<bool> = c
            .series
            .iter()
            .map(|l| l.family == family::RPC_DURATION.info.name)
            .collect();
        let any_timed = timed.contains(&true);
        let mut last_end_ms: Option<f64> = None;
        for window in windows {
            let window = window?;
            let length = window.length.as_secs_f64();
            c.gaps
                .extend(last_end_ms.and_then(|end| gap(end, window.began_ms)));
            last_end_ms = Some(window.began_ms as f64 + length * 1e3);
            let is_timed = |(id, _): &(u32, Sample)| index.get(*id).is_some_and(|at| timed[at]);
            if any_timed && !window.samples.iter().any(is_timed) {
                c.untimed += length;
                continue;
            }
            let new = match grid {
                Grid::Windows(each) => c.windows.is_multiple_of(each),
                Grid::Hours => {
                    let this = Some(window.began_ms.div_euclid(HOUR_MS));
                    std::mem::replace(&mut hour, this) != this
                }
            };
            if new {
                c.begins
                    .push((window.began_ms - c.metadata.began_ms) as f64 / 1e3);
                c.lengths.push(0.0);
            }
            let at = c.begins.len() - 1;
            c.lengths[at] += length;
            c.windows += 1;
            for (id, sample) in &window.samples {
                let Some(at_series) = index.get(*id) else {
                    continue;
                };
                let cells = &mut c.cells[at_series];
                cells.resize(at + 1, Cell::Nothing);
                cells[at].add(sample);
            }
        }
        for cells in &mut c.cells {
            cells.resize(c.begins.len(), Cell::Nothing);
        }
        Ok(c)
    }

    /// Seconds in all windows.
    pub fn seconds(&self) -> f64 {
        self.lengths.iter().sum()
    }

    /// Returns true if both have the same values in the same windows.
    pub fn same_data(&self, other: &SeriesSet) -> bool {
        self.begins == other.begins && self.series == other.series && self.cells == other.cells
    }

    /// Seconds between the first and the last window that were not measured.
    pub fn missing(&self) -> f64 {
        self.untimed + self.gaps.iter().map(|g| g.seconds).sum::<f64>()
    }

    /// Series of a family, by labels.
    fn of<const N: usize>(&self, family: &Family<N>) -> impl Iterator<Item = ([&str; N], &[Cell])> {
        self.series
            .iter()
            .zip(&self.cells)
            .filter(|(l, _)| l.family == family.info.name)
            .filter_map(|(l, cells)| {
                let labels: Vec<&str> = l.labels.iter().map(String::as_str).collect();
                Some((labels.try_into().ok()?, &cells[..]))
            })
    }

    /// Label values of the series of a family.
    pub fn labels<const N: usize>(&self, family: &Family<N>) -> Vec<[&str; N]> {
        self.of(family).map(|(labels, _)| labels).collect()
    }

    /// A counter or gauge per window: the sum of the wanted series; `None` if there are none.
    pub fn numbers<const N: usize>(
        &self,
        family: &Family<N>,
        wanted: impl Fn([&str; N]) -> bool,
    ) -> Option<Vec<f64>> {
        let mut sum: Option<Vec<f64>> = None;
        for (_, cells) in self.of(family).filter(|(labels, _)| wanted(*labels)) {
            let sum = sum.get_or_insert_with(|| vec![0.0; cells.len()]);
            for (sum, cell) in sum.iter_mut().zip(cells) {
                if let Cell::Number(v) = cell {
                    *sum += v;
                }
            }
        }
        sum
    }

    /// True for each window in which any series of the family was measured.
    pub fn measured(&self, family: &Info) -> Vec<bool> {
        let mut any = vec![false; self.lengths.len()];
        let of = self.series.iter().zip(&self.cells);
        for (_, cells) in of.filter(|(l, _)| l.family == family.name) {
            for (any, cell) in any.iter_mut().zip(cells) {
                *any |= *cell != Cell::Nothing;
            }
        }
        any
    }

    /// Sum of a counter over all windows; 0 if it was not measured.
    pub fn total<const N: usize>(
        &self,
        family: &Family<N>,
        wanted: impl Fn([&str; N]) -> bool,
    ) -> f64 {
        self.numbers(family, wanted).map_or(0.0, |n| n.iter().sum())
    }

    /// Sum of each series of a family of counters over all windows.
    pub fn sums<const N: usize>(&self, family: &Family<N>) -> Vec<([&str; N], f64)> {
        let sum = |cells: &[Cell]| {
            let numbers = cells.iter().map(|cell| match cell {
                Cell::Number(v) => *v,
                Cell::Nothing | Cell::Histogram(_) => 0.0,
            });
            numbers.sum()
        };
        self.of(family).map(|(l, cells)| (l, sum(cells))).collect()
    }

    /// Histogram of each series of a family over all windows.
    pub fn totals<const N: usize>(&self, family: &Family<N>) -> Vec<([&str; N], Histogram)> {
        let Kind::Histogram(scheme) = family.info.kind else {
            return Vec::new();
        };
        let total = |cells: &[Cell]| {
            let mut all = Histogram::new(scheme);
            histograms_of(cells, scheme).for_each(|(_, h)| all.merge(h));
            all
        };
        self.of(family)
            .map(|(l, cells)| (l, total(cells)))
            .collect()
    }

    /// Histograms per window, merged over the wanted series; `None` if there are none.
    pub fn histograms<const N: usize>(
        &self,
        family: &Family<N>,
        wanted: impl Fn([&str; N]) -> bool,
    ) -> Option<HistogramSeries> {
        let Kind::Histogram(scheme) = family.info.kind else {
            return None;
        };
        let wanted = || self.of(family).filter(|(labels, _)| wanted(*labels));
        // All windows of one series get the scheme of the version that has the fewest edges.
        let each = wanted().flat_map(|(_, cells)| histograms_of(cells, scheme));
        let scheme = each
            .map(|(_, h)| h.scheme)
            .try_fold(scheme, |all, one| all.common(&one))?;
        let mut dense: Option<Vec<Histogram>> = None;
        for (_, cells) in wanted() {
            for (at, h) in histograms_of(cells, scheme) {
                let all = dense.get_or_insert_with(|| vec![Histogram::new(scheme); cells.len()]);
                all[at].merge(h);
            }
        }
        let dense = dense?;
        Some(HistogramSeries {
            scheme,
            counts: dense.iter().map(|h| h.count() as f64).collect(),
            buckets: dense.iter().map(Histogram::sparse).collect(),
            sums: dense.iter().map(|h| h.sum).collect(),
        })
    }
}

/// Histograms of a series with their windows; those without a common bucket scheme are skipped.
fn histograms_of(cells: &[Cell], scheme: Scheme) -> impl Iterator<Item = (usize, &Histogram)> {
    let all = cells.iter().enumerate();
    all.filter_map(move |(at, cell)| match cell {
        Cell::Histogram(h) if h.scheme.common(&scheme).is_some() => Some((at, h)),
        Cell::Nothing | Cell::Number(_) | Cell::Histogram(_) => None,
    })
}

fn gap(end_ms: f64, next_ms: i64) -> Option<Gap> {
    let ms = next_ms as f64 - end_ms;
    (ms > ROUNDING_MS).then(|| Gap {
        began_ms: end_ms.round() as i64,
        seconds: ms / 1e3,
    })
}

/// Reads the series of some families from the store.
///
/// # Errors
/// When the store cannot be read.
pub fn read(store: &Store, entry: &Entry, families: &[&Info]) -> anyhow::Result<SeriesSet> {
    let count = usize::try_from(entry.windows).unwrap_or(usize::MAX);
    let grid = Grid::Windows(count.div_ceil(MAX_WINDOWS).max(1));
    read_part(store, entry, families, None, Some(grid))
}

/// Reads the series of some families in a part of a recording (milliseconds since 1970), or in all of it; on this grid, or
/// on one of as many windows as statistics need.
///
/// # Errors
/// When the store cannot be read.
pub fn read_part(
    store: &Store,
    entry: &Entry,
    families: &[&Info],
    part: Option<Range<i64>>,
    grid: Option<Grid>,
) -> anyhow::Result<SeriesSet> {
    let mut series = store.series(entry)?;
    series.retain(|l| families.iter().any(|f| f.name == l.family));
    let index = SeriesIndex::of(&series);
    let windows = store.windows(entry, |id| index.get(id).is_some());
    let mut count = usize::try_from(entry.windows).unwrap_or(usize::MAX);
    if let Some(part) = &part {
        let interval = entry.metadata.interval.as_millis().max(1) as i64;
        let fit = (part.end.saturating_sub(part.start) / interval).max(0);
        count = count.min(usize::try_from(fit).unwrap_or(usize::MAX));
    }
    let inside = |w: &RecordedWindow| {
        let end = w.began_ms.saturating_add(w.length.as_millis() as i64);
        part.as_ref()
            .is_none_or(|p| p.start <= w.began_ms && end <= p.end)
    };
    let windows = windows.filter_map(|w| match w {
        Ok(w) if !inside(&w) => None,
        Ok(w) => Some(Ok(w)),
        Err(e) => Some(Err(e.into())),
    });
    let grid = grid.unwrap_or(Grid::Windows(count.div_ceil(MAX_WINDOWS).max(1)));
    SeriesSet::on_grid(entry.metadata.clone(), series, grid, windows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::time::Duration;

    /// Recording of WRITEs: a window for each of these bucket schemes, with a value on each side of 1 ms.
    fn recorded(schemes: &[Scheme]) -> SeriesSet {
        let metadata = Metadata {
            name: "old".into(),
            began_ms: 0,
            host: "nfs1".into(),
            kernel: None,
            agent: "0.1.0".into(),
            interval: Duration::from_secs(10),
            labels: BTreeMap::new(),
        };
        let series = vec![SeriesKey {
            id: 0,
            family: family::OP_DURATION.info.name.into(),
            labels: vec!["3".into(), "write".into()],
        }];
        let windows = schemes.iter().zip(0..).map(|(scheme, n)| {
            let mut h = Histogram::new(*scheme);
            for v in [0.000_99, 0.001_01] {
                h.counts[scheme.bucket(v)] += 1;
                h.sum += v;
            }
            Ok(RecordedWindow {
                began_ms: 10_000 * n,
                length: Duration::from_secs(10),
                samples: vec![(0, Sample::from(&nfscope_model::Sample::Histogram(h)))],
            })
        });
        SeriesSet::from_windows(metadata, series, schemes.len(), windows).unwrap()
    }

    #[test]
    fn recordings_of_every_version_are_read() {
        let (new, old) = (Scheme::TIME, Scheme::TIME.undivided());
        let whole = old.bucket(0.001) as u16;
        for (schemes, scheme) in [
            (vec![new; 3], new),
            (vec![old; 3], old),
            (vec![old, new], old),
            (vec![new, old], old),
            // Merged windows: each pair of neighbours, one with the older bucket scheme and one with the newer, becomes one window.
            ([old, new].repeat(MAX_WINDOWS), old),
            ([new, old].repeat(MAX_WINDOWS), old),
        ] {
            let c = recorded(&schemes);
            let all = c.histograms(&family::OP_DURATION, |_| true).unwrap();
            assert_eq!(all.scheme, scheme);
            assert_eq!(all.count(), 2.0 * schemes.len() as f64);
            let values = all.count() as u64;
            let halves = [(whole + 1, values / 2), (whole + 2, values / 2)];
            let expected = if scheme == old {
                vec![(whole, values)]
            } else {
                halves.to_vec()
            };
            assert_eq!(all.total().sparse(), expected);
            let totals = c.totals(&family::OP_DURATION);
            assert_eq!(totals[0].1.undivided().sparse(), [(whole, values)]);
        }
    }
}
