//! Words for whoever watches, beside what a command prints.

use crate::timestamp::date;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::SystemTime;

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For whoever looks for a mistake: every request.
    Debug,
    /// What the program does.
    Info,
    /// What an admin should know of.
    Warn,
    /// Why the program ends.
    Error,
}

impl Level {
    /// All of them, the least important first.
    pub const ALL: [Level; 4] = [Level::Debug, Level::Info, Level::Warn, Level::Error];

    /// Its name.
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
/// Whether lines are JSON.
static JSON: AtomicBool = AtomicBool::new(false);

/// Chooses which lines are written from now on, and whether as JSON.
pub fn configure(least: Level, json: bool) {
    LEAST.store(least as u8, Ordering::Relaxed);
    JSON.store(json, Ordering::Relaxed);
}

/// Text without control characters, but for the ends of lines: names and labels come from other machines, and must not steer the
/// terminal.
pub fn plain(text: &str) -> String {
    text.replace(|c: char| c.is_control() && c != '\n', "?")
}

/// One line on stderr, for a terminal or the journal. That it is closed is no reason to stop measuring, and `eprintln!` would
/// panic on it.
pub fn log(level: Level, line: &str) {
    if level as u8 >= LEAST.load(Ordering::Relaxed) {
        let json = JSON.load(Ordering::Relaxed);
        let text = format(level, line, json.then(SystemTime::now));
        let _ = io::stderr().write_all(text.as_bytes());
    }
}

/// With a time: one object of JSON.
fn format(level: Level, line: &str, at: Option<SystemTime>) -> String {
    match (at, level) {
        (Some(at), _) => {
            let fields = [("time", date(at)), ("level", level.word().to_owned())];
            let mut out = String::from("{");
            for (name, value) in fields.into_iter().chain([("msg", line.to_owned())]) {
                let comma = if out.len() > 1 { "," } else { "" };
                out += &format!("{comma}\"{name}\":{}", serde_json::Value::String(value));
            }
            out + "}\n"
        }
        (None, Level::Error) => format!("error: {}\n", plain(line)),
        (None, _) => format!("nfscope: {}\n", plain(line)),
    }
}

/// What the program does, in one line.
pub fn say(line: &str) {
    log(Level::Info, line);
}

/// What an admin should know of, in one line.
pub fn warn(line: &str) {
    log(Level::Warn, line);
}

/// Text on stdout; a reader that closed the pipe early has all it wanted.
///
/// # Errors
/// When it cannot be written for another reason.
pub fn print(text: &str) -> io::Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// True where stdout is a terminal and nobody has asked to do without colours (NO_COLOR).
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

    #[test]
    fn levels_have_names() {
        for level in Level::ALL {
            assert_eq!(Level::of(level.word()), Some(level));
        }
        assert_eq!(Level::of("loud"), None);
        assert!(Level::ALL.is_sorted());
    }
}
