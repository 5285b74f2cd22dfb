//! Windows, one after another, from an agent that may come and go or from probes of this very process.

use crate::counting::{Counting, Own, Told};
use crate::http;
use crate::lines;
use crate::local_or_remote::{self, Found};
use crate::sleepers::Sleepers;
use nfscope_api::slow_line::Line;
use nfscope_diagnose::observed::Sleeps;
use nfscope_model::{SlowFilter, SlowOp, Snapshot, Window};
use nfscope_source::{Options, Source};
use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often an agent that is gone is asked again, at least.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// So often the same reading is asked for again. An agent whose clock stands for longer has been stopped.
const MOST_SAME: u32 = 8;

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
pub enum WindowEvent {
    /// A window has ended.
    Window(Box<Window>),
    /// The first one begins, or the first one since the agent came back.
    Begun,
    /// The agent answers and has no clock yet.
    Attaching,
    /// It does not answer.
    Gone {
        /// The failure of the last request.
        why: String,
        /// The time since the first failure.
        since: Duration,
    },
}

/// The length of a window, which another thread may change; the window that has begun already has the new one.
#[derive(Clone)]
pub struct Interval(Arc<AtomicU64>);

impl Interval {
    fn new(length: Duration) -> Interval {
        let new = Interval(Arc::default());
        new.set(length);
        new
    }

    /// The length now.
    pub fn get(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }

    /// Makes windows so long from now on, to the millisecond.
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
    /// How long after the end of the last window that is.
    wait: Duration,
    gone: Option<Instant>,
    counting: Option<Counting>,
    sleepers: Option<Sleepers>,
}

impl WindowStream {
    /// Finds a source; its first snapshot begins the first window.
    ///
    /// # Errors
    /// When there is no agent, and probes of its own are not asked for or not possible.
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

    /// Counts from now on, in place of what was counted before, who does what and with which files. It costs each operation of
    /// the server some instructions, until [`counted`](WindowStream::counted) ends it.
    pub fn count(&mut self) {
        self.counting = Some(match &mut self.source {
            WindowSource::Agent(url) => Counting::of_agent(url),
            WindowSource::Own(source) => Counting::Own(Own::start(source.as_mut())),
        });
    }

    /// The same for a window that begins anew, where something is counted.
    pub fn count_anew(&mut self) {
        if self.counting.take().is_some() {
            self.count();
        }
    }

    /// Ends that, with what was counted of a window of this length; `None` where nobody counted.
    pub fn counted(&mut self, length: Duration) -> Option<Told> {
        let counting = self.counting.take()?;
        let source = match &mut self.source {
            WindowSource::Agent(_) => None,
            WindowSource::Own(source) => Some(source.as_mut()),
        };
        Some(counting.end(source, length))
    }

    /// Looks for as long as that at the kernel stacks of operations that are in waits without a name, until
    /// [`slept`](WindowStream::slept).
    pub fn look_at_sleepers(&mut self, length: Duration) {
        self.sleepers = Some(match &self.source {
            WindowSource::Agent(url) => Sleepers::of_agent(url, length),
            WindowSource::Own(_) => Sleepers::own(length),
        });
    }

    /// Ends that, with the stacks or the reason why there are none; `None` where nobody looked.
    pub fn slept(&mut self) -> Option<Result<Sleeps, String>> {
        self.sleepers.take().map(Sleepers::end)
    }

    /// The snapshot that begins the next window, where one has begun.
    pub fn latest(&self) -> Option<&Snapshot> {
        self.windows.earlier.as_ref()
    }

    /// Ends the first window sooner, for somebody who looks at an empty screen.
    pub fn shorten_first(&mut self, first: Duration) {
        self.wait = self.interval.get().min(first);
        self.next = Instant::now() + self.wait;
    }

    /// To change the length of a window.
    pub fn interval(&self) -> Interval {
        self.interval.clone()
    }

    /// Waits for the next thing to tell.
    pub fn next_event(&mut self) -> WindowEvent {
        self.next_event_with(|| {})
    }

    /// The same; calls `waiting` each second at least.
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
                    // What came during the gap belongs to no window.
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
            // After an answer that took longer than a window the next one is whole again, not short.
            if self.next < Instant::now() {
                self.next = Instant::now() + wait;
            }
            if let Some(event) = event {
                return event;
            }
        }
    }

    /// Looks at single operations for a moment. What keeps it from that is no reason to say nothing of the rest: then it
    /// has seen none.
    pub fn sample_slow_ops(&mut self, want: &SlowFilter, length: Duration) -> Vec<SlowOp> {
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

/// Listens to an agent as `nfscope slow` does.
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
    /// Whether the window that has begun began with this very reading.
    fn has(&self, later: &Snapshot) -> bool {
        let same = |e: &Snapshot| e.at == later.at && e.began == later.began;
        self.earlier.as_ref().is_some_and(same)
    }

    fn step(&mut self, later: Snapshot) -> WindowEvent {
        // An agent that is still attaching has no clock yet: the window begins when it has.
        if later.at.is_zero() {
            self.earlier = None;
            return WindowEvent::Attaching;
        }
        // A clock that did not go on is another machine's, or the same after a boot. Another source has counters of its own.
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

    /// Probes of this process, and how often they were asked for requests in hand.
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
        // Seven with an interval of 0.3 s, and two with one of a second.
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
        // It was started again between the second and the third.
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
