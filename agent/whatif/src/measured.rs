//! Measurements that the model needs of a window, or the reason why one is missing.

use crate::refusal::{MIN_REQUESTS, Refusal};
use crate::storage::{MeasuredDisk, MeasuredLog, disk, foreign, log};
use nfscope_model::window_parts::{WindowOp, clients, histograms, logs, numbers, ops, rpc_phases};
use nfscope_model::{Histogram, Window, family as f, phase};
use std::collections::HashMap;
use std::net::IpAddr;

/// Operations of a COMPOUND that are no request by themselves.
const FRAMING: [&str; 6] = [
    "sequence",
    "putfh",
    "putrootfh",
    "getfh",
    "savefh",
    "restorefh",
];
/// Operations that count as a request only in a COMPOUND without another one.
const SECONDARY: [&str; 2] = ["getattr", "access"];

/// Requests of one version and operation.
#[derive(Debug, Clone)]
pub(crate) struct Kind {
    pub version: String,
    pub op: String,
    /// Number of requests.
    pub count: f64,
    pub mean: f64,
    pub p99: f64,
    /// Means of one request, in seconds.
    pub cpu: f64,
    pub runqueue: f64,
    pub log: f64,
    pub disk: f64,
    /// Time asleep outside of disks and logs, by phase.
    pub asleep: Vec<(&'static str, f64)>,
}

impl Kind {
    /// Mean time asleep outside of disks and logs, in seconds.
    pub fn sleep(&self) -> f64 {
        self.asleep.iter().map(|(_, s)| s).sum()
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Measured {
    pub rate: f64,
    pub residence: f64,
    pub queue: f64,
    pub queue_p99: f64,
    /// CPU seconds per request: socket and authentication, operations of COMPOUNDs that are no kind, reply.
    pub receive: f64,
    pub framing: f64,
    pub reply: f64,
    /// Seconds asleep for an upcall per request, before its execution.
    pub upcall: f64,
    pub kinds: Vec<Kind>,
    /// Number of threads and of requests of each pool.
    pub pools: Vec<(usize, f64)>,
    pub cpus: usize,
    /// CPU seconds per second.
    pub cpu_busy: f64,
    pub log: Option<MeasuredLog>,
    pub disk: Option<MeasuredDisk>,
    /// Mean bytes of a WRITE; `None` without WRITEs.
    pub write_bytes: Option<f64>,
    /// Part of the bytes of the exports' disks that belongs to other programs; `None` where it is not known.
    pub foreign: Option<f64>,
    /// True if all clients are programs on the server itself.
    pub clients_are_local: bool,
    /// Requests per second and mean execution time of a request, by client.
    pub clients: Vec<(f64, f64)>,
}

impl Measured {
    pub fn of(w: &Window) -> Result<Measured, Refusal> {
        let seconds = w.length.as_secs_f64();
        let mut by_version: HashMap<&str, f64> = HashMap::new();
        for ([version], h) in histograms(w, &f::RPC_DURATION) {
            *by_version.entry(version).or_default() += h.count() as f64;
        }
        let all = Histogram::merged(histograms(w, &f::RPC_DURATION).map(|(_, h)| h));
        let all = all.filter(|h| h.count() >= MIN_REQUESTS && seconds > 0.0);
        let all = all.ok_or(Refusal::TooFew(by_version.values().sum::<f64>() + 0.0))?;
        let requests = all.count() as f64;
        let no_clock: f64 = numbers(w, &f::RPC_NO_CLOCK).map(|(_, n)| n).sum();
        if no_clock > requests / 10.0 {
            return Err(Refusal::NoClock);
        }
        let phases = rpc_phases(w);
        let phase = |name: &str| {
            let at = phase::OF_RPC.iter().position(|p| *p == name);
            let seconds = phases.values().filter_map(|p| p[at?]);
            seconds.sum::<f64>() / requests
        };
        let parts = ops(w);
        let (kinds, framing) = kinds(&parts, &by_version).ok_or(Refusal::NoPhases)?;
        let queues = || histograms(w, &f::RPC_QUEUE);
        let queue = Histogram::merged(queues().map(|(_, h)| h));
        let shares: HashMap<_, _> = queues()
            .map(|([pool], h)| (pool, h.count() as f64))
            .collect();
        let most: HashMap<_, _> = numbers(w, &f::THREADS_LIMIT).collect();
        let mut pools: Vec<_> = numbers(w, &f::THREADS)
            .map(|(pool, n)| {
                let n = most.get(&pool).copied().unwrap_or(n).max(n);
                (n as usize, shares.get(pool[0]).copied().unwrap_or(0.0))
            })
            .filter(|(n, requests)| *n > 0 && *requests > 0.0)
            .collect();
        if pools.is_empty() {
            return Err(Refusal::NoThreads);
        }
        pools.sort_by(|a, b| b.1.total_cmp(&a.1));
        let cpus = numbers(w, &f::CPUS).map(|(_, n)| n).next();
        let idle = numbers(w, &f::CPU_IDLE).map(|(_, n)| n).next();
        let (Some(cpus), Some(idle)) = (cpus, idle) else {
            return Err(Refusal::NoCpus);
        };
        let log = log(w);
        let log_device = log.as_ref().and_then(|l| l.device.as_ref()).map(|d| &*d.0);
        let separate = logs(w)
            .iter()
            .any(|l| l.separate == Some(true) && l.waits.is_some());
        let reads = |op: &str| op.starts_with("read") || op == "lookup" || op == "getattr";
        let disk_time = |wanted: bool| -> f64 {
            let of = kinds.iter().filter(|k| reads(&k.op) == wanted);
            of.map(|k| k.disk * k.count).sum()
        };
        let read = disk_time(true) >= disk_time(false);
        let disk = disk(w, if separate { log_device } else { None }, read);
        let executed: f64 = kinds.iter().map(|k| k.mean * k.count).sum::<f64>() / requests;
        let users = clients(w);
        let operations: f64 = users.iter().map(|c| c.ops).sum();
        let taken: f64 = users.iter().filter_map(|c| c.seconds).sum();
        let clients = users.iter().map(|c| {
            let requests_of = c.ops / operations * requests;
            let part = c
                .seconds
                .map_or(1.0, |s| s / taken.max(1e-12) * requests / requests_of);
            (requests_of / seconds, executed * part)
        });
        let measured = Measured {
            rate: requests / seconds,
            residence: all.sum / requests,
            queue: queue.as_ref().and_then(Histogram::mean).unwrap_or(0.0),
            queue_p99: queue.as_ref().and_then(|h| h.quantile(0.99)).unwrap_or(0.0),
            receive: phase("receive"),
            framing,
            reply: phase("reply"),
            upcall: phase("upcall"),
            pools,
            cpus: (cpus as usize).max(1),
            cpu_busy: (cpus - idle / seconds).max(0.0),
            write_bytes: write_bytes(w),
            foreign: foreign(w),
            clients_are_local: !users.is_empty() && users.iter().all(|c| is_local(c.name)),
            log,
            disk,
            clients: clients.collect(),
            kinds,
        };
        measured.is_plausible(seconds)?;
        Ok(measured)
    }

    /// Refuses figures that contradict each other: their simulation would take memory and time without a bound.
    fn is_plausible(&self, seconds: f64) -> Result<(), Refusal> {
        let kinds = || self.kinds.iter();
        let parts = |k: &Kind| [k.mean, k.cpu, k.log, k.disk, k.sleep(), k.runqueue];
        let longest = kinds().flat_map(parts).fold(0.0, longer);
        for (what, value, most) in [
            ("window", 1.0 / seconds, 10.0),
            ("rate", self.rate, 1e8),
            ("time in the server", self.residence, 1e5),
            (
                "number of requests in the server",
                self.rate * self.residence,
                2e4,
            ),
            ("wait for a thread", self.queue, 1e5),
            ("time of an operation", longest, 1e5),
            ("number of threads", self.threads() as f64, 65_536.0),
            ("number of CPUs", self.cpus as f64, 65_536.0),
        ] {
            // NaN is not in the range either.
            if !(0.0..=most).contains(&value) {
                return Err(Refusal::Implausible(what));
            }
        }
        Ok(())
    }

    pub fn threads(&self) -> usize {
        self.pools.iter().map(|p| p.0).sum()
    }

    /// Requests of the window.
    pub fn requests(&self) -> f64 {
        self.kinds.iter().map(|k| k.count).sum()
    }

    /// Mean per request of a part of the execution.
    pub fn per_request(&self, part: impl Fn(&Kind) -> f64) -> f64 {
        self.kinds.iter().map(|k| part(k) * k.count).sum::<f64>() / self.requests().max(1e-12)
    }
}

/// The larger of two durations; NaN or a negative one counts as larger.
fn longer(a: f64, b: f64) -> f64 {
    match a.is_nan() || b.is_nan() || a < 0.0 || b < 0.0 {
        true => f64::NAN,
        false => a.max(b),
    }
}

/// Returns true for an address of the loopback network.
fn is_local(address: &str) -> bool {
    let address: Result<IpAddr, _> = address.parse();
    address.is_ok_and(|a| a.is_loopback())
}

fn write_bytes(w: &Window) -> Option<f64> {
    let writes = histograms(w, &f::IO_SIZE).filter(|([_, op], _)| *op == "write");
    let all = Histogram::merged(writes.map(|(_, h)| h))?;
    all.mean().filter(|bytes| *bytes > 0.0)
}

/// Kinds of requests, and seconds per request of operations that belong to no kind.
fn kinds(parts: &[WindowOp], requests: &HashMap<&str, f64>) -> Option<(Vec<Kind>, f64)> {
    let mut out = Vec::new();
    let mut framing = 0.0;
    for (version, requests) in requests {
        let of = || parts.iter().filter(|o| o.version == *version);
        let compound = version.starts_with('4');
        let inner =
            |o: &&WindowOp| compound && (FRAMING.contains(&o.op) || SECONDARY.contains(&o.op));
        let main: f64 = of()
            .filter(|o| !inner(o))
            .map(|o| o.durations.count() as f64)
            .sum();
        // COMPOUNDs with more than one of these operations: together the operations are one request.
        let scale = if main > *requests {
            requests / main
        } else {
            1.0
        };
        for o in of().filter(|o| !inner(o)) {
            out.push(kind(o, o.durations.count() as f64 * scale, 1.0 / scale)?);
        }
        let rest = requests - main;
        let mut secondary = 0.0;
        for o in of().filter(inner) {
            let alone = o.op == "getattr" && rest > 0.02 * requests;
            if alone {
                out.push(kind(o, rest, 1.0)?);
                secondary += o.durations.sum * (1.0 - rest / o.durations.count() as f64).max(0.0);
            } else {
                secondary += o.durations.sum;
            }
        }
        framing += secondary;
    }
    out.sort_by(|a: &Kind, b| (b.mean * b.count).total_cmp(&(a.mean * a.count)));
    let all: f64 = requests.values().sum();
    (!out.is_empty()).then_some((out, framing / all.max(1.0)))
}

/// Builds a kind of request. `times` is the number of its operations in one request.
fn kind(o: &WindowOp, count: f64, times: f64) -> Option<Kind> {
    let phases = o.phases?;
    let n = o.durations.count() as f64 / times;
    let mut asleep: Vec<_> = phase::OF_OP
        .into_iter()
        .zip(phases)
        .map(|(name, seconds)| (name, seconds.unwrap_or(0.0) / n))
        .collect();
    let mut part = |name: &str| match asleep.iter().position(|p| p.0 == name) {
        Some(i) => asleep.remove(i).1,
        None => 0.0,
    };
    let [cpu, runqueue, log, disk] = ["cpu", "runqueue", "log", "disk"].map(&mut part);
    Some(Kind {
        version: o.version.into(),
        op: o.op.into(),
        count,
        mean: o.durations.sum / n,
        p99: o.durations.quantile(0.99)?,
        cpu,
        runqueue,
        log,
        disk,
        asleep,
    })
}
