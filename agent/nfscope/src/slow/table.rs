//! Table of slow operations. Pure functions from values to text.

use nfscope_model::{OpPhases, SlowOp};
use nfscope_text::console::steers;
use nfscope_text::timestamp;
use nfscope_text::units;
use std::time::Duration;

/// Format of the lines.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// Columns of the screen; `usize::MAX` for a pipe or a file.
    pub width: usize,
    /// Most characters of a cell if `width` is unlimited.
    pub longest: usize,
    /// ANSI colours.
    pub color: bool,
    /// Offset of local time from UTC, in seconds.
    pub offset: i64,
}

/// Column of the table.
struct Column {
    head: &'static str,
    /// Minimum width. A longer cell widens the column if the screen has room for the whole cell.
    width: usize,
    /// True for numbers, which are aligned to the right.
    right: bool,
    /// Priority on a narrow screen. Columns with a higher rank are dropped first.
    rank: usize,
    /// True if a cell that is cut keeps its end.
    keeps_end: bool,
}

const fn text(head: &'static str, width: usize, rank: usize) -> Column {
    Column {
        head,
        width,
        right: false,
        rank,
        keeps_end: false,
    }
}

const fn number(head: &'static str, width: usize, rank: usize) -> Column {
    Column {
        right: true,
        ..text(head, width, rank)
    }
}

const COLUMNS: [Column; 17] = [
    text("TIME", 12, 3),
    Column {
        keeps_end: true,
        ..text("CLIENT", 15, 2)
    },
    text("VER", 3, 12),
    text("OP", 8, 1),
    number("BYTES", 7, 11),
    text("SYNC", 4, 13),
    text("STATUS", 7, 10),
    number("TOTAL", 6, 0),
    number("CPU", 6, 7),
    number("RUNQ", 6, 8),
    number("LOG", 6, 4),
    number("DISK", 6, 5),
    number("LOCK", 6, 6),
    number("RARE", 6, 15),
    number("INODE", 10, 14),
    text("XID", 10, 16),
    Column {
        keeps_end: true,
        ..text("EXPORT", 8, 9)
    },
];

/// Indexes of the phase columns.
const PHASES: std::ops::Range<usize> = 8..14;

type Widths = [Option<usize>; COLUMNS.len()];

/// Table whose columns widen for longer cells, and never narrow.
#[derive(Debug, Default)]
pub struct Table {
    /// Screen width, and the width of each column that is shown.
    layout: Option<(usize, Widths)>,
}

impl Table {
    /// Heading, at the start and when the screen width has changed.
    pub fn heading(&mut self, style: Style) -> Option<String> {
        if self.layout.as_ref().is_some_and(|l| l.0 == style.width) {
            return None;
        }
        let widths = fit(style.width);
        self.layout = Some((style.width, widths));
        Some(heading(&widths, style))
    }

    /// Line of one operation, after a heading if the columns have changed.
    pub fn row(&mut self, op: &SlowOp, style: Style) -> String {
        let first = self.heading(style);
        let Some((_, widths)) = &mut self.layout else {
            return String::new();
        };
        let mut cells = cells(op, style.offset);
        if style.width == usize::MAX {
            for (cell, column) in cells.iter_mut().zip(COLUMNS) {
                *cell = cut(cell, style.longest, column.keeps_end);
            }
        }
        let widened = widen(widths, &cells, style.width);
        let above = match first {
            Some(_) if widened => heading(widths, style),
            Some(first) => first,
            // A file gets one heading only, even if its columns widen.
            None if widened && style.width < usize::MAX => heading(widths, style),
            None => String::new(),
        };
        let largest = op.phases.and_then(|p| {
            let all = [p.cpu, p.runqueue, p.log, p.disk, p.lock, p.rare()];
            let (at, _) = all.iter().enumerate().rev().max_by_key(|(_, d)| **d)?;
            Some(PHASES.start + at)
        });
        let marked = largest.filter(|_| style.color).map(|at| (at, "1;33"));
        above + &line(widths, |i| &cells[i], style.width, marked)
    }
}

/// Widths of the columns with the lowest ranks that fit.
fn fit(screen: usize) -> Widths {
    let mut order: Vec<_> = (0..COLUMNS.len()).collect();
    order.sort_by_key(|i| COLUMNS[*i].rank);
    let mut widths = Widths::default();
    let mut used = 0;
    for i in order {
        let more = COLUMNS[i].width + usize::from(used > 0);
        if used + more <= screen {
            used += more;
            widths[i] = Some(COLUMNS[i].width);
        }
    }
    widths
}

/// Widens columns for longer cells while the screen has room. The last column is aligned with nothing, and takes the rest.
fn widen(widths: &mut Widths, cells: &[String; COLUMNS.len()], screen: usize) -> bool {
    let mut left = screen.saturating_sub(total(widths));
    let mut widened = false;
    let last = COLUMNS.len() - 1;
    for (width, cell) in widths[..last].iter_mut().zip(cells) {
        let Some(width) = width else { continue };
        let more = cell.chars().count().saturating_sub(*width);
        if more > 0 && more <= left {
            widened = true;
            *width += more;
            left -= more;
        }
    }
    widened
}

fn total(widths: &Widths) -> usize {
    let shown = widths.iter().flatten();
    (shown.clone().sum::<usize>() + shown.count()).saturating_sub(1)
}

fn heading(widths: &Widths, style: Style) -> String {
    let line = line(widths, |i| COLUMNS[i].head, style.width, None);
    match line.strip_suffix('\n') {
        Some(bare) if style.color => format!("\x1b[1;36m{bare}\x1b[0m\n"),
        _ => line,
    }
}

fn line<'a>(
    widths: &Widths,
    cell: impl Fn(usize) -> &'a str,
    screen: usize,
    marked: Option<(usize, &str)>,
) -> String {
    let mut out = String::new();
    let rest = screen.saturating_sub(total(widths));
    for (i, column) in COLUMNS.iter().enumerate() {
        let Some(mut width) = widths[i] else { continue };
        if !out.is_empty() {
            out.push(' ');
        }
        if i == COLUMNS.len() - 1 {
            width = width.saturating_add(rest);
        }
        let text = cut(cell(i), width, column.keeps_end);
        // The last column can be as wide as an unlimited screen.
        let pad = " ".repeat(width.min(100).saturating_sub(text.chars().count()));
        let text = match marked {
            Some((at, code)) if at == i => format!("\x1b[{code}m{text}\x1b[0m"),
            _ => text,
        };
        out += &if column.right {
            pad + &text
        } else {
            text + &pad
        };
    }
    out.truncate(out.trim_end().len());
    out + "\n"
}

fn cells(op: &SlowOp, offset: i64) -> [String; COLUMNS.len()] {
    let or = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let phase = |pick: fn(&OpPhases) -> Duration| or(op.phases.as_ref().map(|p| short(pick(p))));
    let sync = op.stability.as_deref().map(|s| match s {
        "file_sync" => "file".to_owned(),
        "data_sync" => "data".to_owned(),
        "unstable" => "none".to_owned(),
        other => other.to_owned(),
    });
    let cells = [
        timestamp::time_of_day(op.at, offset),
        or(op.client.map(|c| c.to_string())),
        op.version.clone(),
        op.op.clone(),
        or(op.bytes.map(|b| b.to_string())),
        or(sync),
        op.status.clone(),
        short(op.duration),
        phase(|p| p.cpu),
        phase(|p| p.runqueue),
        phase(|p| p.log),
        phase(|p| p.disk),
        phase(|p| p.lock),
        phase(OpPhases::rare),
        or(op.inode.map(|i| i.to_string())),
        or(op.xid.map(nfscope_model::xid::text)),
        // The path begins with that of the export.
        or(op.path.clone().or_else(|| op.export.clone())),
    ];
    // Control characters are replaced: a path or a remote agent could otherwise move the cursor.
    cells.map(|c| c.replace(steers, "?"))
}

/// Three digits and a unit: `12.3ms`. Zero is `0`.
fn short(time: Duration) -> String {
    match time.is_zero() {
        true => "0".to_owned(),
        false => units::seconds(time.as_secs_f64()).replace(' ', ""),
    }
}

fn cut(text: &str, width: usize, keeps_end: bool) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    let mark = if width > 0 { "…" } else { "" };
    if keeps_end {
        mark.to_owned() + &text.chars().skip(length - kept).collect::<String>()
    } else {
        text.chars().take(kept).collect::<String>() + mark
    }
}
