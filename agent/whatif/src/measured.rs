//! What the model needs of a window, or why it is not there.

use crate::durations::Durations;
use crate::refusal::{MIN_REQUESTS, Refusal};
use nfscope_model::window_parts::{WindowOp, clients, histograms, logs, numbers, ops, rpc_phases};
use nfscope_model::{Histogram, Window, family as f, phase};
use std::collections::HashMap;

/// Parts of a COMPOUND that are no request by themselves.
const FRAMING: [&str; 6] = [
    "sequence",
    "putfh",
    "putrootfh",
    "getfh",
    "savefh",
    "restorefh",
];
/// Parts that are a request only where nothing else is.
const SECONDARY: [&str; 2] = ["getattr", "access"];

/// One kind of request.
#[derive(Debug, Clone)]
pub(crate) struct Kind {
    pub version: String,
    pub op: String,
    /// Requests of it.
    pub count: f64,
    pub mean: f64,
    pub p99: f64,
    /// Means of one request, in seconds.
    pub cpu: f64,
    pub runqueue: f64,
    pub log: f64,
    pub disk: f64,
    pub lock: f64,
}

#[derive(Debug, Clone)]
pub(crate) struct MeasuredLog {
    pub fs: String,
    pub name: String,
    pub waits: f64,
    pub wait: Durations,
    pub commit: Option<Durations>,
    /// Mean time of a write by its device, and how many of them one commit makes one after the other.
    pub device: Option<(String, f64, f64)>,
    /// Time of waits for other logs, as a part of all.
    pub others: f64,
}

#[derive(Debug, Clone)]
pub(crate) struct MeasuredDisk {
    pub name: String,
    pub service: Durations,
    /// Mean number of requests under way while there was one.
    pub in_flight: f64,
    /// Mean wait before the device, as a part of its time.
    pub queued: f64,
}

#[derive(Debug, Clone)]
pub(crate) struct Measured {
    pub rate: f64,
    pub residence: f64,
    pub queue: f64,
    pub queue_p99: f64,
    /// Per request: socket and authentication, parts of COMPOUNDs that are no kind, reply.
    pub receive: f64,
    pub framing: f64,
    pub reply: f64,
    pub kinds: Vec<Kind>,
    /// Threads and requests of each pool.
    pub pools: Vec<(usize, f64)>,
    pub cpus: usize,
    /// CPU seconds per second.
    pub cpu_busy: f64,
    pub log: Option<MeasuredLog>,
    pub disk: Option<MeasuredDisk>,
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
        let all = all.ok_or(Refusal::TooFew(by_version.values().sum()))?;
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
        Ok(Measured {
            rate: requests / seconds,
            residence: all.sum / requests,
            queue: queue.as_ref().and_then(Histogram::mean).unwrap_or(0.0),
            queue_p99: queue.as_ref().and_then(|h| h.quantile(0.99)).unwrap_or(0.0),
            receive: phase("receive"),
            framing,
            reply: phase("reply"),
            pools,
            cpus: (cpus as usize).max(1),
            cpu_busy: (cpus - idle / seconds).max(0.0),
            log,
            disk,
            clients: clients.collect(),
            kinds,
        })
    }

    pub fn threads(&self) -> usize {
        self.pools.iter().map(|p| p.0).sum()
    }

    /// Mean of a part of the requests' execution.
    pub fn per_request(&self, part: impl Fn(&Kind) -> f64) -> f64 {
        let requests: f64 = self.kinds.iter().map(|k| k.count).sum();
        self.kinds.iter().map(|k| part(k) * k.count).sum::<f64>() / requests.max(1e-12)
    }
}

/// Kinds of requests, and seconds per request that belong to none.
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
        // More than one of them in a COMPOUND: together they are one request.
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

/// `times`: operations in one request.
fn kind(o: &WindowOp, count: f64, times: f64) -> Option<Kind> {
    let phases = o.phases?;
    let n = o.durations.count() as f64 / times;
    let seconds = |name: &str| {
        let at = phase::OF_OP.iter().position(|p| *p == name);
        at.and_then(|i| phases[i]).unwrap_or(0.0)
    };
    let part = |name: &str| seconds(name) / n;
    Some(Kind {
        version: o.version.into(),
        op: o.op.into(),
        count,
        mean: o.durations.sum / n,
        p99: o.durations.quantile(0.99)?,
        cpu: part("cpu"),
        runqueue: part("runqueue"),
        log: part("log"),
        disk: part("disk"),
        // Whatever else it sleeps for has a holder that no window names.
        lock: part("lock") + phase::RARE.iter().map(|name| part(name)).sum::<f64>(),
    })
}

fn log(w: &Window) -> Option<MeasuredLog> {
    let all = logs(w);
    let time = |l: &nfscope_model::window_parts::WindowLog| l.waits.map_or(0.0, |h| h.sum);
    let first = all.iter().max_by(|a, b| time(a).total_cmp(&time(b)))?;
    let wait = Durations::of(first.waits?)?;
    let sum: f64 = all.iter().map(time).sum();
    let device = first.writes.filter(|h| h.count() > 0).and_then(|commits| {
        let mut devices: HashMap<&str, (f64, f64)> = HashMap::new();
        for ([device, op], h) in histograms(w, &f::BLOCK_DEVICE) {
            if op == "write" || op == "flush" {
                let all = devices.entry(device).or_default();
                all.0 += h.count() as f64;
                all.1 += h.sum;
            }
        }
        // While the log is written its device is busy with that, and with little else where it is separate.
        let busy = commits.sum;
        let near = |sum: f64| (sum / busy).ln().abs();
        let (name, (n, sum)) = devices
            .into_iter()
            .filter(|(_, (n, _))| *n > 0.0)
            .min_by(|a, b| near(a.1.1).total_cmp(&near(b.1.1)))?;
        let mean = sum / n;
        let path = (busy / commits.count() as f64 / mean + 0.15)
            .floor()
            .max(1.0);
        (near(sum) < 0.7).then(|| (name.to_owned(), mean, path))
    });
    Some(MeasuredLog {
        fs: first.fs.into(),
        name: format!("{} on {}", first.fs, first.volume),
        waits: first.waits?.count() as f64,
        wait,
        commit: first.writes.and_then(Durations::of),
        device,
        others: 1.0 - time(first) / sum.max(1e-12),
    })
}

fn disk(w: &Window, but: Option<&str>, read: bool) -> Option<MeasuredDisk> {
    let busy: HashMap<_, _> = numbers(w, &f::BLOCK_BUSY).map(|(l, v)| (l[0], v)).collect();
    let mut service = Vec::new();
    let (mut name, mut largest, mut time, mut busy_time) = (String::new(), 0.0, 0.0, 0.0);
    let mut queued = 0.0;
    for ([device, op], h) in histograms(w, &f::BLOCK_DEVICE) {
        if but == Some(device) || (op == "read") != read {
            continue;
        }
        time += h.sum;
        if h.sum > largest {
            largest = h.sum;
            name = device.into();
            busy_time = busy.get(device).copied().unwrap_or(0.0);
        }
        queued += w
            .delta
            .hist(&f::BLOCK_QUEUE, [device, op])
            .map_or(0.0, |q| q.sum);
        service.push(h);
    }
    Some(MeasuredDisk {
        name,
        service: Durations::of(&Histogram::merged(service)?)?,
        in_flight: if busy_time > 0.0 {
            (largest / busy_time).max(1.0)
        } else {
            1.0
        },
        queued: queued / time.max(1e-12),
    })
}
