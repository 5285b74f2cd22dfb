//! The panel of a break-down: its query and its rows.

use crate::spans::{Line, Tone};
use crate::table::{Column, Key, NEVER, Row, Selection, Sort, Table, name};
use crate::table_columns::{left, number, right};
use crate::terminal_style::TerminalStyle;
use nfscope_api::breakdown_line::{self, Header, Interval, Line as Told, Times};
use nfscope_api::breakdown_query::Query;
use nfscope_model::{Dimension, Histogram, Scheme};
use nfscope_text::units::{bytes, percent, rate, seconds};
use std::collections::BTreeMap;
use std::time::Duration;

/// Keys that add or remove a dimension, in the order of [`Dimension::ALL`].
const KEYS: [char; 6] = ['C', 'E', 'O', 'V', 'U', 'F'];
/// Key that turns the paths of files on or off.
const PATHS: char = 'N';

/// A break-down on the screen.
#[derive(Debug, Clone)]
pub struct Breakdown {
    /// Query of the break-down.
    pub query: Query,
    header: Option<Header>,
    interval: Option<Interval>,
    /// Reason why no rows come.
    why: Option<String>,
}

impl Breakdown {
    /// A break-down without rows yet.
    pub fn new(query: Query) -> Self {
        Breakdown {
            query,
            header: None,
            interval: None,
            why: None,
        }
    }

    /// Takes a line of the stream, or the error that ended it.
    pub fn take(&mut self, told: anyhow::Result<Told>) {
        match told {
            Ok(Told::Header { header }) => {
                (self.header, self.why) = (Some(header), None);
            }
            Ok(Told::Interval(interval)) => self.interval = Some(interval),
            Err(why) => self.why = Some(format!("{why:#}")),
        }
    }

    /// Returns true while rows are up to date: some have come, and the stream has not ended.
    pub(super) fn tells(&self) -> bool {
        self.interval.is_some() && self.why.is_none()
    }

    /// Sets the interval, as near as its limits allow. Rows stay until the next ones come.
    pub(super) fn every(&mut self, interval: Duration) {
        self.query = self.query.clone().near(interval);
    }

    /// Removes the filters.
    pub(super) fn show_all(&mut self) {
        let mut query = self.query.clone();
        query.filters.clear();
        if query != self.query {
            *self = Breakdown::new(query);
        }
    }

    /// Adds the dimension of a key, or removes it unless it is the last one. Returns false for a key without a dimension.
    pub(super) fn turn(&mut self, key: char) -> bool {
        if key == PATHS {
            let mut query = self.query.clone();
            query.paths = !query.paths;
            if !query.by.contains(&Dimension::File) {
                query.by.push(Dimension::File);
            }
            *self = Breakdown::new(query);
            return true;
        }
        let Some(i) = KEYS.iter().position(|k| *k == key) else {
            return false;
        };
        let (d, mut query) = (Dimension::ALL[i], self.query.clone());
        match query.by.iter().position(|b| *b == d) {
            Some(_) if query.by.len() == 1 => return true,
            Some(at) => drop(query.by.remove(at)),
            None => query.by.push(d),
        }
        query.by.sort_unstable();
        query.paths &= query.by.contains(&Dimension::File);
        *self = Breakdown::new(query);
        true
    }

    /// Line with the query.
    pub(super) fn title(&self) -> Line {
        let mut line = Line::of(Tone::Plain, "by ");
        for (key, d) in KEYS.into_iter().zip(Dimension::ALL) {
            let tone = match self.query.by.contains(&d) {
                true => Tone::Chosen,
                false => Tone::Dim,
            };
            line.push(tone, format!(" {key} {} ", d.name()));
        }
        let tone = if self.query.paths {
            Tone::Chosen
        } else {
            Tone::Dim
        };
        line.push(tone, format!(" {PATHS} paths "));
        for filter in &self.query.filters {
            line.push(Tone::Warning, format!("  {filter}"));
        }
        line
    }

    /// Table of the rows.
    pub(super) fn table(&self, selection: &Selection) -> Table {
        let mut table = match &self.interval {
            Some(interval) => table(interval),
            None => Table {
                columns: columns(&self.query.by).into(),
                rows: Vec::new(),
                empty: match &self.why {
                    Some(why) => why.clone(),
                    None => "counting; the first rows come in a moment".to_owned(),
                },
                history: None,
            },
        };
        table.select(selection);
        table
    }

    /// Notes on the cost of the break-down, and on operations that the table lacks.
    pub(super) fn notes(&self) -> Vec<Line> {
        let (Some(interval), Some(header)) = (&self.interval, &self.header) else {
            return Vec::new();
        };
        let mut notes = vec![match &self.why {
            Some(why) => Line::of(Tone::Alarm, format!("OPS/S is no longer counted: {why}")),
            None => Line::of(Tone::Dim, cost(header, interval)),
        }];
        if interval.evicted > 0 {
            let text = format!(
                "{} operations found no room in the kernel's table",
                interval.evicted
            );
            notes.push(Line::of(Tone::Warning, text));
        }
        let mut whys = BTreeMap::<_, usize>::new();
        for why in interval.rows.iter().filter_map(|r| r.no_path.as_deref()) {
            *whys.entry(why).or_default() += 1;
        }
        let without = |(why, n)| Line::of(Tone::Dim, format!("{n} without a path: {why}"));
        notes.extend(whys.into_iter().map(without));
        notes
    }

    /// Break-down as plain lines, none wider than `width`.
    pub fn plain(&self, width: usize, style: TerminalStyle) -> String {
        let (Some(interval), Some(header)) = (&self.interval, &self.header) else {
            return String::new();
        };
        let by: Vec<_> = header.by.iter().map(|d| d.name()).collect();
        let filters: String = header.filters.iter().map(|f| format!("   {f}")).collect();
        let mut title = Line::of(Tone::Strong, format!("nfscope  {}", header.host));
        let last = seconds(interval.seconds);
        title.push(
            Tone::Plain,
            format!("   last {last}   by {}{filters}", by.join(", ")),
        );
        let mut table = table(interval);
        table.select(&Selection::default());
        let (head, rows) = table.lines(width, None, style);
        let mut lines = vec![title, Line::default(), head];
        lines.extend(rows);
        lines.push(Line::default());
        lines.extend(self.notes());
        let lines = lines.into_iter().map(|l| l.cut(width).print(style) + "\n");
        lines.collect()
    }
}

fn cost(header: &Header, interval: &Interval) -> String {
    format!(
        "costs {} of a CPU and {:.1} MB of kernel memory while somebody looks",
        percent(interval.cost_seconds / interval.seconds.max(1e-3)),
        header.kernel_bytes as f64 / 1e6
    )
}

fn columns(by: &[Dimension]) -> Vec<Column> {
    let mut columns = Vec::new();
    for (i, d) in by.iter().enumerate() {
        let (head, min) = match d {
            Dimension::Client => ("CLIENT", 10),
            Dimension::Export => ("EXPORT", 10),
            Dimension::Op => ("OPERATION", 10),
            Dimension::Version => ("VER", 3),
            Dimension::User => ("USER", 5),
            Dimension::File => ("FILE", 8),
        };
        columns.push(left(head, (i == 0).then_some(Key::Name), min, NEVER));
    }
    columns.extend([
        right("OPS/S", Some(Key::Rate), 7, 8),
        right("P50", Some(Key::P50), 7, 4),
        right("P99", Some(Key::P99), 7, 7),
        right("MAX", Some(Key::Max), 7, 1),
        right("READ/S", None, 8, 3),
        right("WRITE/S", None, 8, 2),
        right("SHARE", Some(Key::Time), 6, 5),
    ]);
    columns
}

fn table(interval: &Interval) -> Table {
    let all: f64 = interval.rows.iter().map(|r| r.times.sum_seconds).sum();
    let all = (all + interval.other.sum_seconds).max(f64::MIN_POSITIVE);
    let row = |names: Vec<String>, times: &Times| {
        let h = histogram(times);
        let length = interval.seconds.max(1e-3);
        let (per_second, moved) = (times.count as f64 / length, times.moved);
        let [p50, p99, max] = [0.5, 0.99, 1.0].map(|q| h.quantile(q));
        let mut cells: Vec<_> = names.iter().map(|n| name(n)).collect();
        cells.extend([
            number(Some(per_second), rate),
            number(p50, seconds),
            number(p99, seconds),
            number(max, seconds),
            number(moved.map(|m| m.read as f64 / length), bytes),
            number(moved.map(|m| m.written as f64 / length), bytes),
            number(Some(times.sum_seconds / all), percent),
        ]);
        Row {
            sort: Sort {
                time: Some(times.sum_seconds),
                rate: Some(per_second),
                p50,
                p99,
                max,
                name: names.join(" "),
                ..Sort::default()
            },
            cells,
        }
    };
    let value = |r: &breakdown_line::Row, d: &Dimension| {
        let path = r.path.as_deref().filter(|_| *d == Dimension::File);
        let value = path.or_else(|| r.value(*d)).unwrap_or_default();
        let called = match d {
            Dimension::Client => r.client_name.as_deref(),
            Dimension::User => r.user_name.as_deref(),
            _ => None,
        };
        called.map_or_else(|| value.to_owned(), |called| format!("{value} {called}"))
    };
    let mut rows: Vec<_> = (interval.rows.iter())
        .map(|r| row(interval.by.iter().map(|d| value(r, d)).collect(), &r.times))
        .collect();
    if interval.other.count > 0 {
        let mut names = vec![String::new(); interval.by.len()];
        if let Some(first) = names.first_mut() {
            "(other)".clone_into(first);
        }
        rows.push(row(names, &interval.other));
    }
    Table {
        columns: columns(&interval.by).into(),
        rows,
        empty: "no such operations in this interval".to_owned(),
        history: None,
    }
}

/// Histogram from buckets and their edges. An agent of another version may have other edges: a bucket with an edge of theirs alone counts
/// for the next one of ours.
fn histogram(times: &Times) -> Histogram {
    let mut h = Histogram::new(Scheme::TIME);
    for (edge, n) in &times.buckets {
        let last = h.counts.len() - 1;
        let bucket = edge.map_or(last, |e| Scheme::TIME.bucket(e).min(last));
        h.counts[bucket] += n;
    }
    h.sum = times.sum_seconds;
    h
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_api::breakdown_query::Query;
    use nfscope_api::query::QueryString;
    use nfscope_model::breakdown::Moved;

    const STYLE: TerminalStyle = TerminalStyle {
        color: false,
        utf8: true,
    };

    fn told() -> Breakdown {
        let mut b = Breakdown::new(Query::from_query("by=client,op&where=export:/a").unwrap());
        for line in [
            r#"{"header":{"host":"nas","by":["client","op"],"where":["export:/a"],"interval_seconds":1.0,"max_rows":200,"kernel_bytes":8388608}}"#,
            r#"{"at":1.0,"seconds":2.0,"by":["client","op"],"rows":[{"client":"10.0.0.1","op":"write","count":12,"sum_seconds":0.3,"buckets":[[0.001,3],[0.1,9]]},{"client":"\u001b[2Jevil","op":"read","count":2,"sum_seconds":0.1,"buckets":[[null,2]]}],"other":{"count":4,"sum_seconds":0.1,"buckets":[[0.1,4]]},"evicted":4,"cost_seconds":0.002}"#,
        ] {
            b.take(Ok(serde_json::from_str(line).unwrap()));
        }
        b
    }

    #[test]
    fn it_is_a_table() {
        let text = told().plain(80, STYLE);
        let lines: Vec<_> = text.lines().map(str::trim_end).collect();
        assert_eq!(
            lines[0],
            "nfscope  nas   last 2.00 s   by client, op   export:/a"
        );
        assert!(lines[2].starts_with("CLIENT"), "{text}");
        assert!(lines[3].starts_with("10.0.0.1"), "{text}");
        assert!(lines[3].ends_with("60.0 %"), "{text}");
        assert!(text.contains("(other)"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
        assert!(text.contains("4 operations found no room"), "{text}");
        assert!(text.contains("costs 0.1 % of a CPU and 8.4 MB"), "{text}");
        assert!(lines.iter().all(|l| l.chars().count() <= 80), "{text}");
    }

    #[test]
    fn keys_choose_dimensions() {
        let mut b = told();
        assert!(b.turn('F'));
        assert_eq!(
            b.query.by,
            [Dimension::Client, Dimension::Op, Dimension::File]
        );
        // A changed query drops the rows of the former one.
        assert!(b.interval.is_none());
        assert!(b.turn('C') && b.turn('F') && b.turn('O'));
        assert_eq!(b.query.by, [Dimension::Op]);
        assert!(!b.turn('x'));
        // Paths need the dimension of files, so N adds it.
        assert!(b.turn('N'));
        assert_eq!(b.query.by, [Dimension::Op, Dimension::File]);
        assert!(b.query.paths);
        assert!(b.turn('F'));
        assert!(!b.query.paths);
        b.take(Err(anyhow::anyhow!("no room")));
        assert_eq!(b.table(&Selection::default()).empty, "no room");
    }

    #[test]
    fn a_file_has_its_path_or_the_reason() {
        let mut b = Breakdown::new(Query::from_query("by=file&paths=true").unwrap());
        for line in [
            r#"{"header":{"host":"nas","by":["file"],"where":[],"interval_seconds":1.0,"max_rows":200,"kernel_bytes":1}}"#,
            r#"{"at":1.0,"seconds":1.0,"by":["file"],"rows":[{"file":"/a:7","path":"/a/\u001b[2Jevil","count":1,"sum_seconds":0.1,"buckets":[]},{"file":"/a:8","no_path":"it is gone","count":1,"sum_seconds":0.1,"buckets":[]}],"other":{"count":0,"sum_seconds":0.0,"buckets":[]},"evicted":0,"cost_seconds":0.0}"#,
        ] {
            b.take(Ok(serde_json::from_str(line).unwrap()));
        }
        let text = b.plain(80, STYLE);
        let lines: Vec<_> = text.lines().collect();
        assert!(
            lines[3].starts_with("/a/") && lines[3].contains("evil"),
            "{text}"
        );
        assert!(!text.contains('\u{1b}'), "{text:?}");
        assert!(lines[4].starts_with("/a:8"), "{text}");
        assert!(text.contains("1 without a path: it is gone"), "{text}");
    }

    #[test]
    fn buckets_are_ours() {
        let scheme = Scheme::TIME;
        let mut h = Histogram::new(scheme);
        for (i, c) in h.counts.iter_mut().enumerate() {
            *c = i as u64 % 3;
        }
        assert_eq!(histogram(&(&h, Moved::default()).into()), h);
    }
}
