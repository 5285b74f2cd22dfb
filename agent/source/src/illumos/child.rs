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
/// Bytes of a line of standard error that are kept.
const MOST_SAID_LINE: u64 = 1024;
/// Time for a process to end by itself.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// Converts the output of a process into values.
pub trait Reader: Send + 'static {
    /// Type of the values.
    type Value: Send + 'static;
    /// Takes the next piece of text, and passes completed values to `done`.
    fn feed(&mut self, text: &[u8], done: &mut dyn FnMut(Self::Value));
    /// Number of lines so far that could not be read.
    fn bad(&self) -> u64;
}

/// Output of a process so far.
#[derive(Debug)]
pub struct Inbox<T> {
    /// Values in order; only the newest until they are taken, see [`Child::start`].
    pub values: VecDeque<T>,
    /// Time of the last value; before the first value the time of the start.
    pub heard: Instant,
    /// Number of values so far.
    pub made: u64,
    /// Number of values that were dropped because they were not taken in time.
    pub overflowed: u64,
    /// Number of lines that could not be read.
    pub bad: u64,
    /// Events that the process says it lost, by reason.
    pub lost: BTreeMap<&'static str, u64>,
    /// Last lines of its standard error.
    pub said: VecDeque<String>,
    /// Complaint among these lines that says why the process cannot go on.
    pub fault: Option<Complaint>,
    /// Number of pipes that are still open; 0 once both are closed.
    pub open: u8,
}

type Shared<T> = Arc<(Mutex<Inbox<T>>, Condvar)>;

/// A running process, which is ended when this value is dropped.
#[derive(Debug)]
pub struct Child<T> {
    process: std::process::Child,
    shared: Shared<T>,
}

fn lock<T>(shared: &Shared<T>) -> MutexGuard<'_, Inbox<T>> {
    // A panic of another thread leaves the inbox usable.
    shared.0.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T: Send + 'static> Child<T> {
    /// Starts a process that reads `input`. The newest `keep` of its values are held until they are taken.
    ///
    /// # Errors
    /// Fails if the program cannot be executed.
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
            // A process that does not read all of its input ends, or is silent.
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

    /// Output of the process so far.
    pub fn inbox(&self) -> MutexGuard<'_, Inbox<T>> {
        lock(&self.shared)
    }

    /// Waits until `holds` is true of the output, the process ends, or the time is over.
    pub fn wait_for(&self, timeout: Duration, holds: impl Fn(&Inbox<T>) -> bool) {
        let inbox = self.inbox();
        let go_on = |inbox: &mut Inbox<T>| inbox.open > 0 && !holds(inbox);
        // The output shows if the time was over.
        drop(self.shared.1.wait_timeout_while(inbox, timeout, go_on));
    }

    /// Exit status, once the process has ended and both pipes are closed.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.inbox().open > 0 {
            return None;
        }
        self.process.try_wait().ok().flatten()
    }
}

/// Asks the process to end, and kills it if it does not.
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
        // The reading threads are not joined: they end with the pipes, which a grandchild could hold for longer.
    }
}

/// Drops the privileges of this thread: reading the output of children needs none.
fn unprivileged() {
    // A refusal is reported later, for the whole process.
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
