//! Loop of the thread that owns the source: it handles requests, readings and windows, until the last handle is gone.

use super::breakdown_listeners::Listeners;
use super::http_state;
use super::slow_subscribers::{self, Subscribers};
use super::window_cutter::WindowCutter;
use super::worth::Worth;
use crate::exposition;
use crate::names::Names;
use bytes::Bytes;
use nfscope_api::breakdown_query::Query;
use nfscope_api::named_text::with_names;
use nfscope_api::probe_change::Change;
use nfscope_model::status::Status;
use nfscope_model::{SlowFilter, Snapshot};
use nfscope_source::{Source, own_process};
use nfscope_text::console;
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::mpsc::Receiver;
use tokio::sync::watch;

/// Least time between two polls of the source for modules that have come or gone.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Function that another thread hands to this thread, which runs it between two readings.
pub(super) type Work = Box<dyn FnOnce(&mut Running<'_>) + Send>;

/// State of the thread, which only the thread can reach.
pub struct Running<'a> {
    /// The probes.
    pub(crate) source: &'a mut dyn Source,
    subscribers: Subscribers,
    listeners: Listeners,
    /// Predicted gains of changes of the server.
    pub(crate) worth: Worth,
    /// Findings, and the windows of the page.
    pub(crate) windows: WindowCutter,
    publish: &'a watch::Sender<Status>,
}

/// Serves readings and subscribers until the last [`SourceHandle`](super::source_thread::SourceHandle) is gone.
pub(super) fn run(
    source: &mut dyn Source,
    asked: &mpsc::Receiver<Work>,
    publish: &watch::Sender<Status>,
    warn: &watch::Sender<Option<String>>,
) {
    let mut polled = Instant::now();
    let mut looked = Instant::now();
    let mut running = Running {
        source,
        subscribers: Subscribers::default(),
        listeners: Listeners::default(),
        worth: Worth::default(),
        windows: WindowCutter::default(),
        publish,
    };
    loop {
        let Running {
            source,
            subscribers,
            listeners,
            worth,
            windows,
            ..
        } = &mut running;
        for change in windows.step(*source, Instant::now()) {
            let said = with_names(&change.to_string(), |a| windows.history.names.client(a));
            console::warn(&said);
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
            Ok(work) => work(&mut running),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        }
        let source = &mut *running.source;
        running.listeners.poll(source, Instant::now());
        if !running.subscribers.idle() && looked.elapsed() >= slow_subscribers::POLL_INTERVAL {
            looked = Instant::now();
            running.subscribers.poll(source, looked);
        }
        if polled.elapsed() >= POLL_INTERVAL {
            source.poll();
            polled = Instant::now();
            // A new window begins when programs were attached or detached, because their counters begin at 0.
            running.cut_where_programs_changed();
        }
    }
}

impl Running<'_> {
    /// Uses these names from now on.
    pub(super) fn name(&mut self, names: &Names) {
        self.windows.history.names = names.clone();
        self.listeners.names = names.clone();
        self.subscribers.names = names.clone();
    }

    /// All values now, with the agent's own.
    pub(super) fn snapshot(&mut self) -> Snapshot {
        let start = Instant::now();
        let mut snapshot = self.source.snapshot();
        self.windows.findings.describe(&mut snapshot);
        self.worth.describe(&mut snapshot);
        exposition::describe(&mut snapshot, start.elapsed());
        own_process::describe(&mut snapshot);
        http_state::describe(&mut snapshot);
        snapshot
    }

    /// Starts a stream of NDJSON lines about slow operations, which ends when the receiver is dropped. The source watches for them only
    /// while there is such a receiver. Lines that a receiver does not take in time are left out and counted.
    pub fn slow(&mut self, want: SlowFilter) -> anyhow::Result<Receiver<Bytes>> {
        (self.subscribers).subscribe(self.source, want, Instant::now())
    }

    /// Starts a stream of NDJSON lines about operations by the dimensions of `query`, one per interval, which ends when the receiver is
    /// dropped. The source counts them only while there is such a receiver.
    pub fn breakdown(&mut self, query: Query) -> anyhow::Result<Receiver<Bytes>> {
        (self.listeners).subscribe(self.source, query, Instant::now())
    }

    /// Detaches probes or attaches them again; returns a line about each.
    pub(super) fn change(
        &mut self,
        change: Change,
        probes: &[&'static str],
    ) -> anyhow::Result<Vec<String>> {
        // A window ends before a probe is detached, because the probe takes its counters with it.
        self.windows.cut(self.source, Instant::now());
        let said = match change {
            Change::Detach => self.source.detach(probes),
            Change::Attach => self.source.attach(probes),
        };
        self.cut_where_programs_changed();
        said
    }

    fn cut_where_programs_changed(&mut self) {
        if publish_changes(self.source, self.publish) {
            self.windows.cut(self.source, Instant::now());
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
