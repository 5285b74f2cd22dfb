//! A self-contained HTML file, to keep, to send and to print.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use nfscope_text::console::steers;

const STYLE: &str = include_str!("style.css");

/// Page with this title around its content. It has no scripts and loads no other file.
pub fn document(title: &str, content: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main { (content) }
                footer { "Made by nfscope " (env!("CARGO_PKG_VERSION")) }
            }
        }
    };
    // Names may contain control characters, which HTML does not allow, and characters that change the direction of text, which mislead a
    // reader. Both are replaced.
    page.into_string()
        .replace(|c: char| steers(c) && c != '\n', "\u{fffd}")
}

/// Word quoted for a shell.
pub(crate) fn quoted(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-:/,=".contains(c);
    if !name.is_empty() && !name.starts_with(['-', '=']) && name.chars().all(plain) {
        return name.to_owned();
    }
    format!("'{}'", name.replace('\'', r"'\''"))
}
