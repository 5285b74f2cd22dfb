//! Text within HTML.

/// Escapes each character that could be markup, in elements and in attributes with double quotes.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
