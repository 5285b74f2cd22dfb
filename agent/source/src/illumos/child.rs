//! A process that prints: `dtrace` with a script, or `kstat`. Both of its pipes are read all the time, each by a thread: a
//! `dtrace` that cannot write for half a minute is ended by its kernel.

use super::complaint::{self, Complaint};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Lines of standard error that are kept: the last ones say why a process ended.
const MOST_SAID: usize = 20;
/// Bytes of such a line that are kept.
const MOST_SAID_LINE: u64 = 1024;
/// For a process to end by itself.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// Makes values of what a process prints.
pub trait Reader: Send + 'static {
    /// What it makes.
    type Value: Send + 'static;
    /// Takes the next piece of text, and hands over what it completes.
    fn feed(&mut self, text: &[u8], done: &mut dyn FnMut(Self::Value));
    /// Lines so far that could not be read.
    fn bad(&self) -> u64;
}

/// What a process has printed.
#[derive(Debug)]
pub struct Inbox<T> {
    /// What it made, in order; only as many as are taken in time, see [`Child::start`].
    pub values: VecDeque<T>,
    /// When it last made anything; at first when it started.
    pub heard: Instant,
    /// Values so far.
    pub made: u64,
    /// Those of them that nobody took in time.
    pub overflowed: u64,
    /// Lines that could not be read.
    pub bad: u64,
    /// Events that it says it lost, by reason.
    pub lost: BTreeMap<&'static str, u64>,
    /// The end of its standard error.
    pub said: VecDeque<String>,
    /// What of that tells why it cannot go on.
    pub fault: Option<Complaint>,
    /// Both pipes are closed.
    pub open: u8,
}

type Shared<T> = Arc<(Mutex<Inbox<T>>, Condvar)>;

/// A running process, which ends with this value.
#[derive(Debug)]
pub struct Child<T> {
    process: std::process::Child,
    shared: Shared<T>,
}

fn lock<T>(shared: &Shared<T>) -> MutexGuard<'_, Inbox<T>> {
    // A thread that panics leaves nothing half done that matters here.
    shared.0.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T: Send + 'static> Child<T> {
    /// Starts a process that reads `input`. Of what it makes the newest `keep` values are held until they are taken.
    ///
    /// # Errors
    /// Where the program cannot be executed.
    pub fn start<R: Reader<Value = T>>(
        program: &OsStr,
        arguments: &[String],
        input: String,
        reader: R,
        keep: usize,
    ) -> std::io::Result<Child<T>> {
        let mut process = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let shared = Arc::new((
            Mutex::new(Inbox {
                values: VecDeque::new(),
                heard: Instant::now(),
                made: 0,
                overflowed: 0,
                bad: 0,
                lost: BTreeMap::new(),
                said: VecDeque::new(),
                fault: None,
                open: 2,
            }),
            Condvar::new(),
        ));
        if let Some(mut stdin) = process.stdin.take() {
            // A process that does not read it all ends, or is silent.
            std::thread::spawn(move || {
                unprivileged();
                drop(stdin.write_all(input.as_bytes()));
            });
        }
        if let (Some(out), Some(err)) = (process.stdout.take(), process.stderr.take()) {
            let inbox = Arc::clone(&shared);
            std::thread::spawn(move || {
                unprivileged();
                read_values(out, reader, keep, &inbox);
                close(&inbox);
            });
            let inbox = Arc::clone(&shared);
            std::thread::spawn(move || {
                unprivileged();
                read_complaints(err, &inbox);
                close(&inbox);
            });
        }
        Ok(Child { process, shared })
    }

    /// What it has printed so far.
    pub fn inbox(&self) -> MutexGuard<'_, Inbox<T>> {
        lock(&self.shared)
    }

    /// Waits until this holds of what it printed, it ends, or the time is over.
    pub fn wait_for(&self, timeout: Duration, holds: impl Fn(&Inbox<T>) -> bool) {
        let inbox = self.inbox();
        let go_on = |inbox: &mut Inbox<T>| inbox.open > 0 && !holds(inbox);
        // Whether the time was over shows in what was printed.
        drop(self.shared.1.wait_timeout_while(inbox, timeout, go_on));
    }

    /// How it ended, once it and its pipes have.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.inbox().open > 0 {
            return None;
        }
        self.process.try_wait().ok().flatten()
    }
}

/// Asks it to end, and ends it where it does not.
impl<T> Drop for Child<T> {
    fn drop(&mut self) {
        let id = i32::try_from(self.process.id())
            .ok()
            .and_then(Pid::from_raw);
        if let (Ok(None), Some(id)) = (self.process.try_wait(), id) {
            let _ = kill_process(id, Signal::TERM);
            let begun = Instant::now();
            while matches!(self.process.try_wait(), Ok(None)) && begun.elapsed() < END_TIMEOUT {
                std::thread::sleep(Duration::from_millis(10));
            }
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
        // The readers end with the pipes, which a grandchild could hold for longer: nobody waits for them.
    }
}

/// Whoever reads what others print needs no privileges.
fn unprivileged() {
    // Where the system refuses that it says so of the whole process, later.
    let _ = crate::privileges::drop_all();
}

fn close<T>(shared: &Shared<T>) {
    lock(shared).open -= 1;
    shared.1.notify_all();
}

fn read_values<R: Reader>(
    mut out: impl Read,
    mut reader: R,
    keep: usize,
    shared: &Shared<R::Value>,
) {
    let mut piece = vec![0; 1 << 16];
    let mut made = Vec::new();
    loop {
        match out.read(&mut piece) {
            Ok(0) => return,
            Ok(n) => reader.feed(&piece[..n], &mut |value| made.push(value)),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        }
        let mut inbox = lock(shared);
        inbox.bad = reader.bad();
        if made.is_empty() {
            continue;
        }
        inbox.heard = Instant::now();
        inbox.made += made.len() as u64;
        for value in made.drain(..) {
            if inbox.values.len() >= keep {
                inbox.values.pop_front();
                inbox.overflowed += 1;
            }
            inbox.values.push_back(value);
        }
        drop(inbox);
        shared.1.notify_all();
    }
}

fn read_complaints<T>(err: impl Read, shared: &Shared<T>) {
    let mut err = BufReader::new(err);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut piece = err.by_ref().take(MOST_SAID_LINE);
        match piece.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = crate::lossless::text(&line).trim_end().to_owned();
        if text.is_empty() {
            continue;
        }
        let mut inbox = lock(shared);
        match complaint::read(&text) {
            Complaint::Lost(reason, n) => {
                let lost = inbox.lost.entry(reason).or_default();
                *lost = lost.saturating_add(n);
                continue;
            }
            Complaint::Other => {}
            fault => inbox.fault = Some(fault),
        }
        if inbox.said.len() >= MOST_SAID {
            inbox.said.pop_front();
        }
        inbox.said.push_back(text);
    }
}
