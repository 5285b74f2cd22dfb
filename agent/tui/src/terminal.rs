//! Takes the terminal and gives it back: at the end, on an error, on a signal and on a panic.

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{DisableMouseCapture, EnableMouseCapture};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType::All, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode,
};
use ratatui::layout::Rect;
use std::io::{self, Stdout};
use std::sync::Once;

/// A terminal with raw keys and a screen of its own. Dropping it gives the terminal back.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    /// True while the program gets the mouse.
    mouse: bool,
}

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// When keys cannot be read from the terminal, or it cannot be written to.
    pub fn take() -> io::Result<Screen> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let report = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                give_back();
                report(panic);
            }));
        });
        enter()?;
        match Terminal::new(CrosstermBackend::new(io::stdout())) {
            Ok(terminal) => Ok(Screen {
                terminal,
                mouse: false,
            }),
            Err(e) => {
                give_back();
                Err(e)
            }
        }
    }

    pub(crate) fn terminal(&mut self) -> &mut Terminal<CrosstermBackend<Stdout>> {
        &mut self.terminal
    }

    /// Takes the mouse, or leaves it to the terminal, which selects text with it. A terminal without a mouse ignores this.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub(crate) fn take_mouse(&mut self, take: bool) -> io::Result<()> {
        self.mouse = take;
        match take {
            true => execute!(io::stdout(), EnableMouseCapture),
            false => execute!(io::stdout(), DisableMouseCapture),
        }
    }

    /// Takes the terminal again after a suspension, and forgets what was on it.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub(crate) fn again(&mut self) -> io::Result<()> {
        // A shell may have changed modes that this program takes for set.
        let _ = disable_raw_mode();
        enter()?;
        self.take_mouse(self.mouse)?;
        // `clear` is not used here: it asks the terminal for its cursor, and the thread that reads keys would get the answer.
        let size = self.terminal.size()?;
        self.terminal
            .resize(Rect::new(0, 0, size.width, size.height))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

// Enters the alternate screen and clears it, for terminals that have no other screen.
fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, Clear(All), Hide).inspect_err(|_| give_back())
}

/// Gives the terminal back. That is harmless where it was not taken. Errors are ignored, because a terminal that is gone needs nothing.
pub(crate) fn give_back() {
    let _ = execute!(
        io::stdout(),
        DisableMouseCapture,
        Show,
        LeaveAlternateScreen
    );
    let _ = disable_raw_mode();
}
