//! The thread that owns the source, and the handle by which others reach it.

use crate::exposition::{self, Collectors, Format};
use crate::names::Names;
use crate::service::archive::Archive;
use crate::service::http_state;
use crate::service::recordings::Recordings;
use crate::service::source_loop::{self, Running, Work};
use bytes::Bytes;
use nfscope_api::link::Made;
use nfscope_api::probe_change::Change;
use nfscope_model::Snapshot;
use nfscope_model::status::Status;
use nfscope_source::{Source, own_process};
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, oneshot, watch};

/// Error text if the thread has ended.
pub const SOURCE_ENDED: &str = "the thread that owns the probes has ended";
/// Refusal of requests that come before the probes are attached.
pub(crate) const ATTACHING: &str = "the agent is still attaching; try again in a moment";
/// Largest age of a reading that answers further requests: simultaneous scrapes cost one reading.
pub(super) const MAX_READING_AGE: Duration = Duration::from_millis(250);
/// Most bodies that have a part of a reading; each costs time and memory.
pub const MAX_PARTS: usize = 8;
/// Time for the thread to end its current work.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for the thread to detach after that. The kernel waits for every CPU with each of a hundred programs (synchronize_rcu), and would do
/// so at the end of the process as well. The time is within the 90 s after which systemd kills a service (TimeoutStopSec=).
const DETACH_TIMEOUT: Duration = Duration::from_secs(60);

/// A body that is made from a reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// An exposition, or the part of it that some collectors have.
    Metrics(Format, Collectors),
    /// The snapshot itself.
    Snapshot,
}

impl Part {
    /// Returns true for an exposition that is not whole.
    fn is_some(&self) -> bool {
        matches!(self, Part::Metrics(_, collectors) if !collectors.all())
    }
}

struct Reading {
    /// Number of the reading, from 1 on.
    number: u64,
    at: Instant,
    snapshot: Arc<Snapshot>,
    bodies: Vec<(Part, Bytes)>,
}

impl Reading {
    /// A body of this reading; `None` if too many others have been made.
    fn body(&mut self, part: Part, names: &Names) -> anyhow::Result<Option<(Made, Bytes)>> {
        let at = match self.bodies.iter().position(|(known, _)| *known == part) {
            Some(at) => at,
            None => {
                let some = self.bodies.iter().filter(|(known, _)| known.is_some());
                if part.is_some() && some.count() >= MAX_PARTS {
                    return Ok(None);
                }
                let body = encode(&self.snapshot, &part, names)?;
                self.bodies.push((part, body));
                self.bodies.len() - 1
            }
        };
        let made = Made {
            reading: self.number,
            part: u8::try_from(at)?,
        };
        Ok(Some((made, self.bodies[at].1.clone())))
    }
}

fn gone() -> anyhow::Error {
    anyhow::anyhow!("the thread that reads the probes has ended")
}

/// Handle to the thread that owns the source. Dropping it ends the thread and detaches every probe.
#[derive(Debug)]
pub struct SourceHandle {
    work: mpsc::Sender<Work>,
    /// Dropped after `work`, whose end tells the thread to end.
    _ended: Ended,
    status: watch::Receiver<Status>,
    /// Reason why the server does not serve all requests, according to the findings.
    degraded: watch::Receiver<Option<String>>,
    /// Windows older than a quarter of an hour, if they are kept.
    archive: OnceLock<Archive>,
    /// Names of clients and users, if they are looked up.
    names: OnceLock<Names>,
    /// Recordings of `nfscope baseline`.
    recordings: OnceLock<Recordings>,
    /// Last reading. The lock is held during a reading: requests that come meanwhile wait, and find a fresh one.
    last: Mutex<Option<Reading>>,
    /// Number of readings.
    readings: AtomicU64,
}

/// Waits for the thread at the end. The kernel detaches programs at the end of the process, but return probes in tracefs would stay.
/// Attaching is not waited for, because the admin who stops the agent then wants it to stop.
#[derive(Debug)]
struct Ended(std::thread::JoinHandle<()>, watch::Receiver<Status>);

impl Drop for Ended {
    fn drop(&mut self) {
        let began = Instant::now();
        let attached = *self.1.borrow() != Status::Attaching;
        // A thread that detaches has dropped its status.
        let timeout = || match self.1.has_changed() {
            Ok(_) => END_TIMEOUT,
            Err(_) => DETACH_TIMEOUT,
        };
        while attached && !self.0.is_finished() && began.elapsed() < timeout() {
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
    /// Starts a source on a thread of its own, because attaching takes seconds on some hosts and a source may not leave its thread. The
    /// receiver gets the result of the start.
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
                    // A dropped receiver means that the agent is about to end; the loop will notice that.
                    let _ = tell.send(Ok(()));
                    source_loop::run(source.as_mut(), &asked, &publish, &warn);
                    // The status is dropped before the source, which detaches: see `Ended`.
                    drop(publish);
                }
                Err(e) => drop(tell.send(Err(e))),
            })?;
        let handle = SourceHandle {
            work,
            _ended: Ended(thread, status.clone()),
            status,
            degraded,
            archive: OnceLock::new(),
            names: OnceLock::new(),
            recordings: OnceLock::new(),
            last: Mutex::new(None),
            readings: AtomicU64::new(0),
        };
        Ok((handle, started))
    }

    /// Present state of the probes.
    pub fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    /// Reason why the server does not serve all requests now; `None` if nothing is stuck.
    pub fn degraded(&self) -> Option<String> {
        self.degraded.borrow().clone()
    }

    /// Receiver that follows changes of the state.
    pub fn watch(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    /// Body of a reading that is not older than a quarter of a second. `None` if [`MAX_PARTS`] others have been made from the last reading;
    /// a moment later there is a new one. While attaching, a reading has the agent's own values only, and no number.
    ///
    /// # Errors
    /// When the source's thread has ended.
    pub async fn part(&self, part: Part) -> anyhow::Result<Option<(Made, Bytes)>> {
        if self.status() == Status::Attaching {
            return Ok(Some((
                Made::default(),
                encode(&own_snapshot(), &part, &Names::default())?,
            )));
        }
        let mut last = self.last.lock().await;
        (self.fresh(&mut last).await?).body(part, &self.names())
    }

    /// Returns the last reading, or a new one if that is old.
    async fn fresh<'a>(&self, last: &'a mut Option<Reading>) -> anyhow::Result<&'a mut Reading> {
        let reading = match last.take() {
            Some(reading) if reading.at.elapsed() < MAX_READING_AGE => reading,
            // The old bodies are dropped before the new ones are made, so that memory holds one set.
            _ => self.read().await?,
        };
        Ok(last.insert(reading))
    }

    /// Keeps windows of ten seconds in the archive from now on. Only the first call counts.
    ///
    /// # Errors
    /// When the source's thread has ended.
    pub fn keep_history(&self, archive: Archive) -> anyhow::Result<()> {
        let archive = self.archive.get_or_init(|| archive).clone();
        self.send(|r| r.windows.history.keep_in(archive))
    }

    /// Counts the operations behind findings from now on, for some seconds after each has begun.
    ///
    /// # Errors
    /// When the source's thread has ended.
    pub fn turn_black_box_on(&self) -> anyhow::Result<()> {
        self.send(|r| r.black_box.turn_on())
    }

    /// Uses these names of clients and users from now on. Only the first call counts.
    ///
    /// # Errors
    /// When the source's thread has ended.
    pub fn name(&self, names: Names) -> anyhow::Result<()> {
        let names = self.names.get_or_init(|| names).clone();
        self.send(move |r| r.name(&names))
    }

    /// Names of clients and users.
    pub fn names(&self) -> Names {
        self.names.get().cloned().unwrap_or_default()
    }

    /// History on a disk, if it is kept.
    pub fn archive(&self) -> Option<&Archive> {
        self.archive.get()
    }

    /// Shows these recordings from now on. Only the first call counts.
    pub fn show_recordings(&self, recordings: Recordings) {
        self.recordings.get_or_init(|| recordings);
    }

    /// Recordings that can be shown, if the agent looks for any.
    pub fn recordings(&self) -> Option<&Recordings> {
        self.recordings.get()
    }

    /// Detaches probes or attaches them again; returns a line about each.
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

    /// Limits the numbers of clients and exports with series of their own from now on.
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

    /// Lets the thread do this work between two readings, and returns the result.
    ///
    /// # Errors
    /// When the source's thread has ended.
    pub(crate) async fn on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Running<'_>) -> T + Send + 'static,
    ) -> anyhow::Result<T> {
        let (tell, answer) = oneshot::channel();
        self.send(|running| {
            // An error is ignored: a scraper may have hung up meanwhile, and a listener's receiver is dropped with the answer.
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
            bodies: Vec::new(),
        })
    }
}

/// Values that the agent has about itself.
fn own_snapshot() -> Arc<Snapshot> {
    let mut own = Snapshot::default();
    exposition::describe(&mut own, Duration::ZERO);
    own_process::describe(&mut own);
    http_state::describe(&mut own);
    Arc::new(own)
}

/// JSON of a snapshot with a member `names`: names of clients by address, if any has one.
fn with_names(mut json: Vec<u8>, of: &Snapshot, names: &Names) -> anyhow::Result<Vec<u8>> {
    let (mut known, mut seen) = (BTreeMap::new(), HashSet::new());
    for (info, all) in of.filled() {
        let Some(at) = info.labels.iter().position(|l| l.name == "client") else {
            continue;
        };
        for client in all.iter().filter_map(|s| s.labels.get(at)) {
            if !seen.insert(client) {
                continue;
            }
            if let Some(name) = names.client(client) {
                known.insert(client.as_str(), name);
            }
        }
    }
    if !known.is_empty() && json.pop() == Some(b'}') {
        json.extend(b",\"names\":");
        json.extend(serde_json::to_vec(&known)?);
        json.push(b'}');
    }
    Ok(json)
}

fn encode(snapshot: &Arc<Snapshot>, part: &Part, names: &Names) -> anyhow::Result<Bytes> {
    Ok(match part {
        Part::Metrics(format, some) if some.all() => exposition::encode(snapshot, *format)?,
        Part::Metrics(format, some) => exposition::encode_some(snapshot, *format, some)?,
        Part::Snapshot => with_names(serde_json::to_vec(snapshot.as_ref())?, snapshot, names)?,
    }
    .into())
}
