//! What the thread that owns the source does: it goes round a loop of requests, readings and windows, until nobody can ask any more.

use super::archive::Archive;
use super::breakdown_listeners::Listeners;
use super::history::History;
use super::slow_subscribers::{self, Subscribers};
use super::worth::Worth;
use crate::api::breakdown_query;
use crate::api::probe_change::Change;
use crate::api::windows_query::Seen;
use crate::exposition;
use bytes::Bytes;
use nfscope_diagnose::tracker::{FindingTracker, WINDOW};
use nfscope_model::status::Status;
use nfscope_model::{HeldRequests, SlowFilter, Snapshot, Window};
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
    let mut findings = FindingTracker::default();
    let mut worth = Worth::default();
    let mut history = History::default();
    // The first window begins at once.
    let mut evaluated: Option<Instant> = None;
    loop {
        if evaluated.is_none_or(|at| at.elapsed() >= WINDOW) {
            evaluated = Some(Instant::now());
            let show = |findings: &FindingTracker, window: &Window, now: &Snapshot| {
                history.found(window, now, findings, Instant::now());
            };
            for change in findings.step_and(source.peek(), SystemTime::now(), show) {
                console::warn(&change.to_string());
            }
            warn.send_replace(findings.degraded().map(str::to_owned));
        }
        worth.step(&mut findings, SystemTime::now());
        history.step(source, &findings, Instant::now());
        let mut wait = POLL_INTERVAL.saturating_sub(polled.elapsed());
        if let Some(next) = history.next_step(Instant::now()) {
            wait = wait.min(next.saturating_duration_since(Instant::now()));
        }
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
                findings.describe(&mut snapshot);
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
                let _ = answer.send(worth.body(&findings));
            }
            Ok(Request::KeepHistory(archive)) => history.keep_in(archive),
            Ok(Request::Windows(seen, answer)) => {
                let _ = answer.send(history.answer(seen, Instant::now()));
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
                let said = match change {
                    Change::Detach => Ok(source.detach(&probes)),
                    Change::Attach => source.attach(&probes),
                };
                publish_changes(source, publish);
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
            publish_changes(source, publish);
        }
    }
}

fn publish_changes(source: &dyn Source, publish: &watch::Sender<Status>) {
    let now = Status::Running(source.probes().into());
    publish.send_if_modified(|old| {
        let changed = *old != now;
        *old = now;
        changed
    });
}
