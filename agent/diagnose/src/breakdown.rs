//! Breaks a window down: where the time of its requests went, and how much of each resource was in use.
//! Every rule draws its conclusions from this breakdown alone.

mod of_window;

use crate::connections::Connections;
use crate::export_io::ExportIo;
use crate::log_bytes::{ByLog, LogBytes};
use crate::put_off::{Denied, NlmClient, PutOff, Retrying};
pub use crate::ratio::{mean, part, sum};
use crate::recalls::{Layouts, Recalls};
use crate::refused::Refused;
use crate::thresholds::{MIN_COUNT, QUEUE_KNOWN_SHARE};
use nfscope_model::family::Info;
use nfscope_model::window_mounts::WindowMount;
use nfscope_model::{HeldRequest, Histogram, Unacknowledged};
use std::collections::{HashMap, HashSet};

/// An operation of one protocol version.
#[derive(Debug, Clone, Default)]
pub struct Op {
    /// Label `version`.
    pub version: String,
    /// Label `op`.
    pub op: String,
    /// Number of operations.
    pub count: f64,
    /// Operations that were slow enough for a client to feel each of them.
    pub felt: f64,
    /// Sum of their execution times.
    pub seconds: f64,
    /// Histogram of the execution times.
    pub durations: Option<Histogram>,
    /// The execution time by phase.
    pub phases: Phases,
}

/// Seconds of operations by what the threads did. A phase that this host cannot measure is `None`; its time is in `lock`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Phases {
    /// Running on a CPU.
    pub cpu: f64,
    /// Runnable, waiting for a CPU.
    pub runqueue: Option<f64>,
    /// Asleep until the journal or intent log is durable.
    pub log: Option<f64>,
    /// Asleep for block I/O outside the log.
    pub disk: f64,
    /// Asleep because too much written data waited to be stored.
    pub throttle: f64,
    /// Asleep until a daemon answered.
    pub upcall: f64,
    /// Asleep until a client returned a delegation.
    pub recall: f64,
    /// Asleep while memory was reclaimed.
    pub reclaim: f64,
    /// Any other sleep.
    pub lock: f64,
}

/// Waits under one name: the value of a family's only label.
#[derive(Debug, Clone)]
pub struct NamedWaits {
    /// Value of the label.
    pub name: String,
    /// Waits.
    pub waits: Histogram,
}

/// The journal or intent log of one file system or pool.
#[derive(Debug, Clone)]
pub struct Log {
    /// Label `fs`.
    pub fs: String,
    /// Label `volume`.
    pub volume: String,
    /// Waits of threads for the log.
    pub waits: Histogram,
    /// Writes of the log itself.
    pub writes: Option<Histogram>,
    /// True if the log is on a separate device.
    pub separate: Option<bool>,
}

impl Log {
    /// Writes of a log that makes one at a time, as the journal of ext4 does with its transactions. Other logs write several
    /// blocks at once.
    pub fn writes_in_turn(&self) -> Option<&Histogram> {
        self.writes.as_ref().filter(|_| self.fs == "ext4")
    }
}

/// Connections with requests that no thread has taken.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pending {
    /// Number of the connections.
    pub connections: f64,
    /// Time since the oldest of these requests arrived.
    pub oldest: f64,
}

/// Requests to one block device in one direction.
#[derive(Debug, Clone)]
pub struct Disk {
    /// Label `device`.
    pub device: String,
    /// Label `op`.
    pub op: String,
    /// Times from issue to completion.
    pub requests: Histogram,
    /// Times in the scheduler's queue.
    pub queue: Option<Histogram>,
}

/// An NFS client.
#[derive(Debug, Clone, Default)]
pub struct Client {
    /// Label `client`.
    pub name: String,
    /// Number of operations.
    pub ops: f64,
    /// Number of the client's requests; `None` if they are not counted.
    pub requests: Option<f64>,
    /// Sum of its operations' execution times.
    pub seconds: f64,
    /// Bytes that it wrote.
    pub written: f64,
    /// Time of sending its replies; `None` if it is not known.
    pub reply: Option<f64>,
    /// Lowest round-trip time of its connection in the last minutes, which shows the distance. TCP's smoothed time also contains delayed
    /// acknowledgements, and does not show the distance.
    pub min_rtt: Option<f64>,
    /// Requests of its sessions.
    pub sequenced: f64,
    /// Requests of its sessions that were sent with every slot in use.
    pub full: f64,
    /// Slots that its session was granted.
    pub slots: Option<f64>,
    /// NFSv4 requests that only walk a path.
    pub walks: f64,
    /// Requests with an OPEN.
    pub opens: f64,
    /// Execution time of both, added up.
    pub open_seconds: Option<f64>,
}

/// The breakdown of a window. Every number is finite and at least 0; times are in seconds.
#[derive(Debug, Clone, Default)]
pub struct Breakdown {
    /// Length of the window.
    pub length: f64,
    /// Requests that ended.
    pub requests: f64,
    /// Requests whose arrival was seen, so that their wait for a thread is known. The wait of other requests counts as 0.
    pub queued: f64,
    /// Requests over UDP or RDMA, which have no clock of a request's arrival.
    pub no_clock: f64,
    /// Requests that were in the server for long enough for a client to feel each of them.
    pub felt: f64,
    /// Time from arrival to reply, added up: `queue`, `receive`, `asking`, `execute` and `reply`.
    pub residence: f64,
    /// Time until a thread took the request.
    pub queue: f64,
    /// Time to read the request from the socket and to authenticate it.
    pub receive: f64,
    /// Time to wait for daemons before the call was known.
    pub asking: f64,
    /// Time to execute the request.
    pub execute: f64,
    /// Time to hand the reply to the socket.
    pub reply: f64,
    /// 10th percentile of the wait for a thread.
    pub queue_p10: Option<f64>,
    /// 99th percentile of the wait for a thread.
    pub queue_p99: Option<f64>,
    /// Largest 99th percentile of the wait for a thread in any pool; infinite beyond the last bucket.
    pub longest_queue_p99: Option<f64>,
    /// Operations that took time.
    pub ops: Vec<Op>,
    /// Phases of all operations together; `None` where this host cannot measure them.
    pub phases: Option<Phases>,
    /// Threads of all pools.
    pub threads: f64,
    /// Upper limit of the pools' sizes where the kernel resizes them.
    pub thread_limit: Option<f64>,
    /// Part of the threads' time with a request assigned.
    pub busy: Option<f64>,
    /// Part of the window without a free thread, in the pool where requests waited longest.
    pub saturated: Option<f64>,
    /// Requests that had been in hand for a second or longer when the window ended; `None` if it is not known.
    pub stuck: Option<f64>,
    /// Requests that had been in hand for long when the window ended.
    pub held: Vec<HeldRequest>,
    /// Connections with a request that no thread has taken for long, when the window ended; `None` if it is not known.
    pub pending: Option<Pending>,
    /// Connections of clients; `None` if they are not known.
    pub connections: Option<Connections>,
    /// Calls that were refused before anything was executed; `None` if they are not counted.
    pub refused: Option<Refused>,
    /// CPUs online.
    pub cpus: Option<f64>,
    /// Idle part of the CPUs' time.
    pub cpu_idle: Option<f64>,
    /// Operations that were answered with the request to try again later.
    pub put_off: Vec<PutOff>,
    /// Locks that were denied.
    pub denied: Vec<Denied>,
    /// Clients of NFSv3 that wait for a lock when the window ends; `None` if lockd is not probed.
    pub nlm_clients: Option<Vec<NlmClient>>,
    /// Clients that hold NFSv4 locks, and the number of lock states of each.
    pub lock_holders: Vec<(String, f64)>,
    /// True if the server is in its grace period; `None` where nothing tells.
    pub in_grace: Option<bool>,
    /// Seconds for which the server has been starting, stopping or changing its threads; `None` where nothing tells.
    pub server_change: Option<f64>,
    /// Clients that were told to ask again, or had to recover; empty where nothing counts by client.
    pub retrying: Vec<Retrying>,
    /// Clients that acknowledge no replies when the window ends; `None` if it is not known.
    pub unacknowledged: Option<Vec<Unacknowledged>>,
    /// Transports in use whose replies are not followed to the client.
    pub unseen_transports: Vec<&'static str>,
    /// This host's own NFS mounts.
    pub mounts: Vec<WindowMount>,
    /// True if the RPCs of this host's own mounts are counted.
    pub mounts_are_seen: bool,
    /// Family of metrics that is missing, so that the times of requests are not known although there were requests.
    pub untimed: Option<&'static str>,
    /// Families of metrics that a rule reads and that this host does not measure, or that have no events yet. Always empty on illumos.
    pub lacking: Vec<&'static str>,
    /// True if this host distinguishes rare waits; elsewhere they are in `disk`, `lock` and `receive`.
    pub rare_known: bool,
    /// True for an agent on illumos, where other commands help.
    pub illumos: bool,
    /// Programs of probes that are not attached.
    pub not_attached: HashSet<String>,
    /// Daemons' answers that threads waited for, the longest wait in total first.
    pub upcalls: Vec<NamedWaits>,
    /// Logs that threads waited for, the longest wait in total first.
    pub logs: Vec<Log>,
    /// Devices that exports lie on, with one export of each; `None` if they are not known.
    pub export_devices: Option<HashMap<String, String>>,
    /// Block devices that received requests.
    pub disks: Vec<Disk>,
    /// Bytes that nfsd threads read and changed, beside those of the devices; `None` if a part is not known.
    pub export_io: Option<ExportIo>,
    /// Clients by operation time, the largest first. The row `other` is left out.
    pub clients: Vec<Client>,
    /// WRITEs whose client asked for durability at once.
    pub stable_writes: f64,
    /// Durable WRITEs and COMMITs that were answered with OK; `None` if they are not counted.
    pub durable_writes: Option<f64>,
    /// Durable writes that a crash may lose, by reason.
    pub unsafe_writes: Vec<(String, f64)>,
    /// Requests of sessions; `None` if there were some, and their slots are not known.
    pub sequenced: Option<f64>,
    /// Requests of sessions that were sent with every slot in use.
    pub full_slots: f64,
    /// Exports that acknowledge writes before they are durable, by reason.
    pub not_durable: Vec<(String, String)>,
    /// Recalls of delegations; `None` if they are not counted.
    pub recalls: Option<Recalls>,
    /// Layouts; `None` if there are some, and they are not counted.
    pub layouts: Option<Layouts>,
    /// States that the server has revoked; `None` if they are not counted.
    pub revoked: Option<f64>,
    /// All WRITEs.
    pub writes: f64,
    /// Bytes of all WRITEs.
    pub write_bytes: f64,
    /// All READs.
    pub reads: f64,
    /// READs of at most [`TINY_READ_BYTES`].
    pub tiny_reads: f64,
    /// Bytes of all READs.
    pub read_bytes: f64,
    /// NFSv4 COMPOUNDs.
    pub compounds: f64,
    /// Operations in these COMPOUNDs.
    pub compound_ops: f64,
    /// Requests that were deferred until a daemon answers.
    pub deferred: f64,
    /// Waits in the write throttle of ZFS by pool, the longest in total first.
    pub zfs_throttle: Vec<NamedWaits>,
    /// Bytes of ZFS changes in the intent log by pool: those that bypassed its log device (`indirect`), and all. The pool is `all`
    /// before OpenZFS 2.2, which counts them together.
    pub zfs_log_bytes: HashMap<String, [f64; 2]>,
    /// Bytes and commits of logs by file system and volume.
    pub log_bytes: ByLog,
}

/// Largest size of a tiny READ: half a page. No database reads so little at once.
pub const TINY_READ_BYTES: f64 = 2048.0;

impl Breakdown {
    /// `n` per second of the window.
    pub fn rate(&self, n: f64) -> f64 {
        mean(n, self.length)
    }

    /// True if the window has no series of a family of [`Breakdown::lacking`].
    pub fn lacks(&self, info: &Info) -> bool {
        self.lacking.contains(&info.name)
    }

    /// Bytes and commits of a log; `None` where they are not counted.
    pub fn bytes_of(&self, log: &Log) -> Option<&LogBytes> {
        self.log_bytes.get(&[log.fs.clone(), log.volume.clone()])
    }

    /// An export that lies on a block device.
    pub fn export_of(&self, device: &str) -> Option<&str> {
        Some(self.export_devices.as_ref()?.get(device)?)
    }

    /// Returns true if there are enough requests for a finding, or some that are felt.
    pub fn enough(&self) -> bool {
        self.requests >= MIN_COUNT || self.felt > 0.0
    }

    /// Returns true if the wait for a thread is known for most requests.
    pub fn queue_known(&self) -> bool {
        self.queued >= QUEUE_KNOWN_SHARE * self.requests
    }

    /// Time of requests in a thread: after the queue, up to the reply.
    pub fn thread_seconds(&self) -> f64 {
        self.receive + self.asking + self.execute + self.reply
    }

    /// The operation with the most time in a phase, with that time.
    pub fn op_with_most(&self, phase: impl Fn(&Phases) -> f64) -> Option<(&Op, f64)> {
        let all = self.ops.iter().map(|o| (o, phase(&o.phases)));
        all.filter(|(_, s)| *s > 0.0)
            .max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Operations with one of these names, of every version.
    pub fn ops_named(&self, names: &[&str]) -> impl Iterator<Item = &Op> {
        self.ops.iter().filter(move |o| names.contains(&&*o.op))
    }

    /// The client with the most operations, and its part of all operations.
    pub fn busiest_client(&self) -> Option<(&Client, f64)> {
        let all = sum(self.clients.iter().map(|c| c.ops));
        let first = self.clients.iter().max_by(|a, b| a.ops.total_cmp(&b.ops))?;
        Some((first, part(first.ops, all)))
    }
}
