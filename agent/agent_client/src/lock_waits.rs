//! Locks of files that clients of this host's NFS server wait for, by /proc/locks.

use nfscope_source::host_table;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// A process that holds a lock, or waits for one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    /// Number of the process.
    pub pid: u32,
    /// Name of the process; `None` if it is gone, or in another namespace.
    pub command: Option<String>,
}

impl Owner {
    /// Major version of NFS by which a client has the lock; `None` for a program of this server.
    pub fn version(&self) -> Option<&'static str> {
        match self.command.as_deref() {
            Some("lockd") => Some("3"),
            Some("nfsd") => Some("4"),
            _ => None,
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.version(), &self.command) {
            (Some(version), _) => write!(f, "a client of NFSv{version}"),
            (None, Some(command)) => write!(f, "{command} (process {} of this server)", self.pid),
            (None, None) => write!(f, "process {}", self.pid),
        }
    }
}

/// A client that waits for a lock.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LockWait {
    /// Owner of the request that waits.
    pub waiter: Owner,
    /// Holder of the lock; `None` if the list does not say.
    pub holder: Option<Owner>,
    /// Device and inode number, as in `fd:01:395`.
    pub file: String,
    /// First and last byte of the range.
    pub range: String,
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

/// Locks for which clients wait, by the list below `proc`; `None` if it cannot be read.
pub fn read(proc: &Path) -> Option<Vec<LockWait>> {
    let locks = host_table::read_at("/proc/locks", proc.join("locks"))?;
    let command = |pid: u32| {
        let name = host_table::read_at("/proc/PID/comm", proc.join(format!("{pid}/comm")))?;
        Some(name.trim().to_owned())
    };
    Some(waits(&locks, command))
}

/// Clients that wait, by /proc/locks (fs/locks.c, `lock_get_status`): a lock has a number, and the requests that wait for it follow it with
/// the same number and an arrow. A server can have very many locks: names are only read for locks with a waiting client.
fn waits(locks: &str, command: impl Fn(u32) -> Option<String>) -> Vec<LockWait> {
    let mut commands = BTreeMap::new();
    let mut owner = |pid: &str| {
        let pid = pid.parse().ok()?;
        let known = commands.entry(pid).or_insert_with(|| command(pid));
        Some(Owner {
            pid,
            command: known.clone(),
        })
    };
    let mut holder: Option<(&str, &str)> = None;
    let mut all = Vec::new();
    for line in locks.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        match words.as_slice() {
            [number, "->", _, _, _, pid, file, first, last, ..] => {
                let Some(waiter) = owner(pid).filter(|o| o.version().is_some()) else {
                    continue;
                };
                let of_it = holder.filter(|(n, _)| n == number);
                all.push(LockWait {
                    waiter,
                    holder: of_it.and_then(|(_, pid)| owner(pid)),
                    file: (*file).to_owned(),
                    range: format!("{first} to {last}"),
                });
            }
            [number, _, _, _, pid, ..] => holder = Some((number, pid)),
            _ => {}
        }
    }
    all
}
