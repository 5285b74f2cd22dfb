//! A recording while it goes on: what is heard, kept and told, and how it ends.

use crate::cli::{RecordArgs, UNREACHED};
use crate::client::windows::WindowEvent;
use crate::commands::record::Happening;
use nfscope_baseline::progress;
use nfscope_baseline::progress::Progress;
use nfscope_baseline::store::{Error, PATIENCE, Recording, State};
use nfscope_baseline::wall_clock::Clock;
use nfscope_model::Window;
use nfscope_text::console::say;
use nfscope_text::progress_line::ProgressLine;
use nfscope_text::units;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Time between lines of progress away from a terminal.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(60);
const TICK: Duration = Duration::from_secs(1);

/// A recording while it goes on.
pub(crate) struct Session<'a> {
    recording: Recording,
    progress: Progress,
    stage: ProgressLine,
    args: &'a RecordArgs,
    length: Duration,
    happens: &'a Receiver<Happening>,
    /// What has come while something else was waited for.
    queue: VecDeque<(WindowEvent, Instant)>,
    /// Somebody wants it to end.
    signalled: bool,
    clock: Clock,
    begun: Instant,
    recorded: Duration,
    /// Since when there is no answer.
    gone: Option<Instant>,
    /// Not all that was since the last window will be in the next one.
    broken: bool,
    /// It has been said why there is no interval.
    excused: bool,
}

impl<'a> Session<'a> {
    pub(crate) fn new(
        args: &'a RecordArgs,
        length: Duration,
        recording: Recording,
        clock: Clock,
        happens: &'a Receiver<Happening>,
    ) -> Self {
        Session {
            recording,
            progress: Progress::new(args.metric.clone()),
            stage: ProgressLine::new(PROGRESS_INTERVAL),
            args,
            length,
            happens,
            queue: VecDeque::new(),
            signalled: false,
            clock,
            begun: Instant::now(),
            recorded: Duration::ZERO,
            gone: None,
            broken: false,
            excused: false,
        }
    }

    /// Records to the end; says the exit code.
    pub(crate) fn run(mut self) -> anyhow::Result<u8> {
        let end = self.record().and_then(|end| {
            self.rest()?;
            Ok(end)
        });
        self.stage.clear();
        self.close(end)
    }

    fn record(&mut self) -> anyhow::Result<State> {
        loop {
            let news = self.wait()?;
            let window = matches!(news, Some((WindowEvent::Window(_), _)));
            if let Some((news, came)) = news {
                self.hear(news, came)?;
            }
            if self.signalled {
                return Ok(State::Stopped);
            }
            if let Some(wanted) = self.args.until_ci {
                if self.progress.reached(wanted) {
                    return Ok(State::Complete);
                }
                self.excuse();
            }
            if over(
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
            self.stage.show(&text);
        }
    }

    /// What comes next; nothing after a moment, or where it is to end.
    fn wait(&mut self) -> anyhow::Result<Option<(WindowEvent, Instant)>> {
        if let Some(news) = self.queue.pop_front() {
            return Ok(Some(news));
        }
        match self.happens.recv_timeout(TICK) {
            Ok(Happening::WindowEvent(news, came)) => return Ok(Some((news, came))),
            Ok(Happening::Signal) => self.signalled = true,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => anyhow::bail!("nobody measures any more"),
        }
        Ok(None)
    }

    /// Takes what has come, without waiting.
    fn gather(&mut self) {
        for happening in self.happens.try_iter() {
            match happening {
                Happening::WindowEvent(news, came) => self.queue.push_back((news, came)),
                Happening::Signal => self.signalled = true,
            }
        }
    }

    /// Keeps the windows that had ended before it was to end.
    fn rest(&mut self) -> anyhow::Result<()> {
        self.gather();
        let end = self.begun + self.length + self.args.interval / 2;
        for (news, came) in std::mem::take(&mut self.queue) {
            if matches!(news, WindowEvent::Window(_)) && came < end {
                self.hear(news, came)?;
            }
        }
        Ok(())
    }

    fn hear(&mut self, news: WindowEvent, came: Instant) -> anyhow::Result<()> {
        self.broken = !matches!(news, WindowEvent::Window(_));
        match news {
            WindowEvent::Window(w) => {
                self.answered();
                let began_ms = self.clock.began(&w, came);
                self.keep(began_ms, &w)?;
                self.recorded += w.length;
                self.progress.add(&w);
            }
            WindowEvent::Begun => self.answered(),
            WindowEvent::Attaching => {}
            WindowEvent::Gone { why, since } => {
                if self.gone.is_none() {
                    self.stage.clear();
                    say(&format!(
                        "{why}; waiting for it, windows are missing meanwhile"
                    ));
                }
                self.gone = self.gone.or(came.checked_sub(since));
            }
        }
        Ok(())
    }

    /// Says once why nothing can be said of an interval.
    fn excuse(&mut self) {
        if let Some(why) = self.progress.excuse(self.args.until_ci.unwrap_or_default())
            && !std::mem::replace(&mut self.excused, true)
        {
            self.stage.clear();
            say(&format!("{why}; waiting for more"));
        }
    }

    fn answered(&mut self) {
        if let Some(since) = self.gone.take() {
            self.stage.clear();
            let away = units::length(since.elapsed());
            say(&format!("it answers again, after {away}"));
        }
    }

    /// Another program may keep the store for long; that alone is no reason to give up.
    fn keep(&mut self, began_ms: i64, window: &Window) -> anyhow::Result<()> {
        let mut said = false;
        let tried = Instant::now();
        loop {
            let e = match self.recording.add(began_ms, window) {
                Ok(()) => return Ok(()),
                Err(e) => e,
            };
            self.gather();
            let time = tried.elapsed() < PATIENCE || self.begun.elapsed() < self.length;
            if !matches!(e, Error::Busy(_)) || self.signalled || !time {
                return Err(e.into());
            }
            if !std::mem::replace(&mut said, true) {
                self.stage.clear();
                say(&format!("{e}; waiting"));
            }
        }
    }

    fn text(&self) -> String {
        let so_far = self.begun.elapsed();
        let mut text = format!(
            "{}: {} of {}, {}, {} operations",
            self.args.name,
            units::length(Duration::from_secs(so_far.as_secs())),
            units::length(self.length),
            units::many(self.recording.windows() as f64, "window"),
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

    /// Says what became of it.
    fn close(self, end: anyhow::Result<State>) -> anyhow::Result<u8> {
        let (name, windows) = (&self.args.name, self.recording.windows());
        let kept = units::many(windows as f64, "finished window");
        let missing = match self.broken {
            true => self.clock.missing + self.clock.since(),
            false => self.clock.missing,
        };
        let so_far = units::length(self.begun.elapsed());
        let metric = self.progress.metric();
        let operations = self.progress.operations();
        let state = match end {
            Ok(state) if windows > 0 => state,
            Ok(_) => {
                self.recording.end(State::Stopped)?;
                anyhow::bail!("no window had ended after {so_far}: nothing was recorded");
            }
            Err(e) if windows > 0 => {
                anyhow::bail!("{e:#}. {kept} of `{name}` are kept and can be used")
            }
            Err(e) => {
                // The store has just refused to be written, and may do so again.
                let _ = self.recording.end(State::Stopped);
                return Err(e.context("nothing was recorded"));
            }
        };
        self.recording.end(state)?;
        let missing = match missing.as_secs_f64() {
            s if s < 0.5 => "nothing is missing".to_owned(),
            s => format!("{s:.0} s are missing (no answer)"),
        };
        let about = units::length(self.recorded);
        let metric = metric.map_or_else(String::new, |m| format!(", {m}"));
        let what = format!("{kept}, {about}, {operations} operations{metric}; {missing}");
        let wanted = self.args.until_ci.unwrap_or_default();
        let excuse = self.progress.excuse(wanted);
        let excuse = excuse.map_or_else(String::new, |why| format!(": {why}"));
        let aim = units::percent(wanted);
        say(&match state {
            State::Stopped => format!("`{name}` was ended after {so_far} and is kept: {what}"),
            State::Unreached => format!(
                "±{aim} was not reached within {}{excuse}; `{name}` is kept: {what}",
                units::length(self.length)
            ),
            _ => format!("recorded `{name}`: {what}"),
        });
        Ok(if state == State::Unreached {
            UNREACHED
        } else {
            0
        })
    }
}

/// True when nothing more is to be waited for. What would be most of a window is waited for; where none has come, one
/// that is late may still come.
fn over(elapsed: Duration, length: Duration, interval: Duration, window: bool) -> bool {
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
            over(second.mul_f64(elapsed), length * second, 4 * second, window)
        };
        assert!(!over(7.9, 12, true) && !over(10.0, 12, false));
        assert!(over(11.9, 12, true) && over(14.0, 12, false));
        assert!(!over(3.0, 4, false) && over(3.9, 4, true));
        assert!(over(4.1, 5, true));
    }
}
