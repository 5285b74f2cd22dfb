//! A client or an export by itself: chosen in its panel, then shown with all that is known of it.

use crate::tui::panel;
use crate::tui::spans::{Line, Tone};
use crate::tui::tab::Tab;
use crate::tui::table::{Selection, Table};
use crate::tui::table_columns;
use crate::tui::view::{Sample, View};
use nfscope_model::HeldRequest;
use nfscope_text::units::seconds;
use std::net::IpAddr;

/// Who a row of the panel of clients is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// Address, `local` or `other`.
    Client(String),
    /// Path, `none`, `unknown` or `other`.
    Export(String),
}

impl Subject {
    /// Of a client that has one.
    pub(super) fn address(&self) -> Option<IpAddr> {
        match self {
            Subject::Client(name) => name.parse().ok(),
            Subject::Export(_) => None,
        }
    }

    /// As its row is called.
    fn name(&self) -> &str {
        match self {
            Subject::Client(name) | Subject::Export(name) => name,
        }
    }
}

/// The rows of that panel as they are selected, table by table.
pub(super) fn subjects(view: &View, selection: &Selection) -> Vec<Vec<Subject>> {
    let tables = panel::tables(Tab::Clients, view, selection);
    let kinds = [Subject::Client as fn(String) -> Subject, Subject::Export];
    (tables.into_iter().zip(kinds))
        .map(|(table, kind)| {
            let names = table.rows.into_iter().map(|r| r.sort.name);
            names.map(kind).collect()
        })
        .collect()
}

/// The row that is `by` rows below the chosen one, within the list; the first where that one is gone.
pub(super) fn step(all: &[Subject], chosen: Option<&Subject>, by: isize) -> Option<Subject> {
    let last = all.len().checked_sub(1)?;
    let at = chosen.and_then(|c| all.iter().position(|s| s == c));
    let to = at.map_or(0, |at| at.saturating_add_signed(by).min(last));
    all.get(to).cloned()
}

/// Its row, the requests that threads have in hand for it, and the operations that it was listened to for.
pub(super) fn tables(
    subject: &Subject,
    view: &View,
    sample: Option<&Sample>,
    selection: &Selection,
) -> Vec<Table> {
    let mut row = match subject {
        Subject::Client(_) => table_columns::clients(view),
        Subject::Export(_) => table_columns::exports(view),
    };
    row.rows.retain(|r| r.sort.name == subject.name());
    if row.rows.is_empty() {
        row.empty = format!("nothing of {} in this window", subject.name());
    }
    let its = |r: &&HeldRequest| match subject {
        Subject::Client(name) => r.client.as_ref() == Some(name),
        Subject::Export(name) => r.export.as_ref() == Some(name),
    };
    let held = table_columns::held(view.held.iter().filter(its));
    let sampled = sample.map(|s| table_columns::sampled(&s.ops));
    let mut all = vec![row, held];
    all.extend(sampled);
    // The filter was for who is to be found.
    let order = Selection {
        text: String::new(),
        version: None,
        ..selection.clone()
    };
    all[1..].iter_mut().for_each(|t| t.select(&order));
    all
}

/// What the tables leave open, and where it can be had.
pub(super) fn notes(subject: &Subject, sample: Option<&Sample>, host: &str) -> (Line, Vec<Line>) {
    let what = match subject {
        Subject::Client(_) => "client",
        Subject::Export(_) => "export",
    };
    let mut lines = vec![format!(
        "The agent counts by operation and by {what}, not by both."
    )];
    match (subject.address(), sample) {
        (Some(_), Some(s)) => lines.push(format!(
            "SEEN are {} operations that ended while nfscope listened for {}; at most {} a second are reported.",
            s.count,
            seconds(s.length.as_secs_f64()),
            s.per_second
        )),
        (Some(_), None) => {
            lines.push("With the next window nfscope listens to them for a moment.".to_owned());
        }
        (None, _) => {}
    }
    if sample.is_some_and(|s| s.count == 0) {
        lines.push("None ended, or the agent does not report single operations.".to_owned());
    }
    let client = subject.address().map(|a| format!(" --client {a}"));
    lines.push(format!("Each as it happens, with its phases, on {host}:"));
    lines.push(format!(
        "  nfscope slow{} --min-latency 0",
        client.unwrap_or_default()
    ));
    let lines = lines
        .into_iter()
        .map(|text| Line::of(Tone::Plain, "  ".to_owned() + &text));
    let head = format!("OPERATIONS OF THIS {}", what.to_uppercase());
    (Line::of(Tone::Head, head), lines.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_stay_within_the_list() {
        let all = ["a", "b", "c"].map(|n| Subject::Client(n.into()));
        let to = |from: Option<usize>, by| step(&all, from.map(|i| &all[i]), by);
        assert_eq!(to(None, 1), Some(all[0].clone()));
        assert_eq!(to(Some(0), 1), Some(all[1].clone()));
        assert_eq!(to(Some(2), 9), Some(all[2].clone()));
        assert_eq!(to(Some(1), isize::MIN), Some(all[0].clone()));
        assert_eq!(to(Some(1), isize::MAX), Some(all[2].clone()));
        // Its row has gone meanwhile.
        let gone = Subject::Export("a".into());
        assert_eq!(step(&all, Some(&gone), 1), Some(all[0].clone()));
        assert_eq!(step(&[], None, 1), None);
    }
}
