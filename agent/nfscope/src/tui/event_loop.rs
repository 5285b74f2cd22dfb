//! The loop around the screen: keys, signals and windows come from threads of their own, so that none waits for another.

use crate::client::events::{channel, until_error};
use crate::client::windows::{WindowEvent, WindowStream};
use crate::tui::app_state::{Action, App, Extent, Link};
use crate::tui::draw::draw;
use crate::tui::terminal::{Screen, give_back};
use crate::tui::terminal_style::TerminalStyle;
use crate::tui::view::View;
use ratatui::crossterm::event::{self, Event as TerminalEvent, KeyEventKind};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::iter::{from_fn, repeat_with};
use std::time::Duration;

/// The first window, so that something is on the screen soon.
const FIRST_INTERVAL: Duration = Duration::from_millis(500);
/// Until a stop that we asked for has reached every thread.
const STOP_DELAY: Duration = Duration::from_millis(50);

enum Event {
    Window(WindowEvent),
    Terminal(io::Result<TerminalEvent>),
    Signal(i32),
}

/// Shows windows on `screen` until the user ends it.
///
/// # Errors
/// When the terminal can no longer be read or written.
pub(crate) fn run(
    mut screen: Screen,
    mut windows: WindowStream,
    host: &str,
    style: TerminalStyle,
) -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGCONT])?;
    let (sender, events) = channel();
    windows.shorten_first(FIRST_INTERVAL);
    sender.spawn(
        "windows",
        repeat_with(move || Event::Window(windows.next())),
    )?;
    sender.spawn("keys", until_error(event::read).map(Event::Terminal))?;
    sender.spawn(
        "signals",
        from_fn(move || signals.forever().next().map(Event::Signal)),
    )?;
    let mut app = App::default();
    loop {
        paint(&mut screen, &mut app, style)?;
        // Whatever has come meanwhile is taken in before the next painting.
        let first = events.recv();
        for event in first.into_iter().chain(events.try_iter()) {
            match event {
                Event::Window(event) => take(&mut app, event, host),
                Event::Signal(SIGCONT) => screen.again()?,
                Event::Signal(_) => return Ok(()),
                Event::Terminal(event) => match event? {
                    TerminalEvent::Key(key) if key.kind != KeyEventKind::Release => {
                        match app.key(key) {
                            Action::None => {}
                            Action::Quit => return Ok(()),
                            Action::Suspend => suspend(&mut screen)?,
                        }
                    }
                    _ => {}
                },
            }
        }
    }
}

fn take(app: &mut App, event: WindowEvent, host: &str) {
    match event {
        WindowEvent::Window(window) => app.take(View::of(&window, host)),
        WindowEvent::Begun => app.link = Link::Begun,
        WindowEvent::Attaching => app.link = Link::Attaching,
        WindowEvent::Gone { why, since } => app.link = Link::Gone { why, since },
    }
}

fn paint(screen: &mut Screen, app: &mut App, style: TerminalStyle) -> io::Result<()> {
    let mut extent = Extent::default();
    screen.terminal().draw(|frame| {
        let area = frame.area();
        extent = draw(app, style, area, frame.buffer_mut());
    })?;
    app.fit(extent);
    Ok(())
}

/// What Ctrl-Z does where keys are not raw: the whole job stops, until the shell continues it.
fn suspend(screen: &mut Screen) -> io::Result<()> {
    give_back();
    rustix::process::kill_current_process_group(rustix::process::Signal::TSTP)?;
    // The stop may reach this thread a moment later; a job without a shell does not stop at all.
    std::thread::sleep(STOP_DELAY);
    screen.again()
}
