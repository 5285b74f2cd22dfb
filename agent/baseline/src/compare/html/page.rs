//! A comparison as a self-contained HTML file, to keep, to send and to print.

use crate::compare::html::paper::Paper;
use crate::compare::html::{front, plot, table};
use crate::compare::result::Comparison;
use crate::html::{document, quoted};
use maud::{Markup, html};

/// Page without the facts that only a caller knows.
pub fn page(c: &Comparison) -> String {
    page_to_sign(c, &Paper::default())
}

/// The page that `nfscope baseline compare --html` writes.
pub fn page_to_sign(c: &Comparison, paper: &Paper) -> String {
    let (before, after) = (&c.before.metadata.name, &c.after.metadata.name);
    let began = [&c.before, &c.after].map(|side| side.metadata.began_ms);
    let (durability, rest) = c.paragraphs();
    let content = html! {
        (front::page(c, paper))
        section.details {
            h2 { "In detail" }
            @if let Some(text) = durability { p.headline { strong { (text) } } }
            p.headline { (rest) }
            (caveats(c))
            @if !c.rows.is_empty() {
                h2 { "What changed" }
                @if let Some(forest) = plot::forest(&c.rows, c.min_effect) { div.forest-plot { (forest) } }
                (table::rows(&c.rows))
            }
            h2 { "Recordings" }
            (table::sides(c))
            (plots("Latency distributions", plot::density(&c.curves)))
            (plots("Where an operation's time goes", plot::phases(&c.bars)))
            (plots("Over time", plot::time_series(&c.time_series, began)))
            @if !c.next.is_empty() {
                h2 { "What to record next" }
                @for sentence in &c.next { p { (sentence) } }
            }
            (method(c))
        }
    };
    let title = match &paper.title {
        Some(title) => format!("{title}: nfscope comparison"),
        None => format!("{before} and {after}: nfscope comparison"),
    };
    document(&title, &content)
}

fn caveats(c: &Comparison) -> Markup {
    html! {
        @if !c.caveats.is_empty() {
            section.caveats aria-label="Caveats" {
                @for w in &c.caveats {
                    p { strong { "Caveat (" (w.kind) "): " } (w.text) }
                }
            }
        }
    }
}

fn plots(title: &str, drawn: Vec<Markup>) -> Markup {
    html! {
        @if !drawn.is_empty() {
            h2 { (title) }
            div.plots {
                @for plot in drawn { (plot) }
            }
        }
    }
}

fn method(c: &Comparison) -> Markup {
    let [before, after] = [&c.before, &c.after].map(|side| side.recordings.join(","));
    html! {
        h2 { "Method" }
        ul {
            @for sentence in &c.method { li { (sentence) } }
            @if !c.curves.is_empty() {
                li {
                    "The p50 and p99 in the plots are those of the table, or of their buckets where values are too few. Buckets at both "
                    "ends with less than 0.01 % of the values of either side are not drawn."
                }
            }
            @if !c.time_series.is_empty() {
                @if c.time_series.iter().any(|t| t.changes.iter().any(|at| !at.is_empty())) {
                    li {
                        "Upright lines over time are changes during a recording, as " code { "nfscope baseline changes" } " finds them: "
                        "E-divisive (Matteson and James 2014). A daily wave is a change, too."
                    }
                }
                li { "Lines over time have at most 300 points; each is the mean of the same number of windows." }
            }
            @if !c.left_out.is_empty() {
                li { "Not compared because they take hardly any time: " (c.left_out.join(", ")) "." }
            }
        }
        p {
            "All figures as JSON: "
            code {
                "nfscope baseline compare " (quoted(&before))
                @if after != before { " " (quoted(&after)) }
                " --json"
            }
            ", with the other options of this comparison if it had any."
        }
    }
}
