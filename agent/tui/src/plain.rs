//! A window as plain lines, for a pipe, a log, or a terminal without cursor.

use crate::bar::legend;
use crate::panel;
use crate::spans::{Line, Tone};
use crate::table::Table;
use crate::table_columns;
use crate::terminal_style::TerminalStyle;
use crate::view::View;
use nfscope_model::phase;

/// All that the window has, each line ended and none wider than `width`.
pub fn plain(view: &View, width: usize, style: TerminalStyle) -> String {
    let mut lines = vec![panel::title(view), panel::threads(view)];
    lines.extend(panel::server_state(view));
    lines.extend(panel::findings(view, "nfscope diagnose"));
    lines.extend(panel::warning(view));
    section(&mut lines, &table_columns::operations(view), width, style);
    if view.ops.iter().any(|o| o.phases.is_some()) {
        let mut line = Line::of(Tone::Plain, "phases: ");
        line.0
            .extend(legend(&phase::OF_OP, |i| view.has_phase(i), style).0);
        lines.push(line);
    }
    for table in [
        table_columns::pools(view),
        table_columns::rpc(view),
        table_columns::logs(view),
        table_columns::disks(view),
        table_columns::clients(view),
        table_columns::exports(view),
    ] {
        if !table.rows.is_empty() {
            section(&mut lines, &table, width, style);
        }
    }
    let lines = lines.into_iter().map(|l| l.cut(width).print(style) + "\n");
    lines.collect()
}

fn section(lines: &mut Vec<Line>, table: &Table, width: usize, style: TerminalStyle) {
    let (head, rows) = table.lines(width, None, style);
    lines.push(Line::default());
    lines.push(head);
    lines.extend(rows);
}
