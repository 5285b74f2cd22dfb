//! `nfscope baseline show`

use crate::estimate::Value;
use crate::list::{began, labels, note};
use crate::summary::{OpRow, Summary};
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
    let rate = s
        .rate
        .map_or_else(|| "-".to_owned(), |v| value(v, |r| units::rate(r) + "/s"));
    if s.workload.is_empty() || s.operations > 0.0 {
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
    for op in &s.ops {
        if op.share < MIN_SHARE && op.operations < MIN_SHARE * s.operations {
            continue;
        }
        let quantile = |v: Option<Value>| time(v.filter(|_| !s.entry.metadata.has_few_edges()));
        rows.push([
            op.op.clone(),
            units::percent(op.share),
            op.rate
                .map_or_else(|| "-".to_owned(), |v| value(v, units::rate)),
            time(op.mean),
            quantile(op.p50),
            quantile(op.p90),
            quantile(op.p99),
            independent(op),
        ]);
    }
    rows
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
        let moved = w.bytes_per_second.filter(|v| v.value > 0.0);
        rows.push([
            workload::label(&w.job, &op.op),
            shown(op.rate, &units::rate),
            shown(moved, &|b| units::rate(b / f64::from(1 << 20))),
            shown(op.mean, &time),
            shown(op.p50, &time),
            shown(op.p99, &time),
            format!("{:.0}", w.errors),
            independent(op),
        ]);
    }
    rows
}

/// True if a figure has no interval although it has enough windows.
fn has_long_memory(s: &Summary) -> bool {
    let ops = s.ops.iter().chain(s.workload.iter().map(|w| &w.row));
    let of_op = |op: &OpRow| [op.rate, op.mean, op.p50, op.p90, op.p99];
    let mut all = ops.flat_map(of_op).chain([s.rate]).flatten();
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
