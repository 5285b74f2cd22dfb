//! The agent, as the process that serves HTTP sees it: the questions of [`crate::api::link`], and bodies that all requests share.

use crate::api::breakdown_query::Query;
use crate::api::link::{self, Answer, Health, Question};
use crate::api::query::QueryString;
use crate::api::stuck_query::Over;
use crate::api::windows_query::{Seen, Wanted};
use crate::exposition::{Collectors, Format};
use anyhow::{Context, bail, ensure};
use bytes::{Bytes, BytesMut};
use flate2::Compression;
use flate2::write::GzEncoder;
use nfscope_model::status::Status;
use nfscope_model::{ProbeStatus, SlowFilter};
use std::collections::HashMap;
use std::io::{self, Write};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::sync::Mutex;
use tokio::sync::mpsc::{self, Receiver, Sender};

/// Messages with lines that wait for one listener.
const WAITING: usize = 8;
/// An answer that pages share is at most so old.
const SHARED: Duration = Duration::from_millis(250);
const AGENT_ENDED: &str = "the agent has ended";

/// What is made of a reading.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Page {
    Metrics(Format, Collectors),
    Snapshot,
}

/// A body as it is, and packed where somebody wanted that.
type Both = (Bytes, Option<Bytes>);

/// Bodies of the last reading.
#[derive(Debug, Default)]
struct Bodies {
    reading: u64,
    all: HashMap<Page, Both>,
}

/// Asks the agent.
#[derive(Debug)]
pub struct AgentLink {
    lanes: Arc<Lanes>,
    streams: Arc<Lanes>,
    /// Held while asking: whoever comes meanwhile waits and finds the reading fresh.
    bodies: Mutex<Bodies>,
    held: Arc<Mutex<()>>,
    disk: Arc<Mutex<()>>,
    windows: Arc<Mutex<Option<Latest>>>,
}

/// The latest windows: for whom that had seen what, since when, and the answer.
type Latest = (Option<Seen>, Instant, Bytes);

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
    async fn ask(&mut self, question: &Question) -> anyhow::Result<Answer> {
        self.stream.write_all(&question.encode()?).await?;
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
    async fn ask(
        self: &Arc<Self>,
        question: Question,
        guard: impl Send + 'static,
    ) -> anyhow::Result<Answer> {
        let lane = self.free.lock().await.recv().await;
        let mut lane = lane.context(AGENT_ENDED)?;
        let lanes = self.clone();
        let asked = tokio::spawn(async move {
            let _guard = guard;
            let answer = lane.ask(&question).await;
            if answer.is_ok() {
                // There is room for as many lanes as there are.
                let _ = lanes.back.try_send(lane);
            }
            answer
        });
        asked.await?
    }
}

impl AgentLink {
    /// Asks over these lanes, of which the latter are for streams.
    ///
    /// # Errors
    /// When they cannot be watched.
    pub fn new(lanes: Vec<StdUnixStream>, streams: Vec<StdUnixStream>) -> io::Result<AgentLink> {
        Ok(AgentLink {
            lanes: Lanes::new(lanes)?,
            streams: Lanes::new(streams)?,
            bodies: Mutex::default(),
            held: Arc::default(),
            disk: Arc::default(),
            windows: Arc::default(),
        })
    }

    /// A body that is not older than a quarter of a second, packed where that is asked for. `None` where too many others have
    /// been made of the last reading.
    pub(super) async fn body(&self, page: Page, packed: bool) -> anyhow::Result<Option<Bytes>> {
        let mut bodies = self.bodies.lock().await;
        let have = match bodies.all.contains_key(&page) {
            true => bodies.reading,
            false => 0,
        };
        let question = match &page {
            Page::Metrics(format, some) => Question::Metrics {
                format: *format as u8,
                query: some.to_query(),
                have,
            },
            Page::Snapshot => Question::Snapshot { have },
        };
        match self.lanes.ask(question, ()).await? {
            Answer::Same => {}
            Answer::TooMany => return Ok(None),
            Answer::Body(reading, body) => {
                if reading == 0 {
                    return if packed { gzip(&body) } else { Ok(body) }.map(Some);
                }
                if bodies.reading != reading {
                    bodies.all.clear();
                    bodies.reading = reading;
                }
                bodies.all.insert(page.clone(), (body, None));
            }
            other => return Err(refused(other)),
        }
        let (plain, small) = bodies.all.get_mut(&page).context("no such body")?;
        if !packed {
            return Ok(Some(plain.clone()));
        }
        match small {
            Some(bytes) => Ok(Some(bytes.clone())),
            None => Ok(Some(small.insert(gzip(plain)?).clone())),
        }
    }

    async fn whole(&self, question: Question) -> anyhow::Result<Bytes> {
        self.whole_with(question, ()).await
    }

    async fn whole_with(
        &self,
        question: Question,
        guard: impl Send + 'static,
    ) -> anyhow::Result<Bytes> {
        match self.lanes.ask(question, guard).await? {
            Answer::Body(_, body) => Ok(body),
            other => Err(refused(other)),
        }
    }

    /// The body of `/findings`.
    pub(super) async fn findings(&self) -> anyhow::Result<Bytes> {
        self.whole(Question::Findings).await
    }

    /// The body of `/stuck`. One at a time: the agent may take a quarter of a second for each, and scrapes need lanes, too.
    pub(super) async fn held(&self, over: Duration) -> anyhow::Result<Bytes> {
        let alone = self.held.clone().lock_owned().await;
        let query = Over(over).to_query();
        self.whole_with(Question::Held { query }, alone).await
    }

    /// The latest windows for the page. Pages that have seen the same share an answer for a quarter of a second; others wait for
    /// each other.
    pub(super) async fn windows(&self, seen: Option<Seen>) -> anyhow::Result<Bytes> {
        let mut last = self.windows.clone().lock_owned().await;
        if let Some((of, at, body)) = &*last
            && *of == seen
            && at.elapsed() < SHARED
        {
            return Ok(body.clone());
        }
        let query = Wanted::Latest(seen).to_query();
        *last = None;
        let body = self.whole(Question::Windows { query }).await?;
        *last = Some((seen, Instant::now(), body.clone()));
        Ok(body)
    }

    /// Windows of a range or a recording, from the agent's disk; `None` where it keeps none.
    pub(super) async fn stored(&self, wanted: &Wanted) -> anyhow::Result<Option<Bytes>> {
        let query = wanted.to_query();
        self.ask_disk(Question::Windows { query }).await
    }

    /// The body of `/recordings`; `None` where the agent shows none.
    pub(super) async fn recordings(&self) -> anyhow::Result<Option<Bytes>> {
        self.ask_disk(Question::Recordings).await
    }

    /// One at a time: a disk may take its time, and scrapes need lanes, too.
    async fn ask_disk(&self, question: Question) -> anyhow::Result<Option<Bytes>> {
        let alone = self.disk.clone().lock_owned().await;
        match self.lanes.ask(question, alone).await? {
            Answer::Body(_, body) => Ok(Some(body)),
            Answer::None => Ok(None),
            other => Err(refused(other)),
        }
    }

    /// How the agent is.
    pub(super) async fn health(&self) -> anyhow::Result<Health> {
        Ok(serde_json::from_slice(
            &self.whole(Question::Health).await?,
        )?)
    }

    /// Where the probes stand.
    pub(super) async fn status(&self) -> anyhow::Result<Status> {
        let probes = self.whole(Question::Probes).await?;
        let probes: Option<Vec<ProbeStatus>> = serde_json::from_slice(&probes)?;
        Ok(probes.map_or(Status::Attaching, |all| Status::Running(all.into())))
    }

    /// Lines of NDJSON about slow operations as they happen, until the receiver is dropped.
    pub(super) async fn slow(&self, want: &SlowFilter) -> anyhow::Result<Receiver<Bytes>> {
        let query = want.to_query();
        self.stream(Question::Slow { query }).await
    }

    /// Lines of NDJSON about operations by what is asked for, until the receiver is dropped.
    pub(super) async fn breakdown(&self, query: &Query) -> anyhow::Result<Receiver<Bytes>> {
        let query = query.to_query();
        self.stream(Question::Breakdown { query }).await
    }

    async fn stream(&self, question: Question) -> anyhow::Result<Receiver<Bytes>> {
        let lane = self.streams.free.lock().await.try_recv();
        let mut lane = lane.context("too many listen for operations; try again")?;
        let (lines, receiver) = mpsc::channel(WAITING);
        let back = self.streams.back.clone();
        let (tell, told) = tokio::sync::oneshot::channel();
        tokio::spawn(async move {
            let accepted = match lane.ask(&question).await {
                Ok(Answer::Lines(_)) => Ok(()),
                Ok(other) => Err(refused(other)),
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

fn refused(answer: Answer) -> anyhow::Error {
    match answer {
        Answer::Refused(why) => anyhow::anyhow!(why),
        other => anyhow::anyhow!("{other:?} is no answer to this"),
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
            let answer = Answer::Body(1, Bytes::from(vec![7; 1 << 20]));
            let (head, body) = answer.parts();
            (&agents).write_all(&[&head[..], body].concat()).unwrap();
            agents
        });
        let mut lane = Lane {
            stream: UnixStream::from_std(ours).unwrap(),
            arrived: BytesMut::new(),
        };
        let answer = lane.ask(&Question::Findings).await.unwrap();
        assert!(matches!(&answer, Answer::Body(1, body) if body.len() == 1 << 20));
        assert_eq!(lane.arrived.capacity(), 0);
        drop(sent.join().unwrap());
    }
}
