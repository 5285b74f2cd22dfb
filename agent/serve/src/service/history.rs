//! The last quarter of an hour in windows, for the page at `/`.
//!
//! While a page is open, windows have a second. Otherwise they are the windows of ten seconds that the findings are made from: then the
//! history costs no reading of its own, and memory for a compressed text of each.
//!
//! Each window begins with the reading that ended the last one. Windows of a second end with each window of ten seconds, too, so that
//! windows here and on the disk share their edges.

use crate::names::Names;
use crate::service::archive::Archive;
use crate::service::late_windows::LateWindows;
use crate::service::timeline::Timeline;
use anyhow::Context;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use nfscope_api::live_window::{Greeting, LiveWindow, seconds};
use nfscope_api::windows_query::Seen;
use nfscope_diagnose::tracker::{FindingTracker, WINDOW};
use nfscope_model::{Snapshot, Window};
use nfscope_source::Source;
use nfscope_text::console::warn;
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::time::{Duration, Instant, SystemTime};

/// Time for which a window is kept.
const KEPT: Duration = Duration::from_secs(900);
/// Most memory for the windows: a server with many operations, logs and disks keeps less than [`KEPT`].
const MOST_BYTES: usize = 4 << 20;
/// Length of a window while a page is open.
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);
/// Time after the last request, from which on no page counts as open. Pages ask every second.
const ATTENTION: Duration = Duration::from_secs(5);
/// Most windows in one answer. A page asks again for the rest.
const MOST_WINDOWS: usize = 60;
/// Name of the only probe of an agent that plays a recording.
pub const REPLAY: &str = "replay";
/// Most text in one answer, before its last window.
const MOST_TEXT: usize = 1 << 20;

/// Answer of `/windows`.
#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    greeting: Greeting<'a>,
    /// True if the agent plays a recording: nothing can be counted on demand.
    replay: bool,
    /// Value of `since` for the next request.
    since: String,
    /// True if there are more windows already.
    more: bool,
    windows: Vec<Box<RawValue>>,
}

#[derive(Debug)]
struct Kept {
    number: u64,
    /// End of the window by the source's clock, which is never set.
    at: Duration,
    packed: Vec<u8>,
}

/// Windows of the past, the earliest first.
#[derive(Debug)]
pub(crate) struct History {
    /// Number that distinguishes this run of the agent from an earlier one.
    agent: u64,
    kept: VecDeque<Kept>,
    bytes: usize,
    next: u64,
    /// Reading that ended the last window of a second. `None` if a window of the findings ended since.
    earlier: Option<Snapshot>,
    /// End of the next window of a second, once one has begun.
    due: Option<Instant>,
    asked: Option<Instant>,
    host: String,
    kernel: String,
    /// True if the windows are those of a recording.
    replay: bool,
    archive: Option<Archive>,
    /// Names of clients.
    pub(super) names: Names,
    /// Windows that the thread with the disk has no room for.
    late: LateWindows,
    /// True after a warning that the disk is behind.
    behind: bool,
}

impl Default for History {
    fn default() -> Self {
        History {
            agent: seconds(SystemTime::now()).to_bits(),
            kept: VecDeque::new(),
            bytes: 0,
            next: 1,
            earlier: None,
            due: None,
            asked: None,
            host: String::new(),
            kernel: String::new(),
            replay: false,
            archive: None,
            names: Names::default(),
            late: LateWindows::default(),
            behind: false,
        }
    }
}

impl History {
    /// Keeps windows of the findings in the archive, too, from now on.
    pub(crate) fn keep_in(&mut self, archive: Archive) {
        self.archive = Some(archive);
    }

    fn is_watched(&self, now: Instant) -> bool {
        self.asked
            .is_some_and(|at| now.saturating_duration_since(at) < ATTENTION)
    }

    /// End of the next window of a second; `None` while no page is open.
    pub(crate) fn next_step(&self, now: Instant) -> Option<Instant> {
        self.due.filter(|_| self.is_watched(now))
    }

    /// Ends a window of a second if one is due. `evaluated` is the begin of the window of the findings that is under way.
    pub(crate) fn step(
        &mut self,
        source: &mut dyn Source,
        findings: &FindingTracker,
        timeline: &mut Timeline,
        evaluated: Instant,
        now: Instant,
    ) {
        if !self.is_watched(now) {
            self.due = None;
            return;
        }
        if self.due.is_some_and(|due| now < due) {
            return;
        }
        self.due = Some(next_second(evaluated, now));
        // The rest of the findings' window is too short for a window of its own.
        if now < evaluated + WINDOW && evaluated + WINDOW < now + INTERVAL / 2 {
            return;
        }
        let reading = source.peek();
        let ended = timeline.place(&reading);
        let earlier = self.earlier.take();
        let begun = earlier.as_ref().or_else(|| findings.earlier());
        if let Some(window) = begun.and_then(|e| between(e, &reading)) {
            self.keep(&window, findings, ended);
        }
        self.earlier = Some(reading);
    }

    /// Takes a window of the findings that has ended with this reading.
    pub(crate) fn found(
        &mut self,
        window: &Window,
        reading: &Snapshot,
        findings: &FindingTracker,
        ended: SystemTime,
        now: Instant,
    ) {
        match self.earlier.take() {
            None => self.keep(window, findings, ended),
            // A part of this window is kept second by second, so only the rest is added.
            Some(e) => {
                if let Some(rest) = between(&e, reading) {
                    self.keep(&rest, findings, ended);
                }
            }
        }
        self.due = Some(now + INTERVAL).filter(|_| self.is_watched(now));
        if let Some(archive) = &self.archive {
            let mut window = window.clone();
            findings.describe(&mut window.delta);
            if !self.late.add(window, ended) {
                warn(
                    "the history has a gap: its disk has taken no window for long, and the clock was set",
                );
            }
            let behind = self.late.hand_over(|w, ended| archive.keep(w, ended));
            if behind.is_err() && !self.behind {
                warn(
                    "the disk of the history takes no windows; they wait, and become a longer one",
                );
            }
            self.behind = behind.is_err();
        }
    }

    /// Begins the findings' window anew at this reading. A reading of a second that is older, or of another source, begins no window any
    /// more.
    pub(crate) fn begin_anew(&mut self, at: Duration, began: Duration) {
        self.earlier.take_if(|e| e.began != began || e.at < at);
    }

    fn keep(&mut self, window: &Window, findings: &FindingTracker, ended: SystemTime) {
        self.host = window.delta.host.clone().unwrap_or_default();
        self.kernel = window.delta.kernel.clone().unwrap_or_default();
        self.replay = window.delta.probes.iter().any(|p| p.probe == REPLAY);
        let active = findings
            .shares()
            .map(|(kind, share)| (kind.as_str(), share));
        let live = LiveWindow::of(window, seconds(ended), active);
        let live = live.naming(|address| self.names.client(address));
        let Ok(packed) = pack(&live) else { return };
        let at = window.delta.at;
        self.bytes += packed.len();
        self.kept.push_back(Kept {
            number: self.next,
            at,
            packed,
        });
        self.next += 1;
        let old = |k: &Kept| at.saturating_sub(k.at) > KEPT;
        while self.bytes > MOST_BYTES || self.kept.front().is_some_and(old) {
            let Some(first) = self.kept.pop_front() else {
                return;
            };
            self.bytes -= first.packed.len();
        }
    }

    /// Windows that a page has not seen, as JSON. The request also starts or prolongs the windows of one second.
    ///
    /// # Errors
    /// None so far: the texts were compressed here.
    pub(crate) fn answer(&mut self, seen: Option<Seen>, now: Instant) -> anyhow::Result<Vec<u8>> {
        self.asked = Some(now);
        // Numbers of another agent's windows do not count here.
        let seen = seen.filter(|s| s.agent == self.agent);
        let last = seen.map_or(0, |s| s.window);
        let from = self.kept.partition_point(|k| k.number <= last);
        let (mut windows, mut bytes, mut last) = (Vec::new(), 0, last);
        for kept in self.kept.range(from..).take(MOST_WINDOWS) {
            // At least one window is sent, so that the page gets on.
            if bytes > MOST_TEXT {
                break;
            }
            let window = unpack(&kept.packed)?;
            bytes += window.get().len();
            windows.push(window);
            last = kept.number;
        }
        let since = Seen {
            agent: self.agent,
            window: last,
        };
        let answer = Answer {
            greeting: Greeting::new(&self.host, &self.kernel),
            replay: self.replay,
            since: since.to_string(),
            more: from + windows.len() < self.kept.len(),
            windows,
        };
        Ok(serde_json::to_vec(&answer)?)
    }
}

/// Window between two readings of the same source.
fn between(earlier: &Snapshot, later: &Snapshot) -> Option<Window> {
    later.goes_on_from(earlier).then(|| later.since(earlier))
}

/// The next whole second since `evaluated` that is at least half a second away, so that a late window delays no other one.
fn next_second(evaluated: Instant, now: Instant) -> Instant {
    let passed = now.saturating_duration_since(evaluated).as_secs_f64();
    evaluated + Duration::from_secs(passed.round() as u64) + INTERVAL
}

fn pack(window: &LiveWindow<'_>) -> anyhow::Result<Vec<u8>> {
    let mut packer = DeflateEncoder::new(Vec::new(), Compression::default());
    packer.write_all(&serde_json::to_vec(window)?)?;
    let mut packed = packer.finish()?;
    packed.shrink_to_fit();
    Ok(packed)
}

fn unpack(packed: &[u8]) -> anyhow::Result<Box<RawValue>> {
    let mut text = String::new();
    DeflateDecoder::new(packed)
        .read_to_string(&mut text)
        .context("a window of the history cannot be unpacked")?;
    Ok(RawValue::from_string(text)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_example::Script;
    use serde_json::Value;

    fn lengths(h: &mut History, seen: Option<Seen>, now: Instant) -> (Vec<f64>, Seen, bool) {
        let body: Value = serde_json::from_slice(&h.answer(seen, now).unwrap()).unwrap();
        let windows = body["windows"].as_array().unwrap();
        let lengths = windows.iter().map(|w| w["seconds"].as_f64().unwrap());
        let since = Seen::parse(body["since"].as_str().unwrap()).unwrap();
        (lengths.collect(), since, body["more"].as_bool().unwrap())
    }

    fn of(seconds: u64) -> Window {
        Window {
            length: Duration::from_secs(seconds),
            delta: Snapshot::default(),
        }
    }

    fn keep(h: &mut History, seconds: u64, at: u64) {
        let ended = SystemTime::UNIX_EPOCH + Duration::from_secs(at);
        let mut window = of(seconds);
        window.delta.at = Duration::from_secs(at);
        h.keep(&window, &FindingTracker::default(), ended);
    }

    #[test]
    fn a_page_gets_what_it_has_not_seen() {
        let (mut h, now) = (History::default(), Instant::now());
        for i in 1..=3 {
            keep(&mut h, 10, 1000 + 10 * i);
        }
        let (first, since, more) = lengths(&mut h, None, now);
        assert_eq!((first, more), (vec![10.0; 3], false));
        keep(&mut h, 9, 1039);
        assert_eq!(lengths(&mut h, Some(since), now).0, [9.0]);
        // To a page that has seen windows of another agent, all windows are new.
        let other = Seen {
            agent: 1,
            window: 2,
        };
        assert_eq!(lengths(&mut h, Some(other), now).0.len(), 4);
        assert_eq!(Seen::parse(&since.to_string()), Some(since));
        assert_eq!(Seen::parse("x"), None);
    }

    #[test]
    fn a_wall_clock_that_is_set_forgets_nothing() {
        let mut h = History::default();
        for (at, set) in [(1000, 0), (1010, 0), (1020, 86_400), (1030, -86_400)] {
            let mut window = of(10);
            window.delta.at = Duration::from_secs(at);
            let ended = SystemTime::UNIX_EPOCH + Duration::from_secs(200_000);
            let ended = ended + Duration::from_secs(at.saturating_add_signed(set));
            h.keep(&window, &FindingTracker::default(), ended);
        }
        assert_eq!(lengths(&mut h, None, Instant::now()).0, [10.0; 4]);
    }

    #[test]
    fn a_quarter_of_an_hour_is_kept_and_told_in_pieces() {
        let (mut h, now) = (History::default(), Instant::now());
        for i in 1..=2000 {
            keep(&mut h, 1, 10_000 + i);
        }
        assert_eq!(h.kept.len(), 901);
        let bytes: usize = h.kept.iter().map(|k| k.packed.len()).sum();
        assert_eq!(h.bytes, bytes);
        let (mut seen, mut all) = (None, 0);
        loop {
            let (some, since, more) = lengths(&mut h, seen, now);
            assert!(some.len() <= MOST_WINDOWS);
            all += some.len();
            seen = Some(since);
            if !more {
                break;
            }
        }
        assert_eq!(all, 901);
    }

    #[test]
    fn counters_that_begin_anew_and_clocks_that_stand_still_leave_a_gap() {
        let reading = |began: u64, at: u64| {
            let mut s = Snapshot::new(Duration::from_secs(at));
            s.began = Duration::from_secs(began);
            s
        };
        assert!(between(&reading(1, 5), &reading(1, 6)).is_some());
        assert!(between(&reading(1, 5), &reading(4, 6)).is_none());
        assert!(between(&reading(1, 5), &reading(1, 5)).is_none());
    }

    #[test]
    fn a_second_is_read_only_while_somebody_looks() {
        let (mut h, mut source) = (History::default(), Script::default());
        let (findings, begun) = (FindingTracker::default(), Instant::now());
        let mut clock = Timeline::default();
        let mut step = |h: &mut History, seconds: u64| {
            let now = begun + Duration::from_secs(seconds);
            h.step(&mut source, &findings, &mut clock, begun, now);
            (h.earlier.is_some(), h.next_step(now).map(|due| due - begun))
        };
        assert_eq!(step(&mut h, 2), (false, None));
        h.answer(None, begun + Duration::from_secs(2)).unwrap();
        let third = Some(Duration::from_secs(3));
        assert_eq!(step(&mut h, 2), (true, third));
        // No page has asked for a while. The rest of the findings' window after the last window of a second is a window of its own.
        assert_eq!(step(&mut h, 8), (true, None));
        let ended = Snapshot::new(Duration::from_secs(6));
        let (clock, now) = (SystemTime::now(), begun + WINDOW);
        h.found(&of(10), &ended, &FindingTracker::default(), clock, now);
        assert!(h.earlier.is_none());
        assert_eq!(lengths(&mut h, None, now).0, [6.0]);
    }

    #[test]
    fn a_window_that_is_late_makes_no_other_one_late() {
        let zero = Instant::now();
        for (now, due) in [(0.0, 1.0), (1.02, 2.0), (2.4, 3.0), (2.6, 4.0), (9.1, 10.0)] {
            let next = next_second(zero, zero + Duration::from_secs_f64(now));
            assert_eq!((next - zero).as_secs_f64(), due, "{now}");
        }
    }
}
