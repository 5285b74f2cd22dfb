//! The agent's side of [`nfscope_api::link`]: answers the process that serves HTTP.
//!
//! That process speaks with strangers, and may have been taken over by one. Whatever it sends, this side keeps its memory bounded: a
//! question is short, a lane has one at a time, bodies are shared. A question for a path that is not in the list of endpoints ends the
//! lane.

use super::breakdown_listeners::MAX_LISTENERS;
use super::endpoint::{Asked, Declaration, Origin, Parse, Parsed, Refusal, Reply, Served};
use super::slow_subscribers::MAX_SUBSCRIBERS;
use super::source_thread::{MAX_READING_AGE, SourceHandle};
use crate::exposition::Format;
use anyhow::Context;
use bytes::{Bytes, BytesMut};
use nfscope_api::link::{self, Answer, Ask, MAX_QUESTION, Made, Question, Turn, Why};
use nfscope_model::status::Status;
use std::collections::HashMap;
use std::io;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::sync::Mutex;
use tokio::sync::mpsc::Receiver;
use tokio::time::sleep;

/// Lanes for questions. Each question takes milliseconds.
pub const LANES: usize = 4;
/// Lanes for streams: more than the limits of listeners, because a lane is free only a moment after its listener has gone.
pub const STREAM_LANES: usize = MAX_SUBSCRIBERS + MAX_LISTENERS + 2;
/// Most lines in one message.
const LINES: usize = 32;
/// Pause between two streams on the same lane, because each makes the source watch anew.
const PAUSE: Duration = Duration::from_millis(20);

/// Sockets of `count` lanes, for both sides.
///
/// # Errors
/// When the system gives no more sockets.
pub fn lanes(count: usize) -> io::Result<(Vec<StdUnixStream>, Vec<StdUnixStream>)> {
    let mut both = (Vec::new(), Vec::new());
    for _ in 0..count {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        theirs.set_nonblocking(true)?;
        both.0.push(ours);
        both.1.push(theirs);
    }
    Ok(both)
}

/// The endpoints of a running agent, with answers that several requests get.
pub struct Answers {
    source: Arc<SourceHandle>,
    endpoints: &'static [Declaration],
    /// Last shared answer of each path. The lock is held while an answer is made: requests that come meanwhile wait for it.
    shared: HashMap<&'static str, Mutex<Option<Kept>>>,
    made: AtomicU64,
}

/// An answer for all requests with the same query.
struct Kept {
    query: String,
    at: Instant,
    made: Made,
    body: Bytes,
}

impl Answers {
    /// Builds the answers of these endpoints.
    pub fn new(source: Arc<SourceHandle>, endpoints: &'static [Declaration]) -> Arc<Answers> {
        let shared = endpoints.iter().map(|e| (e.path, Mutex::default()));
        Arc::new(Answers {
            source,
            endpoints,
            shared: shared.collect(),
            made: AtomicU64::new(1),
        })
    }

    /// Answers the questions of a lane until the other side closes it.
    ///
    /// # Errors
    /// When the other side sends something else than a question, or the lane breaks.
    pub async fn serve(self: Arc<Self>, lane: StdUnixStream) -> io::Result<()> {
        let mut lane = Lane {
            stream: UnixStream::from_std(lane)?,
            arrived: BytesMut::with_capacity(4 + MAX_QUESTION),
        };
        while let Some(question) = lane.question().await? {
            // A Stop that comes late: its stream has ended meanwhile.
            let Question::Ask(ask) = question else {
                continue;
            };
            let (parse, format) = self.known(&ask)?;
            match self.answer(&ask, parse, format).await {
                Ok(Told::Lines(lines)) => {
                    lane.stream_of(lines).await?;
                    sleep(PAUSE).await;
                }
                Ok(Told::Answer(answer)) => lane.send(&answer).await?,
                Err(Refusal { why, text }) => lane.send(&Answer::Refused(why, text)).await?,
            }
        }
        Ok(())
    }

    /// Parser of the endpoint's query, and the format of an exposition.
    fn known(&self, ask: &Ask) -> io::Result<(Parse, Format)> {
        let endpoint = self.endpoints.iter().find(|e| e.path == ask.path);
        let format = Format::ALL.get(usize::from(ask.format));
        match (endpoint.map(|e| e.origin), format) {
            (Some(Origin::Agent(_, parse)), Some(format)) => Ok((parse, *format)),
            _ => Err(io::Error::other("a question about what no endpoint has")),
        }
    }

    async fn answer(&self, ask: &Ask, parse: Parse, format: Format) -> Result<Told, Refusal> {
        let parsed = parse(&ask.query).map_err(|why| Refusal::new(Why::Query, why))?;
        if ask.may < parsed.access {
            return Err(Refusal::new(Why::Access, parsed.access.refusal()));
        }
        let (status, turn) = (self.source.status(), parsed.served.turn());
        if turn == Turn::Stream {
            let times = status.health();
            times.map_err(|why| Refusal::new(Why::Unavailable, why))?;
        }
        if turn != ask.turn {
            return Ok(Told::Answer(Answer::Wait(turn)));
        }
        let asked = Asked {
            source: self.source.clone(),
            format,
            endpoints: self.endpoints,
        };
        let is_shared = matches!(parsed.served, Served::Shared | Served::Paced);
        let reply = match is_shared && status != Status::Attaching {
            true => self.shared(&asked, &ask.path, parsed).await?,
            false => (parsed.answer)(&asked).await?,
        };
        Ok(match reply {
            Reply::Lines(lines) => Told::Lines(lines),
            Reply::Body(body) => Told::Answer(Answer::Body(Made::default(), body)),
            Reply::Part(made, _) if ask.have.has(made) => Told::Answer(Answer::Same(made)),
            Reply::Part(made, body) => Told::Answer(Answer::Body(made, body)),
        })
    }

    /// Returns the last answer if it is fresh and has the same query, or a new one.
    async fn shared(&self, asked: &Asked, path: &str, parsed: Parsed) -> Result<Reply, Refusal> {
        let last = self.shared.get(path).context("no endpoint of this list")?;
        let mut last = last.lock().await;
        if let Some(kept) = &*last {
            let left = MAX_READING_AGE.saturating_sub(kept.at.elapsed());
            if kept.query == parsed.text && !left.is_zero() {
                return Ok(Reply::Part(kept.made, kept.body.clone()));
            }
            if parsed.served == Served::Paced {
                sleep(left).await;
            }
        }
        // The old body is dropped before the new one is made, so that memory holds one.
        *last = None;
        let reply = (parsed.answer)(asked).await?;
        let Reply::Body(body) = reply else {
            return Ok(reply);
        };
        let made = Made {
            reading: self.made.fetch_add(1, Ordering::Relaxed),
            part: 0,
        };
        *last = Some(Kept {
            query: parsed.text,
            at: Instant::now(),
            made,
            body: body.clone(),
        });
        Ok(Reply::Part(made, body))
    }
}

/// Reply over a lane: one answer, or a stream of lines.
enum Told {
    Answer(Answer),
    Lines(Receiver<Bytes>),
}

struct Lane {
    stream: UnixStream,
    arrived: BytesMut,
}

impl Lane {
    async fn question(&mut self) -> io::Result<Option<Question>> {
        link::next(&mut self.stream, &mut self.arrived, Question::take).await
    }

    async fn send(&mut self, answer: &Answer) -> io::Result<()> {
        let (head, body) = answer.parts();
        self.stream.write_all(&head).await?;
        self.stream.write_all(body).await
    }

    /// Sends lines until they end, or until the other side wants no more.
    async fn stream_of(&mut self, mut lines: Receiver<Bytes>) -> io::Result<()> {
        self.send(&Answer::Lines(Bytes::new())).await?;
        let mut some = Vec::with_capacity(LINES);
        loop {
            tokio::select! {
                question = self.question() => match question? {
                    Some(Question::Stop) => break,
                    Some(_) => return Err(io::Error::other("a question while lines are being sent")),
                    None => return Err(io::ErrorKind::UnexpectedEof.into()),
                },
                count = lines.recv_many(&mut some, LINES) => {
                    if count == 0 {
                        break;
                    }
                    let lines = some.concat();
                    some.clear();
                    self.send(&Answer::Lines(lines.into())).await?;
                }
            }
        }
        drop(lines);
        self.send(&Answer::End).await
    }
}
