//! Picture of `nfscope top` in the README: the screen as SVG, cell by cell. `UPDATE_GOLDEN=1` rewrites it.

use crate::fixture::root;
use nfscope_model::phase;
use nfscope_tui::{App, Op, Phases, Pool, TerminalStyle, View, draw};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use std::fmt::Write;

/// Columns and lines of the terminal.
const SIZE: (u16, u16) = (100, 14);
/// Width and height of a cell, and the margin around all of them, in units of the SVG.
const CELL: (f64, f64) = (8.4, 18.0);
const MARGIN: f64 = 16.0;
/// Distance from the upper edge of a cell to the baseline of its text.
const BASELINE: f64 = 13.5;

const GROUND: &str = "#1b1f27";
const LETTERS: &str = "#d7dae0";
/// Eight colours of a terminal.
const PALETTE: [&str; 8] = [
    "#14171c", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d7dae0",
];

/// Operation, version, operations per second, p50, p99 and maximum in milliseconds, share in percent, and the letters of each phase in the
/// bar. These figures are from `nfscope top` in an emulated virtual machine under a mixed load.
type Row = (&'static str, &'static str, f64, [f64; 3], f64, [u32; 5]);
const ROWS: [Row; 7] = [
    (
        "write",
        "3",
        67.2,
        [24.0, 48.0, 52.6],
        28.0,
        [2, 11, 12, 2, 0],
    ),
    (
        "write",
        "4.2",
        41.9,
        [24.0, 48.0, 62.5],
        18.1,
        [2, 10, 12, 2, 0],
    ),
    (
        "remove",
        "3",
        18.4,
        [24.0, 48.0, 52.6],
        7.9,
        [1, 8, 17, 1, 0],
    ),
    (
        "setattr",
        "3",
        17.9,
        [24.0, 48.0, 52.6],
        7.3,
        [1, 7, 19, 0, 0],
    ),
    (
        "create",
        "3",
        15.9,
        [24.0, 48.0, 52.6],
        6.6,
        [1, 9, 17, 0, 0],
    ),
    (
        "open",
        "4.2",
        11.4,
        [24.0, 57.1, 62.5],
        4.0,
        [1, 9, 16, 1, 0],
    ),
    (
        "getattr",
        "3",
        95.8,
        [0.0558, 5.05, 13.1],
        0.3,
        [16, 11, 0, 0, 0],
    ),
];

fn view() -> View {
    let op = |(op, version, rate, [p50, p99, max], share, phases): Row| Op {
        version: version.into(),
        op: op.into(),
        rate,
        p50: Some(p50 / 1e3),
        p99: Some(p99 / 1e3),
        max: Some(max / 1e3),
        errors_per_s: Some(0.0),
        share: share / 100.0,
        seconds: share,
        phases: Some(Phases {
            names: &phase::OF_OP,
            seconds: {
                let [cpu, runqueue, log, disk, lock] = phases.map(|n| Some(f64::from(n)));
                let none = [Some(0.0); 4];
                [&[cpu, runqueue, log, disk], &none[..], &[lock]].concat()
            },
        }),
    };
    let pool = Pool {
        pool: "0".into(),
        threads: 8.0,
        busy: Some(8.0),
        limit: Some(8.0),
        busy_ratio: Some(0.737),
        saturated_ratio: Some(0.196),
        rate: Some(530.0),
        queue_p50: Some(1.26e-3),
        queue_p99: Some(8.49e-3),
        queue_max: Some(18.6e-3),
    };
    View {
        window_seconds: 4.47,
        host: "server".into(),
        coverage: [("3".to_owned(), 1.0), ("4.2".to_owned(), 1.0)].into(),
        ops: ROWS.map(op).into(),
        pools: vec![pool],
        timed: true,
        ..View::default()
    }
}

fn screen() -> Buffer {
    let style = TerminalStyle {
        color: true,
        utf8: true,
    };
    let mut app = App::default();
    app.take(view());
    let mut terminal = Terminal::new(TestBackend::new(SIZE.0, SIZE.1)).unwrap();
    let frame = terminal.draw(|f| {
        let area = f.area();
        draw(&app, style, area, f.buffer_mut());
    });
    frame.unwrap().buffer.clone()
}

fn named(color: Color, otherwise: &'static str) -> &'static str {
    match color {
        Color::Indexed(i) => PALETTE.get(usize::from(i)).copied().unwrap_or(otherwise),
        _ => otherwise,
    }
}

/// Colours of letters and ground.
fn colors(cell: &Cell) -> (&'static str, &'static str) {
    let pair = (named(cell.fg, LETTERS), named(cell.bg, GROUND));
    match cell.modifier.contains(Modifier::REVERSED) {
        true => (pair.1, pair.0),
        false => pair,
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Cells of one style in a line, from column `x` on.
fn run(out: &mut String, x: usize, y: usize, cells: &[Cell]) {
    let (letters, ground) = colors(&cells[0]);
    let (left, top) = (MARGIN + x as f64 * CELL.0, MARGIN + y as f64 * CELL.1);
    if ground != GROUND {
        let width = cells.len() as f64 * CELL.0;
        let _ = writeln!(
            out,
            r#"<rect x="{left:.1}" y="{top:.1}" width="{width:.1}" height="{:.1}" fill="{ground}"/>"#,
            CELL.1
        );
    }
    let text: String = cells.iter().map(Cell::symbol).collect();
    let blank = text.len() - text.trim_start().len();
    let text = text.trim();
    if text.is_empty() {
        return;
    }
    let mut style = String::new();
    if letters != LETTERS {
        let _ = write!(style, r#" fill="{letters}""#);
    }
    if cells[0].modifier.contains(Modifier::BOLD) {
        style += r#" font-weight="bold""#;
    }
    if cells[0].modifier.contains(Modifier::DIM) {
        style += r#" opacity="0.6""#;
    }
    // Explicit length: columns stand below each other in any font. Chromium takes xml:space from the element itself only, and would
    // otherwise collapse runs of spaces.
    let _ = writeln!(
        out,
        r#"<text xml:space="preserve" x="{:.1}" y="{:.1}" textLength="{:.1}"{style}>{}</text>"#,
        left + blank as f64 * CELL.0,
        top + BASELINE,
        text.chars().count() as f64 * CELL.0,
        escaped(text)
    );
}

fn svg(buffer: &Buffer) -> String {
    let (columns, lines) = (usize::from(SIZE.0), usize::from(SIZE.1));
    let width = 2.0 * MARGIN + columns as f64 * CELL.0;
    let height = 2.0 * MARGIN + lines as f64 * CELL.1;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\">\n\
         <title>nfscope top: operations with their latency, share of time and phases</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"10\" fill=\"{GROUND}\"/>\n\
         <g font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"14\" \
         fill=\"{LETTERS}\">\n"
    );
    for (y, row) in buffer.content.chunks(columns).enumerate() {
        let mut x = 0;
        for cells in row.chunk_by(|a, b| a.style() == b.style()) {
            run(&mut out, x, y, cells);
            x += cells.len();
        }
    }
    out + "</g>\n</svg>\n"
}

#[test]
fn the_readme_shows_what_top_draws() {
    let path = root().join("docs/img/top.svg");
    let drawn = svg(&screen());
    roxmltree::Document::parse(&drawn).unwrap();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &drawn).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        drawn == there,
        "{} differs; UPDATE_GOLDEN=1 writes it anew",
        path.display()
    );
}
