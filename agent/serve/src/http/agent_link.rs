//! The agent, as the process that serves HTTP sees it: the questions of [`nfscope_api::link`], and bodies that requests share.

use crate::service::endpoint::{Declaration, Origin, Served};
use anyhow::{Context, bail, ensure};
use bytes::{Bytes, BytesMut};
use flate2::Compression;
use flate2::write::GzEncoder;
use nfscope_api::link::{self, Answer, Ask, Have, MAX_QUESTION, Made, Question, Turn, Why};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::sync::{Mutex, OwnedMutexGuard};

/// Messages with lines that wait for one listener.
const WAITING: usize = 8;
/// Least size of a body that is worth compressing.
const PACKED_FROM: usize = 1024;
const AGENT_ENDED: &str = "the agent has ended";

/// A body, and its compressed form if a request has wanted it.
type Both = (Bytes, Option<Bytes>);

/// Bodies of the last reading, by their part.
#[derive(Debug, Default)]
struct Bodies {
    reading: u64,
    all: BTreeMap<u8, Both>,
}

impl Bodies {
    fn have(&self) -> Have {
        let bit = |part: &u8| 1_u64.checked_shl((*part).into()).unwrap_or(0);
        Have {
            reading: self.reading,
            parts: self.all.keys().map(bit).sum(),
        }
    }

    fn keep(&mut self, made: Made, body: Bytes) {
        if self.reading != made.reading {
            self.all.clear();
            self.reading = made.reading;
        }
        self.all.insert(made.part, (body, None));
    }

    /// Returns the body; compressed if the request wants that and it is worth it. The body is compressed once.
    fn get(&mut self, made: Made, packed: bool) -> anyhow::Result<Told> {
        let (plain, small) = self.all.get_mut(&made.part).context("no such body")?;
        if !packed || plain.len() < PACKED_FROM {
            return Ok(Told::Body(plain.clone(), false));
        }
        let small = match small {
            Some(small) => small,
            None => small.insert(gzip(plain)?),
        };
        Ok(Told::Body(small.clone(), true))
    }
}

/// The agent's answer to a request.
#[derive(Debug)]
pub(super) enum Told {
    /// A body, and true if it is compressed.
    Body(Bytes, bool),
    /// Lines that [`AgentLink::listen`] gives.
    Lines,
    /// Reason why there is no answer.
    Refused(Why, String),
}

/// Connection to the agent.
#[derive(Debug)]
pub struct AgentLink {
    lanes: Arc<Lanes>,
    streams: Arc<Lanes>,
    /// Bodies by path, and those of all endpoints that are made from readings. Each lock is held during the question: requests that come
    /// meanwhile wait, and find the body there. Each path uses one lane at most, so that scrapes always find one.
    bodies: HashMap<&'static str, Arc<Mutex<Bodies>>>,
    disk: Arc<Mutex<()>>,
}

/// Lanes that are free now.
#[derive(Debug)]
struct Lanes {
    free: Mutex<Receiver<Lane>>,
    back: Sender<Lane>,
}

#[derive(Debug)]
struct Lane {
    stream: UnixStream,
    arrived: BytesMut,
}

impl Lane {
    async fn ask(&mut self, question: &[u8]) -> anyhow::Result<Answer> {
        self.stream.write_all(question).await?;
        self.answer().await
    }

    async fn answer(&mut self) -> anyhow::Result<Answer> {
        let answer = link::next(&mut self.stream, &mut self.arrived, Answer::take).await?;
        // An empty buffer would still keep all the memory of the answer until this lane is used again.
        if self.arrived.is_empty() {
            self.arrived = BytesMut::new();
        }
        answer.context(AGENT_ENDED)
    }
}

impl Lanes {
    fn new(streams: Vec<StdUnixStream>) -> io::Result<Arc<Lanes>> {
        let (back, free) = mpsc::channel(streams.len().max(1));
        for stream in streams {
            let lane = Lane {
                stream: UnixStream::from_std(stream)?,
                arrived: BytesMut::new(),
            };
            back.try_send(lane).map_err(io::Error::other)?;
        }
        Ok(Arc::new(Lanes {
            free: Mutex::new(free),
            back,
        }))
    }

    /// Sends a question, and reads the answer to its end in a task of its own, even if the caller stops waiting. A caller that stops
    /// waiting before it has a lane has no effect. `guard` is held as long as the lane is.
    async fn ask<G: Send + 'static>(
        self: &Arc<Self>,
        question: Vec<u8>,
        guard: G,
    ) -> anyhow::Result<(Answer, G)> {
        let lane = self.free.lock().await.recv().await;
        let mut lane = lane.context(AGENT_ENDED)?;
        let lanes = self.clone();
        let asked = tokio::spawn(async move {
            let answer = lane.ask(&question).await;
            if answer.is_ok() {
                // The channel has room for all lanes.
                let _ = lanes.back.try_send(lane);
            }
            Ok((answer?, guard))
        });
        asked.await?
    }
}

impl AgentLink {
    /// Connects to the agent over these lanes, of which `streams` are for streams, for these endpoints.
    ///
    /// # Errors
    /// When the lanes cannot be watched.
    pub fn new(
        lanes: Vec<StdUnixStream>,
        streams: Vec<StdUnixStream>,
        endpoints: &'static [Declaration],
    ) -> io::Result<AgentLink> {
        Ok(AgentLink {
            lanes: Lanes::new(lanes)?,
            streams: Lanes::new(streams)?,
            bodies: endpoints
                .iter()
                .map(|e| (shared_by(e), Arc::default()))
                .collect(),
            disk: Arc::default(),
        })
    }

    /// Agent's answer to a request; compressed if the request wants that and it is worth it.
    pub(super) async fn ask(
        &self,
        endpoint: &Declaration,
        mut ask: Ask,
        packed: bool,
    ) -> anyhow::Result<Told> {
        let bodies = self
            .bodies
            .get(shared_by(endpoint))
            .context("no such endpoint")?;
        let bodies: OwnedMutexGuard<Bodies> = bodies.clone().lock_owned().await;
        ask.have = bodies.have();
        let Ok(question) = Question::Ask(ask.clone()).encode() else {
            let text = format!("a request has at most {MAX_QUESTION} bytes with its query");
            return Ok(Told::Refused(Why::Query, text));
        };
        let (answer, mut bodies) = self.lanes.ask(question, bodies).await?;
        match answer {
            Answer::Same(made) => bodies.get(made, packed),
            Answer::Body(made, body) if made.reading != 0 => {
                bodies.keep(made, body);
                bodies.get(made, packed)
            }
            Answer::Wait(Turn::Disk) => {
                drop(bodies);
                let alone = self.disk.clone().lock_owned().await;
                ask.turn = Turn::Disk;
                let question = Question::Ask(ask).encode()?;
                told(self.lanes.ask(question, alone).await?.0, packed)
            }
            other => told(other, packed),
        }
    }

    /// Starts a stream of NDJSON lines, which ends when the receiver is dropped.
    pub(super) async fn listen(&self, mut ask: Ask) -> anyhow::Result<Receiver<Bytes>> {
        ask.turn = Turn::Stream;
        let question = Question::Ask(ask).encode()?;
        let lane = self.streams.free.lock().await.try_recv();
        let mut lane = lane.context("too many listen for operations; try again")?;
        let (lines, receiver) = mpsc::channel(WAITING);
        let back = self.streams.back.clone();
        let (tell, told) = tokio::sync::oneshot::channel();
        tokio::spawn(async move {
            let accepted = match lane.ask(&question).await {
                Ok(Answer::Lines(_)) => Ok(()),
                Ok(Answer::Refused(_, why)) => Err(anyhow::anyhow!(why)),
                Ok(other) => Err(no_answer(&other)),
                Err(e) => Err(e),
            };
            let streams = accepted.is_ok();
            // The caller may have gone; then no receiver takes a line either.
            let _ = tell.send(accepted);
            if streams && pass_on(&mut lane, lines).await.is_err() {
                return;
            }
            let _ = back.try_send(lane);
        });
        told.await.context(AGENT_ENDED)??;
        Ok(receiver)
    }
}

/// Key of the bodies that are kept together, and of the lock that requests for them wait for.
fn shared_by(endpoint: &Declaration) -> &'static str {
    match endpoint.origin {
        Origin::Agent(Served::Reading, _) => "",
        _ => endpoint.path,
    }
}

/// Converts an answer that no other request gets.
fn told(answer: Answer, packed: bool) -> anyhow::Result<Told> {
    match answer {
        Answer::Body(_, body) => pack(body, packed).map(|(body, packed)| Told::Body(body, packed)),
        Answer::Refused(why, text) => Ok(Told::Refused(why, text)),
        Answer::Wait(Turn::Stream) => Ok(Told::Lines),
        other => Err(no_answer(&other)),
    }
}

fn no_answer(other: &Answer) -> anyhow::Error {
    anyhow::anyhow!("{other:?} is no answer to this")
}

/// Passes lines on until they end, or until the receiver is dropped.
async fn pass_on(lane: &mut Lane, lines: Sender<Bytes>) -> anyhow::Result<()> {
    loop {
        let answer = tokio::select! {
            () = lines.closed() => break,
            answer = lane.answer() => answer?,
        };
        match answer {
            Answer::Lines(some) => {
                if lines.send(some).await.is_err() {
                    break;
                }
            }
            Answer::End => return Ok(()),
            other => bail!("{other:?} among lines"),
        }
    }
    lane.stream.write_all(&Question::Stop.encode()?).await?;
    loop {
        let answer = lane.answer().await?;
        ensure!(
            matches!(answer, Answer::Lines(_) | Answer::End),
            "{answer:?} among lines"
        );
        if answer == Answer::End {
            return Ok(());
        }
    }
}

/// Compresses a body if `asked` is true and it is worth it. Returns true if it did.
///
/// # Errors
/// None: writing to memory does not fail.
pub(super) fn pack(body: Bytes, asked: bool) -> anyhow::Result<(Bytes, bool)> {
    match asked && body.len() >= PACKED_FROM {
        true => Ok((gzip(&body)?, true)),
        false => Ok((body, false)),
    }
}

/// Compresses a body: a scrape to a tenth, in a few milliseconds.
///
/// # Errors
/// None: writing to memory does not fail.
pub(super) fn gzip(body: &[u8]) -> anyhow::Result<Bytes> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(body)?;
    Ok(packer.finish()?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_lane_keeps_nothing_of_an_answer() {
        let (ours, agents) = StdUnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let sent = std::thread::spawn(move || {
            let made = Made {
                reading: 1,
                part: 0,
            };
            let answer = Answer::Body(made, Bytes::from(vec![7; 1 << 20]));
            let (head, body) = answer.parts();
            (&agents).write_all(&[&head[..], body].concat()).unwrap();
            agents
        });
        let mut lane = Lane {
            stream: UnixStream::from_std(ours).unwrap(),
            arrived: BytesMut::new(),
        };
        let answer = lane.ask(b"a question").await.unwrap();
        assert!(matches!(&answer, Answer::Body(_, body) if body.len() == 1 << 20));
        assert_eq!(lane.arrived.capacity(), 0);
        drop(sent.join().unwrap());
    }
}
