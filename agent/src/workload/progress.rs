//! How far a run is, for whoever watches: in one place of a terminal, line by line elsewhere.

use crate::console::say;
use std::cell::Cell;
use std::io::{IsTerminal, Write};

/// Words on stderr.
pub(super) struct Progress {
    terminal: bool,
    /// There is a line that the next one replaces.
    open: Cell<bool>,
}

impl Progress {
    pub(super) fn new() -> Progress {
        Progress {
            terminal: std::io::stderr().is_terminal(),
            open: Cell::new(false),
        }
    }

    /// A line that stays.
    pub(super) fn line(&self, text: &str) {
        self.end();
        say(text);
    }

    /// A line until the next.
    pub(super) fn show(&self, text: &str) {
        if !self.terminal {
            return say(text);
        }
        let mut stderr = std::io::stderr();
        let _ = write!(stderr, "\r\x1b[2Knfscope: {text}");
        let _ = stderr.flush();
        self.open.set(true);
    }

    /// Ends what is shown.
    pub(super) fn end(&self) {
        if self.open.replace(false) {
            let _ = writeln!(std::io::stderr());
        }
    }
}
