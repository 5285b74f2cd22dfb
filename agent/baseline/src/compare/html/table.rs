//! The tables of the page.

use crate::compare::labels as words;
use crate::compare::result::{Comparison, Estimate, Quantity, Row, Verdict};
use maud::{Markup, html};

/// What is known of the two recordings, side by side.
pub(super) fn sides(c: &Comparison) -> Markup {
    html! {
        table.sides {
            thead {
                tr { td {} th scope="col" { "before" } th scope="col" { "after" } }
            }
            tbody {
                @for [name, before, after] in words::sides(c) {
                    tr { th scope="row" { (name) } td { (before) } td { (after) } }
                }
            }
        }
    }
}

/// All that was compared. On a narrow screen each row becomes a card, for which every cell knows its heading.
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
                @for (subject, rows) in words::by_subject(rows) {
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
            th scope="row" { (words::quantity(&row.quantity)) }
            td data-label="before" { (side(&row.quantity, row.before)) }
            td data-label="after" { (side(&row.quantity, row.after)) }
            td data-label="change" {
                @if let Some((change, interval)) = words::change(row.ratio) {
                    b { (change) }
                    @if let Some(interval) = interval { " " small { "95 % CI " (interval) } }
                } @else { (words::NONE) }
            }
            td data-label="p" { (words::probability(row.p)) }
            td.verdict data-label="verdict" {
                span.sign aria-hidden="true" { (mark) } " " (words::verdict(row.verdict))
                @if let Some(why) = &row.why { " " small { (why) } }
            }
        }
    }
}

fn side(quantity: &Quantity, of: Option<Estimate>) -> Markup {
    html! {
        @match of {
            Some(e) => {
                (words::value(quantity, e.value))
                @if e.low < e.high && e.low.is_finite() && e.high.is_finite() {
                    " " small { (words::value(quantity, e.low)) " .. " (words::value(quantity, e.high)) }
                }
            }
            None => (words::NONE),
        }
    }
}

/// Its class, and a sign beside the word, so that neither colour nor reading is needed to find it.
fn mark(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Better => ("better", "✓"),
        Verdict::Worse => ("worse", "✗"),
        Verdict::More => ("more", "▲"),
        Verdict::Less => ("less", "▼"),
        Verdict::NoEvidence => ("none", "○"),
        Verdict::NotComparable => ("none", "–"),
    }
}
