//! Breaks a window down: where the time of its requests went, and how much of each resource was in use.
//! Every rule draws its conclusions from this breakdown alone.

use crate::connections::Connections;
use crate::export_io::ExportIo;
use crate::long_waits::long_waits;
use crate::put_off::PutOff;
pub use crate::ratio::{mean, part, sum};
use crate::recalls::{Layouts, Recalls};
use crate::thresholds::{FELT_SECONDS, MIN_COUNT};
use nfscope_model::on_illumos::is_illumos;
use nfscope_model::window_mounts::{self, WindowMount};
use nfscope_model::window_parts::{self, PhaseSeconds, histograms, numbers};
use nfscope_model::{Family, HeldRequest, Histogram, Window, family as f, phase};
use std::collections::{HashMap, HashSet};

/// One operation of one protocol version.
#[derive(Debug, Clone, Default)]
pub struct Op {
    /// Label `version`.
    pub version: String,
    /// Label `op`.
    pub op: String,
    /// Number of operations.
    pub count: f64,
    /// Those that took so long that a client feels each of them.
    pub felt: f64,
    /// Their execution time, added up.
    pub seconds: f64,
    /// The execution times themselves.
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
    /// Seconds of the log's writes, added up.
    pub write_seconds: Option<f64>,
    /// Whether the log is on a separate device.
    pub separate: Option<bool>,
}

/// Connections with requests that no thread has taken.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pending {
    /// Their number.
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

/// One NFS client.
#[derive(Debug, Clone, Default)]
pub struct Client {
    /// Label `client`.
    pub name: String,
    /// Number of operations.
    pub ops: f64,
    /// Their execution time, added up.
    pub seconds: f64,
    /// Time of sending its replies; `None` where nothing tells.
    pub reply: Option<f64>,
    /// Round-trip time of its connection.
    pub rtt: Option<f64>,
    /// Requests of its sessions.
    pub sequenced: f64,
    /// Of them, those that were sent with every slot in use.
    pub full: f64,
    /// Slots that its session was granted.
    pub slots: Option<f64>,
    /// NFSv4 requests that only walk a path.
    pub walks: f64,
    /// Requests with an OPEN.
    pub opens: f64,
    /// Execution time of both, added up.
    pub open_seconds: f64,
}

/// The breakdown of a window. Every number is finite and at least 0; times are in seconds.
#[derive(Debug, Clone, Default)]
pub struct Breakdown {
    /// Length of the window.
    pub length: f64,
    /// Requests that ended.
    pub requests: f64,
    /// Those that were in the server for so long that a client feels each of them.
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
    /// The longest 99th percentile of that wait in any pool; infinite beyond the last bucket.
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
    /// Requests that have been in hand for a second or longer, when the window ended; `None` where nothing tells.
    pub stuck: Option<f64>,
    /// Requests that had been in hand for long when the window ended.
    pub held: Vec<HeldRequest>,
    /// Connections with a request that no thread has taken for long, when the window ended; `None` where nothing tells.
    pub pending: Option<Pending>,
    /// Connections of clients; `None` where nothing tells.
    pub connections: Option<Connections>,
    /// CPUs online.
    pub cpus: Option<f64>,
    /// Idle part of the CPUs' time.
    pub cpu_idle: Option<f64>,
    /// Operations that were answered with the request to try again later.
    pub put_off: Vec<PutOff>,
    /// This host's own NFS mounts.
    pub mounts: Vec<WindowMount>,
    /// Whether this host tells rare waits apart; elsewhere they are in `disk`, `lock` and `receive`.
    pub rare_known: bool,
    /// Whether the agent is one on illumos, where other commands help.
    pub illumos: bool,
    /// Programs of probes that are not attached.
    pub not_attached: HashSet<String>,
    /// Daemons' answers that threads waited for, the longest wait in total first.
    pub upcalls: Vec<NamedWaits>,
    /// Logs that threads waited for, the longest wait in total first.
    pub logs: Vec<Log>,
    /// Devices that exports lie on, with one export of each; `None` where that is not known.
    pub export_devices: Option<HashMap<String, String>>,
    /// Block devices that received requests.
    pub disks: Vec<Disk>,
    /// Bytes that nfsd threads had read and have changed, beside those of the devices; `None` where one of them is not known.
    pub export_io: Option<ExportIo>,
    /// Clients by operation time, the largest first. The row `other` is left out.
    pub clients: Vec<Client>,
    /// WRITEs whose client asked for durability at once.
    pub stable_writes: f64,
    /// Durable WRITEs and COMMITs that were answered with OK; `None` where nothing tells.
    pub durable_writes: Option<f64>,
    /// Of them, those that a crash may lose, by reason.
    pub unsafe_writes: Vec<(String, f64)>,
    /// Requests of sessions; `None` where there were some, and nothing tells their slots.
    pub sequenced: Option<f64>,
    /// Of them, those that were sent with every slot in use.
    pub full_slots: f64,
    /// Exports that acknowledge writes before they are durable, by reason.
    pub not_durable: Vec<(String, String)>,
    /// Recalls of delegations; `None` where nothing tells.
    pub recalls: Option<Recalls>,
    /// Layouts; `None` where there are some, and nothing tells.
    pub layouts: Option<Layouts>,
    /// States that the server has taken away; `None` where nothing tells.
    pub revoked: Option<f64>,
    /// All WRITEs.
    pub writes: f64,
    /// Bytes of all WRITEs.
    pub write_bytes: f64,
    /// All READs.
    pub reads: f64,
    /// READs of at most [`TINY_READ_BYTES`].
    pub tiny_reads: f64,
    /// NFSv4 COMPOUNDs.
    pub compounds: f64,
    /// Operations in these COMPOUNDs.
    pub compound_ops: f64,
    /// Requests that were put aside until a daemon answers.
    pub deferred: f64,
    /// Waits in the write throttle of ZFS by pool, the longest in total first.
    pub zfs_throttle: Vec<NamedWaits>,
    /// Bytes of ZFS changes in the intent log by pool: those that bypassed its log device (`indirect`), and all. The pool is `all`
    /// before OpenZFS 2.2, which counts them together.
    pub zfs_log_bytes: HashMap<String, [f64; 2]>,
}

/// A READ up to this size is tiny. It is half a page, and no database reads so little at once.
pub const TINY_READ_BYTES: f64 = 2048.0;

const NOTHING_WAITED: Phases = Phases {
    cpu: 0.0,
    runqueue: Some(0.0),
    log: Some(0.0),
    disk: 0.0,
    throttle: 0.0,
    upcall: 0.0,
    recall: 0.0,
    reclaim: 0.0,
    lock: 0.0,
};

impl Phases {
    /// Adds seconds in the order of [`phase::OF_OP`].
    fn add(&mut self, seconds: PhaseSeconds<{ phase::OPS }>) {
        let [
            cpu,
            runqueue,
            log,
            disk,
            throttle,
            upcall,
            recall,
            reclaim,
            lock,
        ] = seconds;
        self.cpu += cpu.unwrap_or(0.0);
        self.disk += disk.unwrap_or(0.0);
        self.throttle += throttle.unwrap_or(0.0);
        self.upcall += upcall.unwrap_or(0.0);
        self.recall += recall.unwrap_or(0.0);
        self.reclaim += reclaim.unwrap_or(0.0);
        self.lock += lock.unwrap_or(0.0);
        for (known, seconds) in [(&mut self.runqueue, runqueue), (&mut self.log, log)] {
            if let Some(seconds) = seconds {
                *known.get_or_insert(0.0) += seconds;
            }
        }
    }
}

impl Breakdown {
    /// Computes the breakdown of a window.
    pub fn of(w: &Window) -> Breakdown {
        let length = w.length.as_secs_f64();
        let seconds = |name: &str| {
            let of = numbers(w, &f::RPC_PHASE).filter(|([_, p], _)| *p == name);
            sum(of.map(|(_, v)| v))
        };
        let [queue, receive, asking, execute, reply] = phase::OF_RPC.map(seconds);
        let (ops, phases_of_all) = ops(w);
        let queue_times = Histogram::merged(histograms(w, &f::RPC_QUEUE).map(|(_, h)| h));
        let queue_quantile = |q: f64| (queue_times.as_ref()?.quantile(q)).filter(|t| t.is_finite());
        let mut breakdown = Breakdown {
            length,
            requests: sum(histograms(w, &f::RPC_DURATION).map(|(_, h)| h.count() as f64)),
            felt: sum(
                histograms(w, &f::RPC_DURATION).map(|(_, h)| long_waits(h, FELT_SECONDS).count)
            ),
            residence: queue + receive + asking + execute + reply,
            queue,
            receive,
            asking,
            execute,
            reply,
            queue_p10: queue_quantile(0.1),
            queue_p99: queue_quantile(0.99),
            longest_queue_p99: histograms(w, &f::RPC_QUEUE)
                .filter_map(|(_, h)| h.quantile(0.99))
                .max_by(f64::total_cmp),
            // Operations without phases: this host cannot measure them. Without operations, nothing is missing.
            phases: phases_of_all.or_else(|| ops.is_empty().then_some(NOTHING_WAITED)),
            ops,
            put_off: PutOff::all(w),
            recalls: Recalls::of(w),
            layouts: Layouts::of(w),
            mounts: window_mounts::mounts(w),
            rare_known: window_parts::tells_rare_phases(w),
            illumos: is_illumos(&w.delta.probes),
            not_attached: (w.delta.probes.iter())
                .filter(|p| !p.state.measures())
                .map(|p| p.program.clone())
                .collect(),
            upcalls: named_waits(w, &f::UPCALL_WAIT),
            deferred: sum(numbers(w, &f::RPC_DROPPED)
                .filter(|([reason], _)| *reason == "deferred")
                .map(|(_, n)| n)),
            zfs_throttle: named_waits(w, &f::ZFS_THROTTLE),
            logs: logs(w),
            disks: disks(w),
            clients: clients(w),
            connections: Connections::of(w),
            compounds: sum(histograms(w, &f::COMPOUND_OPS).map(|(_, h)| h.count() as f64)),
            compound_ops: sum(histograms(w, &f::COMPOUND_OPS).map(|(_, h)| h.sum)),
            write_bytes: sum(numbers(w, &f::WRITE_BYTES).map(|(_, v)| v)),
            ..Breakdown::default()
        };
        let mut stuck = numbers(w, &f::STUCK_REQUESTS).map(|(_, n)| n).peekable();
        breakdown.stuck = stuck.peek().is_some().then(|| sum(stuck));
        breakdown.pending = (w.delta.value(&f::PENDING_CONNECTIONS, []))
            .zip(w.delta.value(&f::OLDEST_PENDING, []))
            .map(|(connections, oldest)| Pending {
                connections,
                oldest,
            });
        let sane = |r: &&HeldRequest| r.seconds.is_finite() && r.seconds >= 0.0;
        breakdown.held = w.delta.held.iter().filter(sane).cloned().collect();
        let of_exports: HashMap<_, _> = numbers(w, &f::EXPORT_DEVICE)
            .map(|([export, device], _)| (device.to_owned(), export.to_owned()))
            .collect();
        // With one that is unknown, no slow device can be told to be nobody's.
        breakdown.export_devices =
            Some(of_exports).filter(|all| !all.is_empty() && !all.contains_key(f::UNKNOWN_DEVICE));
        breakdown.export_io =
            (breakdown.export_devices.as_ref()).and_then(|devices| ExportIo::of(w, devices));
        breakdown.add_threads(w);
        breakdown.add_cpus(w);
        breakdown.add_reads_and_writes(w);
        breakdown.add_sessions(w);
        for ([pool, kind], v) in numbers(w, &f::ZFS_ITX_BYTES) {
            let bytes = breakdown.zfs_log_bytes.entry(pool.to_owned());
            let [indirect, all] = bytes.or_default();
            *indirect += if kind == "indirect" { v } else { 0.0 };
            *all += v;
        }
        breakdown
    }

    fn add_reads_and_writes(&mut self, w: &Window) {
        self.durable_writes = numbers(w, &f::DURABLE_WRITES).map(|(_, n)| n).next();
        self.unsafe_writes = numbers(w, &f::UNSAFE_WRITES)
            .map(|([why], n)| (why.to_owned(), n))
            .collect();
        self.not_durable = numbers(w, &f::NOT_DURABLE)
            .map(|([export, why], _)| (why.to_owned(), export.to_owned()))
            .collect();
        for ([_, stability], n) in numbers(w, &f::WRITE) {
            self.writes += n;
            self.stable_writes += if stability == "unstable" { 0.0 } else { n };
        }
        for (_, h) in histograms(w, &f::IO_SIZE).filter(|([_, op], _)| *op == "read") {
            self.reads += h.count() as f64;
            let tiny = (0..h.counts.len()).take_while(|i| h.scheme.upper(*i) <= TINY_READ_BYTES);
            self.tiny_reads += sum(tiny.map(|i| h.counts[i] as f64));
        }
    }

    fn add_sessions(&mut self, w: &Window) {
        let of = |slots: &str| {
            let all = numbers(w, &f::SESSION_REQUESTS).filter(|([_, s], _)| *s == slots);
            sum(all.map(|(_, n)| n))
        };
        self.full_slots = of("full");
        self.revoked = w.delta.value(&f::NFS4_REVOKED, []);
        let told = numbers(w, &f::SESSION_REQUESTS).next().is_some();
        let in_use = histograms(w, &f::COMPOUND_OPS)
            .any(|([version], h)| h.count() > 0 && matches!(version, "4.1" | "4.2"));
        self.sequenced = (told || !in_use).then(|| of("free") + self.full_slots);
    }

    fn add_threads(&mut self, w: &Window) {
        let value = |family: &Family<1>, pool: &str| w.delta.value(family, [pool]);
        let (mut busy, mut longest_queue) = (None, -1.0);
        for ([pool], threads) in numbers(w, &f::THREADS) {
            self.threads += threads;
            if let Some(limit) = value(&f::THREADS_LIMIT, pool) {
                *self.thread_limit.get_or_insert(0.0) += limit;
            }
            if let Some(seconds) = value(&f::THREAD_BUSY, pool) {
                *busy.get_or_insert(0.0) += seconds;
            }
            let queue = w.delta.hist(&f::RPC_QUEUE, [pool]).map_or(0.0, |h| h.sum);
            if queue > longest_queue {
                longest_queue = queue;
                self.saturated = value(&f::THREADS_SATURATED, pool).map(|s| part(s, self.length));
            }
        }
        self.busy = busy.map(|s| part(s, self.threads * self.length));
    }

    fn add_cpus(&mut self, w: &Window) {
        self.cpus = w.delta.value(&f::CPUS, []).filter(|n| *n > 0.0);
        let idle = w.delta.value(&f::CPU_IDLE, []);
        if let (Some(n), Some(idle)) = (self.cpus, idle) {
            self.cpu_idle = (self.length > 0.0).then(|| part(idle, n * self.length));
        }
    }

    /// `n` per second of the window.
    pub fn rate(&self, n: f64) -> f64 {
        mean(n, self.length)
    }

    /// An export that lies on a block device.
    pub fn export_of(&self, device: &str) -> Option<&str> {
        Some(self.export_devices.as_ref()?.get(device)?)
    }

    /// Whether there are requests enough to speak of, or some that are felt.
    pub fn enough(&self) -> bool {
        self.requests >= MIN_COUNT || self.felt > 0.0
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

/// Operations, and the phases of all of them together; `None` where this host cannot measure phases.
fn ops(w: &Window) -> (Vec<Op>, Option<Phases>) {
    let mut all = None;
    let ops = window_parts::ops(w).into_iter().map(|op| {
        let mut phases = Phases::default();
        if let Some(seconds) = op.phases {
            phases.add(seconds);
            all.get_or_insert_with(Phases::default).add(seconds);
        }
        Op {
            version: op.version.to_owned(),
            op: op.op.to_owned(),
            count: op.durations.count() as f64,
            felt: long_waits(op.durations, FELT_SECONDS).count,
            seconds: op.durations.sum,
            durations: Some(op.durations.clone()),
            phases,
        }
    });
    (ops.collect(), all)
}

/// The waits of a family by its label, the longest in total first.
fn named_waits(w: &Window, family: &Family<1>) -> Vec<NamedWaits> {
    let waited = histograms(w, family).filter(|(_, h)| h.count() > 0);
    let mut all: Vec<_> = waited
        .map(|([name], waits)| NamedWaits {
            name: name.to_owned(),
            waits: waits.clone(),
        })
        .collect();
    all.sort_by(|a, b| b.waits.sum.total_cmp(&a.waits.sum));
    all
}

/// Logs that threads waited for.
fn logs(w: &Window) -> Vec<Log> {
    let waited = window_parts::logs(w).into_iter().filter_map(|log| {
        Some(Log {
            fs: log.fs.to_owned(),
            volume: log.volume.to_owned(),
            waits: log.waits?.clone(),
            write_seconds: log.writes.map(|h| h.sum),
            separate: log.separate,
        })
    });
    let mut all: Vec<_> = waited.collect();
    all.sort_by(|a, b| b.waits.sum.total_cmp(&a.waits.sum));
    all
}

fn disks(w: &Window) -> Vec<Disk> {
    let all = window_parts::disks(w).into_iter().map(|disk| Disk {
        device: disk.device.to_owned(),
        op: disk.op.to_owned(),
        requests: disk.requests.clone(),
        queue: disk.queue.cloned(),
    });
    all.collect()
}

/// A client's requests with slots that are free, or full.
fn slots_of(w: &Window, client: &str, slots: &str) -> f64 {
    let n = w.delta.value(&f::CLIENT_SESSION_REQUESTS, [client, slots]);
    n.filter(|n| n.is_finite()).map_or(0.0, |n| n.max(0.0))
}

fn clients(w: &Window) -> Vec<Client> {
    let count = |n: Option<f64>| n.filter(|n| n.is_finite() && *n > 0.0).unwrap_or_default();
    let replies: HashMap<_, _> = numbers(w, &f::CLIENT_REPLY_SECONDS).collect();
    let named = window_parts::clients(w)
        .into_iter()
        .filter(|client| client.name != "other")
        .map(|client| Client {
            name: client.name.to_owned(),
            ops: client.ops,
            seconds: client.seconds.unwrap_or(0.0),
            reply: replies.get(&[client.name]).copied(),
            rtt: client.rtt,
            sequenced: slots_of(w, client.name, "free") + slots_of(w, client.name, "full"),
            full: slots_of(w, client.name, "full"),
            slots: w.delta.value(&f::CLIENT_SESSION_SLOTS, [client.name]),
            walks: count(w.delta.value(&f::CLIENT_WALKS, [client.name, "4"])),
            opens: count(w.delta.value(&f::CLIENT_OPENS, [client.name])),
            open_seconds: count(w.delta.value(&f::CLIENT_OPEN_SECONDS, [client.name])),
        });
    let mut all: Vec<_> = named.collect();
    all.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    all
}
