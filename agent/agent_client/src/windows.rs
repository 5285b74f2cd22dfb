//! Windows, one after another, from an agent that may come and go, or from probes of this process.

use crate::counting::{Counting, Own, Told};
use crate::http;
use crate::lines;
use crate::local_or_remote::{self, Found};
use crate::sleepers::Sleepers;
use nfscope_api::slow_line::Line;
use nfscope_diagnose::normal::Normal;
use nfscope_diagnose::observed::Sleeps;
use nfscope_model::{SlowFilter, SlowOp, Snapshot, Window};
use nfscope_source::{Options, Source};
use serde::Deserialize;
use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Longest time between requests to an agent that is gone.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Most times that the same reading is ignored and asked for again. An agent whose clock stands for longer has been stopped.
const MOST_SAME: u32 = 8;

/// Origin of the snapshots.
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

/// An event of the stream.
#[derive(Debug)]
pub enum WindowEvent {
    /// A window has ended.
    Window(Box<Window>),
    /// The first window begins, or the first one since the agent came back.
    Begun,
    /// The agent answers and has no clock yet.
    Attaching,
    /// The agent does not answer.
    Gone {
        /// Failure of the last request.
        why: String,
        /// Time since the first failure.
        since: Duration,
    },
}

/// Length of a window, which another thread may change. The change applies to the window in progress, too.
#[derive(Clone)]
pub struct Interval(Arc<AtomicU64>);

impl Interval {
    fn new(length: Duration) -> Interval {
        let new = Interval(Arc::default());
        new.set(length);
        new
    }

    /// Current length.
    pub fn get(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }

    /// Sets the length from now on, to the millisecond.
    pub fn set(&self, length: Duration) {
        let millis = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
        self.0.store(millis, Ordering::Relaxed);
    }
}

/// Cuts time into windows.
pub struct WindowStream {
    source: WindowSource,
    interval: Interval,
    windows: Windows,
    next: Instant,
    /// Length of the current window: the time from its begin to `next`.
    wait: Duration,
    gone: Option<Instant>,
    counting: Option<Counting>,
    sleepers: Option<Sleepers>,
}

impl WindowStream {
    /// Finds a source; its first snapshot begins the first window.
    ///
    /// # Errors
    /// When there is no agent, and probes of this process are not wanted or not possible.
    pub fn open(url: Option<&str>, interval: Duration) -> anyhow::Result<WindowStream> {
        let (source, first) = match local_or_remote::agent_or_own(url, http::snapshot)? {
            Found::Agent(at, first) => (WindowSource::Agent(at), first),
            Found::Own => {
                let mut source = nfscope_source::start(&Options::default())?;
                let first = source.snapshot();
                (WindowSource::Own(source), first)
            }
        };
        Ok(WindowStream::of(source, first, interval))
    }

    fn of(source: WindowSource, first: Snapshot, interval: Duration) -> WindowStream {
        let mut windows = Windows::default();
        windows.step(first);
        WindowStream {
            source,
            interval: Interval::new(interval),
            windows,
            next: Instant::now() + interval,
            wait: interval,
            gone: None,
            counting: None,
            sleepers: None,
        }
    }

    /// Starts counting operations by client and export, and by file, in place of earlier counts. Counting costs each operation of the
    /// server some instructions, until [`counted`](WindowStream::counted) ends it.
    pub fn count(&mut self) {
        self.counting = Some(match &mut self.source {
            WindowSource::Agent(url) => Counting::of_agent(url),
            WindowSource::Own(source) => Counting::Own(Own::start(source.as_mut())),
        });
    }

    /// Starts counting anew for a window that begins anew, if operations are being counted.
    pub fn count_anew(&mut self) {
        if self.counting.take().is_some() {
            self.count();
        }
    }

    /// Ends counting, with the counts of a window of this length; `None` if nothing was counted.
    pub fn counted(&mut self, length: Duration) -> Option<Told> {
        let counting = self.counting.take()?;
        let source = match &mut self.source {
            WindowSource::Agent(_) => None,
            WindowSource::Own(source) => Some(source.as_mut()),
        };
        Some(counting.end(source, length))
    }

    /// Samples the kernel stacks of operations in waits without a name for this time, until [`slept`](WindowStream::slept).
    pub fn look_at_sleepers(&mut self, length: Duration) {
        self.sleepers = Some(match &self.source {
            WindowSource::Agent(url) => Sleepers::of_agent(url, length),
            WindowSource::Own(_) => Sleepers::own(length),
        });
    }

    /// Ends sampling, with the stacks or the reason why there are none; `None` if none were sampled.
    pub fn slept(&mut self) -> Option<Result<Sleeps, String>> {
        self.sleepers.take().map(Sleepers::end)
    }

    /// Snapshot that begins the next window, if one has begun.
    pub fn latest(&self) -> Option<&Snapshot> {
        self.windows.earlier.as_ref()
    }

    /// Ends the first window sooner, so that the user does not look at an empty screen.
    pub fn shorten_first(&mut self, first: Duration) {
        self.wait = self.interval.get().min(first);
        self.next = Instant::now() + self.wait;
    }

    /// Handle that changes the length of a window.
    pub fn interval(&self) -> Interval {
        self.interval.clone()
    }

    /// Waits for the next event.
    pub fn next_event(&mut self) -> WindowEvent {
        self.next_event_with(|| {})
    }

    /// Waits for the next event; calls `waiting` at least once a second.
    pub fn next_event_with(&mut self, mut waiting: impl FnMut()) -> WindowEvent {
        let mut same = 0;
        loop {
            self.pause(&mut waiting);
            let (event, wait) = match self.source.snapshot() {
                Ok(snapshot) => {
                    self.gone = None;
                    // An agent answers with the same reading for a quarter of a second: the window goes on.
                    let again = same < MOST_SAME && self.windows.has(&snapshot);
                    same += 1;
                    let event = (!again).then(|| self.windows.step(snapshot));
                    (event, self.interval.get())
                }
                Err(e) => {
                    // Operations during the gap belong to no window.
                    self.windows = Windows::default();
                    let since = *self.gone.get_or_insert_with(Instant::now);
                    let event = WindowEvent::Gone {
                        why: e.to_string(),
                        since: since.elapsed(),
                    };
                    (Some(event), self.interval.get().min(RETRY_INTERVAL))
                }
            };
            self.wait = wait;
            self.next += wait;
            // If an answer took longer than a window, the next window has its full length nevertheless.
            if self.next < Instant::now() {
                self.next = Instant::now() + wait;
            }
            if let Some(event) = event {
                return event;
            }
        }
    }

    /// Usual times of the server's requests, as the agent has learned them; `None` from probes of this process, which have just begun,
    /// and from an agent that does not know them.
    pub fn normal(&self) -> Option<Normal> {
        #[derive(Deserialize)]
        struct Findings {
            #[serde(default)]
            normal: Option<Normal>,
        }
        let WindowSource::Agent(url) = &self.source else {
            return None;
        };
        http::json::<Findings>(url, "/findings").ok()?.normal
    }

    /// Samples single operations for this time. If that fails, the sample is empty, because the rest of the window is worth showing.
    pub fn sample_slow_ops(&mut self, want: &SlowFilter, length: Duration) -> Vec<SlowOp> {
        match &mut self.source {
            WindowSource::Agent(url) => sample_agent(url, want, length),
            WindowSource::Own(source) => {
                if source.watch_slow(Some(want)).is_err() {
                    return Vec::new();
                }
                std::thread::sleep(length);
                let seen = source.take_slow().ops;
                // An error is ignored: watching ends with the source in any case.
                let _ = source.watch_slow(None);
                seen
            }
        }
    }

    /// Waits for the end of the window. Meanwhile this process's probes follow modules that come and go.
    fn pause(&mut self, mut waiting: impl FnMut()) {
        let mut length = self.interval.get();
        loop {
            waiting();
            let now = self.interval.get();
            if now != length {
                length = now;
                let began = self.next.checked_sub(self.wait);
                self.next = began.unwrap_or_else(Instant::now) + now;
                self.wait = now;
            }
            let left = self.next.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let look = match &self.sleepers {
                Some(Sleepers::Own(own)) => own.wait(),
                _ => left,
            };
            std::thread::sleep(left.min(look).min(Duration::from_secs(1)));
            if let WindowSource::Own(source) = &mut self.source {
                source.poll();
                if let Some(Counting::Own(own)) = &mut self.counting {
                    own.take(source.as_mut());
                }
                if let Some(Sleepers::Own(own)) = &mut self.sleepers {
                    own.take(source.as_mut());
                }
            }
        }
    }
}

/// Reads an agent's slow operations as `nfscope slow` does.
fn sample_agent(url: &str, want: &SlowFilter, length: Duration) -> Vec<SlowOp> {
    let mut seen = Vec::new();
    let Ok(mut answer) = lines::request(url, want) else {
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
            // The stream has ended, or the agent has refused.
            Err(_) => return seen,
        }
    }
}

/// Shortest timeout of a read: a timeout of zero is an error.
const MIN_TIMEOUT: Duration = Duration::from_millis(1);

/// Differences of consecutive snapshots.
#[derive(Default)]
struct Windows {
    earlier: Option<Snapshot>,
}

impl Windows {
    /// Returns true if the window in progress began with this reading.
    fn has(&self, later: &Snapshot) -> bool {
        let same = |e: &Snapshot| e.at == later.at && e.began == later.began;
        self.earlier.as_ref().is_some_and(same)
    }

    fn step(&mut self, later: Snapshot) -> WindowEvent {
        // An agent that is still attaching has no clock yet: the window begins when it has one.
        if later.at.is_zero() {
            self.earlier = None;
            return WindowEvent::Attaching;
        }
        // A clock that did not go on belongs to another machine, or to this one after a boot. Another source has counters of its own.
        let earlier = self.earlier.take();
        let earlier = earlier.filter(|e| later.goes_on_from(e));
        let window = earlier.map(|e| later.since(&e));
        self.earlier = Some(later);
        window.map_or(WindowEvent::Begun, |w| WindowEvent::Window(Box::new(w)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_model::{HeldRequests, ProbeStatus, SlowBatch};
    use nfscope_source::clock;

    fn step(windows: &mut Windows, seconds: u64) -> Option<u64> {
        match windows.step(Snapshot::new(Duration::from_secs(seconds))) {
            WindowEvent::Window(w) => Some(w.length.as_secs()),
            _ => None,
        }
    }

    /// Source that counts how often it is asked for requests in hand.
    struct Asked(Arc<AtomicU64>);

    impl Source for Asked {
        fn snapshot(&mut self) -> Snapshot {
            Snapshot::new(clock::now())
        }

        fn held(&mut self, _: Duration) -> HeldRequests {
            self.0.fetch_add(1, Ordering::Relaxed);
            HeldRequests::default()
        }

        fn probes(&self) -> Vec<ProbeStatus> {
            Vec::new()
        }

        fn poll(&mut self) {}

        fn watch_slow(&mut self, _: Option<&SlowFilter>) -> anyhow::Result<()> {
            Ok(())
        }

        fn take_slow(&mut self) -> SlowBatch {
            SlowBatch::default()
        }
    }

    #[test]
    fn own_probes_are_looked_at_as_often_as_an_agent() {
        let (asked, length) = (Arc::default(), Duration::from_millis(2200));
        let mut stream = WindowStream::of(
            WindowSource::Own(Box::new(Asked(Arc::clone(&asked)))),
            Snapshot::new(clock::now()),
            length,
        );
        stream.look_at_sleepers(length);
        stream.next_event();
        // Seven samples have an interval of 0.3 s; an interval of one second would allow two.
        assert!(asked.load(Ordering::Relaxed) > 4, "{asked:?}");
    }

    #[test]
    fn a_window_is_of_one_source() {
        let mut w = Windows::default();
        let mut step = |at: u64, began: u64| {
            let mut s = Snapshot::new(Duration::from_secs(at));
            s.began = Duration::from_secs(began);
            matches!(w.step(s), WindowEvent::Window(_))
        };
        // The agent was restarted between the second and the third snapshot.
        let windows = [(110, 1), (120, 1), (130, 127), (140, 127)].map(|(at, b)| step(at, b));
        assert_eq!(windows, [false, true, false, true]);
    }

    #[test]
    fn the_same_reading_again_is_known() {
        let reading = |at, began| {
            let mut s = Snapshot::new(Duration::from_secs(at));
            s.began = Duration::from_secs(began);
            s
        };
        let mut w = Windows::default();
        assert!(!w.has(&reading(4, 1)));
        w.step(reading(4, 1));
        assert!(w.has(&reading(4, 1)));
        assert!(!w.has(&reading(5, 1)) && !w.has(&reading(4, 2)));
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
