//! Lines of styled pieces, for a screen and for a pipe alike.

use crate::terminal_style::TerminalStyle;
use nfscope_text::table::cut;
use std::fmt::Write;

/// Style of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Strong,
    Head,
    Dim,
    Warning,
    Alarm,
    /// A choice of the user.
    Chosen,
    /// A phase, by its index in the list of phases.
    Part(usize),
}

impl Tone {
    /// Letter and background colour, as numbers among the sixteen colours of every terminal.
    pub(super) fn colors(self) -> (Option<u8>, Option<u8>) {
        // Colours of the phases: green for work, yellow and magenta for the two most common waits of a thread, cyan and red for the rest.
        // Between them are the rare phases.
        const PARTS: [u8; 9] = [2, 3, 5, 6, 4, 12, 13, 14, 1];
        match self {
            Tone::Plain | Tone::Strong | Tone::Dim | Tone::Chosen => (None, None),
            Tone::Head => (Some(6), None),
            Tone::Warning => (Some(3), None),
            Tone::Alarm => (Some(1), None),
            Tone::Part(i) => (Some(0), Some(PARTS[i % PARTS.len()])),
        }
    }

    /// Attributes: bold, dim, reversed.
    pub(super) fn weight(self) -> (bool, bool, bool) {
        match self {
            Tone::Plain | Tone::Part(_) => (false, false, false),
            Tone::Strong | Tone::Head | Tone::Warning | Tone::Alarm => (true, false, false),
            Tone::Dim => (false, true, false),
            Tone::Chosen => (false, false, true),
        }
    }
}

/// Pieces from left to right.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Line(pub(super) Vec<(Tone, String)>);

impl Line {
    pub(super) fn of(tone: Tone, text: impl Into<String>) -> Line {
        Line(vec![(tone, text.into())])
    }

    pub(super) fn push(&mut self, tone: Tone, text: impl Into<String>) {
        self.0.push((tone, text.into()));
    }

    pub(super) fn width(&self) -> usize {
        self.0.iter().map(|(_, t)| t.chars().count()).sum()
    }

    /// Cuts the line to `width`; `…` marks the cut.
    pub(super) fn cut(mut self, width: usize) -> Line {
        if self.width() <= width {
            return self;
        }
        let mut left = width;
        for (_, text) in &mut self.0 {
            let n = text.chars().count();
            if n > left || (n == left && left > 0) {
                *text = cut(&format!("{text} "), left);
            }
            left = left.saturating_sub(n);
        }
        self.0.retain(|(_, text)| !text.is_empty());
        self
    }

    /// Text for a pipe or a terminal without cursor: ANSI where there are colours, no blanks at the end.
    pub(super) fn print(&self, style: TerminalStyle) -> String {
        let mut out = String::new();
        for (tone, text) in &self.0 {
            let text = style.show(text);
            let codes = if style.color {
                ansi(*tone)
            } else {
                String::new()
            };
            if codes.is_empty() {
                out += &text;
            } else {
                let _ = write!(out, "\x1b[{codes}m{text}\x1b[0m");
            }
        }
        out.truncate(out.trim_end_matches(' ').len());
        out
    }
}

fn ansi(tone: Tone) -> String {
    let (bold, dim, reverse) = tone.weight();
    let (letters, ground) = tone.colors();
    let codes = [
        bold.then_some(1),
        dim.then_some(2),
        reverse.then_some(7),
        letters.map(|c| 30 + c),
        ground.map(|c| 40 + c),
    ];
    let codes: Vec<_> = codes.into_iter().flatten().map(|c| c.to_string()).collect();
    codes.join(";")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_line_says_so_and_keeps_its_tones() {
        let mut line = Line::of(Tone::Head, "abc");
        line.push(Tone::Plain, "defg");
        for (width, text) in [
            (7, "abcdefg"),
            (6, "abcde…"),
            (4, "abc…"),
            (3, "ab…"),
            (1, "…"),
            (0, ""),
        ] {
            let cut = line.clone().cut(width);
            let all: String = cut.0.iter().map(|(_, t)| t.as_str()).collect();
            assert_eq!(all, text, "{width}");
        }
        let color = TerminalStyle {
            color: true,
            utf8: true,
        };
        assert_eq!(line.print(color), "\x1b[1;36mabc\x1b[0mdefg");
        assert_eq!(
            line.print(TerminalStyle {
                color: false,
                ..color
            }),
            "abcdefg"
        );
    }
}
