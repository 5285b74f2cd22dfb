//! The agent, as the process that serves HTTP sees it: the questions of [`nfscope_api::link`], and bodies that all requests share.

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
/// Shorter bodies are not worth packing.
const PACKED_FROM: usize = 1024;
const AGENT_ENDED: &str = "the agent has ended";

/// A body as it is, and packed where somebody wanted that.
type Both = (Bytes, Option<Bytes>);

/// Bodies of the last reading, by their part of it.
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

    /// The body, packed where that is asked for and worth it. It is packed once.
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
    /// A body, and whether it is packed.
    Body(Bytes, bool),
    /// Lines are to be had with [`AgentLink::listen`].
    Lines,
    /// The reason why there is no answer.
    Refused(Why, String),
}

/// Asks the agent.
#[derive(Debug)]
pub struct AgentLink {
    lanes: Arc<Lanes>,
    streams: Arc<Lanes>,
    /// By path, or for all endpoints whose answers are made of readings. Held while asking: whoever comes meanwhile waits, and finds
    /// the body there. Each path has one lane at most, so that scrapes always find one.
    bodies: HashMap<&'static str, Arc<Mutex<Bodies>>>,
    disk: Arc<Mutex<()>>,
}

/// Lanes that nobody uses now.
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
        // What is left is a part of the answer's memory, and would keep all of it until this lane is asked again.
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

    /// Asks, and reads the answer to its end on a task of its own, also when nobody waits for it any more. Whoever stops waiting
    /// before it has a lane leaves nothing behind; `guard` is held as long as the lane is.
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
                // There is room for as many lanes as there are.
                let _ = lanes.back.try_send(lane);
            }
            Ok((answer?, guard))
        });
        asked.await?
    }
}

impl AgentLink {
    /// Asks over these lanes, of which the latter are for streams, what these endpoints have.
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

    /// The agent's answer to a request, packed where that is asked for and worth it.
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

    /// Lines of NDJSON as things happen, until the receiver is dropped.
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
            // Who asked may have gone; then nobody takes a line either.
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

/// The name of the bodies that are kept together, and of the turn that requests for them take.
fn shared_by(endpoint: &Declaration) -> &'static str {
    match endpoint.origin {
        Origin::Agent(Served::Reading, _) => "",
        _ => endpoint.path,
    }
}

/// An answer that is nobody else's.
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

/// Passes lines on until they end, or nobody takes them.
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

/// Packs a body that is worth it, where that is asked for, and says whether it did.
///
/// # Errors
/// Never so far: memory takes all that is written.
pub(super) fn pack(body: Bytes, asked: bool) -> anyhow::Result<(Bytes, bool)> {
    match asked && body.len() >= PACKED_FROM {
        true => Ok((gzip(&body)?, true)),
        false => Ok((body, false)),
    }
}

/// Packs a body: a scrape to a tenth, in a few milliseconds.
///
/// # Errors
/// Never so far: memory takes all that is written.
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
