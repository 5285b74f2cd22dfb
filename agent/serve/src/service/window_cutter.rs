//! Cuts the time of a source into windows, for the findings and for the history. Each window begins with the reading that ended the last
//! one.

use super::history::History;
use super::timeline::Timeline;
use nfscope_diagnose::tracker::{Change, FindingTracker, WINDOW};
use nfscope_model::{Snapshot, Window};
use nfscope_source::Source;
use std::time::{Duration, Instant};

/// Findings and history, for which windows are cut, and the begin of the current window.
#[derive(Debug, Default)]
pub(crate) struct WindowCutter {
    pub(crate) findings: FindingTracker,
    pub(crate) history: History,
    timeline: Timeline,
    /// Begin of the current window. The first one begins at once.
    evaluated: Option<Instant>,
}

impl WindowCutter {
    /// Time until a window is due.
    pub(super) fn wait(&self, now: Instant) -> Duration {
        let due = self.evaluated.map_or(now, |at| at + WINDOW);
        let next = self
            .history
            .next_step(now)
            .map_or(due, |next| next.min(due));
        next.saturating_duration_since(now)
    }

    /// Ends windows that are due. Returns the findings that began or cleared.
    pub(super) fn step(&mut self, source: &mut dyn Source, now: Instant) -> Vec<Change> {
        let due = |at: Instant| now.saturating_duration_since(at) >= WINDOW;
        let changes = match self.evaluated.is_none_or(due) {
            true => self.end(source, now, false),
            false => Vec::new(),
        };
        let evaluated = self.evaluated.unwrap_or(now);
        let (findings, timeline) = (&self.findings, &mut self.timeline);
        self.history
            .step(source, findings, timeline, evaluated, now);
        changes
    }

    /// Ends the current window before its time, because probes are about to take their counters with them, or have just come.
    pub(super) fn cut(&mut self, source: &mut dyn Source, now: Instant) {
        self.end(source, now, true);
    }

    fn end(&mut self, source: &mut dyn Source, now: Instant, early: bool) -> Vec<Change> {
        self.evaluated = Some(now);
        let reading = source.peek();
        let (at, began) = (reading.at, reading.began);
        let ended = self.timeline.place(&reading);
        let history = &mut self.history;
        let show = |findings: &FindingTracker, window: &Window, reading: &Snapshot| {
            history.found(window, reading, findings, ended, now);
        };
        let changes = match early {
            true => {
                self.findings.cut(reading, show);
                Vec::new()
            }
            false => self.findings.step_and(reading, ended, show),
        };
        self.history.begin_anew(at, began);
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_api::windows_query::Seen;
    use nfscope_example::probe;
    use nfscope_model::{
        Histogram, ProbeState, ProbeStatus, Scheme, SlowBatch, SlowFilter, family as f,
    };
    use serde_json::Value;

    const EPOCH: f64 = 1_800_000_000.0;

    /// A server that counts, on clocks that the test moves. It is read once where `peek` is called, however late the reading is processed.
    struct Server {
        at: f64,
        /// Seconds by which the wall clock is ahead.
        set: f64,
        began: u64,
        count: u64,
        /// Operations since the start, including those whose counters went away with a detached probe.
        all: u64,
        state: ProbeState,
        /// Seconds that pass during a reading.
        read_for: f64,
    }

    impl Server {
        fn new() -> Self {
            Server {
                at: 100.0,
                set: 0.0,
                began: 50,
                count: 7,
                all: 7,
                state: ProbeState::Attached,
                read_for: 0.0,
            }
        }

        /// Advances the clock by `seconds`, and counts these operations if the probe is attached.
        fn runs(&mut self, seconds: f64, operations: u64) {
            self.at += seconds;
            if self.state == ProbeState::Attached {
                self.count += operations;
                self.all += operations;
            }
        }

        /// Detaches the probe of nfsd with its counters.
        fn leaves(&mut self) {
            (self.state, self.count) = (ProbeState::Detached, 0);
            self.began = self.at as u64;
        }
    }

    impl Source for Server {
        fn snapshot(&mut self) -> Snapshot {
            let mut s = Snapshot::new(Duration::from_secs_f64(self.at));
            s.wall = Some(Duration::from_secs_f64(EPOCH + self.at + self.set));
            s.began = Duration::from_secs(self.began);
            let mut h = Histogram::new(Scheme::TIME);
            h.counts[40] = self.count;
            s.histogram(&f::OP_DURATION, ["3", "write"], h);
            s.probes = self.probes();
            // Operations during a reading belong to the next one.
            self.runs(self.read_for, (100.0 * self.read_for) as u64);
            s
        }

        fn probes(&self) -> Vec<ProbeStatus> {
            let mut nfsd = probe("nfsd", self.state, "");
            nfsd.required = true;
            vec![nfsd]
        }

        fn poll(&mut self) {}

        fn watch_slow(&mut self, _: Option<&SlowFilter>) -> anyhow::Result<()> {
            Ok(())
        }

        fn take_slow(&mut self) -> SlowBatch {
            SlowBatch::default()
        }
    }

    /// The agent's thread, whose own clock is the server's.
    struct Agent {
        cutter: WindowCutter,
        zero: Instant,
        seen: Option<Seen>,
        /// Begin, end and operations of each window.
        told: Vec<(f64, f64, u64)>,
    }

    impl Agent {
        fn new() -> Self {
            Agent {
                cutter: WindowCutter::default(),
                zero: Instant::now(),
                seen: None,
                told: Vec::new(),
            }
        }

        /// Runs one step of the thread at the server's present time.
        fn wakes(&mut self, server: &mut Server) {
            let now = self.now(server);
            self.cutter.step(server, now);
        }

        fn now(&self, server: &Server) -> Instant {
            self.zero + Duration::from_secs_f64(server.at)
        }

        /// Sends a request of a page.
        fn is_asked(&mut self, server: &Server) {
            let now = self.now(server);
            loop {
                let answer = self.cutter.history.answer(self.seen, now).unwrap();
                let answer: Value = serde_json::from_slice(&answer).unwrap();
                self.seen = Seen::parse(answer["since"].as_str().unwrap());
                for w in answer["windows"].as_array().unwrap() {
                    let end = w["at"].as_f64().unwrap() - EPOCH;
                    let ops = w["ops"].as_array().unwrap().iter();
                    let count = ops.map(|o| o["times"]["count"].as_u64().unwrap()).sum();
                    self.told
                        .push((end - w["seconds"].as_f64().unwrap(), end, count));
                }
                if answer["more"] == false {
                    return;
                }
            }
        }

        fn count(&self) -> u64 {
            self.told.iter().map(|w| w.2).sum()
        }

        /// Gaps and overlaps: end of a window and begin of the next one, for each pair that does not meet.
        fn breaks(&self) -> Vec<(f64, f64)> {
            let pairs = self.told.iter().zip(self.told.iter().skip(1));
            let apart = pairs.filter(|(a, b)| (a.1 - b.0).abs() > 1e-3);
            let rounded = |x: f64| (x * 10.0).round() / 10.0;
            apart.map(|(a, b)| (rounded(a.1), rounded(b.0))).collect()
        }
    }

    /// Delays of the thread, in seconds: none, and those of a host that gives it no CPU for up to half a minute.
    const DELAYS: [f64; 9] = [0.0, 0.7, 0.0, 3.2, 0.45, 12.0, 0.1, 0.9, 31.0];

    #[test]
    fn windows_of_an_agent_that_is_held_up_follow_each_other_with_all_counts() {
        for watched in [false, true] {
            let (mut server, mut agent) = (Server::new(), Agent::new());
            agent.wakes(&mut server);
            let first = server.all;
            for (i, delay) in (0..).zip(DELAYS.iter().cycle().take(90)) {
                if watched {
                    agent.is_asked(&server);
                }
                let sleeps = agent.cutter.wait(agent.now(&server)).as_secs_f64().min(1.0);
                server.runs(sleeps + delay, 10 + i);
                agent.wakes(&mut server);
            }
            // Ten seconds without operations end the current window, so that every operation is in a window.
            server.runs(10.0, 0);
            agent.wakes(&mut server);
            agent.is_asked(&server);
            assert_eq!(agent.breaks(), [], "{watched}");
            assert_eq!(agent.count(), server.all - first, "{watched}");
        }
    }

    #[test]
    fn readings_that_take_seconds_lose_no_count() {
        for watched in [false, true] {
            let (mut server, mut agent) = (Server::new(), Agent::new());
            agent.wakes(&mut server);
            let first = server.all;
            for (i, delay) in (0..).zip(DELAYS.iter().cycle().take(60)) {
                if watched {
                    agent.is_asked(&server);
                }
                let sleeps = agent.cutter.wait(agent.now(&server)).as_secs_f64().min(1.0);
                server.runs(sleeps, 10 + i);
                server.read_for = *delay;
                agent.wakes(&mut server);
            }
            server.read_for = 0.0;
            server.runs(10.0, 0);
            agent.wakes(&mut server);
            agent.is_asked(&server);
            assert_eq!(agent.breaks(), [], "{watched}");
            assert_eq!(agent.count(), server.all - first, "{watched}");
        }
    }

    #[test]
    fn pages_that_come_and_go_lose_no_count_and_get_none_twice() {
        let (mut server, mut agent) = (Server::new(), Agent::new());
        agent.wakes(&mut server);
        let first = server.all;
        for i in 0..600u64 {
            server.runs(0.25, i);
            // Some pages are opened a moment before a window of ten seconds ends, and stay for a while.
            if i % 97 < 38 && i % 3 == 0 {
                agent.is_asked(&server);
            }
            agent.wakes(&mut server);
        }
        server.runs(10.0, 0);
        agent.wakes(&mut server);
        agent.is_asked(&server);
        assert_eq!(agent.breaks(), []);
        assert_eq!(agent.count(), server.all - first);
        let short = agent.told.iter().filter(|w| w.1 - w.0 < 0.24);
        assert_eq!(short.count(), 0, "{:?}", agent.told);
    }

    #[test]
    fn windows_of_a_second_end_with_each_window_of_ten_seconds() {
        let (mut server, mut agent) = (Server::new(), Agent::new());
        agent.wakes(&mut server);
        let mut edges = Vec::new();
        for i in 0..400 {
            agent.is_asked(&server);
            server.runs(0.1 + f64::from(i % 7) * 0.02, 1);
            let before = agent.cutter.evaluated;
            agent.wakes(&mut server);
            if agent.cutter.evaluated != before {
                edges.push(server.at);
            }
        }
        agent.is_asked(&server);
        assert!(edges.len() > 4);
        for edge in edges {
            let ends = agent.told.iter().filter(|w| (w.1 - edge).abs() < 1e-3);
            assert_eq!(ends.count(), 1, "{edge} {:?}", agent.told);
        }
    }

    #[test]
    fn a_clock_that_is_set_breaks_windows_in_one_place_and_loses_no_count() {
        for (set, step) in [(3600.0, 3600.0), (-3600.0, -3600.0), (2.0, 2.0)] {
            for watched in [false, true] {
                let (mut server, mut agent) = (Server::new(), Agent::new());
                agent.wakes(&mut server);
                let first = server.all;
                for i in 0..60 {
                    if watched {
                        agent.is_asked(&server);
                    }
                    if i == 30 {
                        server.set = set;
                    }
                    server.runs(1.0, 100);
                    agent.wakes(&mut server);
                }
                agent.is_asked(&server);
                assert_eq!(agent.count(), server.all - first, "{set} {watched}");
                let breaks = agent.breaks();
                let [(end, begin)] = breaks[..] else {
                    panic!("{set} {watched} {breaks:?}")
                };
                assert!((begin - end - step).abs() < 0.01, "{breaks:?}");
            }
        }
    }

    #[test]
    fn a_probe_that_leaves_takes_no_count_with_it() {
        for watched in [false, true] {
            let (mut server, mut agent) = (Server::new(), Agent::new());
            agent.wakes(&mut server);
            let first = server.all;
            let run = |server: &mut Server, agent: &mut Agent, seconds: u64| {
                for _ in 0..seconds {
                    if watched {
                        agent.is_asked(server);
                    }
                    server.runs(1.0, 100);
                    agent.wakes(server);
                }
            };
            run(&mut server, &mut agent, 13);
            // `nfscope detach nfsd`, then the module is loaded anew, and the probe attaches; afterwards the same happens faster.
            let now = agent.now(&server);
            agent.cutter.cut(&mut server, now);
            server.leaves();
            agent.cutter.cut(&mut server, now);
            run(&mut server, &mut agent, 3);
            server.state = ProbeState::Attached;
            let now = agent.now(&server);
            agent.cutter.cut(&mut server, now);
            run(&mut server, &mut agent, 30);
            agent.is_asked(&server);
            assert_eq!(agent.count(), server.all - first, "{watched}");
        }
    }

    #[test]
    fn a_reading_that_is_told_again_ends_nothing() {
        let (mut server, mut agent) = (Server::new(), Agent::new());
        agent.wakes(&mut server);
        server.runs(10.0, 5);
        let mut now = agent.now(&server);
        for _ in 0..4 {
            agent.cutter.step(&mut server, now);
            now += WINDOW;
        }
        agent.is_asked(&server);
        assert_eq!(agent.told, [(100.0, 110.0, 5)]);
    }
}
