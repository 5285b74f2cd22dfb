//! The one thread that owns the source, and what everybody else sees of it.

use crate::metrics::{self, Format};
use crate::model::Snapshot;
use crate::source::Source;
use crate::status::Status;
use bytes::Bytes;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, oneshot, watch};

/// A reading up to this old answers further requests: simultaneous scrapes cost one.
const FRESH: Duration = Duration::from_millis(250);
/// How often the source may look for modules that have come or gone.
const POLL: Duration = Duration::from_secs(1);

/// What a reading can be asked for as.
#[derive(Debug, Clone, Copy)]
pub enum Body {
    /// An exposition.
    Metrics(Format),
    /// The snapshot itself.
    Json,
}

impl Body {
    fn place(self) -> usize {
        match self {
            Body::Metrics(format) => format as usize,
            Body::Json => Format::ALL.len(),
        }
    }
}

struct Reading {
    at: Instant,
    snapshot: Arc<Snapshot>,
    bodies: [Option<Bytes>; Format::ALL.len() + 1],
}

type Ask = oneshot::Sender<Snapshot>;

/// A handle to the thread that owns the source. Dropping it ends the thread and detaches every probe.
#[derive(Debug)]
pub struct Reader {
    asks: mpsc::Sender<Ask>,
    status: watch::Receiver<Status>,
    /// Held while reading: whoever comes meanwhile waits and finds the reading fresh.
    last: Mutex<Option<Reading>>,
}

impl std::fmt::Debug for Reading {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reading")
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

impl Reader {
    /// Starts a source on a thread of its own, because attaching takes seconds on some hosts and a source may not
    /// leave its thread. The receiver tells how the start went.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn spawn(
        start: impl FnOnce() -> anyhow::Result<Box<dyn Source>> + Send + 'static,
    ) -> std::io::Result<(Reader, oneshot::Receiver<anyhow::Result<()>>)> {
        let (asks, asked) = mpsc::channel();
        let (publish, status) = watch::channel(Status::Attaching);
        let (tell, started) = oneshot::channel();
        std::thread::Builder::new()
            .name("probes".to_owned())
            .spawn(move || match start() {
                Ok(mut source) => {
                    publish.send_replace(Status::Running(source.probes().into()));
                    // Nobody listening means that the agent is on its way out; the loop will see it.
                    let _ = tell.send(Ok(()));
                    run(source.as_mut(), &asked, &publish);
                }
                Err(e) => drop(tell.send(Err(e))),
            })?;
        let reader = Reader {
            asks,
            status,
            last: Mutex::new(None),
        };
        Ok((reader, started))
    }

    /// Where the probes stand now.
    pub fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    /// To be told of changes.
    pub fn watch(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    /// A snapshot that is not older than a quarter of a second, encoded. While attaching it holds only what the agent
    /// knows about itself.
    ///
    /// # Errors
    /// When the source's thread has ended.
    pub async fn body(&self, body: Body) -> anyhow::Result<Bytes> {
        if self.status() == Status::Attaching {
            let mut empty = Snapshot::default();
            metrics::describe(&mut empty, Duration::ZERO);
            return encode(&Arc::new(empty), body);
        }
        let mut last = self.last.lock().await;
        let reading = match last.take() {
            Some(reading) if reading.at.elapsed() < FRESH => reading,
            // The old bodies are gone before the new ones are made: memory holds one set.
            _ => self.read().await?,
        };
        let reading = last.insert(reading);
        let slot = &mut reading.bodies[body.place()];
        if let Some(bytes) = slot {
            return Ok(bytes.clone());
        }
        let bytes = encode(&reading.snapshot, body)?;
        Ok(slot.insert(bytes).clone())
    }

    async fn read(&self) -> anyhow::Result<Reading> {
        let (tell, answer) = oneshot::channel();
        let gone = || anyhow::anyhow!("the thread that reads the probes has ended");
        self.asks.send(tell).map_err(|_| gone())?;
        Ok(Reading {
            snapshot: Arc::new(answer.await.map_err(|_| gone())?),
            at: Instant::now(),
            bodies: Default::default(),
        })
    }
}

fn encode(snapshot: &Arc<Snapshot>, body: Body) -> anyhow::Result<Bytes> {
    Ok(match body {
        Body::Metrics(format) => metrics::encode(snapshot, format)?,
        Body::Json => serde_json::to_vec(snapshot.as_ref())?,
    }
    .into())
}

/// Serves readings until the last [`Reader`] is gone.
fn run(source: &mut dyn Source, asked: &mpsc::Receiver<Ask>, publish: &watch::Sender<Status>) {
    let mut polled = Instant::now();
    loop {
        match asked.recv_timeout(POLL.saturating_sub(polled.elapsed())) {
            Ok(answer) => {
                let start = Instant::now();
                let mut snapshot = source.snapshot();
                metrics::describe(&mut snapshot, start.elapsed());
                // A scraper that has hung up meanwhile is no error.
                let _ = answer.send(snapshot);
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        }
        if polled.elapsed() >= POLL {
            source.poll();
            polled = Instant::now();
            let now = Status::Running(source.probes().into());
            publish.send_if_modified(|old| {
                let changed = *old != now;
                *old = now;
                changed
            });
        }
    }
}
