//! A comparison as a self-contained HTML file, to keep, to send and to print.

use crate::compare::html::{plot, table};
use crate::compare::result::Comparison;
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("style.css");

/// The page that `nfscope baseline compare --html` writes. It has no scripts and loads no other file.
pub fn page(c: &Comparison) -> String {
    let (before, after) = (&c.before.metadata.name, &c.after.metadata.name);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (before) " and " (after) ": nfscope comparison" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    header {
                        h1 { "NFS server before and after: " (before) ", " (after) }
                        p.headline { (c.headline) }
                    }
                    (caveats(c))
                    h2 { "Recordings" }
                    (table::sides(c))
                    h2 { "What changed" }
                    @if let Some(forest) = plot::forest(&c.rows, c.min_effect) { div.forest-plot { (forest) } }
                    (table::rows(&c.rows))
                    (plots("Latency distributions", c.curves.iter().map(plot::density).collect()))
                    (plots("Where an operation's time goes", c.bars.iter().map(plot::phases).collect()))
                    (plots("Over time", c.time_series.iter().map(plot::time_series).collect()))
                    @if !c.next.is_empty() {
                        h2 { "What to record next" }
                        @for sentence in &c.next { p { (sentence) } }
                    }
                    (method(c))
                }
                footer { "Made by nfscope " (env!("CARGO_PKG_VERSION")) }
            }
        }
    };
    // Control characters are not allowed in HTML, and names may contain them.
    page.into_string()
        .replace(|c: char| c.is_control() && c != '\n', "\u{fffd}")
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
                li { "Lines over time have at most 300 points; each is the mean of the same number of windows." }
            }
            @if !c.left_out.is_empty() {
                li { "Not compared because they take hardly any time: " (c.left_out.join(", ")) "." }
            }
        }
        p {
            "All figures as JSON: "
            code {
                "nfscope baseline compare " (quoted(&c.before.recordings.join(","))) " " (quoted(&c.after.recordings.join(","))) " --json"
            }
        }
    }
}

/// A name as a shell takes it.
fn quoted(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-:/,".contains(c);
    if !name.is_empty() && !name.starts_with('-') && name.chars().all(plain) {
        return name.to_owned();
    }
    format!("'{}'", name.replace('\'', r"'\''"))
}
