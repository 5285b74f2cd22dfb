//! A line of progress on stderr: replaced in place on a terminal, repeated at intervals elsewhere, where lines stay.

use crate::console::say;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};
use terminal_size::{Width, terminal_size_of};

/// Progress of a long command.
#[derive(Debug)]
pub struct ProgressLine {
    terminal: bool,
    /// Time between lines where lines stay.
    every: Duration,
    last: Instant,
    shown: bool,
}

impl ProgressLine {
    /// Sets the interval of lines where stderr is no terminal. With zero, every line is written.
    pub fn new(every: Duration) -> Self {
        ProgressLine {
            terminal: std::io::stderr().is_terminal(),
            every,
            last: Instant::now(),
            shown: false,
        }
    }

    /// Replaces the line.
    pub fn show(&mut self, text: &str) {
        if self.terminal {
            let width = terminal_size_of(std::io::stderr()).map_or(80, |(Width(w), _)| w);
            let text: String = text.chars().take(usize::from(width).max(1) - 1).collect();
            // A closed stderr is no reason to stop measuring.
            let _ = write!(std::io::stderr(), "\r{text}\x1b[K");
            self.shown = true;
        } else if self.last.elapsed() >= self.every {
            self.last = Instant::now();
            say(text);
        }
    }

    /// Writes a line that stays.
    pub fn say(&mut self, text: &str) {
        self.clear();
        say(text);
    }

    /// Removes the line.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
