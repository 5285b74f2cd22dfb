//! Answers of an agent in a driven machine, for programs on the host's clock. A recorder asks the agent at the machine's pace exactly
//! what such a program asks, and the program gets one answer after the other.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use lab::{Agent, Response};

/// Headers that decide what the agent answers.
const DECIDING: [&str; 2] = ["accept", "accept-encoding"];
/// Longest wait for a program that asks once a second, on a busy host.
const PATIENCE: Duration = Duration::from_secs(300);

/// Server that plays recorded answers to `GET /metrics`. Before the recording it answers 503.
#[derive(Debug)]
pub struct Replayed {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Headers of the newest question, out of those that decide what is answered.
    headers: Option<BTreeMap<String, String>>,
    answers: Vec<Response>,
    /// Number of answers given. The last one is repeated.
    given: usize,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Replayed {
    /// Listens on a free port, until the process ends.
    pub fn start() -> Result<Replayed> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let state = Arc::<Mutex<State>>::default();
        let of_thread = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A program that went away has no answer.
                let _ = answer(stream, &of_thread);
            }
        });
        Ok(Replayed { address, state })
    }

    /// Address that takes the agent's place.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Asks the agent as the program asks here.
    ///
    /// # Errors
    /// When no program has asked here, or when the agent does not answer with 200.
    pub fn answer_of(&self, agent: &Agent) -> Result<Response> {
        let headers =
            wait_until(|| lock(&self.state).headers.clone()).context("no program has asked")?;
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        agent.get_with("/metrics", &headers)
    }

    /// Plays this answer after the others.
    pub fn play(&self, answer: Response) {
        lock(&self.state).answers.push(answer);
    }

    /// Waits until this many answers were given.
    pub fn has_given(&self, answers: usize) -> Result<()> {
        wait_until(|| (lock(&self.state).given >= answers).then_some(()))
    }
}

fn wait_until<T>(found: impl Fn() -> Option<T>) -> Result<T> {
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        if let Some(found) = found() {
            return Ok(found);
        }
        thread::sleep(Duration::from_millis(50));
    }
    bail!("not within {} s", PATIENCE.as_secs())
}

fn answer(stream: TcpStream, state: &Mutex<State>) -> Result<()> {
    let mut reader = BufReader::new(stream);
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        let read = reader.read_line(&mut line)?;
        let line = line.trim();
        if read == 0 || line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            let name = name.to_ascii_lowercase();
            if DECIDING.contains(&name.as_str()) {
                headers.insert(name, value.trim().to_owned());
            }
        }
    }
    let mut stream = reader.into_inner();
    let next = {
        let mut state = lock(state);
        state.headers = Some(headers);
        let last = state.answers.len().checked_sub(1);
        let next = last.map(|last| state.answers[state.given.min(last)].clone());
        state.given += usize::from(next.is_some());
        next
    };
    let Some(next) = next else {
        stream.write_all(
            b"HTTP/1.1 503 Not recorded\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        )?;
        return Ok(());
    };
    let mut head = "HTTP/1.1 200 OK\r\nConnection: close\r\n".to_owned();
    for name in ["content-type", "content-encoding"] {
        if let Some(value) = next.header(name) {
            head += &format!("{name}: {value}\r\n");
        }
    }
    head += &format!("Content-Length: {}\r\n\r\n", next.body.len());
    stream.write_all(head.as_bytes())?;
    stream.write_all(&next.body)?;
    Ok(())
}
