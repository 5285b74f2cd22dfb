//! The host's side of running commands inside a machine.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::clock;
use crate::protocol::{Frame, GREETING, Request};

/// Longest wait for the machine's greeting, and for the end of a killed command. icount machines have little of the host when others
/// run.
const PATIENCE: Duration = Duration::from_secs(120);

/// Result of a finished command.
#[derive(Clone, Debug)]
pub struct Output {
    /// Standard output of the command.
    pub stdout: String,
    /// Standard error of the command.
    pub stderr: String,
    /// Exit code of the command; 128 + n if signal n killed it.
    pub status: i32,
}

impl Output {
    /// The output if the command succeeded, else an error with the command's own messages.
    pub fn ok(self, what: &str) -> Result<Output> {
        if self.status == 0 {
            return Ok(self);
        }
        bail!(
            "in the machine, `{what}` exited with {}\nstdout: {}\nstderr: {}",
            self.status,
            tail(&self.stdout),
            tail(&self.stderr)
        );
    }
}

fn tail(text: &str) -> &str {
    let start = text.len().saturating_sub(4000);
    text.get(start..)
        .unwrap_or(text) // not on a character's edge
        .trim_end()
}

/// A command running inside the machine. Dropping it kills it.
#[derive(Debug)]
pub struct Running {
    what: String,
    machine: SocketAddr,
    slower: u32,
    stream: TcpStream,
    state: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Debug, Default)]
struct State {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    ended: Option<Result<i32, String>>,
}

/// Opens a connection, and returns after the machine's greeting.
pub(crate) fn connect(address: SocketAddr, patience: Duration) -> Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect_timeout(&address, patience)
        .with_context(|| format!("connecting to the machine at {address}"))?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    let mut greeting = String::new();
    reader
        .read_line(&mut greeting)
        .context("waiting for the machine's greeting")?;
    if greeting != GREETING {
        bail!("the machine closed the connection at {address} without a greeting");
    }
    reader.get_ref().set_read_timeout(None)?;
    Ok(reader)
}

/// Lets this much time pass in every driven machine of this process. Sleeps if there is none.
pub fn pass(time: Duration) {
    let driven = clock::driven();
    if driven.is_empty() {
        thread::sleep(time);
    }
    for machine in driven {
        // A machine that has ended needs no time.
        let _ = Running::pass(machine, time).and_then(|mut passed| passed.wait(time));
    }
}

/// Lets the clocks of driven machines follow the host's during `work`, for programs on the host that ask the machine by themselves. On
/// a slow host they fall behind it.
pub fn beside_the_host<T>(work: impl FnOnce() -> T) -> T {
    const STEP: Duration = Duration::from_millis(250);
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                let begun = Instant::now();
                pass(STEP);
                thread::sleep(STEP.saturating_sub(begun.elapsed()));
            }
        });
        // A panic of `work` ends the thread, too: the scope waits for it.
        let _ends = Ends(&ended);
        work()
    })
}

/// Sets a flag when it is dropped.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Joins this process's terminal to a shell inside the machine until the shell ends.
pub(crate) fn terminal(address: SocketAddr, script: &str) -> Result<i32> {
    let _runs = clock::runs(address);
    let mut reader = connect(address, PATIENCE)?;
    let mut stream = reader.get_ref().try_clone()?;
    let request = Request {
        script: script.to_owned(),
        terminal: true,
        ..Request::default()
    };
    let mut line = serde_json::to_vec(&request)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(n) = std::io::stdin().read(&mut buffer) {
            if n == 0 || Frame::In(buffer[..n].to_vec()).write(&mut stream).is_err() {
                break;
            }
        }
        // The end of this input ends the shell's input; its output may go on.
        let _ = Frame::In(Vec::new()).write(&mut stream);
    });
    loop {
        match Frame::read(&mut reader).context("the machine went away")? {
            Frame::Out(data) | Frame::Err(data) => {
                let mut out = std::io::stdout();
                out.write_all(&data)?;
                out.flush()?;
            }
            Frame::Exit(code) => return Ok(code),
            Frame::Signal(_) | Frame::In(_) => {}
        }
    }
}

impl Running {
    pub(crate) fn start(
        address: SocketAddr,
        client: Option<usize>,
        script: &str,
        slower: u32,
    ) -> Result<Running> {
        let request = Request {
            script: script.to_owned(),
            client,
            ..Request::default()
        };
        Running::ask(address, &request, slower)
    }

    /// Starts a command that sleeps for `time` by the machine's clock.
    pub(crate) fn pass(address: SocketAddr, time: Duration) -> Result<Running> {
        let request = Request {
            script: format!("{time:?} of time"),
            pass: Some(time),
            ..Request::default()
        };
        Running::ask(address, &request, clock::SLOWER)
    }

    fn ask(address: SocketAddr, request: &Request, slower: u32) -> Result<Running> {
        let _runs = clock::runs(address);
        let mut reader = connect(address, slower * PATIENCE)?;
        let mut stream = reader.get_ref().try_clone()?;
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        stream.write_all(&line)?;
        let state = Arc::new((Mutex::new(State::default()), Condvar::new()));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            loop {
                let frame = Frame::read(&mut reader);
                let mut state = lock(&shared.0);
                match frame {
                    Ok(Frame::Out(data)) => state.stdout.extend(data),
                    Ok(Frame::Err(data)) => state.stderr.extend(data),
                    Ok(Frame::Exit(code)) => state.ended = Some(Ok(code)),
                    Ok(Frame::Signal(_) | Frame::In(_)) => {}
                    Err(e) => state.ended = Some(Err(e.to_string())),
                }
                shared.1.notify_all();
                if state.ended.is_some() {
                    return;
                }
            }
        });
        Ok(Running {
            what: request.script.trim().to_owned(),
            machine: address,
            slower,
            stream,
            state,
        })
    }

    /// Sends a signal to the command and everything it started: 1, 2, 9, 15, 18 or 19.
    pub fn signal(&mut self, signal: i32) -> Result<()> {
        Frame::Signal(signal)
            .write(&mut self.stream)
            .with_context(|| format!("sending signal {signal} to `{}`", self.what))
    }

    /// Kills the command with everything it started, and waits until it is gone.
    pub fn kill(mut self) -> Result<Output> {
        if !self.has_ended() {
            self.signal(9)?;
        }
        self.wait(PATIENCE)
    }

    /// Output of the command so far: standard output and standard error.
    pub fn output_so_far(&self) -> (String, String) {
        let state = lock(&self.state.0);
        (text(&state.stdout), text(&state.stderr))
    }

    /// True if the command has ended.
    pub fn has_ended(&self) -> bool {
        lock(&self.state.0).ended.is_some()
    }

    /// Description of the command's end, for messages; `None` while it runs.
    pub fn end(&self) -> Option<String> {
        Some(match lock(&self.state.0).ended.as_ref()? {
            Ok(status) => format!("exited with {status}"),
            Err(e) => format!("is out of reach, because the machine went away: {e}"),
        })
    }

    /// Factor by which something may take longer in this machine than on the host's clock.
    pub(crate) fn slower(&self) -> u32 {
        self.slower
    }

    /// Waits for the command's end, at most `patience` where the machine has a CPU to itself.
    pub fn wait(&mut self, patience: Duration) -> Result<Output> {
        let patience = self.slower * patience;
        let _runs = clock::runs(self.machine);
        let deadline = Instant::now() + patience;
        let mut state = lock(&self.state.0);
        loop {
            match &state.ended {
                Some(Ok(status)) => {
                    return Ok(Output {
                        stdout: text(&state.stdout),
                        stderr: text(&state.stderr),
                        status: *status,
                    });
                }
                Some(Err(e)) => bail!(
                    "the machine went away while `{}` ran: {e}",
                    abridged(&self.what)
                ),
                None => {}
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                bail!(
                    "`{}` did not end within {patience:?}\nstdout so far: {}\nstderr so far: {}",
                    abridged(&self.what),
                    tail(&text(&state.stdout)),
                    tail(&text(&state.stderr))
                );
            }
            state = self
                .state
                .1
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The machine kills the command when the connection closes.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The first line of a script, for messages.
pub(crate) fn abridged(script: &str) -> String {
    let mut lines = script.trim().lines();
    let first = lines.next().unwrap_or_default();
    match lines.next() {
        Some(_) => format!("{first} ..."),
        None => first.to_owned(),
    }
}
