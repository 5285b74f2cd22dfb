//! The table of a campaign as text, Markdown and CSV.

use crate::experiment::result::Unit;
use crate::experiment::table::{Cell, ResponseTable, Table, TableRow};
use crate::versions::{factor, probability};
use nfscope_stats::MIN_PAIRS;
use nfscope_text::console::plain;
use nfscope_text::table::columns;
use nfscope_text::units::{many, percent};
use std::fmt::Write;

/// Table for a terminal.
pub fn text(t: &Table) -> String {
    let mut out = String::new();
    for (title, head, rows) in tables(t) {
        let _ = writeln!(out, "{title}\n");
        let mut all = vec![head];
        all.extend(rows);
        out += &columns(&all);
        out.push('\n');
    }
    for note in notes(t) {
        let _ = writeln!(out, "{note}");
    }
    plain(&out)
}

/// Table in Markdown.
pub fn markdown(t: &Table) -> String {
    let mut out = String::new();
    let line = |cells: &[String]| {
        let cells: Vec<_> = cells.iter().map(|c| c.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    for (title, head, rows) in tables(t) {
        let _ = writeln!(out, "**{title}**\n");
        out += &line(&head);
        out += &line(&vec!["---".to_owned(); head.len()]);
        for row in rows {
            out += &line(&row);
        }
        out.push('\n');
    }
    for note in notes(t) {
        let _ = writeln!(out, "{note}\n");
    }
    plain(&out)
}

/// CSV with a line for each cell, with numbers in base units.
pub fn csv(t: &Table) -> String {
    let mut head = vec!["response".to_owned()];
    head.extend(t.factors.iter().cloned());
    head.extend(t.by.clone());
    let more = [
        "rounds",
        "mean",
        "low",
        "high",
        "ratio",
        "ratio_low",
        "ratio_high",
        "p",
    ];
    head.extend(more.map(str::to_owned));
    let mut out = csv_line(&head);
    let number = |v: Option<f64>| v.map_or(String::new(), |v| v.to_string());
    for r in &t.responses {
        for row in &r.rows {
            for (column, cell) in r.columns.iter().zip(&row.cells) {
                let Some(Cell { mean, rounds }) = cell else {
                    continue;
                };
                let mut line = vec![r.response.clone()];
                line.extend(row.levels.iter().cloned());
                line.extend(t.by.as_ref().map(|_| column.clone()));
                line.push(rounds.to_string());
                line.push(mean.mean.to_string());
                line.push(number(mean.half_width.map(|h| mean.mean - h)));
                line.push(number(mean.half_width.map(|h| mean.mean + h)));
                line.push(number(row.ratio));
                line.push(number(row.interval.map(|[low, _]| low)));
                line.push(number(row.interval.map(|[_, high]| high)));
                line.push(number(row.p));
                out += &csv_line(&line);
            }
        }
    }
    out
}

/// A line of CSV (RFC 4180). A field that a spreadsheet would take for a formula is text.
fn csv_line(fields: &[String]) -> String {
    let field = |f: &String| {
        let is_number = f.parse::<f64>().is_ok();
        let f = match f.starts_with(['=', '+', '-', '@']) && !is_number {
            true => format!("'{f}"),
            false => f.clone(),
        };
        match f.contains([',', '"', '\n', '\r']) {
            true => format!("\"{}\"", f.replace('"', "\"\"")),
            false => f,
        }
    };
    fields.iter().map(field).collect::<Vec<_>>().join(",") + "\n"
}

type Shown = (String, Vec<String>, Vec<Vec<String>>);

/// Title, head and rows of each table: one for each response, or one with a column for each.
fn tables(t: &Table) -> Vec<Shown> {
    let rounds = many(t.rounds as f64, "round");
    match &t.by {
        Some(by) => {
            let of = |r: &ResponseTable| {
                let title = format!("{}: {} by {by}, {rounds}", t.name, r.response);
                let mut head = vec!["CONFIGURATION".to_owned()];
                head.extend(r.columns.iter().map(|c| format!("{by}={c}")));
                head.extend(["GEO MEAN", "RATIO", "95 % CI", "P", "FINDS"].map(str::to_owned));
                let rows = r.rows.iter().map(|row| by_columns(r.unit, row));
                (title, head, rows.collect())
            };
            t.responses.iter().map(of).collect()
        }
        None => {
            let mut head = vec!["CONFIGURATION".to_owned()];
            head.extend(t.responses.iter().map(|r| short(&r.response)));
            let first = t.responses.first();
            let rows = first.map_or(&[][..], |r| &r.rows).iter().enumerate();
            let rows = rows.map(|(i, row)| {
                let mut line = vec![row.configuration.clone()];
                line.extend(t.responses.iter().map(|r| beside(r.unit, &r.rows[i])));
                line
            });
            vec![(format!("{}: {rounds}", t.name), head, rows.collect())]
        }
    }
}

fn by_columns(unit: Unit, row: &TableRow) -> Vec<String> {
    let mut line = vec![match row.found {
        true => format!("{} *", row.configuration),
        false => row.configuration.clone(),
    }];
    line.extend(row.cells.iter().map(|c| cell(unit, *c)));
    line.push(row.geometric_mean.map_or(String::new(), |v| unit.shown(v)));
    line.push(row.ratio.map_or(String::new(), factor));
    let interval = |[low, high]: [f64; 2]| format!("{} .. {}", factor(low), factor(high));
    line.push(row.interval.map_or(String::new(), interval));
    line.push(row.p.map_or(String::new(), probability));
    line.push(row.finds.map_or(String::new(), factor));
    line
}

/// A cell with its ratio to the first row: `1.23 ms ± 2.0 % (1.31x *)`
fn beside(unit: Unit, row: &TableRow) -> String {
    let star = if row.found { " *" } else { "" };
    let ratio = row.ratio.map(|r| format!(" ({}{star})", factor(r)));
    cell(unit, row.cells.first().copied().flatten()) + &ratio.unwrap_or_default()
}

fn cell(unit: Unit, cell: Option<Cell>) -> String {
    let Some(Cell { mean, .. }) = cell else {
        return "?".to_owned();
    };
    match mean.relative() {
        Some(part) => format!("{} ± {}", unit.shown(mean.mean), percent(part)),
        None => unit.shown(mean.mean),
    }
}

fn notes(t: &Table) -> Vec<String> {
    let first = t.responses.first().and_then(|r| r.rows.first());
    let mut all = Vec::new();
    if let Some(first) = first {
        let over = if t.by.is_some() {
            " over all columns"
        } else {
            ""
        };
        let mut text = format!(
            "Ratios are to {}, by pairs within rounds{over}.",
            first.configuration
        );
        if t.comparisons > 0 {
            let _ = write!(
                text,
                " * there is evidence of a difference beyond 2 %: p at most 0.05 by Holm's correction for {}.",
                many(t.comparisons as f64, "comparison")
            );
        }
        all.push(text);
    }
    if t.rounds < MIN_PAIRS {
        all.push(format!(
            "Ratios have neither intervals nor verdicts: {MIN_PAIRS} rounds are the fewest that have. Fix: nfscope experiment plan {} \
             --add-replicates {}",
            crate::html::quoted(&t.name),
            MIN_PAIRS - t.rounds
        ));
    } else if t.by.is_some() {
        all.push(
            "FINDS is the smallest difference that this many rounds find in four of five campaigns: smaller ones may be there."
                .to_owned(),
        );
    }
    all.extend(t.caveats.iter().map(|c| format!("caveat: {c}")));
    all
}

fn short(response: &str) -> String {
    response.trim_end_matches(" of the load").to_owned()
}
