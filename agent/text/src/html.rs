//! Text inside of HTML.

/// The text with each character that could be markup in its place, inside of elements and of attributes in double quotes.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
