//! Where progress is shown: in place on a terminal, a line a minute otherwise.

use crate::console::say;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};
use terminal_size::{Width, terminal_size_of};

const EVERY: Duration = Duration::from_secs(60);

pub(super) struct Stage {
    terminal: bool,
    said: Instant,
    shown: bool,
}

impl Stage {
    pub(super) fn new() -> Self {
        Stage {
            terminal: std::io::stderr().is_terminal(),
            said: Instant::now(),
            shown: false,
        }
    }

    pub(super) fn show(&mut self, text: &str) {
        if self.terminal {
            let width = terminal_size_of(std::io::stderr()).map_or(80, |(Width(w), _)| w);
            let text: String = text.chars().take(usize::from(width).max(1) - 1).collect();
            // Whoever closed it does not want to know.
            let _ = write!(std::io::stderr(), "\r{text}\x1b[K");
            self.shown = true;
        } else if self.said.elapsed() >= EVERY {
            self.said = Instant::now();
            say(text);
        }
    }

    /// Makes room for other words.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
