//! The server as the simulation models it.

use crate::durations::Durations;

/// Needs of one kind of request.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// NFS version and operation, or a name for what remains of COMPOUNDs.
    pub name: String,
    /// CPU time before execution, while a thread has the request.
    pub receive: Durations,
    /// CPU time of the execution.
    pub cpu: Durations,
    /// Visits of a disk; the fraction is a probability.
    pub disk_visits: f64,
    /// Waits for the log; the fraction is a probability.
    pub log_waits: f64,
    /// Any other sleep.
    pub sleep: Durations,
    /// CPU time after execution.
    pub reply: Durations,
}

/// Threads of one pool.
#[derive(Debug, Clone, PartialEq)]
pub struct Pool {
    /// Number of threads.
    pub threads: usize,
    /// Part of the requests that this pool gets.
    pub share: f64,
}

/// Way in which the log becomes durable.
#[derive(Debug, Clone, PartialEq)]
pub enum Log {
    /// A commit serves all requests that wait when it starts. At most `at_once` commits run at a time.
    Group {
        /// Commits that run at a time.
        at_once: usize,
        /// Time of one commit, without what the CPUs add to it.
        commit: Durations,
        /// CPU seconds of one commit.
        cpu: f64,
        /// Task that spends the CPU seconds.
        writer: Writer,
        /// Seconds that a commit waits for more requests before it starts.
        gather: f64,
    },
    /// Each wait takes its own time, independent of other waits.
    Delay(Durations),
}

/// Task that writes a log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Writer {
    /// A task of the log's own: half of its CPU time comes before the device's requests, and half after them.
    Task,
    /// A waiting thread, when it has a CPU. Its write serves all requests that wait by then.
    Waiter,
    /// A waiting thread, when it has a CPU. Its write serves the requests that waited at the end of the last write.
    WaiterOfClosed,
}

impl Log {
    /// The log with other times: `new` makes the new mean of the old one.
    pub(crate) fn with_mean(&self, new: impl Fn(f64) -> f64) -> Log {
        match self {
            Log::Group {
                at_once,
                commit,
                cpu,
                writer,
                gather,
            } => {
                let time = new(commit.mean());
                Log::Group {
                    at_once: *at_once,
                    commit: commit.with_mean(time),
                    cpu: *cpu,
                    writer: *writer,
                    gather: gather * time / commit.mean(),
                }
            }
            Log::Delay(wait) => Log::Delay(wait.with_mean(new(wait.mean()))),
        }
    }
}

/// Disks outside of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Disk {
    /// Requests that it serves at a time; `None` for any number.
    pub at_once: Option<usize>,
    /// Time of one request.
    pub service: Durations,
}

/// Moment at which a client sends its next request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// Seconds after the reply, exponential with this mean.
    Think(f64),
    /// Mean seconds after the last request was sent, or at the reply if that is later.
    Period(f64),
}

/// Clients of one kind, each with one request at a time.
#[derive(Debug, Clone, PartialEq)]
pub struct Clients {
    /// Most requests that the group has under way.
    pub streams: usize,
    /// Moment at which they send their next requests.
    pub pace: Pace,
    /// Weight of each class in their requests.
    pub mix: Vec<f64>,
}

/// A server and its clients.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    /// Kinds of requests.
    pub classes: Vec<Class>,
    /// nfsd threads.
    pub pools: Vec<Pool>,
    /// CPUs.
    pub cpus: usize,
    /// CPU time of the kernel and of programs for each request, outside of nfsd threads.
    pub other_cpu: Durations,
    /// True if [`other_cpu`](Self::other_cpu) preempts nfsd's threads, as interrupts do. Otherwise it shares the CPUs with them, as
    /// programs do.
    pub other_is_urgent: bool,
    /// The log.
    pub log: Log,
    /// The disks.
    pub disk: Disk,
    /// Groups of clients.
    pub clients: Vec<Clients>,
}
