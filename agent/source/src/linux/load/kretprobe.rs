//! Return probes on functions that sleep.
//!
//! The kernel has a fixed number of places for returns that are under way, by default as few as two for each CPU, and skips returns without
//! a free place: for a function in which dozens of threads sleep, most of them. Only tracefs can raise that number
//! (Documentation/trace/kprobetrace.rst, `rMAXACTIVE`), so that such a probe is made there.

use super::refusal::Refusal;
use crate::host_table;
use libbpf_rs::{Link, ProgramMut};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

/// Places for returns under way: more than nfsd ever has threads in one function; the kernel allows 4096.
const MAX_ACTIVE: u32 = 2048;

const GROUP: &str = "nfscope";

/// Where tracefs is mounted.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// An attached program; dropping it detaches it.
pub struct Attached {
    link: Held,
    /// Event that the link uses. Fields are dropped in the order of their declaration, so the event stands behind the link.
    event: Option<Event>,
}

/// The link, or the perf event on kernels where a perf event has no link.
enum Held {
    Made(Link),
    /// A descriptor that another process made and handed over.
    Taken(OwnedFd),
}

impl From<Link> for Attached {
    fn from(link: Link) -> Self {
        Attached {
            link: Held::Made(link),
            event: None,
        }
    }
}

impl AsFd for Attached {
    /// Descriptor that keeps the program attached.
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.link {
            Held::Made(link) => link.as_fd(),
            Held::Taken(fd) => fd.as_fd(),
        }
    }
}

impl Attached {
    /// Takes over a program from the process that attached it. From now on this value removes the probe in tracefs, and that process does
    /// not.
    pub fn take(descriptor: OwnedFd, place: Option<Place>) -> Self {
        Attached {
            link: Held::Taken(descriptor),
            event: place.map(Event),
        }
    }

    /// Place of its probe in tracefs, if it has one.
    pub fn place(&self) -> Option<&Place> {
        self.event.as_ref().map(|event| &event.0)
    }
}

/// A probe in tracefs, which is removed when this value is dropped.
struct Event(Place);

/// Place of a probe in tracefs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Place {
    tracefs: String,
    name: String,
}

impl Drop for Event {
    fn drop(&mut self) {
        // The next agent finds and removes a probe that stays, and it costs nothing until then.
        let _ = when_free(|| remove(&self.0.tracefs, &self.0.name));
    }
}

/// Time for which the kernel may go on using a probe whose descriptor this process has closed. A child that has been forked and has not yet
/// executed its program, or that ends at this moment, holds the descriptor as well.
const RELEASE_ATTEMPTS: u32 = 100;
const RELEASE_INTERVAL: Duration = Duration::from_millis(20);

/// Repeats a removal for two seconds if the kernel refuses it because the probe is in use (EBUSY, `unregister_trace_kprobe` in
/// kernel/trace/trace_kprobe.c).
fn when_free(mut remove: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        match remove() {
            Err(e) if e.kind() == io::ErrorKind::ResourceBusy && attempt < RELEASE_ATTEMPTS => {
                std::thread::sleep(RELEASE_INTERVAL);
            }
            result => return result,
        }
    }
}

/// Attaches a program to all returns of a function.
///
/// # Errors
/// Reason of the failure, and what would help.
pub fn attach(program: &ProgramMut, function: &str) -> Result<Attached, Refusal> {
    let Some(tracefs) = TRACEFS
        .into_iter()
        .find(|t| Path::new(t).join("kprobe_events").exists())
    else {
        return Err(Refusal {
            reason: format!(
                "{function} sleeps, and without tracefs a return probe on it loses returns"
            ),
            fix: format!("mount -t tracefs tracefs {}", TRACEFS[0]),
        });
    };
    make(tracefs, function)
        .and_then(|event| {
            let fd = open(tracefs, &event.0.name)?;
            // The link owns the descriptor once there is one.
            let fd = fd.into_raw_fd();
            let link = program.attach_perf_event(fd).map_err(|e| {
                // SAFETY: the descriptor has no owner, because attaching failed.
                drop(unsafe { OwnedFd::from_raw_fd(fd) });
                io::Error::other(format!("{e:#}"))
            })?;
            Ok(Attached {
                link: Held::Made(link),
                event: Some(event),
            })
        })
        .map_err(|e| {
            let fix = match e.kind() {
                io::ErrorKind::PermissionDenied => "run as root: return probes are made in tracefs",
                _ => "",
            };
            Refusal {
                reason: format!("a return probe on {function} by way of {tracefs}: {e}"),
                fix: fix.to_owned(),
            }
        })
}

fn make(tracefs: &str, function: &str) -> io::Result<Event> {
    remove_old(tracefs);
    // An agent in another process namespace may have the same process number.
    for n in 0..8 {
        let name = format!("{function}_{}_{n}", std::process::id());
        let line = format!("r{MAX_ACTIVE}:{GROUP}/{name} {function}");
        match write(tracefs, &line) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            result => {
                let tracefs = tracefs.to_owned();
                return result.map(|()| Event(Place { tracefs, name }));
            }
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Removes probes of agents that were killed. The kernel refuses to remove a probe in use.
fn remove_old(tracefs: &str) {
    let path = Path::new(tracefs).join("kprobe_events");
    for line in host_table::read_at("kprobe_events", path)
        .unwrap_or_default()
        .lines()
    {
        let name = line
            .split_once(&format!(":{GROUP}/"))
            .and_then(|(_, rest)| rest.split(' ').next());
        if let Some(name) = name {
            let _ = remove(tracefs, name);
        }
    }
}

fn remove(tracefs: &str, name: &str) -> io::Result<()> {
    write(tracefs, &format!("-:{GROUP}/{name}"))
}

/// Appends a line: truncating the file would remove the probes of all programs.
fn write(tracefs: &str, line: &str) -> io::Result<()> {
    let path = Path::new(tracefs).join("kprobe_events");
    let mut file: File = OpenOptions::new().append(true).open(path)?;
    file.write_all(line.as_bytes())
}

/// Opens the probe as a perf event of all CPUs.
fn open(tracefs: &str, name: &str) -> io::Result<OwnedFd> {
    let path = Path::new(tracefs).join(format!("events/{GROUP}/{name}/id"));
    let id = host_table::try_read_at("id of a probe in tracefs", path)?;
    let id: u64 = id.trim().parse().map_err(io::Error::other)?;
    const PERF_TYPE_TRACEPOINT: u64 = 2;
    const PERF_ATTR_SIZE_VER0: u64 = 64;
    const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;
    // struct perf_event_attr begins with two numbers of four bytes, type and size, and one of eight, config.
    let attr: [u64; 8] = [
        PERF_TYPE_TRACEPOINT | PERF_ATTR_SIZE_VER0 << 32,
        id,
        0,
        0,
        0,
        0,
        0,
        0,
    ];
    // SAFETY: the kernel reads the 64 bytes of `attr` that it says it has.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            attr.as_ptr(),
            -1,
            0,
            -1,
            PERF_FLAG_FD_CLOEXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor that no other code has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;

    #[test]
    fn a_probe_in_use_is_removed_once_it_is_free() {
        let outcome = |results: Vec<io::Result<()>>| {
            let mut results = results.into_iter();
            let outcome = when_free(|| results.next().unwrap());
            (outcome.map_err(|e| e.kind()), results.len())
        };
        let err = |kind: ErrorKind| Err(io::Error::from(kind));
        let busy = || err(ErrorKind::ResourceBusy);
        assert_eq!(outcome(vec![busy(), busy(), Ok(())]), (Ok(()), 0));
        let gone = vec![err(ErrorKind::NotFound), Ok(())];
        assert_eq!(outcome(gone), (Err(ErrorKind::NotFound), 1));
        // A probe that stays in use is left to the next agent.
        let always = (0..=RELEASE_ATTEMPTS).map(|_| busy()).collect();
        assert_eq!(outcome(always), (Err(ErrorKind::ResourceBusy), 1));
    }
}
