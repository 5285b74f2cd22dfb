//! Keeps a process running: starts it, notices when it ends or is silent for too long, and starts it again, later each time.

use super::child::Child;
use super::complaint::Complaint;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Time limits of a runner.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Time until the first value: compiling a script and enabling its probes takes a while.
    pub start: Duration,
    /// Time between two values. Scripts print at least every ten seconds, and `kstat` each second.
    pub silence: Duration,
    /// Wait before the first restart; each further wait is twice as long.
    pub first_restart: Duration,
    /// Longest wait before a restart. A process that ran for this time has recovered.
    pub last_restart: Duration,
}

impl Patience {
    /// Time limits of the agent.
    pub const USUAL: Patience = Patience {
        start: Duration::from_secs(120),
        silence: Duration::from_secs(25),
        first_restart: Duration::from_secs(1),
        last_restart: Duration::from_secs(60),
    };

    fn restart_after(&self, failures: u32) -> Duration {
        let factor = 1u32.checked_shl(failures.saturating_sub(1)).unwrap_or(0);
        let wait = self.first_restart.checked_mul(factor);
        match wait {
            Some(wait) if factor > 0 => wait.min(self.last_restart),
            _ => self.last_restart,
        }
    }
}

/// Reason why a process does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Reason in a line, for a person.
    pub why: String,
    /// Meaning of the line.
    pub fault: Option<Complaint>,
}

/// A process and its successors.
#[derive(Debug)]
pub struct Runner<T> {
    patience: Patience,
    child: Option<Child<T>>,
    started: Instant,
    failure: Option<Failure>,
    failures: u32,
    restart_at: Option<Instant>,
    /// Lost events of processes that have ended.
    lost: BTreeMap<&'static str, u64>,
}

/// Change that a [`Runner::tick`] made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// No change.
    Same,
    /// A process was started.
    Started,
    /// The process has ended, or was ended. Its values have been taken before.
    Ended,
}

impl<T: Send + 'static> Runner<T> {
    /// Makes a runner without a process: the first [`tick`](Runner::tick) starts it.
    pub fn new(patience: Patience) -> Self {
        Runner {
            patience,
            child: None,
            started: Instant::now(),
            failure: None,
            failures: 0,
            restart_at: None,
            lost: BTreeMap::new(),
        }
    }

    /// Does the work that is due at this moment, and passes the values of the process to `take`.
    pub fn tick(
        &mut self,
        now: Instant,
        start: impl FnOnce() -> std::io::Result<Child<T>>,
        mut take: impl FnMut(T),
    ) -> Step {
        let Some(child) = &mut self.child else {
            if self.restart_at.is_some_and(|at| now < at) {
                return Step::Same;
            }
            return match start() {
                Ok(child) => {
                    self.child = Some(child);
                    self.started = now;
                    Step::Started
                }
                Err(e) => {
                    self.failed(now, e.to_string(), None);
                    Step::Same
                }
            };
        };
        let ended = child.ended();
        let mut inbox = child.inbox();
        inbox.values.drain(..).for_each(&mut take);
        let silent = now.saturating_duration_since(inbox.heard);
        let limit = match inbox.made {
            0 => self.patience.start,
            _ => self.patience.silence,
        };
        let (why, fault) = match ended {
            Some(status) => {
                let last = inbox.said.back().cloned();
                let fault = inbox.fault.clone();
                let tells = |line: &&String| super::complaint::read(line) != Complaint::Other;
                let said = inbox.said.iter().rev().find(tells).cloned().or(last);
                (said.unwrap_or_else(|| format!("it ended: {status}")), fault)
            }
            None if silent > limit => (
                format!("it printed nothing for {} s", limit.as_secs()),
                None,
            ),
            None => {
                if inbox.made > 0 {
                    self.failure = None;
                    if now.saturating_duration_since(self.started) > self.patience.last_restart {
                        self.failures = 0;
                    }
                }
                return Step::Same;
            }
        };
        drop(inbox);
        self.end();
        self.failed(now, why, fault);
        Step::Ended
    }

    fn failed(&mut self, now: Instant, why: String, fault: Option<Complaint>) {
        self.failures = self.failures.saturating_add(1);
        self.restart_at = Some(now + self.patience.restart_after(self.failures));
        self.failure = Some(Failure { why, fault });
    }

    /// Restarts the process at the next tick, without any further wait.
    pub fn hurry(&mut self) {
        self.restart_at = None;
    }

    /// Ends the process, and starts it again at the next tick.
    pub fn renew(&mut self) {
        self.end();
        self.restart_at = None;
    }

    /// Ends the process, and keeps the number of events that it lost.
    fn end(&mut self) {
        self.lost = self.lost();
        self.child = None;
    }

    /// The process, while there is one.
    pub fn child(&self) -> Option<&Child<T>> {
        self.child.as_ref()
    }

    /// True if the running process has made a value.
    pub fn runs(&self) -> bool {
        self.child().is_some_and(|c| c.inbox().made > 0)
    }

    /// Reason why the process does not run. Just after a restart it is the reason why the last process ended.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Events lost so far, by reason, and lines that could not be read.
    pub fn lost(&self) -> BTreeMap<&'static str, u64> {
        let mut all = self.lost.clone();
        all.entry("unreadable").or_default();
        if let Some(child) = self.child() {
            let inbox = child.inbox();
            for (reason, n) in &inbox.lost {
                *all.entry(reason).or_default() += n;
            }
            *all.entry("unreadable").or_default() += inbox.bad;
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::illumos::child::Reader;
    use std::ffi::OsStr;

    /// Pieces of text as they come.
    struct Pieces;

    impl Reader for Pieces {
        type Value = Vec<u8>;
        fn feed(&mut self, text: &[u8], done: &mut dyn FnMut(Vec<u8>)) {
            done(text.to_vec());
        }
        fn bad(&self) -> u64 {
            3
        }
    }

    fn shell(script: &str) -> std::io::Result<Child<Vec<u8>>> {
        let arguments = ["-c".to_owned(), script.to_owned()];
        Child::start(OsStr::new("/bin/sh"), &arguments, String::new(), Pieces, 4)
    }

    /// Waits until the process has ended by itself.
    fn ended(r: &Runner<Vec<u8>>) {
        let minute = Duration::from_secs(60);
        r.child().unwrap().wait_for(minute, |inbox| inbox.open == 0);
        // The exit status may come a moment after the pipes are closed.
        std::thread::sleep(Duration::from_millis(50));
    }

    #[test]
    fn a_process_that_ends_is_started_again_later_each_time() {
        let mut r = Runner::new(Patience::USUAL);
        let mut now = Instant::now();
        for (failures, wait) in [1, 2, 4, 8, 16, 32, 60, 60].into_iter().enumerate() {
            assert_eq!(
                r.tick(now, || shell("echo out; echo why >&2; exit 3"), drop),
                Step::Started
            );
            ended(&r);
            let mut taken = Vec::new();
            while r.tick(now, || unreachable!(), |v| taken.extend(v)) != Step::Ended {}
            assert_eq!(taken, b"out\n");
            assert_eq!(r.failure().unwrap().why, "why", "{failures}");
            let almost = now + Duration::from_secs(wait) - Duration::from_millis(1);
            assert_eq!(r.tick(almost, || unreachable!(), drop), Step::Same);
            now += Duration::from_secs(wait);
        }
        assert_eq!(r.lost(), BTreeMap::from([("unreadable", 8 * 3)]));
    }

    #[test]
    fn a_process_that_is_silent_is_ended() {
        let mut r = Runner::new(Patience::USUAL);
        let now = Instant::now();
        r.tick(now, || shell("echo; exec sleep 1000"), drop);
        let minute = Duration::from_secs(60);
        r.child().unwrap().wait_for(minute, |inbox| inbox.made > 0);
        assert!(r.runs());
        assert_eq!(r.tick(Instant::now(), || unreachable!(), drop), Step::Same);
        let later = Instant::now() + Duration::from_secs(26);
        assert_eq!(r.tick(later, || unreachable!(), drop), Step::Ended);
        assert_eq!(r.failure().unwrap().why, "it printed nothing for 25 s");
        assert!(!r.runs());
    }

    #[test]
    fn one_that_is_renewed_starts_at_once_and_its_losses_stay() {
        let mut r = Runner::new(Patience::USUAL);
        let now = Instant::now();
        let say =
            || shell("echo 'dtrace: 3 drops on CPU 1' >&2; while :; do echo; sleep 0.05; done");
        for round in 1..3 {
            assert_eq!(r.tick(now, say, drop), Step::Started);
            let minute = Duration::from_secs(60);
            let child = r.child().unwrap();
            child.wait_for(minute, |inbox| inbox.made > 0 && !inbox.lost.is_empty());
            r.renew();
            assert_eq!((r.lost()["drops"], r.failure()), (3 * round, None));
        }
    }

    #[test]
    fn one_that_does_not_listen_is_killed() {
        let started = shell("trap '' TERM; echo; exec sleep 1000").unwrap();
        started.wait_for(Duration::from_secs(60), |inbox| inbox.made > 0);
        drop(started);
    }

    #[test]
    fn a_program_that_is_not_there_is_a_failure() {
        let mut r = Runner::new(Patience::USUAL);
        let none = || Child::start(OsStr::new("/none/dtrace"), &[], String::new(), Pieces, 1);
        assert_eq!(r.tick(Instant::now(), none, drop), Step::Same);
        assert!(r.failure().unwrap().why.contains("No such file"));
    }

    #[test]
    fn both_pipes_are_drained_and_losses_are_counted() {
        let mut r = Runner::new(Patience::USUAL);
        let now = Instant::now();
        // Far more than a pipe holds, on each.
        let noise = "i=0; while [ $i -lt 20000 ]; do echo 'dtrace: 2 drops on CPU 1' >&2; echo 0123456789; i=$((i+1)); done";
        r.tick(now, || shell(noise), drop);
        ended(&r);
        while r.tick(now, || unreachable!(), drop) != Step::Ended {}
        assert_eq!(r.lost()["drops"], 40_000);
        // None of these lines says why the process ended.
        assert!(r.failure().unwrap().why.starts_with("it ended: exit"));
    }
}
