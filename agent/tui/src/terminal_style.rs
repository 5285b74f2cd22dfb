//! Capabilities of the terminal.

use nfscope_text::console::steers;
use std::borrow::Cow;

/// Colours and characters that the terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalStyle {
    /// True with colours. Without them bars are made of letters.
    pub color: bool,
    /// True with characters beyond ASCII.
    pub utf8: bool,
}

impl TerminalStyle {
    /// Capabilities by the environment: NO_COLOR, TERM, and the locale's character set.
    pub fn of(var: impl Fn(&str) -> Option<String>) -> TerminalStyle {
        let set = |name| var(name).filter(|v| !v.is_empty());
        let locale = set("LC_ALL")
            .or_else(|| set("LC_CTYPE"))
            .or_else(|| set("LANG"));
        let locale = locale.unwrap_or_default().to_ascii_lowercase();
        TerminalStyle {
            color: set("NO_COLOR").is_none() && !is_dumb(&var),
            utf8: locale.contains("utf-8") || locale.contains("utf8"),
        }
    }

    /// Replaces the characters of `text` that this terminal does not show. Names come from clients and admins, so control characters are
    /// replaced, too.
    pub fn show<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let fine = |c: char| !steers(c) && (self.utf8 || c.is_ascii());
        if text.chars().all(fine) {
            return text.into();
        }
        let plain = |c: char| match c {
            c if fine(c) => c,
            'µ' => 'u',
            '…' => '~',
            '▼' => 'v',
            '▲' => '^',
            _ => '?',
        };
        text.chars().map(plain).collect()
    }
}

/// Returns true for a terminal without a cursor that can be moved.
pub fn is_dumb(var: &impl Fn(&str) -> Option<String>) -> bool {
    var("TERM").is_none_or(|t| t.is_empty() || t == "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style(vars: &[(&str, &str)]) -> TerminalStyle {
        TerminalStyle::of(|name| {
            let found = vars.iter().find(|(n, _)| *n == name);
            found.map(|(_, v)| (*v).to_owned())
        })
    }

    #[test]
    fn the_environment_decides() {
        let full = style(&[("TERM", "xterm"), ("LANG", "de_DE.UTF-8")]);
        assert!(full.color && full.utf8);
        assert!(!style(&[("TERM", "xterm"), ("NO_COLOR", "1")]).color);
        assert!(style(&[("TERM", "xterm"), ("NO_COLOR", "")]).color);
        assert!(!style(&[("TERM", "dumb")]).color);
        assert!(!style(&[]).utf8);
        assert!(!style(&[("LANG", "en_US.UTF-8"), ("LC_ALL", "C")]).utf8);
        assert!(style(&[("LANG", "C"), ("LC_ALL", ""), ("LC_CTYPE", "C.utf8")]).utf8);
    }

    #[test]
    fn nothing_steers_the_terminal() {
        let ascii = style(&[]);
        assert_eq!(ascii.show("/srv/\u{1b}[2Jü 3 µs…"), "/srv/?[2J? 3 us~");
        let utf8 = style(&[("LANG", "C.UTF-8")]);
        assert_eq!(utf8.show("/srv/\u{9b}2Jü\n"), "/srv/?2Jü?");
    }
}
