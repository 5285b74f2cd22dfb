//! A client or an export by itself: chosen in its panel, then shown with all its measurements.

use crate::breakdown::Breakdown;
use crate::panel;
use crate::spans::{Line, Tone};
use crate::tab::Tab;
use crate::table::{Selection, Table};
use crate::table_columns;
use crate::view::{Sample, View};
use nfscope_api::breakdown_query::{Filter, Query};
use nfscope_model::{Dimension, HeldRequest};
use nfscope_text::units::seconds;
use std::net::IpAddr;
use std::time::Duration;

/// Row that sums up all clients or exports without a row of their own.
const OTHER: &str = "other";

/// Client or export that a row is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// Address, `local` or `other`.
    Client(String),
    /// Path, `none`, `unknown` or `other`.
    Export(String),
}

impl Subject {
    /// Address of a client that has one.
    pub(super) fn address(&self) -> Option<IpAddr> {
        match self {
            Subject::Client(name) => name.parse().ok(),
            Subject::Export(_) => None,
        }
    }

    /// Name of its row.
    fn name(&self) -> &str {
        match self {
            Subject::Client(name) | Subject::Export(name) => name,
        }
    }

    fn dimension(&self) -> Dimension {
        match self {
            Subject::Client(_) => Dimension::Client,
            Subject::Export(_) => Dimension::Export,
        }
    }

    /// Filter that selects its operations; `None` for `other`, which is many clients or exports.
    fn filter(&self) -> Option<Filter> {
        let text = format!("{}:{}", self.dimension().name(), self.name());
        let one = self.name() != OTHER;
        one.then(|| Filter::parse(&text).ok()).flatten()
    }

    /// Query of the break-down of its operations, at about this interval.
    pub(super) fn query(&self, interval: Duration) -> Option<Query> {
        let by = vec![Dimension::Version, Dimension::Op];
        let query = Query::new(by, vec![self.filter()?]).ok()?;
        Some(query.near(interval))
    }
}

/// Clients and exports of that panel as they are selected, table by table.
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

/// Row that is `by` rows below the chosen one, within the list; the first row where the chosen one is gone.
pub(super) fn step(all: &[Subject], chosen: Option<&Subject>, by: isize) -> Option<Subject> {
    let last = all.len().checked_sub(1)?;
    let at = chosen.and_then(|c| all.iter().position(|s| s == c));
    let to = at.map_or(0, |at| at.saturating_add_signed(by).min(last));
    all.get(to).cloned()
}

/// Tables of the client or export: its row, its requests in hand, and its sampled operations.
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
    let mut all = vec![row, table_columns::held(view.held.iter().filter(its))];
    all.extend(sample.map(|s| table_columns::sampled(&s.ops)));
    let order = everything(selection);
    all[1..].iter_mut().for_each(|t| t.select(&order));
    all
}

/// Table of all its operations, as the kernel counts them.
pub(super) fn counted(counted: &Breakdown, selection: &Selection) -> Table {
    counted.table(&everything(selection))
}

/// The selection without its filter, which was for finding the client or export.
fn everything(selection: &Selection) -> Selection {
    Selection {
        text: String::new(),
        version: None,
        ..selection.clone()
    }
}

/// Notes on the limits of the tables, and on commands that show more.
pub(super) fn notes(
    subject: &Subject,
    counted: Option<&Breakdown>,
    sample: Option<&Sample>,
    host: &str,
) -> (Line, Vec<Line>) {
    let what = subject.dimension().name();
    let mut lines = Vec::new();
    match counted {
        Some(counted) => {
            if counted.tells() {
                lines.push(Line::of(
                    Tone::Plain,
                    "OPS/S is of every operation: the kernel counts them while this is on the screen.",
                ));
            }
            lines.extend(counted.notes());
        }
        None => {
            let text = format!("These are several {what}s. The next command tells them apart.");
            lines.push(Line::of(Tone::Plain, text));
        }
    }
    let mut say = |text: String| lines.push(Line::of(Tone::Plain, text));
    match sample {
        Some(s) if s.count == 0 => {
            say("None ended while nfscope listened, or the agent does not report single operations.".to_owned());
        }
        Some(s) => say(format!(
            "SEEN and PHASES are of {} operations that ended while nfscope listened for {}; at most {} a second are reported.",
            s.count,
            seconds(s.length.as_secs_f64()),
            s.per_second
        )),
        None if subject.address().is_some() => {
            say("With the next window nfscope listens for phases for a moment.".to_owned());
        }
        None => {}
    }
    let (question, command) = match (subject.address(), subject.filter()) {
        (Some(address), _) => (
            "Each as it happens, with its phases",
            format!("slow --client {address} --min-latency 0"),
        ),
        (None, Some(filter)) => {
            let other = match filter.dimension {
                Dimension::Client => "export",
                _ => "client",
            };
            let filter = quoted(&format!("{what}={}", filter.value));
            (
                "Also by what else",
                format!("top --by {other},op --where {filter}"),
            )
        }
        (None, None) => ("Each by itself", format!("top --by {what},op")),
    };
    say(format!("{question}, on {host}:"));
    say(format!("  nfscope {command}"));
    let lines = lines.into_iter().map(|mut line| {
        line.0.insert(0, (Tone::Plain, "  ".to_owned()));
        line
    });
    let head = format!("OPERATIONS OF THIS {}", what.to_uppercase());
    (Line::of(Tone::Head, head), lines.collect())
}

/// Word quoted for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-:=+@%".contains(c);
    match word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_api::query::QueryString;

    #[test]
    fn steps_stay_within_the_list() {
        let all = ["a", "b", "c"].map(|n| Subject::Client(n.into()));
        let to = |from: Option<usize>, by| step(&all, from.map(|i| &all[i]), by);
        assert_eq!(to(None, 1), Some(all[0].clone()));
        assert_eq!(to(Some(0), 1), Some(all[1].clone()));
        assert_eq!(to(Some(2), 9), Some(all[2].clone()));
        assert_eq!(to(Some(1), isize::MIN), Some(all[0].clone()));
        assert_eq!(to(Some(1), isize::MAX), Some(all[2].clone()));
        // The row of the chosen export has gone meanwhile.
        let gone = Subject::Export("a".into());
        assert_eq!(step(&all, Some(&gone), 1), Some(all[0].clone()));
        assert_eq!(step(&[], None, 1), None);
    }

    #[test]
    fn a_client_or_an_export_is_a_filter_unless_it_is_many() {
        let query = |s: Subject| {
            let query = s.query(Duration::from_millis(200))?;
            Some(query.to_query())
        };
        let client = |name: &str| query(Subject::Client(name.into()));
        let export = |name: &str| query(Subject::Export(name.into()));
        let of = |filter: &str| {
            Some(format!(
                "by=version%2Cop&where={filter}&interval=1s&rows=200"
            ))
        };
        assert_eq!(client("192.0.2.7"), of("client%3A192.0.2.7"));
        assert_eq!(client("local"), of("client%3Alocal"));
        assert_eq!(export("/srv/a b"), of("export%3A%2Fsrv%2Fa+b"));
        assert_eq!(export("none"), of("export%3Anone"));
        assert_eq!(client("other"), None);
        assert_eq!(export("other"), None);
    }

    #[test]
    fn commands_can_be_pasted_into_a_shell() {
        assert_eq!(quoted("export=/srv/münchen"), "export=/srv/münchen");
        assert_eq!(quoted("export=/srv/a b"), "'export=/srv/a b'");
        assert_eq!(quoted("it's;"), r"'it'\''s;'");
    }
}
