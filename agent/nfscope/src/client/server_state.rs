//! State of this host's server, as it tells in /proc, without a probe: whether it is in its grace period, and which locks its clients wait
//! for. lockd has no metrics: a lock of NFSv3 that nobody frees is seen here alone.

use nfscope_source::{bounded, host_table};
use std::fmt;
use std::io;
use std::path::Path;
use std::time::Duration;

/// For the kernel to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// State of the server on this host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ServerState {
    /// Whether clients may only claim what they had before a restart; `None` where nothing tells, and without a running server.
    pub(crate) in_grace: Option<bool>,
    /// Locks that clients of this server wait for; `None` where nothing tells.
    pub(crate) waits: Option<Vec<LockWait>>,
}

/// Somebody who holds a lock, or waits for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pid: u32,
    /// Name of the process; `None` if it is gone, or in another namespace.
    command: Option<String>,
}

impl Owner {
    fn is_client(&self) -> bool {
        matches!(self.command.as_deref(), Some("lockd" | "nfsd"))
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.command.as_deref() {
            Some("lockd") => f.write_str("a client of NFSv3"),
            Some("nfsd") => f.write_str("a client of NFSv4"),
            Some(command) => write!(f, "{command} (process {} of this server)", self.pid),
            None => write!(f, "process {}", self.pid),
        }
    }
}

/// A client that waits for a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LockWait {
    waiter: Owner,
    holder: Option<Owner>,
    /// Device and inode number, as in `fd:01:395`.
    file: String,
    /// First and last byte.
    range: String,
}

impl fmt::Display for LockWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (device, inode) = self.file.rsplit_once(':').unwrap_or(("?", &self.file));
        write!(
            f,
            "{} waits for a lock on inode {inode} of device {device} (bytes {}), which ",
            self.waiter, self.range
        )?;
        match &self.holder {
            Some(holder) => write!(f, "{holder} holds"),
            None => f.write_str("somebody holds who is not listed"),
        }
    }
}

impl ServerState {
    /// Reads the state of this host's server.
    ///
    /// # Errors
    /// Fails where the kernel does not answer: whoever stops a server whose threads hang has the lock that its files ask for (nfsd_mutex in
    /// fs/nfsd/nfsctl.c).
    pub(crate) fn read() -> io::Result<ServerState> {
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
        let command = |pid: u32| {
            let name = read("/proc/PID/comm", &format!("{pid}/comm"))?;
            Some(name.trim().to_owned())
        };
        ServerState {
            in_grace: ended.and_then(|ended| match ended.trim() {
                "N" => Some(true),
                "Y" => Some(false),
                _ => None,
            }),
            waits: read("/proc/locks", "locks").map(|locks| waits(&locks, command)),
        }
    }

    /// Sentences on what clients wait for.
    pub(crate) fn outstanding(&self) -> Vec<String> {
        let grace = (self.in_grace == Some(true)).then(|| {
            "the server is in its grace period: clients that want new files or locks are told to come again".to_owned()
        });
        let locks = self.waits.iter().flatten().map(ToString::to_string);
        grace.into_iter().chain(locks).collect()
    }

    /// The locks that were waited for before, too: by the same clients, of the same holders.
    pub(crate) fn still(mut self, before: &ServerState) -> ServerState {
        let known = before.waits.clone().unwrap_or_default();
        if let Some(waits) = &mut self.waits {
            waits.retain(|w| known.contains(w));
        }
        self
    }
}

/// Clients that wait, by /proc/locks (fs/locks.c, `lock_get_status`): a lock has a number, and those who wait for it come behind it with
/// the same number and an arrow.
fn waits(locks: &str, command: impl Fn(u32) -> Option<String>) -> Vec<LockWait> {
    let owner = |pid: &str| {
        let pid = pid.parse().ok()?;
        Some(Owner {
            pid,
            command: command(pid),
        })
    };
    let mut holder: Option<(&str, Option<Owner>)> = None;
    let mut all = Vec::new();
    for line in locks.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        match words.as_slice() {
            [number, "->", _, _, _, pid, file, first, last, ..] => {
                let Some(waiter) = owner(pid).filter(Owner::is_client) else {
                    continue;
                };
                let of_it = holder.as_ref().filter(|(n, _)| n == number);
                all.push(LockWait {
                    waiter,
                    holder: of_it.and_then(|(_, owner)| owner.clone()),
                    file: (*file).to_owned(),
                    range: format!("{first} to {last}"),
                });
            }
            [number, _, _, _, pid, ..] => holder = Some((number, owner(pid))),
            _ => {}
        }
    }
    all
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
        // Locks that have been waited for since the last look.
        let mut before = state.clone();
        before.waits.as_mut().unwrap().remove(0);
        assert_eq!(state.still(&before).outstanding().len(), 1);
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
