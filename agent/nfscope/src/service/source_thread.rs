//! The one thread that owns the source, and what everybody else sees of it.

use crate::api::breakdown_query;
use crate::api::probe_change::Change;
use crate::api::windows_query::{OfRecording, Range, Seen};
use crate::exposition::{self, Collectors, Format};
use crate::service::archive::Archive;
use crate::service::recordings::Recordings;
use crate::service::source_loop::{self, Running, Work};
use bytes::Bytes;
use nfscope_diagnose::tracker::FindingTracker;
use nfscope_model::status::Status;
use nfscope_model::{HeldRequests, SlowFilter, Snapshot};
use nfscope_source::{Source, hostname, own_process};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, oneshot, watch};

/// What is said where the thread is waited for in vain.
pub(crate) const SOURCE_ENDED: &str = "the thread that owns the probes has ended";
/// What is said to those who come too early.
const ATTACHING: &str = "the agent is still attaching; try again in a moment";
/// A reading up to this old answers further requests: simultaneous scrapes cost one.
const MAX_READING_AGE: Duration = Duration::from_millis(250);
/// Bodies with a part of a reading that are made of it; each costs time and memory.
pub const MAX_PARTS: usize = 8;
/// How long the thread may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// What a reading can be asked for as.
#[derive(Debug, Clone, Copy)]
pub enum Body {
    /// An exposition.
    Metrics(Format),
    /// The snapshot itself.
    Json,
}

impl Body {
    fn index(self) -> usize {
        match self {
            Body::Metrics(format) => format as usize,
            Body::Json => Format::ALL.len(),
        }
    }
}

struct Reading {
    /// From 1 on.
    number: u64,
    at: Instant,
    snapshot: Arc<Snapshot>,
    bodies: [Option<Bytes>; Format::ALL.len() + 1],
    /// Parts of the exposition.
    parts: HashMap<(Collectors, Format), Bytes>,
}

/// A body, and the number of the reading that it was made of; 0 where it was made of none.
pub type Numbered = (u64, Bytes);

impl Reading {
    /// The part of the exposition that these collectors have; `None` where too many other parts have been made.
    fn part(&mut self, collectors: Collectors, format: Format) -> anyhow::Result<Option<Numbered>> {
        let key = (collectors, format);
        if let Some(body) = self.parts.get(&key) {
            return Ok(Some((self.number, body.clone())));
        }
        if self.parts.len() >= MAX_PARTS {
            return Ok(None);
        }
        let body = exposition::encode_some(&self.snapshot, format, &key.0)?;
        let body = Bytes::from(body);
        self.parts.insert(key, body.clone());
        Ok(Some((self.number, body)))
    }
}

fn gone() -> anyhow::Error {
    anyhow::anyhow!("the thread that reads the probes has ended")
}

/// A handle to the thread that owns the source. Dropping it ends the thread and detaches every probe.
#[derive(Debug)]
pub struct SourceHandle {
    work: mpsc::Sender<Work>,
    /// Behind `work`, whose end the thread hears of.
    _ended: Ended,
    status: watch::Receiver<Status>,
    /// Why the server does not serve all requests, as far as the agent finds.
    degraded: watch::Receiver<Option<String>>,
    /// What happened before the last quarter of an hour, where that is kept.
    archive: OnceLock<Archive>,
    /// What was recorded by `nfscope baseline`.
    recordings: OnceLock<Recordings>,
    /// Held while reading: whoever comes meanwhile waits and finds the reading fresh.
    last: Mutex<Option<Reading>>,
    /// The same for requests in hand: of what age, when, and the answer.
    held: Mutex<Option<(Duration, Instant, Bytes)>>,
    /// How many readings there were.
    readings: AtomicU64,
    findings: Mutex<Option<(Instant, Bytes)>>,
}

/// Waits for the thread: what is left to the end of the process is detached by the kernel, but return probes in tracefs
/// would stay. Attaching is not waited for: who stops the agent then wants it to stop.
#[derive(Debug)]
struct Ended(std::thread::JoinHandle<()>, watch::Receiver<Status>);

impl Drop for Ended {
    fn drop(&mut self) {
        let began = Instant::now();
        let attached = *self.1.borrow() != Status::Attaching;
        while attached && !self.0.is_finished() && began.elapsed() < END_TIMEOUT {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl std::fmt::Debug for Reading {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reading")
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

impl SourceHandle {
    /// Starts a source on a thread of its own, because attaching takes seconds on some hosts and a source may not
    /// leave its thread. The receiver tells how the start went.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn spawn(
        start: impl FnOnce() -> anyhow::Result<Box<dyn Source>> + Send + 'static,
    ) -> std::io::Result<(SourceHandle, oneshot::Receiver<anyhow::Result<()>>)> {
        let (work, asked) = mpsc::channel();
        let (publish, status) = watch::channel(Status::Attaching);
        let (warn, degraded) = watch::channel(None);
        let (tell, started) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("probes".to_owned())
            .spawn(move || match start() {
                Ok(mut source) => {
                    publish.send_replace(Status::Running(source.probes().into()));
                    // Nobody listening means that the agent is on its way out; the loop will see it.
                    let _ = tell.send(Ok(()));
                    source_loop::run(source.as_mut(), &asked, &publish, &warn);
                }
                Err(e) => drop(tell.send(Err(e))),
            })?;
        let handle = SourceHandle {
            work,
            _ended: Ended(thread, status.clone()),
            status,
            degraded,
            archive: OnceLock::new(),
            recordings: OnceLock::new(),
            last: Mutex::new(None),
            held: Mutex::new(None),
            readings: AtomicU64::new(0),
            findings: Mutex::new(None),
        };
        Ok((handle, started))
    }

    /// Where the probes stand now.
    pub fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    /// Why the server does not serve all requests now; `None` where nothing is stuck.
    pub fn degraded(&self) -> Option<String> {
        self.degraded.borrow().clone()
    }

    /// To follow changes.
    pub fn watch(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    /// A snapshot that is not older than a quarter of a second, encoded. While attaching it holds only what the agent knows about
    /// itself.
    ///
    /// # Errors
    /// When the source's thread has ended.
    pub async fn body(&self, body: Body) -> anyhow::Result<Numbered> {
        if self.status() == Status::Attaching {
            return Ok((0, encode(&own_snapshot(), body)?));
        }
        let mut last = self.last.lock().await;
        let reading = self.fresh(&mut last).await?;
        let slot = &mut reading.bodies[body.index()];
        let bytes = match slot {
            Some(bytes) => bytes.clone(),
            None => slot.insert(encode(&reading.snapshot, body)?).clone(),
        };
        Ok((reading.number, bytes))
    }

    /// The part of an exposition that these collectors have. `None` where [`MAX_PARTS`] others have been made of the last
    /// reading; a moment later there is a new one.
    ///
    /// # Errors
    /// When the source's thread has ended.
    pub async fn metrics_of(
        &self,
        collectors: Collectors,
        format: Format,
    ) -> anyhow::Result<Option<Numbered>> {
        if self.status() == Status::Attaching {
            let body = exposition::encode_some(&own_snapshot(), format, &collectors)?;
            return Ok(Some((0, body.into())));
        }
        let mut last = self.last.lock().await;
        (self.fresh(&mut last).await?).part(collectors, format)
    }

    /// The last reading, or a new one where that is old.
    async fn fresh<'a>(&self, last: &'a mut Option<Reading>) -> anyhow::Result<&'a mut Reading> {
        let reading = match last.take() {
            Some(reading) if reading.at.elapsed() < MAX_READING_AGE => reading,
            // The old bodies are gone before the new ones are made: memory holds one set.
            _ => self.read().await?,
        };
        Ok(last.insert(reading))
    }

    /// Lines of NDJSON about slow operations as they happen, until the receiver is dropped. The source watches for
    /// them only while somebody has such a receiver; what it does not take in time is left out and counted.
    ///
    /// # Errors
    /// With the source's reason, when too many listen already, or when the source's thread has ended.
    pub async fn slow(
        &self,
        want: SlowFilter,
    ) -> anyhow::Result<tokio::sync::mpsc::Receiver<Bytes>> {
        self.on_thread(|r| r.subscribers.subscribe(r.source, want, Instant::now()))
            .await?
    }

    /// Lines of NDJSON about operations by what `query` names, one an interval, until the receiver is dropped. The source tells
    /// them apart only while somebody has such a receiver.
    ///
    /// # Errors
    /// With the source's reason, when too many listen already, or when the source's thread has ended.
    pub async fn breakdown(
        &self,
        query: breakdown_query::Query,
    ) -> anyhow::Result<tokio::sync::mpsc::Receiver<Bytes>> {
        self.on_thread(|r| r.listeners.subscribe(r.source, query, Instant::now()))
            .await?
    }

    /// Every request that a thread has had in hand for longer than `over`, as JSON. Whoever asks, and for whatever age, the
    /// source reads them at most once in a quarter of a second.
    ///
    /// # Errors
    /// When the source's thread has ended.
    pub async fn held(&self, over: Duration) -> anyhow::Result<Bytes> {
        if self.status() == Status::Attaching {
            let unknown = HeldRequests {
                host: hostname::own_name(),
                over_seconds: over.as_secs_f64(),
                unknown: Some("the agent is attaching its probes".to_owned()),
                ..HeldRequests::default()
            };
            return Ok(serde_json::to_vec(&unknown)?.into());
        }
        let mut last = self.held.lock().await;
        if let Some((of, at, body)) = &*last {
            let left = MAX_READING_AGE.saturating_sub(at.elapsed());
            if *of == over && !left.is_zero() {
                return Ok(body.clone());
            }
            tokio::time::sleep(left).await;
        }
        let held = self.on_thread(move |r| r.source.held(over)).await?;
        let body: Bytes = serde_json::to_vec(&held)?.into();
        *last = Some((over, Instant::now(), body.clone()));
        Ok(body)
    }

    /// What makes requests slow, now and before, and what changes would be worth, as JSON that is not older than a quarter of a
    /// second.
    ///
    /// # Errors
    /// When the source's thread has ended.
    pub async fn findings(&self) -> anyhow::Result<Bytes> {
        if self.status() == Status::Attaching {
            return Ok(serde_json::to_vec(&FindingTracker::default().report())?.into());
        }
        let mut last = self.findings.lock().await;
        if let Some((at, body)) = &*last
            && at.elapsed() < MAX_READING_AGE
        {
            return Ok(body.clone());
        }
        let body = self
            .on_thread(|r| r.worth.body(&r.windows.findings))
            .await??;
        let body = Bytes::from(body);
        *last = Some((Instant::now(), body.clone()));
        Ok(body)
    }

    /// The latest windows that a page has not seen, as JSON; all that are kept where it has seen none.
    ///
    /// # Errors
    /// While attaching, or when the source's thread has ended.
    pub async fn windows(&self, seen: Option<Seen>) -> anyhow::Result<Bytes> {
        anyhow::ensure!(self.status() != Status::Attaching, ATTACHING);
        let windows = self
            .on_thread(move |r| r.windows.history.answer(seen, Instant::now()))
            .await??;
        Ok(windows.into())
    }

    /// Keeps windows of ten seconds there from now on. Only the first call counts.
    ///
    /// # Errors
    /// When the source's thread has ended.
    pub fn keep_history(&self, archive: Archive) -> anyhow::Result<()> {
        let archive = self.archive.get_or_init(|| archive).clone();
        self.send(|r| r.windows.history.keep_in(archive))
    }

    /// Windows of this range from the disk, as JSON; `None` where none are kept there.
    ///
    /// # Errors
    /// When the disk cannot be read, or is busy.
    pub async fn past(&self, range: Range) -> anyhow::Result<Option<Bytes>> {
        match self.archive.get() {
            Some(archive) => Ok(Some(archive.tell(range).await?.into())),
            None => Ok(None),
        }
    }

    /// Shows these recordings from now on. Only the first call counts.
    pub fn show_recordings(&self, recordings: Recordings) {
        self.recordings.get_or_init(|| recordings);
    }

    /// The recordings that can be shown, as JSON; `None` where the agent looks for none.
    ///
    /// # Errors
    /// When their store cannot be read, or is busy.
    pub async fn recordings(&self) -> anyhow::Result<Option<Bytes>> {
        match self.recordings.get() {
            Some(recordings) => Ok(Some(recordings.list().await?.into())),
            None => Ok(None),
        }
    }

    /// Windows of a recording, as JSON; `None` where the agent looks for none.
    ///
    /// # Errors
    /// When there is no such recording, or it cannot be read.
    pub async fn recorded(&self, what: OfRecording) -> anyhow::Result<Option<Bytes>> {
        match self.recordings.get() {
            Some(recordings) => Ok(Some(recordings.tell(what).await?.into())),
            None => Ok(None),
        }
    }

    /// Detaches probes or attaches them again; a line about each.
    ///
    /// # Errors
    /// With the source's reason, while attaching, or when the source's thread has ended.
    pub async fn change(
        &self,
        change: Change,
        probes: Vec<&'static str>,
    ) -> anyhow::Result<Vec<String>> {
        anyhow::ensure!(self.status() != Status::Attaching, ATTACHING);
        self.on_thread(move |r| r.change(change, &probes)).await?
    }

    /// Gives at most so many clients and exports series of their own from now on.
    ///
    /// # Errors
    /// When the source's thread has ended.
    pub fn limit_series(&self, clients: usize, exports: usize) -> anyhow::Result<()> {
        self.send(move |r| r.source.limit_series(clients, exports))
    }

    /// Returns once the source's thread has answered, which proves that it goes round its loop.
    ///
    /// # Errors
    /// When the source's thread has ended.
    pub async fn answers(&self) -> anyhow::Result<()> {
        self.on_thread(|_| ()).await
    }

    /// What the thread says when it has done this, between two readings.
    ///
    /// # Errors
    /// When the source's thread has ended.
    pub(crate) async fn on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Running<'_>) -> T + Send + 'static,
    ) -> anyhow::Result<T> {
        let (tell, answer) = oneshot::channel();
        self.send(|running| {
            // A scraper that has hung up meanwhile is no error, and a listener drops the receiver with the answer.
            let _ = tell.send(work(running));
        })?;
        answer.await.map_err(|_| gone())
    }

    fn send(&self, work: impl FnOnce(&mut Running<'_>) + Send + 'static) -> anyhow::Result<()> {
        self.work.send(Box::new(work)).map_err(|_| gone())
    }

    async fn read(&self) -> anyhow::Result<Reading> {
        let snapshot = self.on_thread(|r| r.snapshot()).await?;
        Ok(Reading {
            number: self.readings.fetch_add(1, Ordering::Relaxed) + 1,
            snapshot: Arc::new(snapshot),
            at: Instant::now(),
            bodies: Default::default(),
            parts: HashMap::new(),
        })
    }
}

/// What the agent knows of itself.
fn own_snapshot() -> Arc<Snapshot> {
    let mut own = Snapshot::default();
    exposition::describe(&mut own, Duration::ZERO);
    own_process::describe(&mut own);
    Arc::new(own)
}

fn encode(snapshot: &Arc<Snapshot>, body: Body) -> anyhow::Result<Bytes> {
    Ok(match body {
        Body::Metrics(format) => exposition::encode(snapshot, format)?,
        Body::Json => serde_json::to_vec(snapshot.as_ref())?,
    }
    .into())
}
