//! The tables of the page.

use crate::compare::labels;
use crate::compare::result::{Comparison, Quantity, Row, Verdict};
use maud::{Markup, html};
use nfscope_stats::Interval;
use nfscope_text::units::many;
use std::collections::BTreeMap;

/// Properties that are the same on both sides, unless the change is one of them.
const SAME: [&str; 3] = ["host", "kernel", "agent"];

/// Properties of the two recordings, side by side. A difference in [`SAME`] is emphasized.
pub(super) fn sides(c: &Comparison) -> Markup {
    html! {
        table.sides {
            thead {
                tr { td {} th scope="col" { "before" } th scope="col" { "after" } }
            }
            tbody {
                @for [name, before, after] in labels::sides(c) {
                    @let differs = SAME.contains(&name.as_str()) && before != after;
                    @if name == "labels" {
                        @let both = [&c.before.metadata.labels, &c.after.metadata.labels];
                        tr { th scope="row" { (name) } td { (marked(both[0], both[1])) } td { (marked(both[1], both[0])) } }
                    } @else {
                        tr class=[differs.then_some("differs")] { th scope="row" { (name) } td { (before) } td { (after) } }
                    }
                }
            }
        }
    }
}

/// Labels of one side. Labels that the other side lacks, or has with another value, are emphasized.
fn marked(of: &BTreeMap<String, String>, other: &BTreeMap<String, String>) -> Markup {
    html! {
        @for (i, (key, value)) in of.iter().enumerate() {
            @if i > 0 { " " }
            @if other.get(key) == Some(value) { (key) "=" (value) } @else { b.differs { (key) "=" (value) } }
        }
    }
}

/// All compared quantities, those without evidence folded.
pub(super) fn rows(rows: &[Row]) -> Markup {
    let (changed, others): (Vec<Row>, Vec<Row>) =
        rows.iter().cloned().partition(|r| r.verdict.is_change());
    html! {
        @if rows.is_empty() {
            p { "Nothing was compared." }
        } @else {
            @if !changed.is_empty() { (table(&changed)) }
            @if rows.iter().any(|r| r.primary) { p { small { (labels::FOOTNOTE) } } }
            @if !others.is_empty() {
                details {
                    summary { (many(others.len() as f64, "row")) " without evidence of a change" }
                    (table(&others))
                }
            }
        }
    }
}

/// Table of rows. On a narrow screen each row becomes a card, so every cell has its heading.
fn table(rows: &[Row]) -> Markup {
    html! {
        table.rows {
            thead {
                tr {
                    @for name in ["quantity", "before", "after", "change", "p", "verdict"] {
                        th scope="col" { (name) }
                    }
                }
            }
            @for (subject, rows) in labels::by_subject(rows) {
                tbody {
                    tr.subject { th colspan="6" scope="rowgroup" { (subject) } }
                    @for row in rows { (line(row)) }
                }
            }
        }
    }
}

fn line(row: &Row) -> Markup {
    let (class, mark) = mark(row.verdict);
    html! {
        tr class=(class) {
            th scope="row" { (labels::marked(row)) }
            td data-label="before" { (side(&row.quantity, row.before)) }
            td data-label="after" { (side(&row.quantity, row.after)) }
            td data-label="change" {
                @if let Some((change, interval)) = labels::change(row.ratio) {
                    b { (change) }
                    @if let Some(interval) = interval { " " small { "95 % CI " (interval) } }
                } @else { (labels::NONE) }
            }
            td data-label="p" { (labels::probability(row.p)) }
            td.verdict data-label="verdict" {
                span.sign aria-hidden="true" { (mark) } " " (labels::verdict(row.verdict))
                @if row.finds.is_some() { " " small { "would have found " (labels::finds(row.finds)) } }
                @if let Some(why) = &row.why { " " small { (why) } }
            }
        }
    }
}

/// Ratio of the ends of an interval from which on it is too wide to be useful.
const WIDE: f64 = 1000.0;

fn side(quantity: &Quantity, of: Option<Interval>) -> Markup {
    html! {
        @match of {
            Some(e) => {
                (labels::value(quantity, e.value))
                @if e.low < e.high && e.low > 0.0 && e.high > WIDE * e.low {
                    " " small { "hardly known" }
                } @else if e.low < e.high && e.low.is_finite() && e.high.is_finite() {
                    " " small { (labels::value(quantity, e.low)) " .. " (labels::value(quantity, e.high)) }
                }
            }
            None => (labels::NONE),
        }
    }
}

/// CSS class and symbol of a verdict, so that it is found without colour.
fn mark(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Better => ("gain", "✓"),
        Verdict::Worse => ("worse", "✗"),
        Verdict::More => ("more", "▲"),
        Verdict::Less => ("less", "▼"),
        Verdict::NoEvidence => ("none", "○"),
        Verdict::Small => ("none", "≈"),
        Verdict::Few | Verdict::NotComparable | Verdict::NotTested | Verdict::NotJudged => {
            ("none", "–")
        }
    }
}
