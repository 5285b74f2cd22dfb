//! `nfscope baseline show`

use crate::estimate::Value;
use crate::list::{began, labels, note};
use crate::summary::{OpRow, Summary, WorkloadRow};
use crate::workload;
use nfscope_stats::MIN_STRETCHES;
use nfscope_text::console::{one_line, plain};
use nfscope_text::table::columns;
use nfscope_text::units;
use std::fmt::Write;

/// Share of the time and of the count below which operations are not shown.
const MIN_SHARE: f64 = 0.001;
/// Most gaps that are listed.
const MAX_GAPS: usize = 5;

/// Reason for which a figure of many windows has no interval.
const LONG_MEMORY: &str = "Figures of many windows without ±: windows far apart resemble each other more than neighbours explain,\n\
                           and no interval of one recording holds; several recordings at different times tell\n";

/// What `nfscope baseline show` prints.
pub fn page(s: &Summary) -> String {
    let (metadata, mut page) = (&s.entry.metadata, String::new());
    let mut line = |name: &str, text: &str| {
        if !text.is_empty() {
            let _ = writeln!(page, "{name:11}{}", one_line(text));
        }
    };
    let state = note(s.entry.state).map_or_else(String::new, |n| format!(" ({n})"));
    line("baseline", &format!("{}{state}", metadata.name));
    line("began", &began(metadata.began_ms));
    line(
        "length",
        &format!(
            "{} in {} of {}",
            units::length(s.entry.length),
            units::many(s.entry.windows as f64, "window"),
            units::length(metadata.interval)
        ),
    );
    line("missing", &gaps(s));
    line("host", &metadata.host);
    line("kernel", metadata.kernel.as_deref().unwrap_or("unknown"));
    line("agent", &metadata.agent);
    line("labels", &labels(&metadata.labels));
    let rate =
        shown_rate(s).map_or_else(|| "-".to_owned(), |v| value(v, |r| units::rate(r) + "/s"));
    if has_operations(s) {
        line("operations", &format!("{}, {rate}", s.operations));
    }
    let (rows, client) = (ops(s), of_workload(s));
    if client.len() > 1 {
        page += "\n";
        page += &columns(&client);
    }
    if rows.len() > 1 {
        page += "\n";
        page += &columns(&rows);
    }
    if rows.len() > 1 || client.len() > 1 {
        page += "\n± is half the width of the 95 % confidence interval; it is missing with too few windows or operations\n";
        page += &format!(
            "INDEPENDENT is the number of independent stretches: with fewer than {MIN_STRETCHES:.0}, nothing is compared\n"
        );
        if has_long_memory(s) {
            page += LONG_MEMORY;
        }
    }
    if s.entry.metadata.has_few_edges() {
        page += "Imported from classic histograms, whose few edges tell no quantiles\n";
    } else if let Some(first) = s
        .ops
        .first()
        .filter(|o| o.p99.is_some_and(|v| v.low.is_some()))
    {
        page += &match first.seconds_to_find {
            Some(seconds) => format!(
                "To detect a change of 10 % in the p99 of {}, record about {} before and after the change,\n\
                 if recordings of an unchanged server differ by nothing but their windows\n",
                one_line(&first.op),
                units::length(std::time::Duration::try_from_secs_f64(seconds).unwrap_or_default())
            ),
            None => format!(
                "A histogram bucket hides a change of 10 % in the p99 of {}: longer recordings do not find it\n",
                one_line(&first.op)
            ),
        };
    }
    plain(&page)
}

fn gaps(s: &Summary) -> String {
    if s.gaps.is_empty() {
        return String::new();
    }
    let mut all: Vec<_> = s
        .gaps
        .iter()
        .take(MAX_GAPS)
        .map(|g| format!("{:.1} s from {}", g.seconds, began(g.began_ms)))
        .collect();
    if let more @ 1.. = s.gaps.len().saturating_sub(MAX_GAPS) {
        all.push(format!("{more} more"));
    }
    format!(
        "{} in total: {}",
        units::length(s.missing()),
        all.join(", ")
    )
}

fn ops(s: &Summary) -> Vec<[String; 8]> {
    let heading = [
        "OPERATION",
        "SHARE",
        "OPS/S",
        "MEAN",
        "P50",
        "P90",
        "P99",
        "INDEPENDENT",
    ];
    let mut rows = vec![heading.map(str::to_owned)];
    let time = |v: Option<Value>| v.map_or_else(|| "-".to_owned(), |v| value(v, units::seconds));
    for op in shown_ops(s) {
        let [per_second, mean, p50, p90, p99] = figures(s, op);
        rows.push([
            op.op.clone(),
            units::percent(op.share),
            per_second.map_or_else(|| "-".to_owned(), |v| value(v, units::rate)),
            time(mean),
            time(p50),
            time(p90),
            time(p99),
            independent(op),
        ]);
    }
    rows
}

/// Operations that have a row.
fn shown_ops(s: &Summary) -> impl Iterator<Item = &OpRow> {
    let is_rare =
        move |op: &&OpRow| op.share < MIN_SHARE && op.operations < MIN_SHARE * s.operations;
    s.ops.iter().filter(move |op| !is_rare(op))
}

/// Figures in the row of an operation: rate, mean, p50, p90 and p99. Classic histograms tell no quantiles.
fn figures(s: &Summary, op: &OpRow) -> [Option<Value>; 5] {
    let quantile = |v: Option<Value>| v.filter(|_| !s.entry.metadata.has_few_edges());
    let [p50, p90, p99] = [op.p50, op.p90, op.p99].map(quantile);
    [op.rate, op.mean, p50, p90, p99]
}

/// Figures in the row of a workload: rate, bytes per second, mean, p50 and p99.
fn figures_of_workload(w: &WorkloadRow) -> [Option<Value>; 5] {
    let (op, moved) = (&w.row, w.bytes_per_second.filter(|v| v.value > 0.0));
    [op.rate, moved, op.mean, op.p50, op.p99]
}

/// Operations per second of all operations, where the page has them.
fn shown_rate(s: &Summary) -> Option<Value> {
    s.rate.filter(|_| has_operations(s))
}

fn has_operations(s: &Summary) -> bool {
    s.workload.is_empty() || s.operations > 0.0
}

/// Table of the workload that the client measured.
fn of_workload(s: &Summary) -> Vec<[String; 8]> {
    let heading = [
        "WORKLOAD",
        "OPS/S",
        "MiB/S",
        "MEAN",
        "P50",
        "P99",
        "FAILED",
        "INDEPENDENT",
    ];
    let mut rows = vec![heading.map(str::to_owned)];
    let shown = |v: Option<Value>, show: &dyn Fn(f64) -> String| {
        v.map_or_else(|| "-".to_owned(), |v| value(v, show))
    };
    for w in &s.workload {
        let (op, time) = (&w.row, units::seconds as fn(f64) -> String);
        let [per_second, moved, mean, p50, p99] = figures_of_workload(w);
        rows.push([
            workload::label(&w.job, &op.op),
            shown(per_second, &units::rate),
            shown(moved, &|b| units::rate(b / f64::from(1 << 20))),
            shown(mean, &time),
            shown(p50, &time),
            shown(p99, &time),
            format!("{:.0}", w.errors),
            independent(op),
        ]);
    }
    rows
}

/// True if a figure of the page has no interval although it has enough windows.
fn has_long_memory(s: &Summary) -> bool {
    let of_ops = shown_ops(s).flat_map(|op| figures(s, op));
    let of_workload = s.workload.iter().flat_map(figures_of_workload);
    let mut all = of_ops.chain(of_workload).chain([shown_rate(s)]).flatten();
    all.any(|v| v.long_memory)
}

/// The fewest independent stretches that any of the operation's figures is known from.
fn independent(op: &OpRow) -> String {
    let all = [op.rate, op.mean, op.p50, op.p90, op.p99];
    let each = all.into_iter().flatten().filter_map(|v| v.stretches);
    match each.reduce(f64::min) {
        Some(n) if n < MIN_STRETCHES => format!("{n:.0} (few)"),
        Some(n) => format!("{n:.0}"),
        None => "-".to_owned(),
    }
}

fn value(v: Value, show: impl Fn(f64) -> String) -> String {
    match v.half_width() {
        Some(h) => format!("{} ±{}", show(v.value), units::percent(h)),
        None => show(v.value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{CLASSIC, Metadata};
    use crate::store::{Entry, State};
    use std::time::Duration;

    fn figure(long_memory: bool) -> Option<Value> {
        let end = (!long_memory).then_some(1.0);
        Some(Value {
            value: 1.0,
            low: end,
            high: end,
            hidden: 0.0,
            stretches: Some(100.0),
            tail: None,
            memory: None,
            long_memory,
        })
    }

    /// An operation with this share of the time and of 10,000 operations, whose p90 has no interval.
    fn row(op: &str, share: f64) -> OpRow {
        OpRow {
            op: op.into(),
            operations: share * 1e4,
            share,
            rate: figure(false),
            mean: figure(false),
            p50: figure(false),
            p90: figure(true),
            p99: figure(false),
            seconds_to_find: None,
        }
    }

    fn summary(ops: Vec<OpRow>, kind: &str) -> Summary {
        let metadata = Metadata {
            name: "june".into(),
            began_ms: 0,
            host: "nfs1".into(),
            kernel: None,
            agent: "0.1.0".into(),
            interval: Duration::from_secs(10),
            labels: [(CLASSIC.0.to_owned(), kind.to_owned())].into(),
        };
        Summary {
            entry: Entry::without_store(metadata, State::Complete),
            gaps: Vec::new(),
            operations: 1e4,
            rate: figure(false),
            ops,
            workload: Vec::new(),
        }
    }

    /// The reason for a missing interval needs a figure on the page that has none.
    #[test]
    fn figures_that_are_left_out_have_no_reason() {
        let mut steady = row("read", 0.9995);
        steady.p90 = figure(false);
        let rare = summary(vec![steady.clone(), row("write", 0.0005)], "native");
        assert!(!page(&rare).contains("resemble each other"));
        let frequent = summary(vec![steady.clone(), row("write", 0.2)], "native");
        assert!(page(&frequent).contains("resemble each other"));
        // Quantiles of classic histograms are not shown.
        let classic = summary(vec![row("write", 1.0)], CLASSIC.1);
        assert!(!page(&classic).contains("resemble each other"));
        // The table of a workload has no p90, and there the rate of the server is not shown without an operation.
        let mut client = summary(Vec::new(), "native");
        (client.operations, client.rate) = (0.0, figure(true));
        client.workload = vec![WorkloadRow {
            job: "mail".into(),
            errors: 0.0,
            bytes_per_second: None,
            row: row("read", 1.0),
        }];
        assert!(!page(&client).contains("resemble each other"));
        client.workload[0].bytes_per_second = figure(true);
        assert!(page(&client).contains("resemble each other"));
    }
}
