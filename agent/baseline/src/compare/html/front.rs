//! The first page, for readers of the answer alone and for a signature.

use crate::compare::confounders::first_sentence;
use crate::compare::html::answer::{answer, main_row};
use crate::compare::html::dots;
use crate::compare::html::paper::{Paper, Worth};
use crate::compare::labels;
use crate::compare::result::{Comparison, Side};
use crate::durability::Direction;
use crate::list::{began, labels as labels_of};
use maud::{Markup, html};
use nfscope_text::units::{many, rate};

/// Most caveats on the first page.
const MOST: usize = 4;
/// Most recordings of a side that are named there.
const NAMES: usize = 6;

pub(super) fn page(c: &Comparison, paper: &Paper) -> Markup {
    let (before, after) = (&c.before.metadata.name, &c.after.metadata.name);
    let answers = answer(c);
    let (first, rest) = answers
        .split_first()
        .map_or(("", &[][..]), |(f, r)| (f.as_str(), r));
    let is_safe = c
        .durability
        .as_ref()
        .is_none_or(|d| d.direction == Direction::More);
    let worth = paper
        .worth
        .as_ref()
        .filter(|_| is_safe && c.not_judged.is_none());
    html! {
        section.front aria-label="Result" {
            header {
                h1 {
                    @match &paper.title {
                        Some(title) => (title),
                        None => { "NFS server before and after: " (before) ", " (after) }
                    }
                }
                @if let Some(note) = &paper.note { p.note { (note) } }
                p.answer { (first) }
                @for sentence in rest { p.more { (sentence) } }
            }
            div.shown {
                @if let (Some(row), Some(d)) = (main_row(c), &c.dots) {
                    @if let Some(drawn) = dots::draw(c, d, [row.before, row.after]) { div.dots { (drawn) } }
                }
                @if let Some(worth) = worth { div { (worth_of(worth)) } }
            }
            h2 { "What could be wrong" }
            ul {
                @for w in c.caveats.iter().take(MOST) { li { (sentence(first_sentence(&w.text))) } }
                @if c.caveats.len() > MOST {
                    li { (many((c.caveats.len() - MOST) as f64, "more caveat")) ": see the following pages." }
                }
                li { "nfscope compares recordings. That nothing else changed between both sides is for the person who signs to know." }
            }
            h2 { "Recorded" }
            (recorded(c))
            dl.origin {
                dt { "Command" } dd { code { (paper.command(c)) } }
                @for (side, digest) in ["before", "after"].iter().zip(&paper.digests) {
                    dt { "SHA-256 " (side) } dd { code { (digest) } }
                }
            }
            (lines())
        }
    }
}

/// Capacity of the server, before and after.
fn worth_of(worth: &Worth) -> Markup {
    html! {
        h2 { "What it is worth" }
        table.sides {
            thead { tr { th scope="col" { "Requests" } th scope="col" { "before" } th scope="col" { "after" } } }
            tbody {
                tr { th scope="row" { "measured" } @for s in &worth.sides { td { (rate(s.rate)) "/s" } } }
                tr {
                    th scope="row" { "at most" }
                    @for s in &worth.sides { td { (s.at_most()) @if s.extrapolated { "!" } } }
                }
                tr { th scope="row" { "limited by" } @for s in &worth.sides { td { (s.resource) } } }
                tr { th scope="row" { "in use" } @for s in &worth.sides { td { (s.in_use()) } } }
            }
        }
        @if worth.is_far() {
            p.soft { small { "! extrapolated: more than three times the measured load away. What happens there was not seen." } }
        }
    }
}

/// Origin of the recordings: who made them, when and how.
fn recorded(c: &Comparison) -> Markup {
    let both = |of: &dyn Fn(&Side) -> String| [of(&c.before), of(&c.after)];
    let by = |s: &Side| s.metadata.labels.get("by").cloned();
    let mut rows = vec![
        ("recordings", both(&names)),
        ("began", both(&|s| began(s.metadata.began_ms))),
        (
            "server",
            both(&|s| match &s.metadata.kernel {
                Some(kernel) => format!("{}, kernel {kernel}", s.metadata.host),
                None => s.metadata.host.clone(),
            }),
        ),
        ("agent", both(&|s| format!("nfscope {}", s.metadata.agent))),
        (
            "measured",
            both(&|s| {
                format!(
                    "{} in {}, {:.0} operations",
                    labels::length(s.seconds),
                    many(s.windows as f64, "window"),
                    s.operations
                )
            }),
        ),
    ];
    if by(&c.before).or_else(|| by(&c.after)).is_some() {
        rows.push((
            "by",
            both(&|s| by(s).unwrap_or_else(|| labels::NONE.to_owned())),
        ));
    }
    let other = |s: &Side| {
        let mut labels = s.metadata.labels.clone();
        labels.remove("by");
        labels
    };
    if !(other(&c.before).is_empty() && other(&c.after).is_empty()) {
        rows.push(("labels", both(&|s| labels_of(&other(s)))));
    }
    html! {
        table.sides {
            thead { tr { td {} th scope="col" { "before" } th scope="col" { "after" } } }
            tbody {
                @for (name, [before, after]) in rows {
                    tr { th scope="row" { (name) } td { (before) } td { (after) } }
                }
            }
        }
    }
}

/// Names of the recordings of a side; if there are many, the first ones.
fn names(side: &Side) -> String {
    let all = &side.recordings;
    match all.len() > NAMES {
        false => all.join(", "),
        true => format!("{} and {} more", all[..NAMES].join(", "), all.len() - NAMES),
    }
}

/// Empty lines for a signature.
fn lines() -> Markup {
    html! {
        div.lines {
            @for name in ["Name", "Date", "Signature", "Remarks"] {
                div class={ "field of-" (name.to_lowercase()) } { span { (name) } }
            }
        }
    }
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string());
    let text = first.unwrap_or_default() + letters.as_str();
    match text.ends_with(['.', '!', '?']) {
        true => text,
        false => text + ".",
    }
}
