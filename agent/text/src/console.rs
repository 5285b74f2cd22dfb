//! Words for whoever watches, beside what a command prints.

use std::io::{self, IsTerminal, Write};

/// Text without control characters, but for the ends of lines: names and labels come from other machines, and must not steer the
/// terminal.
pub fn plain(text: &str) -> String {
    text.replace(|c: char| c.is_control() && c != '\n', "?")
}

/// One line on stderr, for a terminal or the journal. That it is closed is no reason to stop measuring, and `eprintln!` would
/// panic on it.
pub fn say(line: &str) {
    let _ = writeln!(io::stderr(), "nfscope: {}", plain(line));
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
