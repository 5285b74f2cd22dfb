//! Windows, one after another, from an agent that may come and go or from probes of this very process.

use crate::api::slow_line::Line;
use crate::client::http;
use crate::client::local_or_remote::{self, Found};
use crate::client::slow_ops;
use nfscope_model::{SlowFilter, SlowOp, Snapshot, Window};
use nfscope_source::{Options, Source};
use std::io::BufRead;
use std::time::{Duration, Instant};

/// How often an agent that is gone is asked again, at least.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Where snapshots come from.
enum WindowSource {
    Agent(String),
    Own(Box<dyn Source>),
}

impl WindowSource {
    fn snapshot(&mut self) -> Result<Snapshot, http::Error> {
        match self {
            WindowSource::Agent(url) => http::snapshot(url),
            WindowSource::Own(source) => Ok(source.snapshot()),
        }
    }
}

/// What there is to tell.
#[derive(Debug)]
pub(crate) enum WindowEvent {
    /// A window has ended.
    Window(Box<Window>),
    /// The first one begins, or the first one since the agent came back.
    Begun,
    /// The agent answers and has no clock yet.
    Attaching,
    /// It does not answer.
    Gone { why: String, since: Duration },
}

/// Cuts time into windows.
pub(crate) struct WindowStream {
    source: WindowSource,
    interval: Duration,
    windows: Windows,
    next: Instant,
    gone: Option<Instant>,
}

impl WindowStream {
    /// Finds a source; its first snapshot begins the first window.
    ///
    /// # Errors
    /// When there is no agent, and probes of its own are not asked for or not possible.
    pub(crate) fn open(url: Option<&str>, interval: Duration) -> anyhow::Result<WindowStream> {
        let (source, first) = match local_or_remote::agent_or_own(url, http::snapshot)? {
            Found::Agent(at, first) => (WindowSource::Agent(at), first),
            Found::Own => {
                let mut source = nfscope_source::start(&Options::default())?;
                let first = source.snapshot();
                (WindowSource::Own(source), first)
            }
        };
        let mut windows = Windows::default();
        windows.step(first);
        Ok(WindowStream {
            source,
            interval,
            windows,
            next: Instant::now() + interval,
            gone: None,
        })
    }

    /// The snapshot that begins the next window, where one has begun.
    pub(crate) fn latest(&self) -> Option<&Snapshot> {
        self.windows.earlier.as_ref()
    }

    /// Ends the first window sooner, for somebody who looks at an empty screen.
    pub(crate) fn shorten_first(&mut self, first: Duration) {
        self.next = Instant::now() + self.interval.min(first);
    }

    /// Waits for the next thing to tell.
    pub(crate) fn next(&mut self) -> WindowEvent {
        self.next_with(|| {})
    }

    /// The same; calls `waiting` each second.
    pub(crate) fn next_with(&mut self, waiting: impl FnMut()) -> WindowEvent {
        self.pause(waiting);
        let (event, wait) = match self.source.snapshot() {
            Ok(snapshot) => {
                self.gone = None;
                (self.windows.step(snapshot), self.interval)
            }
            Err(e) => {
                // What came during the gap belongs to no window.
                self.windows = Windows::default();
                let since = *self.gone.get_or_insert_with(Instant::now);
                let event = WindowEvent::Gone {
                    why: e.to_string(),
                    since: since.elapsed(),
                };
                (event, self.interval.min(RETRY_INTERVAL))
            }
        };
        self.next += wait;
        // After an answer that took longer than a window the next one is whole again, not short.
        if self.next < Instant::now() {
            self.next = Instant::now() + wait;
        }
        event
    }

    /// Looks at single operations for a moment. What keeps it from that is no reason to say nothing of the rest: then it
    /// has seen none.
    pub(crate) fn sample_slow_ops(&mut self, want: &SlowFilter, length: Duration) -> Vec<SlowOp> {
        match &mut self.source {
            WindowSource::Agent(url) => sample_agent(url, want, length),
            WindowSource::Own(source) => {
                if source.watch_slow(Some(want)).is_err() {
                    return Vec::new();
                }
                std::thread::sleep(length);
                let seen = source.take_slow().ops;
                // It ends with the source if not now.
                let _ = source.watch_slow(None);
                seen
            }
        }
    }

    /// Waits, and lets probes of its own follow modules that come and go.
    fn pause(&mut self, mut waiting: impl FnMut()) {
        loop {
            waiting();
            let left = self.next.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(Duration::from_secs(1)));
            if let WindowSource::Own(source) = &mut self.source {
                source.poll();
            }
        }
    }
}

/// Listens to an agent as `nfscope slow` does.
fn sample_agent(url: &str, want: &SlowFilter, length: Duration) -> Vec<SlowOp> {
    let mut seen = Vec::new();
    let Ok(mut answer) = slow_ops::request(url, want) else {
        return seen;
    };
    let until = Instant::now() + length;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let limited = answer
            .body
            .get_ref()
            .set_read_timeout(Some(left.max(MIN_TIMEOUT)));
        let mut line = Vec::new();
        if left.is_zero() || limited.is_err() || answer.body.read_until(b'\n', &mut line).is_err() {
            return seen;
        }
        match serde_json::from_slice(&line) {
            Ok(Line::Op(op)) => seen.push(*op),
            Ok(Line::LeftOut { .. }) => {}
            // The end, or an answer that refuses.
            Err(_) => return seen,
        }
    }
}

/// A time limit of zero would be none.
const MIN_TIMEOUT: Duration = Duration::from_millis(1);

/// The differences of snapshots that follow each other.
#[derive(Default)]
struct Windows {
    earlier: Option<Snapshot>,
}

impl Windows {
    fn step(&mut self, later: Snapshot) -> WindowEvent {
        // An agent that is still attaching has no clock yet: the window begins when it has.
        if later.at.is_zero() {
            self.earlier = None;
            return WindowEvent::Attaching;
        }
        // A clock that did not go on is another machine's, or the same after a boot. Another source has counters of its own.
        let goes_on = |e: &Snapshot| e.at < later.at && e.began == later.began;
        let earlier = self.earlier.take().filter(goes_on);
        let window = earlier.map(|e| later.since(&e));
        self.earlier = Some(later);
        window.map_or(WindowEvent::Begun, |w| WindowEvent::Window(Box::new(w)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(windows: &mut Windows, seconds: u64) -> Option<u64> {
        match windows.step(Snapshot::new(Duration::from_secs(seconds))) {
            WindowEvent::Window(w) => Some(w.length.as_secs()),
            _ => None,
        }
    }

    #[test]
    fn a_window_is_of_one_source() {
        let mut w = Windows::default();
        let mut step = |at: u64, began: u64| {
            let mut s = Snapshot::new(Duration::from_secs(at));
            s.began = Duration::from_secs(began);
            matches!(w.step(s), WindowEvent::Window(_))
        };
        // It was started again between the second and the third.
        let windows = [(110, 1), (120, 1), (130, 127), (140, 127)].map(|(at, b)| step(at, b));
        assert_eq!(windows, [false, true, false, true]);
    }

    #[test]
    fn windows_begin_when_there_is_a_clock_and_anew_when_it_goes_back() {
        let mut w = Windows::default();
        let lengths = [0, 0, 100, 102, 105, 3, 4, 4, 6].map(|s| step(&mut w, s));
        assert_eq!(
            lengths,
            [
                None,
                None,
                None,
                Some(2),
                Some(3),
                None,
                Some(1),
                None,
                Some(2)
            ]
        );
    }
}
