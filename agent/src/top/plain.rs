//! A window as plain lines, for a pipe, a log, or a terminal without cursor.

use super::bar::legend;
use super::look::Look;
use super::panel;
use super::table::Table;
use super::tables;
use super::text::{Line, Tone};
use super::view::View;
use crate::model::phase;

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
