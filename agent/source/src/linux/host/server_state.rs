//! State of the server by nfsd's own files, without a probe: its grace period, and a start or stop that is under way.
//!
//! The program that starts or stops the server, or changes its threads, has `nfsd_mutex` (fs/nfsd/nfsctl.c) until all threads have done so, and
//! one with a request in hand that does not end keeps it for as long. Its file `threads` asks for that mutex, and `v4_end_grace` does not.
//! A thread of its own reads either: the agent waits for no answer longer than for a moment.

use crate::host_table;
use nfscope_model::Snapshot;
use nfscope_model::family as f;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

const THREADS: &str = "/proc/fs/nfsd/threads";
const END_GRACE: &str = "/proc/fs/nfsd/v4_end_grace";

/// How often the kernel is asked.
const READ_AGAIN: Duration = Duration::from_secs(2);
/// How long an answer is waited for; the next reading looks for it again.
const PATIENCE: Duration = Duration::from_millis(20);

/// A question to the kernel, and the last answer.
#[derive(Debug, Default)]
struct Asked {
    /// The question that is under way, and since when.
    open: Option<(Instant, Receiver<Option<String>>)>,
    /// When the last one was asked that is answered.
    last: Option<Instant>,
    answer: Option<String>,
}

impl Asked {
    /// Asks anew where that is due, and takes an answer that is there.
    fn ask(&mut self, table: &'static str, path: PathBuf) {
        if self.open.is_none() && self.last.is_none_or(|at| at.elapsed() >= READ_AGAIN) {
            let (tell, told) = sync_channel(1);
            let read = move || {
                let _ = tell.send(host_table::read_at(table, path));
            };
            let thread = std::thread::Builder::new().name("nfsd state".to_owned());
            // Without a thread nothing is known.
            if thread.spawn(read).is_err() {
                self.answer = None;
                return;
            }
            self.open = Some((Instant::now(), told));
        }
        let Some((since, told)) = &self.open else {
            return;
        };
        let left = PATIENCE.saturating_sub(since.elapsed());
        let answer = match told.try_recv() {
            Err(TryRecvError::Empty) if !left.is_zero() => told.recv_timeout(left).ok(),
            Err(TryRecvError::Empty) => None,
            Ok(answer) => Some(answer),
            Err(TryRecvError::Disconnected) => Some(None),
        };
        if let Some(answer) = answer {
            self.last = Some(*since);
            (self.answer, self.open) = (answer, None);
        }
    }

    /// For how long the kernel has not answered; zero where it has.
    fn waits(&self) -> Duration {
        let open = self.open.as_ref().map(|(since, _)| since.elapsed());
        open.filter(|waits| *waits > PATIENCE).unwrap_or_default()
    }
}

/// State of the server of this host.
#[derive(Debug, Default)]
pub struct ServerState {
    threads: Asked,
    end_grace: Asked,
}

impl ServerState {
    /// Adds the state of the server, where this host tells it.
    pub fn read(&mut self, s: &mut Snapshot) {
        self.read_below(Path::new("/proc/fs/nfsd"), s);
    }

    fn read_below(&mut self, nfsd: &Path, s: &mut Snapshot) {
        self.threads.ask(THREADS, nfsd.join("threads"));
        self.end_grace.ask(END_GRACE, nfsd.join("v4_end_grace"));
        self.fill(s);
    }

    fn fill(&self, s: &mut Snapshot) {
        let waits = self.threads.waits();
        if !waits.is_zero() {
            s.gauge(&f::SERVER_CHANGE, [], waits.as_secs_f64());
        } else if self.threads.answer.is_some() {
            s.gauge(&f::SERVER_CHANGE, [], 0.0);
        }
        // A server that does not run has no clients that could wait for the end of its grace period. One that is being stopped has.
        let threads = self.threads.answer.as_deref().map(str::trim);
        let runs = threads.and_then(|n| n.parse::<u64>().ok()).map(|n| n > 0);
        let ended = self.end_grace.answer.as_deref().map(str::trim);
        match (runs, ended) {
            (Some(true), Some("N")) => s.gauge(&f::IN_GRACE, [], 1.0),
            (Some(true), Some("Y")) | (Some(false), Some(_)) => s.gauge(&f::IN_GRACE, [], 0.0),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::sync::mpsc::SyncSender;

    fn state(threads: &str, ended: &str) -> Snapshot {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("threads"), threads).unwrap();
        fs::write(folder.path().join("v4_end_grace"), ended).unwrap();
        let mut state = ServerState::default();
        let mut s = Snapshot::default();
        // A busy host may take longer than the patience.
        while state.threads.last.is_none() || state.end_grace.last.is_none() {
            s = Snapshot::default();
            state.read_below(folder.path(), &mut s);
        }
        s
    }

    #[test]
    fn a_grace_period_is_one_of_a_server_that_runs() {
        for (threads, ended, grace) in [
            ("8\n", "N\n", Some(1.0)),
            ("8\n", "Y\n", Some(0.0)),
            ("0\n", "N\n", Some(0.0)),
            // Whatever that is, it is neither.
            ("8\n", "?\n", None),
            ("", "N\n", None),
        ] {
            let s = state(threads, ended);
            assert_eq!(s.value(&f::IN_GRACE, []), grace, "{threads:?} {ended:?}");
            assert_eq!(s.value(&f::SERVER_CHANGE, []), Some(0.0));
        }
        let mut s = Snapshot::default();
        let mut missing = ServerState::default();
        while missing.threads.last.is_none() {
            missing.read_below(Path::new("/missing"), &mut s);
        }
        assert_eq!(s.value(&f::SERVER_CHANGE, []), None);
        assert_eq!(s.value(&f::IN_GRACE, []), None);
    }

    /// A kernel that does not answer.
    fn open(since: Instant) -> (Asked, SyncSender<Option<String>>) {
        let (tell, told) = sync_channel(1);
        let asked = Asked {
            open: Some((since, told)),
            ..Asked::default()
        };
        (asked, tell)
    }

    #[test]
    fn a_server_whose_mutex_is_held_is_starting_or_stopping_for_as_long() {
        let Some(since) = Instant::now().checked_sub(Duration::from_secs(40)) else {
            return;
        };
        let (threads, tell) = open(since);
        let mut state = ServerState {
            threads,
            ..ServerState::default()
        };
        let folder = tempfile::tempdir().unwrap();
        let mut s = Snapshot::default();
        state.read_below(folder.path(), &mut s);
        let waits = s.value(&f::SERVER_CHANGE, []).unwrap();
        assert!(waits >= 40.0, "{waits}");
        tell.send(Some("8\n".to_owned())).unwrap();
        let mut s = Snapshot::default();
        state.read_below(folder.path(), &mut s);
        assert_eq!(s.value(&f::SERVER_CHANGE, []), Some(0.0));
    }
}
