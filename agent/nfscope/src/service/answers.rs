//! The agent's side of [`crate::api::link`]: answers what the process that serves HTTP asks.
//!
//! That process speaks with strangers, and may have become one. Whatever it sends, this side keeps its memory bounded: a question
//! is short, a lane has one at a time, bodies are shared. What it may not ask has no question.

use super::breakdown_listeners::MAX_LISTENERS;
use super::slow_subscribers::MAX_SUBSCRIBERS;
use super::source_thread::{Body, SourceHandle};
use crate::api::breakdown_query::Query;
use crate::api::link::{self, Answer, Health, MAX_QUESTION, Question};
use crate::api::query::QueryString;
use crate::api::stuck_query::Over;
use crate::api::windows_query::Wanted;
use crate::exposition::{Collectors, Format};
use bytes::{Bytes, BytesMut};
use nfscope_model::SlowFilter;
use nfscope_model::status::Status;
use std::io;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::sync::mpsc::Receiver;
use tokio::time::sleep;

/// Lanes for questions. Each question takes milliseconds.
pub const LANES: usize = 4;
/// Lanes for streams: more than may listen, because a lane is free only a moment after its listener has gone.
pub const STREAM_LANES: usize = MAX_SUBSCRIBERS + MAX_LISTENERS + 2;
/// Lines in one message.
const LINES: usize = 32;
/// Time from the end of one stream to the next on the same lane: each makes the source watch anew.
const PAUSE: Duration = Duration::from_millis(20);

/// Sockets of as many lanes, for both sides.
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

/// Answers the questions of a lane until the other side closes it.
///
/// # Errors
/// When the other side sends what is no question, or the lane breaks.
pub async fn serve(lane: StdUnixStream, source: Arc<SourceHandle>) -> io::Result<()> {
    let mut lane = Lane {
        stream: UnixStream::from_std(lane)?,
        arrived: BytesMut::with_capacity(4 + MAX_QUESTION),
    };
    while let Some(question) = lane.question().await? {
        match question {
            Question::Slow { query } => lane.answer(slow(&source, &query).await).await?,
            Question::Breakdown { query } => lane.answer(breakdown(&source, &query).await).await?,
            // Its stream has ended meanwhile.
            Question::Stop => {}
            other => {
                let answer = match answer(&source, other).await {
                    Ok(answer) => answer,
                    Err(e) => Answer::Refused(format!("{e:#}")),
                };
                lane.send(&answer).await?;
            }
        }
    }
    Ok(())
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

    /// Sends lines, or why there are none.
    async fn answer(&mut self, lines: Result<Receiver<Bytes>, String>) -> io::Result<()> {
        match lines {
            Ok(lines) => {
                self.stream_of(lines).await?;
                sleep(PAUSE).await;
                Ok(())
            }
            Err(why) => self.send(&Answer::Refused(why)).await,
        }
    }

    /// Sends lines until they end or the other side wants no more.
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

async fn slow(source: &SourceHandle, query: &str) -> Result<Receiver<Bytes>, String> {
    let filter = SlowFilter::from_query(query)?;
    source.slow(filter).await.map_err(|e| format!("{e:#}"))
}

async fn breakdown(source: &SourceHandle, query: &str) -> Result<Receiver<Bytes>, String> {
    let query = Query::from_query(query)?;
    source.breakdown(query).await.map_err(|e| format!("{e:#}"))
}

async fn answer(source: &SourceHandle, question: Question) -> anyhow::Result<Answer> {
    let had = |have, (reading, body)| match reading == have && have != 0 {
        true => Answer::Same,
        false => Answer::Body(reading, body),
    };
    Ok(match question {
        Question::Metrics {
            format,
            query,
            have,
        } => {
            let format = Format::ALL.get(usize::from(format)).copied();
            let format = format.ok_or_else(|| anyhow::anyhow!("no such format"))?;
            let some = Collectors::from_query(&query).map_err(anyhow::Error::msg)?;
            match some.all() {
                true => had(have, source.body(Body::Metrics(format)).await?),
                false => match source.metrics_of(some, format).await? {
                    Some(body) => had(have, body),
                    None => Answer::TooMany,
                },
            }
        }
        Question::Snapshot { have } => had(have, source.body(Body::Json).await?),
        Question::Findings => Answer::Body(0, source.findings().await?),
        Question::Held { query } => {
            let Over(over) = Over::from_query(&query).map_err(anyhow::Error::msg)?;
            Answer::Body(0, source.held(over).await?)
        }
        Question::Windows { query } => {
            match Wanted::from_query(&query).map_err(anyhow::Error::msg)? {
                Wanted::Latest(seen) => Answer::Body(0, source.windows(seen).await?),
                Wanted::Past(range) => body_or_none(source.past(range).await?),
                Wanted::Recorded(what) => body_or_none(source.recorded(what).await?),
            }
        }
        Question::Recordings => body_or_none(source.recordings().await?),
        Question::Health => json(&health(source))?,
        Question::Probes => match source.status() {
            Status::Attaching => json(&())?,
            Status::Running(probes) => json(&*probes)?,
        },
        Question::Slow { .. } | Question::Breakdown { .. } | Question::Stop => {
            anyhow::bail!("not on this lane")
        }
    })
}

fn body_or_none(body: Option<Bytes>) -> Answer {
    body.map_or(Answer::None, |body| Answer::Body(0, body))
}

fn health(source: &SourceHandle) -> Health {
    let status = source.status();
    Health {
        attaching: status == Status::Attaching,
        why: status.health().err(),
        degraded: source.degraded(),
    }
}

fn json(value: &(impl serde::Serialize + ?Sized)) -> anyhow::Result<Answer> {
    Ok(Answer::Body(0, serde_json::to_vec(value)?.into()))
}
