//! Summary as text.

use crate::workload::summary::{Intervals, Summary};
use nfscope_stats::mean_interval::Interval;
use nfscope_text::table::widths;
use nfscope_text::units;
use nfscope_text::units::{percent, rate, seconds};
use std::fmt::Write;

const HEAD: [&str; 6] = ["JOB", "OP", "OPS/S", "MiB/S", "MEAN", "P99"];

/// Formats a page with a table.
pub fn text(s: &Summary) -> String {
    let mut out = String::new();
    let on = s.filesystem.as_ref().map(|f| format!(" on {}", f.name()));
    let _ = writeln!(
        out,
        "{} ({}) in {}{}, {}",
        s.workload,
        s.size,
        s.directory,
        on.unwrap_or_default(),
        s.fio
    );
    let long = s.runtime_seconds.map(|t| format!(" of {t} s"));
    let _ = writeln!(
        out,
        "{}{} after a warm-up run; mean and 95 % confidence interval\n",
        units::many(s.repeats as f64, "repeat"),
        long.unwrap_or_default()
    );
    let mut rows = vec![HEAD.map(str::to_owned)];
    for job in &s.jobs {
        rows.push(row(&job.job, &job.operation, &job.figures));
    }
    rows.push(row("total", "", &s.total));
    let widths = widths(&rows);
    for row in &rows {
        let mut line = String::new();
        for (i, (cell, width)) in row.iter().zip(widths).enumerate() {
            let _ = match i {
                0 | 1 => write!(line, "{cell:width$}  "),
                _ => write!(line, "{cell:>width$}  "),
            };
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
    if let Some(unit) = &s.unit {
        let _ = writeln!(
            out,
            "\n{}, {} operations each: {} per second, {} mean, {} p50, {} p99",
            unit.name,
            unit.operations,
            cell(unit.per_second, rate),
            cell(unit.seconds, seconds),
            cell(unit.p50_seconds, seconds),
            cell(unit.p99_seconds, seconds)
        );
    }
    if let (Some(wanted), Some(reached)) = (s.until_ci, s.reached) {
        let said = if reached { "reached" } else { "not reached" };
        let _ = writeln!(out, "\nthe target of ± {} was {said}", percent(wanted));
    }
    for warning in &s.warnings {
        let _ = writeln!(out, "\nwarning: {warning}");
    }
    out
}

fn row(job: &str, operation: &str, f: &Intervals) -> [String; 6] {
    [
        job.to_owned(),
        operation.to_owned(),
        cell(f.iops, rate),
        cell(f.bytes_per_second, |b| rate(b / f64::from(1 << 20))),
        cell(f.latency_seconds, seconds),
        cell(f.p99_seconds, seconds),
    ]
}

fn cell(interval: Option<Interval>, unit: impl Fn(f64) -> String) -> String {
    let Some(interval) = interval else {
        return "-".to_owned();
    };
    match interval.relative() {
        Some(part) => format!("{} ± {}", unit(interval.mean), percent(part)),
        None => unit(interval.mean),
    }
}
