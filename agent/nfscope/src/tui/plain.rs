//! A window as plain lines, for a pipe, a log, or a terminal without cursor.

use crate::tui::bar::legend;
use crate::tui::panel;
use crate::tui::spans::{Line, Tone};
use crate::tui::table::Table;
use crate::tui::table_columns as tables;
use crate::tui::terminal_style::Look;
use crate::tui::view::View;
use nfscope_model::phase;

/// Everything that the window tells, each line ended and none wider than `width`.
pub fn plain(view: &View, width: usize, look: Look) -> String {
    let mut lines = vec![panel::title(view), panel::threads(view)];
    lines.extend(panel::findings(view));
    lines.extend(panel::warning(view));
    section(&mut lines, &tables::operations(view), width, look);
    if view.ops.iter().any(|o| o.phases.is_some()) {
        let mut line = Line::of(Tone::Plain, "phases: ");
        line.0.extend(legend(&phase::OF_OP, look).0);
        lines.push(line);
    }
    for table in [
        tables::pools(view),
        tables::rpc(view),
        tables::logs(view),
        tables::disks(view),
        tables::clients(view),
        tables::exports(view),
    ] {
        if !table.rows.is_empty() {
            section(&mut lines, &table, width, look);
        }
    }
    let lines = lines.into_iter().map(|l| l.cut(width).print(look) + "\n");
    lines.collect()
}

fn section(lines: &mut Vec<Line>, table: &Table, width: usize, look: Look) {
    let (head, rows) = table.lines(width, None, look);
    lines.push(Line::default());
    lines.push(head);
    lines.extend(rows);
}
