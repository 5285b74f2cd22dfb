//! The loop around the screen: keys, signals and windows come from threads of their own, so that none waits for another.

use crate::client::windows::{Feed, News};
use crate::tui::app_state::{App, Extent, Link, Wish};
use crate::tui::draw::draw;
use crate::tui::terminal::{Screen, give_back};
use crate::tui::terminal_style::Look;
use crate::tui::view::View;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// The first window, so that something is on the screen soon.
const FIRST: Duration = Duration::from_millis(500);
/// Until a stop that we asked for has reached every thread.
const STOPPING: Duration = Duration::from_millis(50);

enum Happening {
    News(News),
    Terminal(io::Result<Event>),
    Signal(i32),
}

/// Shows windows on `screen` until the user ends it.
///
/// # Errors
/// When the terminal can no longer be read or written.
pub(crate) fn run(
    mut screen: Screen,
    mut feed: Feed,
    host: &str,
    look: Look,
) -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGCONT])?;
    let (tell, happens) = channel();
    feed.hurry(FIRST);
    spawn("windows", &tell, move || Some(Happening::News(feed.next())))?;
    spawn("keys", &tell, || Some(Happening::Terminal(event::read())))?;
    spawn("signals", &tell, move || {
        signals.forever().next().map(Happening::Signal)
    })?;
    let mut app = App::default();
    loop {
        paint(&mut screen, &mut app, look)?;
        // Whatever has come meanwhile is taken in before the next painting.
        let first = happens.recv();
        for happening in first.into_iter().chain(happens.try_iter()) {
            match happening {
                Happening::News(news) => take(&mut app, news, host),
                Happening::Signal(SIGCONT) => screen.again()?,
                Happening::Signal(_) => return Ok(()),
                Happening::Terminal(event) => match event? {
                    Event::Key(key) if key.kind != KeyEventKind::Release => match app.key(key) {
                        Wish::None => {}
                        Wish::Quit => return Ok(()),
                        Wish::Suspend => suspend(&mut screen)?,
                    },
                    _ => {}
                },
            }
        }
    }
}

/// A thread that tells of one thing after another, until nobody listens. It ends with the program.
fn spawn(
    name: &str,
    tell: &Sender<Happening>,
    mut next: impl FnMut() -> Option<Happening> + Send + 'static,
) -> io::Result<()> {
    let tell = tell.clone();
    let body = move || {
        while let Some(happening) = next() {
            let last = matches!(happening, Happening::Terminal(Err(_)));
            if tell.send(happening).is_err() || last {
                return;
            }
        }
    };
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(body)?;
    Ok(())
}

fn take(app: &mut App, news: News, host: &str) {
    match news {
        News::Window(window) => app.take(View::of(&window, host)),
        News::Begun => app.link = Link::Begun,
        News::Attaching => app.link = Link::Attaching,
        News::Gone { why, since } => app.link = Link::Gone { why, since },
    }
}

fn paint(screen: &mut Screen, app: &mut App, look: Look) -> io::Result<()> {
    let mut extent = Extent::default();
    screen.terminal().draw(|frame| {
        let area = frame.area();
        extent = draw(app, look, area, frame.buffer_mut());
    })?;
    app.fit(extent);
    Ok(())
}

/// What Ctrl-Z does where keys are not raw: the whole job stops, until the shell continues it.
fn suspend(screen: &mut Screen) -> io::Result<()> {
    give_back();
    rustix::process::kill_current_process_group(rustix::process::Signal::TSTP)?;
    // The stop may reach this thread a moment later; a job without a shell does not stop at all.
    std::thread::sleep(STOPPING);
    screen.again()
}
