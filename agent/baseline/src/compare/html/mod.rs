//! A comparison as a page: one file that needs nothing else, to keep, to send and to print.

mod plot;
mod table;

use crate::compare::result::Comparison;
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("style.css");

/// The page that `nfscope baseline compare --html` writes: no script, no font, nothing from elsewhere.
pub fn page(c: &Comparison) -> String {
    let (before, after) = (&c.before.about.name, &c.after.about.name);
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
                        p.answer { (c.answer) }
                    }
                    (warnings(c))
                    h2 { "The two sides" }
                    (table::sides(c))
                    h2 { "What changed" }
                    (table::rows(&c.rows))
                    (plots("Latency distributions", c.curves.iter().map(plot::density::draw).collect()))
                    (plots("Where an operation's time goes", c.bars.iter().map(plot::phases::draw).collect()))
                    (plots("Over time", c.courses.iter().map(plot::time_series::draw).collect()))
                    (method(c))
                }
                footer { "Made by nfscope " (env!("CARGO_PKG_VERSION")) }
            }
        }
    };
    // What no document may contain, whoever put it into a name.
    page.into_string()
        .replace(|c: char| c.is_control() && c != '\n', "\u{fffd}")
}

fn warnings(c: &Comparison) -> Markup {
    html! {
        @if !c.warnings.is_empty() {
            section.warnings aria-label="Warnings" {
                @for w in &c.warnings {
                    p { strong { "Warning (" (w.kind) "): " } (w.text) }
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
        h2 { "How this was computed" }
        ul {
            @for sentence in &c.method { li { (sentence) } }
            @if !c.curves.is_empty() {
                li {
                    "The p50 and p99 in the drawings are those of the buckets drawn. Buckets at the ends that hold less than "
                    "0.01 % of the values of either side are not drawn."
                }
            }
            @if !c.courses.is_empty() {
                li { "Lines over time are averages over at most 300 stretches of equal numbers of windows." }
            }
            @if !c.left_out.is_empty() {
                li { "Left out because they hardly take any time: " (c.left_out.join(", ")) "." }
            }
        }
        p {
            "All figures as JSON: "
            code {
                "nfscope baseline compare " (quoted(&c.before.about.name)) " " (quoted(&c.after.about.name)) " --json"
            }
        }
    }
}

/// A name as a shell takes it.
fn quoted(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-:/".contains(c);
    if !name.is_empty() && !name.starts_with('-') && name.chars().all(plain) {
        return name.to_owned();
    }
    format!("'{}'", name.replace('\'', r"'\''"))
}
