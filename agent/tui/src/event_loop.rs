//! The loop around the screen: keys, signals and windows come from threads of their own, so that none waits for another.

use crate::app_state::{Action, App, Extent, Link};
use crate::breakdown::Breakdown;
use crate::draw::draw;
use crate::findings_panel::FindingsReport;
use crate::tab::Tab;
use crate::terminal::{Screen, give_back};
use crate::terminal_style::TerminalStyle;
use crate::view::{Sample, View};
use nfscope_agent_client::events::{EventSender, channel, until_error};
use nfscope_agent_client::lines::{self, Lines, Listens};
use nfscope_agent_client::windows::{WindowEvent, WindowStream};
use nfscope_agent_client::{http, known_names};
use nfscope_api::breakdown_line::Line;
use nfscope_api::breakdown_query::Query;
use nfscope_api::slow_line;
use nfscope_model::SlowFilter;
use ratatui::crossterm::event::{self, Event as TerminalEvent, KeyEventKind};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::iter::{from_fn, repeat_with};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Length of the first window, so that something is on the screen soon.
const FIRST_INTERVAL: Duration = Duration::from_millis(500);
/// Time for which a client's operations are sampled after each window, and the most operations per second of the sample.
const SAMPLE: Duration = Duration::from_millis(300);
const MOST_SAMPLED: u32 = 1000;
/// Path of the findings.
const FINDINGS: &str = "/findings";
/// Delay until a stop that the program has sent to itself has reached every thread.
const STOP_DELAY: Duration = Duration::from_millis(50);

enum Event {
    Window(WindowEvent),
    Sample(Sample),
    /// Line of the stream with this number.
    Breakdown(u64, anyhow::Result<Line>),
    /// Line of the stream with this number.
    Slow(u64, anyhow::Result<slow_line::Line>),
    Findings(Result<FindingsReport, String>),
    Terminal(io::Result<TerminalEvent>),
    Signal(i32),
}

/// Shows windows on `screen` until the user ends it.
///
/// # Errors
/// When the terminal can no longer be read or written.
pub fn run(
    mut screen: Screen,
    mut windows: WindowStream,
    host: &str,
    style: TerminalStyle,
    by: By,
) -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGCONT])?;
    let (sender, events) = channel();
    windows.shorten_first(FIRST_INTERVAL);
    let interval = windows.interval();
    let sender = Arc::new(sender);
    let client = Arc::new(Mutex::new(None));
    let findings = Arc::new(AtomicBool::new(false));
    let (wanted, mut due) = (client.clone(), false);
    let (findings_wanted, mut findings_due) = (findings.clone(), false);
    let agent = by.agent.clone();
    sender.spawn(
        "windows",
        repeat_with(move || {
            let client = *wanted.lock().unwrap_or_else(PoisonError::into_inner);
            if let (true, Some(client)) = (std::mem::take(&mut due), client) {
                return Event::Sample(sample(&mut windows, client));
            }
            if std::mem::take(&mut findings_due) && findings_wanted.load(Ordering::Relaxed) {
                let told = http::json(&agent, FINDINGS);
                return Event::Findings(told.map_err(|e| e.to_string()));
            }
            let event = windows.next_event();
            due = matches!(event, WindowEvent::Window(_));
            findings_due = due;
            Event::Window(event)
        }),
    )?;
    sender.spawn("keys", until_error(event::read).map(Event::Terminal))?;
    sender.spawn(
        "signals",
        from_fn(move || signals.forever().next().map(Event::Signal)),
    )?;
    let mut app = App::default();
    if let Some(query) = by.first {
        (app.tab, app.breakdown) = (Tab::By, Breakdown::new(query));
    }
    app.set_interval(interval.get());
    let mut streams = Streams::<Query>::new("breakdown", &by.agent, &sender, Event::Breakdown);
    let mut slow = Streams::<SlowFilter>::new("slow", &by.agent, &sender, Event::Slow);
    screen.take_mouse(app.mouse)?;
    loop {
        paint(&mut screen, &mut app, style)?;
        // All events that have come meanwhile are handled before the next painting.
        let first = events.recv();
        for event in first.into_iter().chain(events.try_iter()) {
            match event {
                Event::Window(event) => {
                    if let WindowEvent::Window(_) = event {
                        streams.try_again();
                        slow.try_again();
                    }
                    take(&mut app, event, host);
                }
                Event::Sample(sample) => app.take_sample(sample),
                // A key of this batch of events may have changed the query: lines of an older stream are dropped.
                Event::Breakdown(number, told) if streams.is_now(number, app.wants_breakdown()) => {
                    streams.failed |= told.is_err();
                    app.take_breakdown(told);
                }
                Event::Slow(number, told) if slow.is_now(number, app.wants_slow()) => {
                    slow.failed |= told.is_err();
                    app.take_slow(told, known_names::of);
                }
                Event::Breakdown(..) | Event::Slow(..) => {}
                Event::Findings(told) => app.take_findings(told),
                Event::Signal(SIGCONT) => screen.again()?,
                Event::Signal(_) => return Ok(()),
                Event::Terminal(event) => match event? {
                    TerminalEvent::Key(key) if key.kind != KeyEventKind::Release => {
                        match app.key(key) {
                            Action::None => {}
                            Action::Quit => return Ok(()),
                            Action::Suspend => suspend(&mut screen)?,
                            Action::Interval(length) => interval.set(length),
                            Action::Mouse(take) => screen.take_mouse(take)?,
                        }
                    }
                    TerminalEvent::Mouse(event) => app.mouse(event),
                    _ => {}
                },
            }
        }
        *client.lock().unwrap_or_else(PoisonError::into_inner) = app.wants_sample();
        findings.store(app.wants_findings(), Ordering::Relaxed);
        streams.follow(app.wants_breakdown())?;
        slow.follow(app.wants_slow())?;
    }
}

/// Settings of break-downs.
pub struct By {
    /// URL of the agent that gives them.
    pub agent: String,
    /// Query to show first.
    pub first: Option<Query>,
}

/// Stream of the panel that is on the screen, if it has one.
struct Streams<Q: Listens> {
    /// Name of the threads that read.
    name: &'static str,
    agent: String,
    sender: Arc<EventSender<Event>>,
    event: fn(u64, anyhow::Result<Q::Line>) -> Event,
    /// Query of the stream.
    running: Option<Q>,
    /// Number of the current stream; each stream has its own.
    now: Arc<AtomicU64>,
    /// True if the stream has ended with an error.
    failed: bool,
}

impl<Q: Listens + Clone + PartialEq + Send + 'static> Streams<Q> {
    fn new(
        name: &'static str,
        agent: &str,
        sender: &Arc<EventSender<Event>>,
        event: fn(u64, anyhow::Result<Q::Line>) -> Event,
    ) -> Streams<Q> {
        Streams {
            name,
            agent: agent.to_owned(),
            sender: sender.clone(),
            event,
            running: None,
            now: Arc::default(),
            failed: false,
        }
    }

    fn is_now(&self, number: u64, wanted: Option<&Q>) -> bool {
        wanted.is_some()
            && wanted == self.running.as_ref()
            && self.now.load(Ordering::Relaxed) == number
    }

    /// Asks again after an error: another agent may answer at the same address by now.
    fn try_again(&mut self) {
        if std::mem::take(&mut self.failed) {
            self.running = None;
        }
    }

    /// Starts and stops streams to match the visible panel. A hidden stream ends at its next line.
    fn follow(&mut self, wanted: Option<&Q>) -> io::Result<()> {
        if wanted == self.running.as_ref() {
            return Ok(());
        }
        self.running = wanted.cloned();
        let number = self.now.fetch_add(1, Ordering::Relaxed) + 1;
        let Some(query) = self.running.clone() else {
            return Ok(());
        };
        let (agent, now) = (self.agent.clone(), self.now.clone());
        let mut lines = None;
        let told = until_error(move || {
            let lines = match &mut lines {
                Some(lines) => lines,
                None => {
                    let answer = lines::request(&agent, &query)?;
                    lines.insert(Lines::<Q>::new(&agent, answer)?)
                }
            };
            lines.next_line()
        });
        let told = told.take_while(move |_| now.load(Ordering::Relaxed) == number);
        let event = self.event;
        let told = told.map(move |line| event(number, line));
        self.sender.spawn(self.name, told)
    }
}

/// Samples the operations of a client for a moment.
fn sample(windows: &mut WindowStream, client: IpAddr) -> Sample {
    let all = SlowFilter {
        over: Duration::ZERO,
        ops: Vec::new(),
        client: Some(client),
        per_second: MOST_SAMPLED,
    };
    let heard = windows.sample_slow_ops(&all, SAMPLE);
    Sample::of(client, SAMPLE, MOST_SAMPLED, &heard)
}

fn take(app: &mut App, event: WindowEvent, host: &str) {
    match event {
        WindowEvent::Window(window) => {
            app.take(View::of(&window, host).naming(known_names::of));
        }
        WindowEvent::Begun => app.news(Link::Begun),
        WindowEvent::Attaching => app.news(Link::Attaching),
        WindowEvent::Gone { why, since } => app.news(Link::Gone { why, since }),
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

/// Suspends the program, as Ctrl-Z does where keys are not raw: the whole job stops until the shell continues it.
fn suspend(screen: &mut Screen) -> io::Result<()> {
    give_back();
    rustix::process::kill_current_process_group(rustix::process::Signal::TSTP)?;
    // The stop may reach this thread a moment later. A job without a shell does not stop at all.
    std::thread::sleep(STOP_DELAY);
    screen.again()
}
