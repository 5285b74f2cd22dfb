//! What the thread that owns the source does: it goes round a loop of requests, readings and windows, until nobody can ask any more.

use super::archive::Archive;
use super::breakdown_listeners::Listeners;
use super::slow_subscribers::{self, Subscribers};
use super::window_cutter::WindowCutter;
use super::worth::Worth;
use crate::api::breakdown_query;
use crate::api::probe_change::Change;
use crate::api::windows_query::Seen;
use crate::exposition;
use bytes::Bytes;
use nfscope_model::status::Status;
use nfscope_model::{HeldRequests, SlowFilter, Snapshot};
use nfscope_source::{Source, own_process};
use nfscope_text::console;
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::{oneshot, watch};

/// How often the source may look for modules that have come or gone.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// What the thread is asked for.
pub(super) enum Request {
    /// Nothing but an answer.
    Alive(oneshot::Sender<()>),
    Snapshot(oneshot::Sender<Snapshot>),
    Change(
        Change,
        Vec<&'static str>,
        oneshot::Sender<anyhow::Result<Vec<String>>>,
    ),
    /// Series for at most so many clients and exports.
    LimitSeries(usize, usize),
    /// Requests in hand for longer than that.
    Held(Duration, oneshot::Sender<HeldRequests>),
    /// Windows of the findings go there, too.
    KeepHistory(Archive),
    /// The text of [`History::answer`].
    Windows(Option<Seen>, oneshot::Sender<anyhow::Result<Vec<u8>>>),
    /// The text of [`Worth::body`].
    Findings(oneshot::Sender<serde_json::Result<Vec<u8>>>),
    Breakdown(
        breakdown_query::Query,
        oneshot::Sender<anyhow::Result<Lines>>,
    ),
    Slow(
        SlowFilter,
        oneshot::Sender<anyhow::Result<tokio::sync::mpsc::Receiver<Bytes>>>,
    ),
}

/// Lines as they come, until it is dropped.
pub(super) type Lines = tokio::sync::mpsc::Receiver<Bytes>;

/// Serves readings and subscribers until the last [`SourceHandle`](super::source_thread::SourceHandle) is gone.
pub(super) fn run(
    source: &mut dyn Source,
    asked: &mpsc::Receiver<Request>,
    publish: &watch::Sender<Status>,
    warn: &watch::Sender<Option<String>>,
) {
    let mut polled = Instant::now();
    let mut subscribers = Subscribers::default();
    let mut listeners = Listeners::default();
    let mut looked = Instant::now();
    let mut worth = Worth::default();
    let mut windows = WindowCutter::default();
    loop {
        for change in windows.step(source, Instant::now()) {
            console::warn(&change.to_string());
        }
        let degraded = windows.findings.degraded();
        if warn.borrow().as_deref() != degraded {
            warn.send_replace(degraded.map(str::to_owned));
        }
        worth.step(&mut windows.findings, SystemTime::now());
        let mut wait = POLL_INTERVAL.saturating_sub(polled.elapsed());
        wait = wait.min(windows.wait(Instant::now()));
        if let Some(left) = listeners.wait(Instant::now()) {
            wait = wait.min(left);
        }
        if !subscribers.idle() {
            wait = wait.min(slow_subscribers::POLL_INTERVAL.saturating_sub(looked.elapsed()));
        }
        match asked.recv_timeout(wait) {
            Ok(Request::Snapshot(answer)) => {
                let start = Instant::now();
                let mut snapshot = source.snapshot();
                windows.findings.describe(&mut snapshot);
                worth.describe(&mut snapshot);
                exposition::describe(&mut snapshot, start.elapsed());
                own_process::describe(&mut snapshot);
                // A scraper that has hung up meanwhile is no error.
                let _ = answer.send(snapshot);
            }
            Ok(Request::Alive(answer)) => {
                let _ = answer.send(());
            }
            Ok(Request::Held(over, answer)) => {
                let _ = answer.send(source.held(over));
            }
            Ok(Request::Findings(answer)) => {
                let _ = answer.send(worth.body(&windows.findings));
            }
            Ok(Request::KeepHistory(archive)) => windows.history.keep_in(archive),
            Ok(Request::Windows(seen, answer)) => {
                let _ = answer.send(windows.history.answer(seen, Instant::now()));
            }
            Ok(Request::LimitSeries(clients, exports)) => source.limit_series(clients, exports),
            Ok(Request::Slow(want, answer)) => {
                // Whoever has hung up meanwhile has dropped the receiver with the answer.
                let _ = answer.send(subscribers.subscribe(source, want, Instant::now()));
            }
            Ok(Request::Breakdown(query, answer)) => {
                let _ = answer.send(listeners.subscribe(source, query, Instant::now()));
            }
            Ok(Request::Change(change, probes, answer)) => {
                // A window ends before a probe is detached, because the probe takes its counters with it.
                windows.cut(source, Instant::now());
                let said = match change {
                    Change::Detach => Ok(source.detach(&probes)),
                    Change::Attach => source.attach(&probes),
                };
                if publish_changes(source, publish) {
                    windows.cut(source, Instant::now());
                }
                let _ = answer.send(said);
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        }
        listeners.poll(source, Instant::now());
        if !subscribers.idle() && looked.elapsed() >= slow_subscribers::POLL_INTERVAL {
            looked = Instant::now();
            subscribers.poll(source, looked);
        }
        if polled.elapsed() >= POLL_INTERVAL {
            source.poll();
            polled = Instant::now();
            // A window begins with a probe that has come.
            if publish_changes(source, publish) {
                windows.cut(source, Instant::now());
            }
        }
    }
}

/// Publishes the states of the probes. Returns true if a program came or went.
fn publish_changes(source: &dyn Source, publish: &watch::Sender<Status>) -> bool {
    let measures = |status: &Status| -> Vec<bool> {
        let probes = status.probes().iter();
        probes.map(|p| p.state.measures()).collect()
    };
    let before = measures(&publish.borrow());
    let now = Status::Running(source.probes().into());
    publish.send_if_modified(|old| {
        let changed = *old != now;
        *old = now;
        changed
    });
    before != measures(&publish.borrow())
}
