//! Limits of this process that are too small for an agent, checked before anything is attached. An error has the number that is needed.

use anyhow::{Context, bail};
use nfscope_api::handover::{self, Counts};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use tokio::sync::oneshot;

/// Open files of the main process: some 400 with every probe on a kernel that has all of them, 44 of sockets to the process that serves
/// HTTP, and some for a moment. That process has 320 connections and some 40 other files.
#[cfg(target_os = "linux")]
const OPEN_FILES: u64 = 512;
/// Threads and processes of an agent at a time, without those that read a path that hangs.
const THREADS: usize = 12;

/// Checks the limits: raises that of open files if it is too small and may be raised, and tries sockets and threads.
///
/// # Errors
/// When a limit is too small; the error says how many are needed.
pub fn require() -> anyhow::Result<()> {
    #[cfg(target_os = "linux")]
    open_files()?;
    sockets()?;
    threads()
}

/// Makes a pair of sockets and hands a descriptor over it, as the process that serves HTTP gets its own.
fn sockets() -> anyhow::Result<()> {
    const FILTER: &str = "a filter of system calls around this service refuses it; allow what docs/security.md lists (SystemCallFilter= of the unit, or the seccomp profile of the container)";
    let (ours, _theirs) = UnixStream::pair().with_context(|| format!("socketpair: {FILTER}"))?;
    let counts = Counts {
        listeners: 0,
        lanes: 0,
        streams: 0,
    };
    handover::send(&ours, counts, &[ours.as_fd()], &[])
        .with_context(|| format!("sendmsg: {FILTER}"))
}

#[cfg(target_os = "linux")]
fn open_files() -> anyhow::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let now = getrlimit(Resource::Nofile);
    let enough = |limit: Option<u64>| limit.is_none_or(|n| n >= OPEN_FILES);
    if enough(now.current) {
        return Ok(());
    }
    let raised = Rlimit {
        current: Some(OPEN_FILES),
        maximum: now.maximum,
    };
    if enough(now.maximum) && setrlimit(Resource::Nofile, raised).is_ok() {
        return Ok(());
    }
    bail!(
        "this process may open {} files, and needs {OPEN_FILES}: raise the limit (LimitNOFILE= of the unit, --ulimit nofile= of a container, ulimit -n of a shell)",
        now.current.unwrap_or_default()
    )
}

/// Starts as many threads as an agent has at a time; they end at once.
fn threads() -> anyhow::Result<()> {
    let (hold, held) = std::sync::mpsc::channel::<()>();
    let held = std::sync::Arc::new(std::sync::Mutex::new(held));
    let mut all = Vec::new();
    let mut failed = None;
    while all.len() < THREADS && failed.is_none() {
        let held = held.clone();
        match std::thread::Builder::new().spawn(move || {
            let held = held.lock().unwrap_or_else(|e| e.into_inner());
            // Each thread waits until all have been started.
            let _ = held.recv();
        }) {
            Ok(thread) => all.push(thread),
            Err(e) => failed = Some(e),
        }
    }
    drop(hold);
    let started = all.len();
    for thread in all {
        // The threads cannot panic, so there is no result to check.
        let _ = thread.join();
    }
    match failed {
        None => Ok(()),
        Some(e) => Err(e).with_context(|| {
            format!(
                "this process can have {started} threads and processes more, and needs {THREADS}: raise the limit (TasksMax= of the unit, --pids-limit of a container, ulimit -u of a shell), or allow clone3 or clone where a filter of system calls refuses it"
            )
        }),
    }
}

/// Runs a function on a thread of its own, and waits for its result. The runtime's pool would end the process if the system gives it no
/// thread.
///
/// # Errors
/// When there is no thread, or it has ended without a result.
pub async fn on_a_thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (tell, told) = oneshot::channel();
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || drop(tell.send(work())))?;
    told.await
        .map_err(|_| io::Error::other(format!("the thread {name} has ended without a result")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_may_do_what_an_agent_needs() {
        require().unwrap();
    }

    #[tokio::test]
    async fn what_a_thread_returns_is_returned() {
        assert_eq!(on_a_thread("test", || 7).await.unwrap(), 7);
    }
}
