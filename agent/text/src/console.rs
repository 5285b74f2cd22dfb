//! Messages for the person at the terminal or the journal, beside the output of a command.

use crate::timestamp::date;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::SystemTime;

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Details for debugging: every request.
    Debug,
    /// Actions of the program.
    Info,
    /// Problems that an admin should know.
    Warn,
    /// The error that ends the program.
    Error,
}

impl Level {
    /// All levels, the least important first.
    pub const ALL: [Level; 4] = [Level::Debug, Level::Info, Level::Warn, Level::Error];

    /// Name of the level.
    pub fn word(self) -> &'static str {
        match self {
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
        }
    }

    /// The level of this name.
    pub fn of(word: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|l| l.word() == word)
    }
}

/// The least important level that is written.
static LEAST: AtomicU8 = AtomicU8::new(Level::Info as u8);
/// True if lines are JSON.
static JSON: AtomicBool = AtomicBool::new(false);

/// Sets the least level that is written from now on, and the form of lines: text or JSON.
pub fn configure(least: Level, json: bool) {
    LEAST.store(least as u8, Ordering::Relaxed);
    JSON.store(json, Ordering::Relaxed);
}

/// True for characters that steer a terminal: control characters, and those that turn the direction of the text after them.
pub fn steers(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text with `?` for each character that [`steers`], but for the ends of lines. Names and labels come from other machines, and must not
/// steer the terminal.
pub fn plain(text: &str) -> String {
    text.replace(|c: char| steers(c) && c != '\n', "?")
}

/// Text as one line that steers no terminal: a line end in a name must not begin a line that looks like the program's own.
pub fn one_line(text: &str) -> String {
    text.replace(steers, "?")
}

/// A value as one line of JSON that steers no terminal, with the end of the line.
///
/// # Errors
/// When the value cannot be JSON.
pub fn json(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(escaped(&serde_json::to_string(value)?) + "\n")
}

/// JSON without spaces, in which only strings can have characters that [`steers`] finds: each becomes an escape of the same meaning.
fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if steers(c) {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// Writes a line to stderr, for a terminal or the journal. A closed stderr is no reason to stop measuring; `eprintln!` would panic on it.
pub fn log(level: Level, line: &str) {
    if level as u8 >= LEAST.load(Ordering::Relaxed) {
        let json = JSON.load(Ordering::Relaxed);
        let text = format(level, line, json.then(SystemTime::now));
        let _ = io::stderr().write_all(text.as_bytes());
    }
}

/// Formats a line; with a time as an object of JSON.
fn format(level: Level, line: &str, at: Option<SystemTime>) -> String {
    match (at, level) {
        (Some(at), _) => {
            let fields = [("time", date(at)), ("level", level.word().to_owned())];
            let mut out = String::from("{");
            for (name, value) in fields.into_iter().chain([("msg", line.to_owned())]) {
                let comma = if out.len() > 1 { "," } else { "" };
                let value = serde_json::Value::String(value).to_string();
                out += &format!("{comma}\"{name}\":{}", escaped(&value));
            }
            out + "}\n"
        }
        (None, Level::Error) => format!("error: {}\n", plain(line)),
        (None, _) => format!("nfscope: {}\n", plain(line)),
    }
}

/// Logs an action of the program, in one line.
pub fn say(line: &str) {
    log(Level::Info, line);
}

/// Logs a problem that an admin should know, in one line.
pub fn warn(line: &str) {
    log(Level::Warn, line);
}

/// Writes text to stdout. A reader that closed the pipe early has read enough: that is no error.
///
/// # Errors
/// When it cannot be written for another reason.
pub fn print(text: &str) -> io::Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// True if stdout is a terminal and the environment does not turn colours off (NO_COLOR).
pub fn colors() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn lines_are_text_or_json() {
        assert_eq!(format(Level::Warn, "a \"b\"", None), "nfscope: a \"b\"\n");
        assert_eq!(format(Level::Error, "why", None), "error: why\n");
        let at = SystemTime::UNIX_EPOCH + Duration::from_millis(1500);
        assert_eq!(
            format(Level::Warn, "a \"b\"\n", Some(at)),
            "{\"time\":\"1970-01-01T00:00:01.500000Z\",\"level\":\"warn\",\"msg\":\"a \\\"b\\\"\\n\"}\n"
        );
    }

    /// Characters that a terminal may take for commands, and characters that it shows.
    const HOSTILE: &str = "a\u{1b}[2J\u{7f}\u{9b}31m\u{202e}b\u{2066}\u{2069}ä\u{2028}\t\n";

    #[test]
    fn text_steers_no_terminal() {
        assert_eq!(plain(HOSTILE), "a?[2J??31m?b??ä\u{2028}?\n");
        assert_eq!(plain("one\ntwo"), "one\ntwo");
    }

    #[test]
    fn json_steers_no_terminal_and_says_the_same() {
        let value = serde_json::json!({ HOSTILE: [HOSTILE, 1.5, null] });
        let line = json(&value).unwrap();
        assert_eq!(line.find(steers), Some(line.len() - 1), "{line:?}");
        assert!(line.contains("\\u007f\\u009b31m\\u202eb"), "{line}");
        let back: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(back, value);
        let logged = format(Level::Warn, HOSTILE, Some(SystemTime::UNIX_EPOCH));
        assert_eq!(logged.find(steers), Some(logged.len() - 1), "{logged:?}");
    }

    #[test]
    fn levels_have_names() {
        for level in Level::ALL {
            assert_eq!(Level::of(level.word()), Some(level));
        }
        assert_eq!(Level::of("loud"), None);
        assert!(Level::ALL.is_sorted());
    }
}
