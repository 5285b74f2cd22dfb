//! A child of this process that attaches probes, and ends.
//!
//! A child is used because loading takes memory that the agent must not keep: libbpf's copies of the kernel's BTF are larger than the
//! agent. The child executes no program: a program that begins has the capabilities of its file and of the bounding set, and the agent has
//! emptied that set. The child of a fork has those of the thread that forks, also after the agent has given up all others.

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use rustix::process::{getpid, getppid, kill_process, set_parent_process_death_signal, waitpid};
use std::io;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Name of the child among the host's processes.
const NAME: &std::ffi::CStr = c"nfscope-attach";
/// Time for the kernel to end a process.
const END_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// A child at work. Dropping this value kills it.
pub struct Child {
    /// Socket for the child's reports.
    pub socket: UnixStream,
    pid: Pid,
    ended: Option<WaitStatus>,
}

impl Child {
    /// Starts a child that does `work` and ends. It also ends with this thread. A read of its socket waits for `patience` at most.
    ///
    /// # Errors
    /// Fails if the kernel gives no process.
    pub fn start(
        patience: Duration,
        work: impl FnOnce(&UnixStream) -> io::Result<()>,
    ) -> io::Result<Child> {
        let (socket, theirs) = UnixStream::pair()?;
        socket.set_read_timeout(Some(patience))?;
        let parent = getpid();
        // SAFETY: the child has this thread alone. What it goes on to use that other threads may hold is the allocator and the
        // C library's files, which the library's own fork leaves in order; the work writes to no standard stream, and locks
        // nothing that another thread of the agent does. The child never returns into the caller's frames.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            drop(socket);
            let done = catch_unwind(AssertUnwindSafe(|| {
                belong_to(parent)?;
                work(&theirs)
            }));
            let code = i32::from(!matches!(done, Ok(Ok(()))));
            // SAFETY: ends the process at once; what it shares with its parent is not cleaned up twice.
            unsafe { libc::_exit(code) }
        }
        let pid = Pid::from_raw(pid).filter(|_| pid > 0);
        Ok(Child {
            socket,
            pid: pid.ok_or_else(io::Error::last_os_error)?,
            ended: None,
        })
    }

    /// Text on how the child ended; `None` if it has not ended within `patience`.
    pub fn ending(&mut self, patience: Duration) -> Option<String> {
        let began = Instant::now();
        while self.ended.is_none() && began.elapsed() < patience {
            match waitpid(Some(self.pid), WaitOptions::NOHANG) {
                Ok(Some((_, status))) => self.ended = Some(status),
                Ok(None) => std::thread::sleep(POLL_INTERVAL),
                // Another part of the process has waited for the child.
                Err(_) => break,
            }
        }
        let status = self.ended?;
        Some(match (status.terminating_signal(), status.exit_status()) {
            (Some(signal), _) => format!("was ended by signal {signal}"),
            (_, code) => format!("ended with code {}", code.unwrap_or(-1)),
        })
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.ended.is_none() {
            // The process number is not reused before the child has been waited for.
            let _ = kill_process(self.pid, Signal::KILL);
            self.ending(END_TIMEOUT);
        }
    }
}

/// Makes the kernel end this process with its parent's thread.
fn belong_to(parent: Pid) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() != Some(parent) {
        // The parent has ended before.
        return Err(io::ErrorKind::NotConnected.into());
    }
    Ok(rustix::thread::set_name(NAME)?)
}
