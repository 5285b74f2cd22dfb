//! A recording turned on its side: of each series what it did, window by window.

use crate::histogram_series::Spreads;
use crate::recording::{About, Line, Point, Recorded};
use crate::store::{Entry, Store};
use nfscope_model::family;
use nfscope_model::family::{Info, Kind};
use nfscope_model::{Family, Histogram, Scheme};
use serde::Serialize;

/// Longer recordings are cut into coarser windows while they are read: no figure needs more of them than this.
const MOST_WINDOWS: usize = 720;

/// Windows are told to the millisecond; what is less than this between two of them is none.
const ROUNDING_MS: f64 = 2.0;

/// What one series did in one window; `Nothing` also where it was not measured.
#[derive(Debug, Clone, Default, PartialEq)]
enum Cell {
    #[default]
    Nothing,
    Number(f64),
    Spread(Histogram),
}

impl Cell {
    /// What followed in the same window.
    fn add(&mut self, point: &Point) {
        match (&mut *self, point) {
            (Cell::Number(a), Point::Added(b)) => *a += b,
            (Cell::Spread(h), Point::Spread { counts, sum, .. }) => h.add(counts, *sum),
            (_, Point::Added(v) | Point::Stood(v)) => *self = Cell::Number(*v),
            (_, Point::Spread { .. }) => {
                *self = point.histogram().map_or(Cell::Nothing, Cell::Spread);
            }
        }
    }
}

/// A stretch of time that no window covers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gap {
    /// When it began, in milliseconds since 1970 (UTC).
    pub began_ms: i64,
    /// How long it is.
    pub seconds: f64,
}

/// A recording, by series.
#[derive(Debug)]
pub struct Columns {
    /// What is known of it.
    pub about: About,
    /// Windows that were recorded.
    pub windows: usize,
    /// Begin of each (coarser) window, in seconds since the recording's.
    pub begins: Vec<f64>,
    /// Length of each, in seconds.
    pub lengths: Vec<f64>,
    /// Where windows are missing.
    pub gaps: Vec<Gap>,
    /// Seconds of windows in which requests were not timed: they are left out.
    pub untimed: f64,
    lines: Vec<Line>,
    /// In the order of the lines.
    cells: Vec<Vec<Cell>>,
}

/// Where in a list the series with a number is. A store numbers them from zero on.
#[derive(Debug, Clone)]
pub struct Places(Vec<u32>);

const NOWHERE: u32 = u32::MAX;
/// More series than a window can have.
const MOST_SERIES: usize = 1 << 20;

impl Places {
    /// Of these.
    pub fn of(lines: &[Line]) -> Places {
        let mut places = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            let id = line.id as usize;
            if id < MOST_SERIES {
                places.resize(places.len().max(id + 1), NOWHERE);
                places[id] = at as u32;
            }
        }
        Places(places)
    }

    /// The place of one.
    pub fn get(&self, id: u32) -> Option<usize> {
        let at = self.0.get(id as usize).filter(|at| **at != NOWHERE);
        at.map(|at| *at as usize)
    }
}

impl Columns {
    /// Reads `count` windows one after the other.
    ///
    /// # Errors
    /// Those of the windows.
    pub fn gather(
        about: About,
        lines: Vec<Line>,
        count: usize,
        windows: impl IntoIterator<Item = anyhow::Result<Recorded>>,
    ) -> anyhow::Result<Columns> {
        let each = count.div_ceil(MOST_WINDOWS).max(1);
        let mut c = Columns {
            about,
            windows: 0,
            begins: Vec::new(),
            lengths: Vec::new(),
            gaps: Vec::new(),
            untimed: 0.0,
            cells: vec![Vec::new(); lines.len()],
            lines,
        };
        let places = Places::of(&c.lines);
        // Requests have series from the first moment in which they are timed.
        let timed: Vec<bool> = c
            .lines
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
            let is_timed = |(id, _): &(u32, Point)| places.get(*id).is_some_and(|at| timed[at]);
            if any_timed && !window.points.iter().any(is_timed) {
                c.untimed += length;
                continue;
            }
            if c.windows.is_multiple_of(each) {
                c.begins
                    .push((window.began_ms - c.about.began_ms) as f64 / 1e3);
                c.lengths.push(0.0);
            }
            let at = c.begins.len() - 1;
            c.lengths[at] += length;
            c.windows += 1;
            for (id, point) in &window.points {
                let Some(place) = places.get(*id) else {
                    continue;
                };
                let column = &mut c.cells[place];
                column.resize(at + 1, Cell::Nothing);
                column[at].add(point);
            }
        }
        for column in &mut c.cells {
            column.resize(c.begins.len(), Cell::Nothing);
        }
        Ok(c)
    }

    /// Seconds in all windows.
    pub fn seconds(&self) -> f64 {
        self.lengths.iter().sum()
    }

    /// Seconds between the first and the last window of which nothing is known.
    pub fn missing(&self) -> f64 {
        self.untimed + self.gaps.iter().map(|g| g.seconds).sum::<f64>()
    }

    /// Series of a family, by labels.
    fn of<const N: usize>(&self, family: &Family<N>) -> impl Iterator<Item = ([&str; N], &[Cell])> {
        self.lines
            .iter()
            .zip(&self.cells)
            .filter(|(l, _)| l.family == family.info.name)
            .filter_map(|(l, column)| {
                let labels: Vec<&str> = l.labels.iter().map(String::as_str).collect();
                Some((labels.try_into().ok()?, &column[..]))
            })
    }

    /// Label values of the series of a family.
    pub fn labels<const N: usize>(&self, family: &Family<N>) -> Vec<[&str; N]> {
        self.of(family).map(|(labels, _)| labels).collect()
    }

    /// A counter per window, or a gauge: the sum of the series that are wanted; `None` where there are none.
    pub fn numbers<const N: usize>(
        &self,
        family: &Family<N>,
        wanted: impl Fn([&str; N]) -> bool,
    ) -> Option<Vec<f64>> {
        let mut sum: Option<Vec<f64>> = None;
        for (_, column) in self.of(family).filter(|(labels, _)| wanted(*labels)) {
            let sum = sum.get_or_insert_with(|| vec![0.0; column.len()]);
            for (sum, cell) in sum.iter_mut().zip(column) {
                if let Cell::Number(v) = cell {
                    *sum += v;
                }
            }
        }
        sum
    }

    /// Of each window whether anything of a family was measured in it.
    pub fn measured(&self, family: &Info) -> Vec<bool> {
        let mut any = vec![false; self.lengths.len()];
        let of = self.lines.iter().zip(&self.cells);
        for (_, column) in of.filter(|(l, _)| l.family == family.name) {
            for (any, cell) in any.iter_mut().zip(column) {
                *any |= *cell != Cell::Nothing;
            }
        }
        any
    }

    /// A counter in all windows; 0 where it is not measured.
    pub fn total<const N: usize>(
        &self,
        family: &Family<N>,
        wanted: impl Fn([&str; N]) -> bool,
    ) -> f64 {
        self.numbers(family, wanted).map_or(0.0, |n| n.iter().sum())
    }

    /// What each series of a family of counters added up to in all windows.
    pub fn sums<const N: usize>(&self, family: &Family<N>) -> Vec<([&str; N], f64)> {
        let sum = |column: &[Cell]| {
            let numbers = column.iter().map(|cell| match cell {
                Cell::Number(v) => *v,
                Cell::Nothing | Cell::Spread(_) => 0.0,
            });
            numbers.sum()
        };
        self.of(family)
            .map(|(l, column)| (l, sum(column)))
            .collect()
    }

    /// What each series of a family of histograms holds in all windows.
    pub fn totals<const N: usize>(&self, family: &Family<N>) -> Vec<([&str; N], Histogram)> {
        let Kind::Histogram(scheme) = family.info.kind else {
            return Vec::new();
        };
        let total = |column: &[Cell]| {
            let mut all = Histogram::new(scheme);
            histograms(column, scheme).for_each(|(_, h)| all.merge(h));
            all
        };
        self.of(family)
            .map(|(l, column)| (l, total(column)))
            .collect()
    }

    /// Distributions per window of the series that are wanted; `None` where there are none.
    pub fn spreads<const N: usize>(
        &self,
        family: &Family<N>,
        wanted: impl Fn([&str; N]) -> bool,
    ) -> Option<Spreads> {
        let Kind::Histogram(scheme) = family.info.kind else {
            return None;
        };
        let mut dense: Option<Vec<Histogram>> = None;
        for (_, column) in self.of(family).filter(|(labels, _)| wanted(*labels)) {
            for (at, h) in histograms(column, scheme) {
                let all = dense.get_or_insert_with(|| vec![Histogram::new(scheme); column.len()]);
                all[at].merge(h);
            }
        }
        let dense = dense?;
        Some(Spreads {
            scheme,
            counts: dense.iter().map(|h| h.count() as f64).collect(),
            buckets: dense.iter().map(Histogram::sparse).collect(),
            sums: dense.iter().map(|h| h.sum).collect(),
        })
    }
}

/// The histograms of a column with their windows; without those of another version with other buckets.
fn histograms(column: &[Cell], scheme: Scheme) -> impl Iterator<Item = (usize, &Histogram)> {
    let all = column.iter().enumerate();
    all.filter_map(move |(at, cell)| match cell {
        Cell::Spread(h) if h.scheme == scheme => Some((at, h)),
        Cell::Nothing | Cell::Number(_) | Cell::Spread(_) => None,
    })
}

fn gap(end_ms: f64, next_ms: i64) -> Option<Gap> {
    let ms = next_ms as f64 - end_ms;
    (ms > ROUNDING_MS).then(|| Gap {
        began_ms: end_ms.round() as i64,
        seconds: ms / 1e3,
    })
}

/// A recording from the store, by series of some families.
///
/// # Errors
/// When the store cannot be read.
pub fn read(store: &Store, entry: &Entry, families: &[&Info]) -> anyhow::Result<Columns> {
    let mut lines = store.lines(entry)?;
    lines.retain(|l| families.iter().any(|f| f.name == l.family));
    let places = Places::of(&lines);
    let windows = store.windows(entry, |id| places.get(id).is_some());
    let count = usize::try_from(entry.windows).unwrap_or(usize::MAX);
    let windows = windows.map(|w| Ok(w?));
    Columns::gather(entry.about.clone(), lines, count, windows)
}
