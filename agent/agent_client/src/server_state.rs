//! State of this host's server from /proc, without a probe: its grace period, and the locks that its clients wait for.

use crate::lock_waits::{self, LockWait};
use nfscope_diagnose::IN_GRACE;
use nfscope_source::{bounded, host_table};
use std::io;
use std::path::Path;
use std::time::Duration;

/// Time for the kernel to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// State of the server on this host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerState {
    /// True during the grace period, in which clients may only claim what they had before a restart. `None` if it is not known, and without
    /// a running server.
    pub in_grace: Option<bool>,
    /// Locks that clients of this server wait for; `None` if they are not known.
    pub waits: Option<Vec<LockWait>>,
}

impl ServerState {
    /// Reads the state of this host's server.
    ///
    /// # Errors
    /// When the kernel does not answer: a process that stops a server whose threads hang holds the lock that its files need (nfsd_mutex in
    /// fs/nfsd/nfsctl.c).
    pub fn read() -> io::Result<ServerState> {
        bounded::within(Path::new("/proc/fs/nfsd"), PATIENCE, || {
            Ok(ServerState::of(Path::new("/proc")))
        })
    }

    fn of(proc: &Path) -> ServerState {
        let read = |table, path: &str| host_table::read_at(table, proc.join(path));
        let threads = read("/proc/fs/nfsd/threads", "fs/nfsd/threads");
        let threads = threads.and_then(|t| t.trim().parse::<u32>().ok());
        let ended = read("/proc/fs/nfsd/v4_end_grace", "fs/nfsd/v4_end_grace");
        let ended = ended.filter(|_| threads.is_some_and(|n| n > 0));
        ServerState {
            in_grace: ended.and_then(|ended| match ended.trim() {
                "N" => Some(true),
                "Y" => Some(false),
                _ => None,
            }),
            waits: lock_waits::read(proc),
        }
    }

    /// Sentences about the waits of clients.
    pub fn outstanding(&self) -> Vec<String> {
        let grace = (self.in_grace == Some(true)).then(|| IN_GRACE.to_owned());
        let locks = self.waits.iter().flatten().map(ToString::to_string);
        grace.into_iter().chain(locks).collect()
    }

    /// State with the locks that were waited for before, too: by the same clients, for the same holders.
    pub fn still(mut self, before: &ServerState) -> ServerState {
        self.waits = self
            .waits
            .zip(before.waits.as_ref())
            .map(|(mut waits, known)| {
                waits.retain(|w| known.contains(w));
                waits
            });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const LOCKS: &str = "\
1: POSIX  ADVISORY  WRITE 900 fd:01:395 0 EOF
1: -> POSIX  ADVISORY  WRITE 812 fd:01:395 0 EOF
1: -> POSIX  ADVISORY  WRITE 77 fd:01:395 0 EOF
2: FLOCK  ADVISORY  WRITE 77 fd:01:400 0 EOF
3: POSIX  ADVISORY  READ  812 fd:01:401 0 99
3: -> POSIX  ADVISORY  WRITE 813 fd:01:401 10 19
";

    fn proc(folder: &Path, grace: &str, threads: &str) -> ServerState {
        for (path, text) in [
            ("fs/nfsd/threads", threads),
            ("fs/nfsd/v4_end_grace", grace),
            ("locks", LOCKS),
            ("900/comm", "backup\n"),
            ("812/comm", "lockd\n"),
            ("813/comm", "nfsd\n"),
            ("77/comm", "cron\n"),
        ] {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        ServerState::of(folder)
    }

    #[test]
    fn clients_that_wait_for_locks_are_told_with_who_holds_them() {
        let folder = tempfile::tempdir().unwrap();
        let state = proc(folder.path(), "Y\n", "8\n");
        assert_eq!(
            state.outstanding(),
            [
                "a client of NFSv3 waits for a lock on inode 395 of device fd:01 (bytes 0 to EOF), which backup (process 900 of this server) holds",
                "a client of NFSv4 waits for a lock on inode 401 of device fd:01 (bytes 10 to 19), which a client of NFSv3 holds",
            ]
        );
        // `before` lacks the first lock, so only the second one was waited for in both samples.
        let mut before = state.clone();
        before.waits.as_mut().unwrap().remove(0);
        assert_eq!(state.clone().still(&before).outstanding().len(), 1);
        // Without an earlier sample neither lock is known to have been waited for twice.
        before.waits = None;
        assert_eq!(state.still(&before).waits, None);
    }

    #[test]
    fn a_grace_period_is_one_of_a_server_that_runs() {
        let folder = tempfile::tempdir().unwrap();
        let grace = |ended, threads| proc(folder.path(), ended, threads).in_grace;
        assert_eq!(grace("N\n", "8\n"), Some(true));
        assert_eq!(grace("Y\n", "8\n"), Some(false));
        assert_eq!(grace("N\n", "0\n"), None);
        let nothing = ServerState::of(&folder.path().join("missing"));
        assert_eq!(nothing, ServerState::default());
        assert!(nothing.outstanding().is_empty());
    }
}
