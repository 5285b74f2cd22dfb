//! Values of rows in the windows before, for the sparklines at the right of a wide screen.

use crate::panel;
use crate::sparkline::MOST;
use crate::tab::Tab;
use crate::table::{Key, Selection, Sort, Table};
use crate::view::View;
use std::collections::{HashMap, VecDeque};

/// Identity of a row: its table's heading, its name and its version.
type RowId = (&'static str, String, Option<String>);

/// Sort values of the rows of one window.
struct Moment {
    rows: HashMap<RowId, Sort>,
    seconds: f64,
}

/// The last windows, the newest last.
#[derive(Default)]
pub(super) struct History(VecDeque<Moment>);

impl std::fmt::Debug for History {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "History({})", self.0.len())
    }
}

fn id(table: &Table, sort: &Sort) -> RowId {
    (table.name(), sort.name.clone(), sort.version.clone())
}

impl History {
    /// Remembers a window.
    pub(super) fn push(&mut self, view: &View) {
        let everything = Selection::default();
        let tables = Tab::ALL
            .into_iter()
            .flat_map(|tab| panel::tables(tab, view, &everything))
            .filter(Table::has_history);
        let mut rows = HashMap::new();
        for mut table in tables {
            for row in std::mem::take(&mut table.rows) {
                rows.insert(id(&table, &row.sort), row.sort);
            }
        }
        self.0.push_back(Moment {
            rows,
            seconds: view.window_seconds.max(1e-9),
        });
        while self.0.len() > MOST {
            self.0.pop_front();
        }
    }

    /// Forgets all windows: those before and after a gap do not belong side by side.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Gives the rows of a table their values in the last windows, without the newest `unseen` ones. A single window is no history.
    pub(super) fn fill(&self, table: &mut Table, order: Key, unseen: usize) {
        let seen = self.0.len().saturating_sub(unseen);
        if seen < 2 || !table.has_history() {
            return;
        }
        // A table without this column, or without a number in it, has the history of its rates instead.
        let known = |key: Key| table.rows.iter().any(|r| r.sort.value(key).is_some());
        let key = if known(order) { order } else { Key::Rate };
        let values: Vec<_> = (table.rows.iter())
            .map(|row| {
                let id = id(table, &row.sort);
                let all = self.0.iter().take(seen);
                all.map(|m| value(m, &id, key)).collect()
            })
            .collect();
        table.history = Some((key, values));
    }
}

/// Value of a row in a window. A row without operations has a rate, time and errors of zero, and no latency.
fn value(moment: &Moment, id: &RowId, key: Key) -> Option<f64> {
    let rare = matches!(key, Key::Rate | Key::Time | Key::Errors);
    let Some(sort) = moment.rows.get(id) else {
        return rare.then_some(0.0);
    };
    let value = sort.value(key)?;
    Some(match key {
        Key::Time => value / moment.seconds,
        _ => value,
    })
}
