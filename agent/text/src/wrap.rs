//! Paragraphs in a terminal.

/// Adds a paragraph in lines of at most `width` columns. Lines after the first begin below the text of the first.
pub fn wrap(out: &mut String, width: usize, lead: &str, text: &str) {
    let indent = lead.chars().count();
    let mut line = lead.to_owned();
    let mut empty = true;
    for word in text.split(' ') {
        if !empty && line.chars().count() + 1 + word.chars().count() > width {
            out.push_str(line.trim_end());
            out.push('\n');
            line = " ".repeat(indent);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line += word;
        empty = false;
    }
    out.push_str(line.trim_end());
    out.push('\n');
}
