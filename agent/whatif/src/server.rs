//! The server as the simulation knows it.

use crate::durations::Durations;

/// What one kind of request needs.
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
    /// Any other sleep, on average.
    pub sleep: Durations,
    /// CPU time after execution.
    pub reply: Durations,
}

/// Threads of one pool.
#[derive(Debug, Clone, PartialEq)]
pub struct Pool {
    /// How many.
    pub threads: usize,
    /// Its part of the requests.
    pub share: f64,
}

/// How the log becomes durable.
#[derive(Debug, Clone, PartialEq)]
pub enum Log {
    /// A commit takes along all that wait when it starts, and at most so many commits run at a time.
    Group {
        /// Commits at a time.
        at_once: usize,
        /// Time of one, without what the CPUs add to it.
        commit: Durations,
        /// CPU seconds of one.
        cpu: f64,
        /// Who spends them.
        writer: Writer,
        /// Seconds that a commit waits for company before it starts.
        gather: f64,
    },
    /// Each wait takes its time, whoever else waits.
    Delay(Durations),
}

/// Who writes a log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Writer {
    /// A task of the log's own: half of its CPU time comes before the device's requests, and half behind.
    Task,
    /// A thread that waits, when it has a CPU. It takes along whoever waits by then.
    Waiter,
    /// A thread that waits, when it has a CPU. Who waited at the end of the last write is taken along.
    WaiterOfClosed,
}

impl Log {
    /// The same with other times: `new` makes the new mean of the old one.
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
    /// Time of one.
    pub service: Durations,
}

/// When a client asks again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// So many seconds after the reply, exponential.
    Think(f64),
    /// So many seconds after the last request on average, or at the reply if that is later.
    Period(f64),
}

/// Clients of one kind, each with one request at a time.
#[derive(Debug, Clone, PartialEq)]
pub struct Clients {
    /// How many requests they have under way at most.
    pub streams: usize,
    /// When they ask again.
    pub pace: Pace,
    /// Weight of each class in what they ask.
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
    /// Whether that comes before nfsd's threads, as interrupts do; else it shares the CPUs with them, as programs do.
    pub other_is_urgent: bool,
    /// The log.
    pub log: Log,
    /// The disks.
    pub disk: Disk,
    /// Who asks.
    pub clients: Vec<Clients>,
}
