//! The panel of single slow operations, while they are on the screen.

use crate::spans::{Line, Tone};
use crate::table::{BAR, Cell, Column, Key, NEVER, Row, Selection, Sort, Table, name};
use crate::table_columns::{left, number, right};
use crate::view::Phases;
use nfscope_api::slow_line::Line as Told;
use nfscope_model::{SlowFilter, SlowOp, phase};
use nfscope_text::timestamp::{local_offset, time_of_day};
use nfscope_text::units::{bytes, seconds};
use std::collections::VecDeque;
use std::time::Duration;

/// Operations that are kept; the earliest go first.
const MOST: usize = 200;
/// Most operations a second that the agent reports.
const PER_SECOND: u32 = 100;
/// Durations through which `<` and `>` step, in milliseconds.
const LIMITS: [u64; 5] = [1, 10, 100, 1000, 10_000];

/// Slow operations on the screen.
#[derive(Debug, Clone)]
pub struct SlowOps {
    /// Selects the operations.
    pub filter: SlowFilter,
    /// Operations with the names of their clients, the latest first.
    ops: VecDeque<(SlowOp, Option<String>)>,
    left_out: u64,
    /// Reason why no operations come.
    why: Option<String>,
}

impl Default for SlowOps {
    fn default() -> Self {
        SlowOps {
            filter: SlowFilter {
                over: Duration::from_millis(LIMITS[1]),
                ops: Vec::new(),
                client: None,
                per_second: PER_SECOND,
            },
            ops: VecDeque::new(),
            left_out: 0,
            why: None,
        }
    }
}

impl SlowOps {
    /// Takes a line of the stream, or the error that ended it. `called` names a client.
    pub(super) fn take(
        &mut self,
        told: anyhow::Result<Told>,
        called: impl Fn(&str) -> Option<String>,
    ) {
        match told {
            Ok(line) => {
                self.why = None;
                match line {
                    Told::LeftOut { left_out } => self.left_out += left_out,
                    Told::Op(op) => {
                        let client = op.client.map(|c| c.to_string());
                        let called = client.and_then(|c| called(&c));
                        self.ops.push_front((*op, called));
                        self.ops.truncate(MOST);
                    }
                }
            }
            Err(why) => self.why = Some(format!("{why:#}")),
        }
    }

    /// Steps to the next shorter or longer duration. Returns false for another key.
    pub(super) fn turn(&mut self, key: char) -> bool {
        let all = LIMITS.map(Duration::from_millis);
        let next = match key {
            '<' => all.into_iter().rev().find(|d| *d < self.filter.over),
            '>' => all.into_iter().find(|d| *d > self.filter.over),
            _ => return false,
        };
        if let Some(over) = next {
            *self = SlowOps::default();
            self.filter.over = over;
        }
        true
    }

    /// Table of the operations. The sort key for time is the duration.
    pub(super) fn table(&self, selection: &Selection) -> Table {
        let mut table = Table {
            columns: COLUMNS.into(),
            rows: self.ops.iter().map(row).collect(),
            empty: match &self.why {
                Some(why) => why.clone(),
                None => format!(
                    "none so far took {} or longer",
                    seconds(self.filter.over.as_secs_f64())
                ),
            },
            history: None,
        };
        table.select(selection);
        table
    }

    /// Notes on the limits of the table.
    pub(super) fn notes(&self) -> (Line, Vec<Line>) {
        let head = format!(
            "OPERATIONS OF {} OR LONGER  < > change this",
            seconds(self.filter.over.as_secs_f64())
        );
        let mut lines = vec![Line::of(
            Tone::Dim,
            format!(
                "  the latest {MOST}, while this panel is on the screen; each costs the server some instructions; {} left out",
                self.left_out
            ),
        )];
        if let (Some(why), false) = (&self.why, self.ops.is_empty()) {
            lines.push(Line::of(Tone::Alarm, format!("  no more come: {why}")));
        }
        (Line::of(Tone::Head, head), lines)
    }
}

const COLUMNS: &[Column] = &[
    left("TIME", None, 12, 3),
    right("DURATION", Some(Key::Time), 8, NEVER),
    left("VER", None, 3, 4),
    left("OPERATION", Some(Key::Name), 9, NEVER),
    left("CLIENT", None, 10, 8),
    right("BYTES", None, 8, 5),
    left("EXPORT", None, 8, 6),
    left("FILE", None, 8, 2),
    left(BAR, None, 9, 7),
];

fn row((op, called): &(SlowOp, Option<String>)) -> Row {
    let client = op.client.map_or_else(String::new, |c| c.to_string());
    let file = op.path.clone().or(op.inode.map(|i| i.to_string()));
    let text = |text: Option<&str>| text.map_or(Cell::None, name);
    let phases = op.phases.map(|p| {
        let seconds = p.all().map(|d| Some(d.as_secs_f64()));
        Phases::new(&phase::OF_OP, seconds)
    });
    let shown = match called {
        Some(called) => format!("{client} {called}"),
        None => client.clone(),
    };
    Row {
        cells: vec![
            name(&time_of_day(op.at, local_offset(op.at))),
            number(Some(op.duration.as_secs_f64()), seconds),
            name(&op.version),
            name(&op.op),
            text(Some(&shown).filter(|s| !s.is_empty()).map(String::as_str)),
            number(op.bytes.map(|b| b as f64), amount),
            text(op.export.as_deref()),
            text(file.as_deref()),
            Cell::Bar(phases),
        ],
        sort: Sort {
            time: Some(op.duration.as_secs_f64()),
            name: op.op.clone(),
            called: shown,
            version: Some(op.version.clone()),
            ..Sort::default()
        },
    }
}

/// Bytes of one operation.
fn amount(n: f64) -> String {
    bytes(n).trim_end_matches("/s").to_owned()
}
