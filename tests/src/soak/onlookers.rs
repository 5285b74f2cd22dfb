//! Onlookers while the server works: Prometheus in each format, a page, listeners of `/slow`, and programs that ask for `/stuck` and
//! `/snapshot`.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::http::{self, Lines};

/// Answers that onlookers got.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Answers to scrapes of `/metrics`.
    pub scrapes: u64,
    /// Time of the slowest scrape.
    pub slowest: Duration,
    /// Answers of all other paths, listeners of `/slow` included.
    pub others: u64,
    /// Lines of `/slow`.
    pub slow_lines: u64,
    /// Requests that failed during an event that explains it.
    pub excused: u64,
    /// Answers that the agent is busy, while it attached the probe again.
    pub busy: u64,
    /// Failures that no event explains.
    pub failed: Vec<String>,
}

/// Requests that may fail for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Excuse {
    /// No request.
    None = 0,
    /// Requests that need timed operations.
    Untimed = 1,
    /// Every request: no process serves HTTP.
    Unserved = 2,
}

#[derive(Debug)]
struct Shared {
    address: SocketAddr,
    stop: AtomicBool,
    pausing: AtomicBool,
    excuse: AtomicU8,
    /// Held for reading while an onlooker asks.
    looking: RwLock<()>,
    seen: Mutex<Seen>,
}

/// Onlookers, which ask until [`Onlookers::stop`].
#[derive(Debug)]
pub struct Onlookers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// Pause of the onlookers while it lives.
#[must_use]
pub struct Paused<'a> {
    shared: &'a Shared,
    _nobody: RwLockWriteGuard<'a, ()>,
}

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        self.shared.pausing.store(false, Ordering::SeqCst);
    }
}

/// Requests that an onlooker makes by turns. Prometheus asks for the text, OpenMetrics and protobuf.
const TEXT: &[(&str, &str)] = &[("accept-encoding", "gzip")];
const OPEN: &[(&str, &str)] = &[("accept", "application/openmetrics-text;version=1.0.0")];
const NATIVE: &[(&str, &str)] = &[(
    "accept",
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited",
)];
type Asked = &'static [(&'static str, &'static [(&'static str, &'static str)])];
const SCRAPES: Asked = &[("/metrics", TEXT), ("/metrics", OPEN), ("/metrics", NATIVE)];
const PAGE: Asked = &[("/windows", &[])];
const PROGRAMS: Asked = &[
    ("/stuck", &[]),
    ("/findings", &[]),
    ("/snapshot", &[]),
    ("/healthz", &[]),
];
/// Time that a listener of `/slow` stays before the next one comes.
const LISTENS: Duration = Duration::from_secs(20);

impl Onlookers {
    /// Starts the onlookers.
    pub fn start(address: SocketAddr) -> Onlookers {
        let shared = Arc::new(Shared {
            address,
            stop: AtomicBool::new(false),
            pausing: AtomicBool::new(false),
            excuse: AtomicU8::new(Excuse::None as u8),
            looking: RwLock::new(()),
            seen: Mutex::default(),
        });
        let of = |look: fn(&Shared, usize), every: u64| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.again(look, Duration::from_secs(every)))
        };
        let threads = vec![
            of(|s, n| s.ask(SCRAPES, n), 3),
            of(|s, n| s.ask(PAGE, n), 4),
            of(|s, n| s.ask(PROGRAMS, n), 5),
            of(|s, n| s.listen(n), 1),
        ];
        Onlookers { shared, threads }
    }

    /// Sets the requests that may fail from now on.
    pub fn excuse(&self, excuse: Excuse) {
        self.shared.excuse.store(excuse as u8, Ordering::SeqCst);
    }

    /// Pauses the onlookers, and waits until each has closed its connections.
    pub fn pause(&self) -> Paused<'_> {
        self.shared.pausing.store(true, Ordering::SeqCst);
        let looking = self.shared.looking.write();
        Paused {
            shared: &self.shared,
            _nobody: looking.unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// Answers so far.
    pub fn so_far(&self) -> Seen {
        self.shared.seen().clone()
    }

    /// Stops the onlookers.
    pub fn stop(self) -> Seen {
        self.shared.stop.store(true, Ordering::SeqCst);
        for thread in self.threads {
            // A panicked onlooker has printed its message; its answers until then count.
            let _ = thread.join();
        }
        self.shared.seen().clone()
    }
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leaving(&self) -> bool {
        self.stop.load(Ordering::SeqCst) || self.pausing.load(Ordering::SeqCst)
    }

    fn again(&self, look: fn(&Shared, usize), every: Duration) {
        for n in 0.. {
            if self.stop.load(Ordering::SeqCst) {
                return;
            }
            if !self.pausing.load(Ordering::SeqCst) {
                let _looks = self.looking.read();
                look(self, n);
            }
            thread::sleep(every);
        }
    }

    fn ask(&self, of: Asked, n: usize) {
        let (path, headers) = of[n % of.len()];
        let began = (self.excuse.load(Ordering::SeqCst), Instant::now());
        let answer = http::get(self.address, path, headers);
        let took = began.1.elapsed();
        let untimed = began.0.max(self.excuse.load(Ordering::SeqCst)) >= Excuse::Untimed as u8;
        let failed = match answer {
            Ok(answer) if answer.status == 200 => None,
            Ok(answer)
                if untimed && answer.status == 503 && answer.header("retry-after").is_some() =>
            {
                self.seen().busy += 1;
                return;
            }
            Ok(answer) => Some(format!("{path}: {} {}", answer.status, answer.text())),
            Err(e) => Some(format!("{e:#}")),
        };
        let served = path == "/metrics" || path == "/windows";
        let enough = if served {
            Excuse::Unserved
        } else {
            Excuse::Untimed
        };
        if !self.failed(failed, began.0, enough) {
            let mut seen = self.seen();
            if path == "/metrics" {
                seen.scrapes += 1;
                seen.slowest = seen.slowest.max(took);
            } else {
                seen.others += 1;
            }
        }
    }

    fn listen(&self, n: usize) {
        let limit = [
            "/slow?min_latency=5ms",
            "/slow?min_latency=50ms&op=write,commit",
        ][n % 2];
        let began = (self.excuse.load(Ordering::SeqCst), Instant::now());
        match Lines::open(self.address, limit) {
            Ok(lines) => {
                while began.1.elapsed() < LISTENS && !self.leaving() {
                    thread::sleep(Duration::from_millis(200));
                }
                let mut seen = self.seen();
                seen.others += 1;
                seen.slow_lines += lines.so_far().len() as u64;
            }
            Err(e) => drop(self.failed(Some(format!("{e:#}")), began.0, Excuse::Untimed)),
        }
    }

    /// True if the request failed; a failure without an excuse is kept.
    fn failed(&self, what: Option<String>, excuse: u8, enough: Excuse) -> bool {
        let Some(what) = what else {
            return false;
        };
        let now = self.excuse.load(Ordering::SeqCst);
        let mut seen = self.seen();
        if excuse.max(now) >= enough as u8 {
            seen.excused += 1;
        } else {
            seen.failed.push(what);
        }
        true
    }
}
