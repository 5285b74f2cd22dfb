//! Recording in progress: receives windows, writes them to the store, reports progress, and decides when to end.

use crate::cli::{RecordArgs, UNREACHED};
use nfscope_agent_client::windows::WindowEvent;
use nfscope_baseline::progress;
use nfscope_baseline::progress::Progress;
use nfscope_baseline::store::{BUSY_TIMEOUT, Error, RecordingWriter, State};
use nfscope_baseline::wall_clock::WallClock;
use nfscope_model::Window;
use nfscope_text::console::say;
use nfscope_text::progress_line::ProgressLine;
use nfscope_text::units;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Time between progress lines if stderr is not a terminal.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(60);
/// Time between attempts while the disk is full.
const FULL_INTERVAL: Duration = Duration::from_millis(250);
/// Most windows that wait for the store. The oldest above it are dropped, or a full disk would exhaust the server's memory.
const MAX_QUEUE: usize = 1000;
/// Longest wait for an event before the end condition is checked again.
const EVENT_TIMEOUT: Duration = Duration::from_secs(1);

/// Event that a recording waits for.
pub(crate) enum Event {
    /// Window or change of the connection, and its time of arrival.
    Window(WindowEvent, Instant),
    Signal,
}

/// Recording in progress.
pub(crate) struct Session<'a> {
    writer: RecordingWriter,
    progress: Progress,
    progress_line: ProgressLine,
    args: &'a RecordArgs,
    name: &'a str,
    length: Duration,
    events: &'a Receiver<Event>,
    /// Windows that arrived while the store could not be written.
    queue: VecDeque<(WindowEvent, Instant)>,
    /// True after SIGINT, SIGTERM or SIGHUP.
    signalled: bool,
    clock: WallClock,
    begun: Instant,
    recorded: Duration,
    /// Time of the agent's last answer, while it does not answer.
    unreachable_since: Option<Instant>,
    /// True if the next window does not cover the whole time since the last one.
    interrupted: bool,
    /// Time of the windows that were dropped because the disk was full.
    given_up: Duration,
    /// True after the reason for a missing confidence interval was printed.
    explained: bool,
}

impl<'a> Session<'a> {
    pub(crate) fn new(
        args: &'a RecordArgs,
        name: &'a str,
        length: Duration,
        writer: RecordingWriter,
        clock: WallClock,
        events: &'a Receiver<Event>,
    ) -> Self {
        Session {
            writer,
            progress: Progress::new(args.metric.clone(), args.until_ci),
            progress_line: ProgressLine::new(PROGRESS_INTERVAL),
            args,
            name,
            length,
            events,
            queue: VecDeque::new(),
            signalled: false,
            clock,
            begun: Instant::now(),
            recorded: Duration::ZERO,
            unreachable_since: None,
            interrupted: false,
            given_up: Duration::ZERO,
            explained: false,
        }
    }

    /// Records to the end; returns the exit code.
    pub(crate) fn run(mut self) -> anyhow::Result<u8> {
        let end = self.record().and_then(|end| {
            self.keep_finished_windows()?;
            Ok(end)
        });
        self.progress_line.clear();
        self.close(end)
    }

    fn record(&mut self) -> anyhow::Result<State> {
        loop {
            let news = self.next_event()?;
            let window = matches!(news, Some((WindowEvent::Window(_), _)));
            if let Some((news, arrived)) = news {
                self.handle(news, arrived)?;
            }
            if self.signalled {
                return Ok(State::Stopped);
            }
            if self.args.until_ci.is_some() {
                if self.progress.reached() {
                    return Ok(State::Complete);
                }
                self.explain_missing_interval();
            }
            if is_over(
                self.begun.elapsed(),
                self.length,
                self.args.interval,
                window,
            ) {
                return Ok(match self.args.until_ci {
                    Some(_) => State::Unreached,
                    None => State::Complete,
                });
            }
            let text = self.text();
            self.progress_line.show(&text);
        }
    }

    /// Next event; `None` after a timeout or a signal.
    fn next_event(&mut self) -> anyhow::Result<Option<(WindowEvent, Instant)>> {
        if let Some(news) = self.queue.pop_front() {
            return Ok(Some(news));
        }
        match self.events.recv_timeout(EVENT_TIMEOUT) {
            Ok(Event::Window(news, arrived)) => return Ok(Some((news, arrived))),
            Ok(Event::Signal) => self.signalled = true,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                anyhow::bail!("the thread that reads windows has ended")
            }
        }
        Ok(None)
    }

    /// Moves the events that have arrived to the queue, without waiting.
    fn drain_events(&mut self) {
        for event in self.events.try_iter() {
            match event {
                Event::Window(news, arrived) => self.queue.push_back((news, arrived)),
                Event::Signal => self.signalled = true,
            }
        }
        while self.queue.len() > MAX_QUEUE {
            if let Some((WindowEvent::Window(w), _)) = self.queue.pop_front() {
                self.given_up += w.length;
            }
        }
    }

    /// Writes the queued windows that ended before the end of the recording.
    fn keep_finished_windows(&mut self) -> anyhow::Result<()> {
        self.drain_events();
        let end = self.begun + self.length + self.args.interval / 2;
        for (news, arrived) in std::mem::take(&mut self.queue) {
            if matches!(news, WindowEvent::Window(_)) && arrived < end {
                self.handle(news, arrived)?;
            }
        }
        Ok(())
    }

    fn handle(&mut self, news: WindowEvent, arrived: Instant) -> anyhow::Result<()> {
        self.interrupted = !matches!(news, WindowEvent::Window(_));
        match news {
            WindowEvent::Window(w) => {
                self.report_return();
                let began_ms = self.clock.began(&w, arrived);
                self.write_window(began_ms, &w)?;
                self.recorded += w.length;
                self.progress.add(&w);
            }
            WindowEvent::Begun => self.report_return(),
            WindowEvent::Attaching => {}
            WindowEvent::Gone { why, since } => {
                if self.unreachable_since.is_none() {
                    self.progress_line.clear();
                    say(&format!(
                        "{why}; waiting for it, windows are missing until then"
                    ));
                }
                self.unreachable_since = self.unreachable_since.or(arrived.checked_sub(since));
            }
        }
        Ok(())
    }

    /// Prints once why there is no confidence interval, or none narrow enough.
    fn explain_missing_interval(&mut self) {
        if let Some(why) = self
            .progress
            .reason_without_interval(self.args.until_ci.unwrap_or_default())
            && !std::mem::replace(&mut self.explained, true)
        {
            self.progress_line.clear();
            say(&format!("{why}; waiting for more"));
        }
    }

    /// Prints that the agent answers again, if it was unreachable.
    fn report_return(&mut self) {
        if let Some(since) = self.unreachable_since.take() {
            self.progress_line.clear();
            let away = units::length(since.elapsed());
            say(&format!("the agent answers again, after {away}"));
        }
    }

    /// Writes a window. Retries while another process holds the store's lock, or while the disk is full.
    fn write_window(&mut self, began_ms: i64, window: &Window) -> anyhow::Result<()> {
        let mut reported = false;
        let tried = Instant::now();
        loop {
            let e = match self.writer.add(began_ms, window) {
                Ok(()) => return Ok(()),
                Err(e) => e,
            };
            self.drain_events();
            let in_time = tried.elapsed() < BUSY_TIMEOUT || self.begun.elapsed() < self.length;
            let waits = matches!(e, Error::Busy(_) | Error::Full(_));
            if !waits || self.signalled || !in_time {
                return Err(e.into());
            }
            // SQLite has waited for the lock already.
            if matches!(e, Error::Full(_)) {
                std::thread::sleep(FULL_INTERVAL);
            }
            if !std::mem::replace(&mut reported, true) {
                self.progress_line.clear();
                say(&format!("{e}; windows are kept in memory; waiting"));
            }
        }
    }

    fn text(&self) -> String {
        let so_far = self.begun.elapsed();
        let mut text = format!(
            "{}: {} of {}, {}, {} operations",
            self.name,
            units::length(Duration::from_secs(so_far.as_secs())),
            units::length(self.length),
            units::many(self.writer.windows() as f64, "window"),
            self.progress.operations()
        );
        if let Some(metric) = self.progress.metric() {
            text += &format!(", {metric}");
        }
        if let Some(wanted) = self.args.until_ci {
            let outlook = progress::outlook(&self.progress, wanted, so_far, self.length);
            text += &format!("; {outlook}");
        }
        text
    }

    /// Ends the recording in the store and prints its result.
    fn close(self, end: anyhow::Result<State>) -> anyhow::Result<u8> {
        let (name, windows) = (self.name, self.writer.windows());
        let kept = units::many(windows as f64, "finished window");
        let missing = match self.interrupted {
            true => self.clock.missing + self.clock.since(),
            false => self.clock.missing,
        };
        let so_far = units::length(self.begun.elapsed());
        let metric = self.progress.metric();
        let operations = self.progress.operations();
        let state = match end {
            Ok(state) if windows > 0 => state,
            Ok(_) => {
                self.writer.end(State::Stopped)?;
                anyhow::bail!("nothing was recorded: no window was complete after {so_far}");
            }
            Err(e) if windows > 0 => {
                anyhow::bail!("{e:#}. {kept} of `{name}` are kept and can be used")
            }
            Err(e) => {
                // The store failed a moment ago, and this write may fail, too. The first error is reported.
                let _ = self.writer.end(State::Stopped);
                return Err(e.context("nothing was recorded"));
            }
        };
        self.writer.end(state)?;
        let missing = match missing.as_secs_f64() {
            s if s < 0.5 => "nothing is missing".to_owned(),
            s if self.given_up.is_zero() => {
                format!(
                    "{s:.0} s are missing (the agent did not answer, or its counters began anew)"
                )
            }
            s => format!(
                "{s:.0} s are missing ({:.0} s of them while the store could not be written)",
                self.given_up.as_secs_f64()
            ),
        };
        let recorded = units::length(self.recorded);
        let metric = metric.map_or_else(String::new, |m| format!(", {m}"));
        let metric = match (state, self.progress.reason_of_memory()) {
            // The line for `Unreached` begins with a reason already.
            (State::Unreached, _) | (_, None) => metric,
            (_, Some(why)) => format!("{metric} ({why})"),
        };
        let what = format!("{kept}, {recorded}, {operations} operations{metric}; {missing}");
        let wanted = self.args.until_ci.unwrap_or_default();
        let reason = self.progress.reason_without_interval(wanted);
        let reason = reason.or_else(|| self.progress.missing_windows());
        let reason = reason.map_or_else(String::new, |why| format!(": {why}"));
        let aim = units::percent(wanted);
        say(&match state {
            State::Stopped => format!("`{name}` was stopped after {so_far} and is kept: {what}"),
            State::Unreached => format!(
                "±{aim} was not reached within {}{reason}; `{name}` is kept: {what}",
                units::length(self.length)
            ),
            _ => {
                let unseen = self.args.until_ci.and(self.progress.unseen(self.recorded));
                let unseen = unseen.map_or_else(String::new, |what| format!("; {what}"));
                format!("recorded `{name}`: {what}{unseen}")
            }
        });
        Ok(if state == State::Unreached {
            UNREACHED
        } else {
            0
        })
    }
}

/// Returns true if the recording has the wanted length. It ends at the window that is nearest to this length. Without a new window, half an
/// interval more is waited for a late one.
fn is_over(elapsed: Duration, length: Duration, interval: Duration, window: bool) -> bool {
    match window {
        true => elapsed + interval / 2 >= length,
        false => elapsed >= length + interval / 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_over_after_the_window_that_is_nearest_to_its_end() {
        let over = |elapsed: f64, length, window| {
            let second = Duration::from_secs(1);
            is_over(second.mul_f64(elapsed), length * second, 4 * second, window)
        };
        assert!(!over(7.9, 12, true) && !over(10.0, 12, false));
        assert!(over(11.9, 12, true) && over(14.0, 12, false));
        assert!(!over(3.0, 4, false) && over(3.9, 4, true));
        assert!(over(4.1, 5, true));
    }
}
