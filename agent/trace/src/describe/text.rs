//! A load as text: reservations first.

use super::{Load, Places};
use crate::describe::sketch::Distribution;
use nfscope_text::table::columns;
use nfscope_text::{units, wrap};
use std::fmt::Write as _;
use std::time::Duration;

/// Rows of a table that the text has.
const ROWS: usize = 12;
const WIDTH: usize = 78;
/// Widest bar of a histogram.
const BAR: f64 = 40.0;

/// A number of bytes: `4 KiB`, `1.5 MiB`.
pub fn size(bytes: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (bytes, 0);
    while value >= 1023.5 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    let text = match value {
        v if v >= 99.95 || (v - v.round()).abs() < 0.005 => format!("{v:.0}"),
        v => format!("{v:.1}"),
    };
    format!("{text} {}", units[unit])
}

fn part(n: u64, all: u64) -> String {
    match all {
        0 => "?".to_owned(),
        _ => units::percent(n as f64 / all as f64),
    }
}

fn time(nanoseconds: Option<f64>) -> String {
    nanoseconds.map_or_else(|| "?".to_owned(), |n| units::seconds(n / 1e9))
}

fn quantile(of: &Distribution, part: f64) -> String {
    time(of.quantile(part).map(|n| n as f64))
}

/// The load as text.
pub fn render(load: &Load) -> String {
    let mut out = String::new();
    for reservation in &load.reservations {
        wrap::wrap(&mut out, WIDTH, "! ", reservation);
    }
    if !load.reservations.is_empty() {
        out.push('\n');
    }
    let length = Duration::try_from_secs_f64(load.seconds).unwrap_or_default();
    let rate = match load.seconds > 0.0 {
        true => units::rate(load.operations as f64 / load.seconds),
        false => "?".to_owned(),
    };
    let _ = writeln!(
        out,
        "{} operations in {}, {rate}/s, of {}\n",
        load.operations,
        units::length(length),
        units::many(load.clients.len() as f64, "client")
    );
    mix(load, &mut out);
    sizes("READ sizes", &load.read_sizes, &mut out);
    sizes("WRITE sizes", &load.write_sizes, &mut out);
    durability(load, &mut out);
    sequence(load, &mut out);
    sharing(load, &mut out);
    working_set(load, &mut out);
    bursts(load, &mut out);
    clients(load, &mut out);
    hot(load, &mut out);
    failures(load, &mut out);
    out
}

fn table(title: &str, rows: &[Vec<String>], out: &mut String) {
    let _ = writeln!(out, "{title}");
    for line in columns(rows).lines() {
        let _ = writeln!(out, "  {line}");
    }
    out.push('\n');
}

fn row(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|c| (*c).to_owned()).collect()
}

fn mix(load: &Load, out: &mut String) {
    let mut rows = vec![row(&[
        "op", "version", "number", "part", "bytes", "median", "p99", "failed",
    ])];
    for k in load.mix.iter().take(2 * ROWS) {
        rows.push(vec![
            k.op.clone(),
            k.version.clone(),
            k.operations.to_string(),
            part(k.operations, load.operations),
            match k.bytes {
                0 => String::new(),
                bytes => size(bytes as f64),
            },
            quantile(&k.nanoseconds, 0.5),
            quantile(&k.nanoseconds, 0.99),
            k.failed.to_string(),
        ]);
    }
    table("Mix (times to 12.5 %)", &rows, out);
}

fn sizes(title: &str, of: &Distribution, out: &mut String) {
    if of.count() == 0 {
        return;
    }
    // Buckets of the text double; those of the JSON are eight times as fine.
    let mut doubled: Vec<(u64, u64)> = Vec::new();
    for bucket in of.buckets() {
        let from = match bucket.from {
            0 => 0,
            n => 1 << n.ilog2(),
        };
        match doubled.last_mut() {
            Some(last) if last.0 == from => last.1 += bucket.count,
            _ => doubled.push((from, bucket.count)),
        }
    }
    let most = doubled.iter().map(|d| d.1).max().unwrap_or(1) as f64;
    let rows: Vec<_> = (doubled.iter())
        .map(|(from, count)| {
            let bar = "#".repeat((BAR * *count as f64 / most).ceil() as usize);
            vec![
                format!("from {}", size(*from as f64)),
                part(*count, of.count()),
                bar,
            ]
        })
        .collect();
    let mean = of.mean().map_or_else(|| "?".to_owned(), size);
    table(&format!("{title}: {mean} on average"), &rows, out);
}

fn durability(load: &Load, out: &mut String) {
    let s = &load.stabilities;
    let all = s.unstable + s.data_sync + s.file_sync + s.unknown;
    if all == 0 {
        return;
    }
    let _ = writeln!(
        out,
        "WRITEs ask for: unstable {}, data_sync {}, file_sync {}, not known {}",
        part(s.unstable, all),
        part(s.data_sync, all),
        part(s.file_sync, all),
        part(s.unknown, all)
    );
    let c = &load.files.commits;
    if c.writes.count() > 0 {
        let of = |d: &Distribution, part: f64| d.quantile(part).unwrap_or(0);
        let _ = writeln!(
            out,
            "A COMMIT makes durable: {:.1} unstable WRITEs on average (median {}, p99 {}), {} (median {})",
            c.writes.mean().unwrap_or_default(),
            of(&c.writes, 0.5),
            of(&c.writes, 0.99),
            size(c.bytes.mean().unwrap_or_default()),
            size(of(&c.bytes, 0.5) as f64)
        );
    }
    let _ = writeln!(
        out,
        "COMMITs without an unstable WRITE before: {}; unstable WRITEs without a COMMIT: {}\n",
        c.without_writes, c.writes_left
    );
}

fn sequence(load: &Load, out: &mut String) {
    let line = |name: &str, p: &Places| {
        let all = p.sequential + p.near + p.random;
        vec![
            name.to_owned(),
            part(p.sequential, all),
            part(p.near, all),
            part(p.random, all),
        ]
    };
    let rows = [
        row(&["", "sequential", "within 1 MiB", "random"]),
        line("READ", &load.files.reads),
        line("WRITE", &load.files.writes),
    ];
    table(
        "Sequence: where an operation begins, seen from the end of the one before it in its file",
        &rows,
        out,
    );
}

fn sharing(load: &Load, out: &mut String) {
    let s = &load.files.sharing;
    let rows = [
        ("one client", s.one_client),
        ("read by several", s.read_by_several),
        (
            "written by one, read by others",
            s.written_by_one_read_by_others,
        ),
        ("written by several", s.written_by_several),
    ];
    let rows: Vec<_> = (rows.iter())
        .map(|(name, n)| vec![(*name).to_owned(), format!("{n:.0}")])
        .collect();
    table("Files with READs or WRITEs, by their clients", &rows, out);
}

fn working_set(load: &Load, out: &mut String) {
    let c = &load.course;
    let mut rows = vec![row(&["from", "operations", "files", "bytes", "so far"])];
    let every = c.intervals.len().div_ceil(ROWS).max(1);
    for (i, interval) in c.intervals.iter().enumerate().step_by(every) {
        let from = Duration::try_from_secs_f64(i as f64 * c.seconds).unwrap_or_default();
        rows.push(vec![
            units::length(from),
            interval.operations.to_string(),
            format!("{:.0}", interval.files),
            size(interval.bytes),
            size(interval.bytes_so_far),
        ]);
    }
    let each = Duration::try_from_secs_f64(c.seconds).unwrap_or_default();
    let title = format!(
        "Working set: {:.0} files, {} read or written in blocks of 64 KiB (to 2.3 %); intervals of {}",
        c.files,
        size(c.bytes),
        units::length(each)
    );
    table(&title, &rows, out);
}

fn bursts(load: &Load, out: &mut String) {
    let mut rows = vec![row(&["interval", "dispersion", "most operations"])];
    for b in &load.bursts {
        rows.push(vec![
            units::seconds(b.seconds),
            b.dispersion
                .map_or_else(|| "?".to_owned(), |d| format!("{d:.1}")),
            b.most.to_string(),
        ]);
    }
    let title = "Bursts: variance of the operations of an interval over their mean; arrivals at random have 1";
    table(title, &rows, out);
    let _ = writeln!(
        out,
        "Gaps between arrivals: median {}, p99 {}\n",
        quantile(&load.gaps, 0.5),
        quantile(&load.gaps, 0.99)
    );
}

fn clients(load: &Load, out: &mut String) {
    let mut rows = vec![row(&["client", "operations", "part", "bytes"])];
    for c in load.clients.iter().take(ROWS) {
        rows.push(vec![
            c.name.clone(),
            c.operations.to_string(),
            part(c.operations, load.operations),
            size(c.bytes as f64),
        ]);
    }
    table("Clients", &rows, out);
}

fn hot(load: &Load, out: &mut String) {
    let mut rows = vec![row(&["file", "operations", "part", "too high by at most"])];
    for f in load.hot_by_operations.iter().take(ROWS) {
        rows.push(vec![
            f.file.to_string(),
            f.count.to_string(),
            part(f.count, load.operations),
            f.error.to_string(),
        ]);
    }
    table("Hot files", &rows, out);
}

fn failures(load: &Load, out: &mut String) {
    if load.failures.is_empty() {
        return;
    }
    let mut rows = vec![row(&["op", "status", "operations"])];
    for f in load.failures.iter().take(ROWS) {
        rows.push(vec![
            f.op.clone(),
            f.status.to_string(),
            f.operations.to_string(),
        ]);
    }
    table("Failures", &rows, out);
}
