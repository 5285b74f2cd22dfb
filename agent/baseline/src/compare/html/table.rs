//! The tables of the page.

use crate::compare::labels;
use crate::compare::result::{Comparison, Quantity, Row, Verdict};
use maud::{Markup, html};
use nfscope_stats::Interval;

/// What is the same on both sides, unless the change is one of it.
const SAME: [&str; 4] = ["host", "kernel", "agent", "labels"];

/// Properties of the two recordings, side by side. What differs and is mostly the same is emphasized.
pub(super) fn sides(c: &Comparison) -> Markup {
    html! {
        table.sides {
            thead {
                tr { td {} th scope="col" { "before" } th scope="col" { "after" } }
            }
            tbody {
                @for [name, before, after] in labels::sides(c) {
                    @let differs = SAME.contains(&name.as_str()) && before != after;
                    tr class=[differs.then_some("differs")] { th scope="row" { (name) } td { (before) } td { (after) } }
                }
            }
        }
    }
}

/// All compared quantities. On a narrow screen each row becomes a card, for which every cell knows its heading.
pub(super) fn rows(rows: &[Row]) -> Markup {
    html! {
        @if rows.is_empty() {
            p { "Nothing was compared." }
        } @else {
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
}

fn line(row: &Row) -> Markup {
    let (class, mark) = mark(row.verdict);
    html! {
        tr class=(class) {
            th scope="row" { (labels::quantity(&row.quantity)) }
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

fn side(quantity: &Quantity, of: Option<Interval>) -> Markup {
    html! {
        @match of {
            Some(e) => {
                (labels::value(quantity, e.value))
                @if e.low < e.high && e.low.is_finite() && e.high.is_finite() {
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
        Verdict::Better => ("better", "✓"),
        Verdict::Worse => ("worse", "✗"),
        Verdict::More => ("more", "▲"),
        Verdict::Less => ("less", "▼"),
        Verdict::NoEvidence => ("none", "○"),
        Verdict::Small => ("none", "≈"),
        Verdict::Few | Verdict::NotComparable | Verdict::NotTested => ("none", "–"),
    }
}
