//! A table that fits its screen: columns shrink, then are left out, the least important ones first.

use crate::bar::bar;
use crate::spans::{Line, Tone};
use crate::sparkline::{self, marks};
use crate::terminal_style::TerminalStyle;
use crate::view::Phases;
use std::borrow::Cow;
use std::cmp::Ordering;

/// Widest bar: more cells would not show more.
const WIDEST_BAR: usize = 40;
/// Longest name of a client, an export or a device. Longer names are cut, with a mark.
const LONGEST: usize = 40;
/// A width that cuts nothing.
pub const WIDE: usize = usize::MAX;
/// Narrowest column of history, and the gap before it.
const LEAST_HISTORY: usize = 12;
const HISTORY_GAP: usize = 2;
/// Text in place of a bar of unknown phases.
const NO_PHASES: &str = "no phases";

/// Sort keys of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// Time, which also orders by share of it.
    Time,
    /// Rate per second.
    Rate,
    /// Median.
    P50,
    /// 99th percentile.
    P99,
    /// Maximum.
    Max,
    /// Errors per second.
    Errors,
    /// Name, then version.
    Name,
}

impl Key {
    /// Keys in the order in which the user steps through them.
    pub const ALL: [Key; 7] = [
        Key::Time,
        Key::Rate,
        Key::P50,
        Key::P99,
        Key::Max,
        Key::Errors,
        Key::Name,
    ];
}

/// A column of a table.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) head: &'static str,
    pub(super) key: Option<Key>,
    /// True for names: they are on the left and may be cut. Numbers are on the right and may not.
    pub(super) left: bool,
    pub(super) min: usize,
    /// Importance: columns with the lowest rank are left out first.
    pub(super) rank: u8,
}

#[derive(Debug)]
pub(super) enum Cell {
    Text(Tone, String),
    /// An unknown or missing value.
    None,
    Bar(Option<Phases>),
}

/// Values by which a row is sorted and found.
#[derive(Debug, Default)]
pub(super) struct Sort {
    pub(super) time: Option<f64>,
    pub(super) rate: Option<f64>,
    pub(super) p50: Option<f64>,
    pub(super) p99: Option<f64>,
    pub(super) max: Option<f64>,
    pub(super) errors: Option<f64>,
    pub(super) name: String,
    /// Name of the address, by which the row is found, too.
    pub(super) called: String,
    pub(super) version: Option<String>,
}

impl Sort {
    pub(super) fn value(&self, key: Key) -> Option<f64> {
        match key {
            Key::Time => self.time,
            Key::Rate => self.rate,
            Key::P50 => self.p50,
            Key::P99 => self.p99,
            Key::Max => self.max,
            Key::Errors => self.errors,
            Key::Name => None,
        }
    }
}

#[derive(Debug)]
pub(super) struct Row {
    pub(super) sort: Sort,
    pub(super) cells: Vec<Cell>,
}

#[derive(Debug)]
pub(super) struct Table {
    pub(super) columns: Cow<'static, [Column]>,
    pub(super) rows: Vec<Row>,
    /// Text in place of rows where there are none.
    pub(super) empty: String,
    /// Values of the sort key in the last windows, for each row; `None` where no windows are remembered.
    pub(super) history: Option<(Key, Vec<Vec<Option<f64>>>)>,
}

/// Filter and order of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// Order; [`Key::Name`] rises, all others fall.
    pub key: Key,
    /// Reverses the order.
    pub reverse: bool,
    /// NFS version of the rows to show, in tables that have versions; `None` shows all.
    pub version: Option<String>,
    /// Text that the names of the rows to show contain, in any case.
    pub text: String,
}

impl Default for Selection {
    fn default() -> Self {
        Selection {
            key: Key::Time,
            reverse: false,
            version: None,
            text: String::new(),
        }
    }
}

impl Selection {
    fn has(&self, row: &Sort) -> bool {
        let version = match (&self.version, &row.version) {
            (Some(want), Some(have)) => want == have,
            _ => true,
        };
        let text = self.text.to_lowercase();
        let has = |name: &str| name.to_lowercase().contains(&text);
        version && (has(&row.name) || has(&row.called))
    }

    fn compare(&self, a: &Sort, b: &Sort) -> Ordering {
        let way = |o: Ordering| if self.reverse { o.reverse() } else { o };
        let name = || a.name.cmp(&b.name).then(a.version.cmp(&b.version));
        match (a.value(self.key), b.value(self.key)) {
            // Unknown values are last in both directions.
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) => way(b.total_cmp(&a)).then_with(name),
            (None, None) if self.key == Key::Name => way(name()),
            (None, None) => Ordering::Equal,
        }
    }
}

impl Table {
    /// Name that distinguishes the table from others: the heading of its names.
    pub(super) fn name(&self) -> &'static str {
        let named = |c: &&Column| c.key == Some(Key::Name);
        self.columns.iter().find(named).map_or("", |c| c.head)
    }

    /// Headings of the columns by which the table can be sorted, from left to right.
    pub(super) fn keys(&self) -> Vec<(&'static str, Key)> {
        let keys = self.columns.iter().filter_map(|c| Some((c.head, c.key?)));
        keys.filter(|(head, _)| !head.is_empty()).collect()
    }

    /// Returns true for tables with rates: only counts have a history.
    pub(super) fn has_history(&self) -> bool {
        self.columns.iter().any(|c| c.key == Some(Key::Rate))
    }

    /// Heading of the column of history, and its values.
    fn history(&self) -> Option<(String, &[Vec<Option<f64>>])> {
        let (key, values) = self.history.as_ref()?;
        let column = self.columns.iter().find(|c| c.key == Some(*key));
        let head = match key {
            Key::Time => "TIME",
            _ => column.map_or("", |c| c.head),
        };
        Some((format!("{head} HISTORY").trim_start().to_owned(), values))
    }

    /// Keeps the selected rows and sorts them. Rows without the sort key keep their order.
    pub(super) fn select(&mut self, selection: &Selection) {
        let before = self.rows.len();
        self.rows.retain(|r| selection.has(&r.sort));
        if before > 0 && self.rows.is_empty() {
            self.empty = format!("none of {before} rows passes the filter");
        }
        self.rows
            .sort_by(|a, b| selection.compare(&a.sort, &b.sort));
    }

    /// Heading and rows, no wider than `width`. The heading shows the order where the user can choose it.
    pub(super) fn lines(
        &self,
        width: usize,
        order: Option<&Selection>,
        style: TerminalStyle,
    ) -> (Line, Vec<Line>) {
        let heads: Vec<String> = self.columns.iter().map(|c| head(c, order)).collect();
        let whole = |widths: &[Option<usize>]| widths.iter().all(Option::is_some);
        // History is shown only on screens that have room beside everything else.
        let past = self.history().and_then(|(head, values)| {
            let least = head.len().max(LEAST_HISTORY) + HISTORY_GAP;
            let widths = self.widths(&heads, width.checked_sub(least)?, 2);
            let left = width - used(&widths, 2) - HISTORY_GAP;
            let fits = whole(&widths) && left + HISTORY_GAP >= least;
            let marks = values.iter().map(Vec::len).max().unwrap_or(0);
            let most = marks.clamp(least - HISTORY_GAP, sparkline::MOST);
            fits.then(|| (head, values, widths, left.min(most)))
        });
        // The gaps are wide where that costs no column.
        let (gap, widths) = match &past {
            Some((_, _, widths, _)) => (2, widths.clone()),
            None => match self.widths(&heads, width, 2) {
                widths if whole(&widths) => (2, widths),
                _ => (1, self.widths(&heads, width, 1)),
            },
        };
        let line = |cell: &dyn Fn(usize) -> Line, last: Option<Line>| {
            let mut line = Line::default();
            for (i, width) in widths.iter().enumerate() {
                let Some(width) = *width else { continue };
                let gap = if line.width() > 0 { gap } else { 0 };
                line.push(Tone::Plain, " ".repeat(gap));
                let cell = cell(i).cut(width);
                let pad = " ".repeat(width - cell.width());
                if !self.columns[i].left {
                    line.push(Tone::Plain, pad);
                    line.0.extend(cell.0);
                } else {
                    line.0.extend(cell.0);
                    line.push(Tone::Plain, pad);
                }
            }
            if let Some(last) = last {
                line.push(Tone::Plain, " ".repeat(HISTORY_GAP));
                line.0.extend(last.0);
            }
            line.cut(width)
        };
        let head = line(
            &|i| Line::of(Tone::Head, heads[i].clone()),
            (past.as_ref())
                .map(|(head, _, _, width)| Line::of(Tone::Head, format!("{head:>width$}"))),
        );
        let rows = self.rows.iter().enumerate().map(|(row, cells)| {
            let last = past.as_ref().and_then(|(_, values, _, width)| {
                let marks = marks(values.get(row)?, *width, style.utf8);
                Some(Line::of(Tone::Plain, format!("{marks:>width$}")))
            });
            let cell = |i: usize| match &cells.cells[i] {
                Cell::Text(tone, text) => Line::of(*tone, text.clone()),
                Cell::None => Line::of(Tone::Dim, "-"),
                Cell::Bar(None) => Line::of(Tone::Dim, NO_PHASES),
                Cell::Bar(Some(phases)) => bar(phases, widths[i].unwrap_or(0), style),
            };
            line(&cell, last)
        });
        let mut rows: Vec<_> = rows.collect();
        if rows.is_empty() {
            rows.push(Line::of(Tone::Dim, format!("  {}", self.empty)).cut(width));
        }
        (head, rows)
    }

    /// Width of each column; `None` for a column that is left out.
    fn widths(&self, heads: &[String], total: usize, gap: usize) -> Vec<Option<usize>> {
        let natural = |i: usize| {
            let cells = self.rows.iter().map(|r| match &r.cells[i] {
                Cell::Text(_, text) if total < WIDE => text.chars().count().min(LONGEST),
                Cell::Text(_, text) => text.chars().count(),
                Cell::None => 1,
                Cell::Bar(_) => NO_PHASES.len(),
            });
            let head = heads[i].chars().count();
            cells.max().unwrap_or(0).max(head).max(self.columns[i].min)
        };
        let mut out: Vec<Option<usize>> = (0..heads.len()).map(|i| Some(natural(i))).collect();
        let used = |out: &[Option<usize>]| used(out, gap);
        for (i, c) in self.columns.iter().enumerate().filter(|(_, c)| c.left) {
            let over = used(&out).saturating_sub(total);
            let least = c.min.max(heads[i].chars().count());
            out[i] = out[i].map(|w| w.saturating_sub(over).max(least.min(w)));
        }
        while used(&out) > total {
            let kept = (0..out.len()).filter(|&i| out[i].is_some());
            match kept.min_by_key(|&i| self.columns[i].rank) {
                Some(i) if self.columns[i].rank < NEVER => out[i] = None,
                _ => break,
            }
        }
        // Names grow into the room of the columns left out, then the bar grows.
        for (i, c) in self.columns.iter().enumerate().filter(|(_, c)| c.left) {
            let room = total.saturating_sub(used(&out));
            let want = natural(i);
            if c.head != BAR {
                out[i] = out[i].map(|w| want.min(w + room));
            }
        }
        let room = total.saturating_sub(used(&out));
        if let Some(i) = self.columns.iter().position(|c| c.head == BAR) {
            out[i] = out[i].map(|w| (w + room).min(WIDEST_BAR));
        }
        out
    }
}

/// Total width of the columns with gaps between them.
fn used(widths: &[Option<usize>], gap: usize) -> usize {
    let widths = widths.iter().flatten();
    widths.clone().sum::<usize>() + gap * widths.count().saturating_sub(1)
}

/// Rank of a column that is never left out.
pub(super) const NEVER: u8 = u8::MAX;
/// Heading of the column with the bar.
pub(super) const BAR: &str = "PHASES";

fn head(column: &Column, order: Option<&Selection>) -> String {
    let order = order.filter(|o| column.key == Some(o.key));
    let arrow = order.map_or("", |o| {
        let falls = (o.key == Key::Name) == o.reverse;
        if falls { "▼" } else { "▲" }
    });
    format!("{}{arrow}", column.head)
}

/// A cell with a name.
pub(super) fn name(text: &str) -> Cell {
    Cell::Text(Tone::Plain, text.to_owned())
}
