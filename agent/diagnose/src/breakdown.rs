//! Where the time of a window's requests went, and what was used meanwhile: what every rule argues from.

use nfscope_model::{Family, Histogram, Window, family as f, phase};
use std::collections::{BTreeMap, HashMap};

/// One operation of one version.
#[derive(Debug, Clone, Default)]
pub struct Op {
    /// Label `version`.
    pub version: String,
    /// Label `op`.
    pub op: String,
    /// How many.
    pub count: f64,
    /// Their time.
    pub seconds: f64,
    /// What it went into.
    pub phases: Phases,
}

/// Operations by version and name.
type ByOp<'a> = BTreeMap<[&'a str; 2], Phases>;

/// Seconds of operations by what the threads did. `None`: this host does not tell it apart, it is in `lock`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Phases {
    /// On a processor.
    pub cpu: f64,
    /// Waiting for one.
    pub runqueue: Option<f64>,
    /// Asleep for the log.
    pub log: Option<f64>,
    /// Asleep for block I/O.
    pub disk: f64,
    /// Any other sleep.
    pub lock: f64,
}

/// The log of one filesystem or pool.
#[derive(Debug, Clone)]
pub struct Log {
    /// Label `fs`.
    pub fs: String,
    /// Label `volume`.
    pub volume: String,
    /// Waits of threads for it.
    pub waits: Histogram,
    /// The times of its writes, together.
    pub written: Option<f64>,
    /// On a device of its own.
    pub separate: Option<bool>,
}

/// Block requests of one device and direction.
#[derive(Debug, Clone)]
pub struct Disk {
    /// Label `device`.
    pub device: String,
    /// Label `op`.
    pub op: String,
    /// Issue to completion.
    pub requests: Histogram,
}

/// Who asked.
#[derive(Debug, Clone)]
pub struct Client {
    /// Label `client`.
    pub name: String,
    /// Operations.
    pub ops: f64,
    /// Their time.
    pub seconds: f64,
    /// Round-trip time of its connection.
    pub rtt: Option<f64>,
}

/// The account of a window. Every number is finite and at least 0.
#[derive(Debug, Clone, Default)]
pub struct Account {
    /// Length of the window.
    pub length: f64,
    /// Requests that ended.
    pub requests: f64,
    /// From arrival to reply, together: the sum of the four that follow.
    pub residence: f64,
    /// No thread had taken them yet.
    pub queue: f64,
    /// Read from the socket, authenticated.
    pub receive: f64,
    /// Executed.
    pub execute: f64,
    /// Handed to the socket.
    pub reply: f64,
    /// A tenth of the requests waited less for a thread.
    pub queue_p10: Option<f64>,
    /// 99 % of them did.
    pub queue_p99: Option<f64>,
    /// Operations with time in them.
    pub ops: Vec<Op>,
    /// Of all operations; `None` where they are not split.
    pub phases: Option<Phases>,
    /// Threads of all pools.
    pub threads: f64,
    /// Most that the pools may have, where they grow by themselves.
    pub thread_limit: Option<f64>,
    /// The part of their time that threads had a request in hand.
    pub busy: Option<f64>,
    /// The part of the window in which a pool had no free thread, of the pool where requests waited most.
    pub saturated: Option<f64>,
    /// Processors online.
    pub processors: Option<f64>,
    /// The part of the processors' time that nobody used.
    pub idle: Option<f64>,
    /// Those that were waited for or written.
    pub logs: Vec<Log>,
    /// Those with requests.
    pub disks: Vec<Disk>,
    /// Whoever asked, the most time first; without the `other`s.
    pub clients: Vec<Client>,
    /// WRITEs that the client wanted durable at once.
    pub stable_writes: f64,
    /// All WRITEs.
    pub writes: f64,
    /// Their bytes.
    pub write_bytes: f64,
    /// READs, and those of them of at most [`TINY`] bytes.
    pub reads: f64,
    /// See `reads`.
    pub tiny_reads: f64,
    /// NFSv4 COMPOUNDs, and the operations in them.
    pub compounds: f64,
    /// See `compounds`.
    pub compound_ops: f64,
    /// Bytes of changes that went past ZFS's log device (`indirect`), and all.
    pub past_log: (f64, f64),
}

/// A READ of no more is tiny: half a page, and less than any database reads at a time.
pub const TINY: f64 = 2048.0;

impl Phases {
    fn add(&mut self, phase: &str, seconds: f64) {
        match phase {
            "cpu" => self.cpu += seconds,
            "runqueue" => *self.runqueue.get_or_insert(0.0) += seconds,
            "log" => *self.log.get_or_insert(0.0) += seconds,
            "disk" => self.disk += seconds,
            "lock" => self.lock += seconds,
            _ => {}
        }
    }
}

/// A part of a whole, 0 where there is none.
pub fn part(of: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        (of / whole).clamp(0.0, 1.0)
    } else {
        0.0
    }
}

/// A sum; of nothing 0, where `sum()` says -0.
pub fn sum(all: impl Iterator<Item = f64>) -> f64 {
    all.fold(0.0, |sum, n| sum + n)
}

/// An average, 0 of nothing.
pub fn mean(sum: f64, count: f64) -> f64 {
    if count > 0.0 { sum / count } else { 0.0 }
}

impl Account {
    /// Draws it up.
    pub fn of(w: &Window) -> Account {
        let length = w.length.as_secs_f64();
        let seconds = |name: &str| {
            let of = numbers(w, &f::RPC_PHASE).filter(|([_, p], _)| *p == name);
            sum(of.map(|(_, v)| v))
        };
        let [queue, receive, execute, reply] = phase::OF_RPC.map(seconds);
        let (phases, of_all) = phases(w);
        let ops = ops(w, &phases);
        let waited = merged(histograms(w, &f::RPC_QUEUE).map(|(_, h)| h));
        let waited = |q: f64| waited.as_ref()?.quantile(q).filter(|t| t.is_finite());
        let mut a = Account {
            length,
            requests: sum(histograms(w, &f::RPC_DURATION).map(|(_, h)| h.count() as f64)),
            residence: queue + receive + execute + reply,
            queue,
            receive,
            execute,
            reply,
            queue_p10: waited(0.1),
            queue_p99: waited(0.99),
            // Operations without phases are not split here; where there are none, nothing is missing.
            phases: of_all.or_else(|| ops.is_empty().then(Phases::default)),
            ops,
            logs: logs(w),
            disks: histograms(w, &f::BLOCK_DEVICE)
                .map(|([device, op], h)| Disk {
                    device: device.to_owned(),
                    op: op.to_owned(),
                    requests: h.clone(),
                })
                .collect(),
            clients: clients(w),
            compounds: sum(histograms(w, &f::COMPOUND_OPS).map(|(_, h)| h.count() as f64)),
            compound_ops: sum(histograms(w, &f::COMPOUND_OPS).map(|(_, h)| h.sum)),
            write_bytes: sum(numbers(w, &f::WRITE_BYTES).map(|(_, v)| v)),
            ..Account::default()
        };
        a.threads(w);
        a.processors(w);
        for ([_, stability], n) in numbers(w, &f::WRITE) {
            a.writes += n;
            a.stable_writes += if stability == "unstable" { 0.0 } else { n };
        }
        for (_, h) in histograms(w, &f::IO_SIZE).filter(|([_, op], _)| *op == "read") {
            a.reads += h.count() as f64;
            let tiny = (0..h.counts.len()).take_while(|i| h.scheme.upper(*i) <= TINY);
            a.tiny_reads += sum(tiny.map(|i| h.counts[i] as f64));
        }
        for ([_, kind], v) in numbers(w, &f::ZFS_ITX_BYTES) {
            a.past_log.0 += if kind == "indirect" { v } else { 0.0 };
            a.past_log.1 += v;
        }
        a
    }

    fn threads(&mut self, w: &Window) {
        let value = |family: &Family<1>, pool: &str| w.delta.value(family, [pool]);
        let (mut busy, mut waited_most) = (None, -1.0);
        for ([pool], threads) in numbers(w, &f::THREADS) {
            self.threads += threads;
            if let Some(limit) = value(&f::THREADS_LIMIT, pool) {
                *self.thread_limit.get_or_insert(0.0) += limit;
            }
            if let Some(seconds) = value(&f::THREAD_BUSY, pool) {
                *busy.get_or_insert(0.0) += seconds;
            }
            let waited = w.delta.hist(&f::RPC_QUEUE, [pool]).map_or(0.0, |h| h.sum);
            if waited > waited_most {
                waited_most = waited;
                self.saturated = value(&f::THREADS_SATURATED, pool).map(|s| part(s, self.length));
            }
        }
        self.busy = busy.map(|s| part(s, self.threads * self.length));
    }

    fn processors(&mut self, w: &Window) {
        self.processors = w.delta.value(&f::CPUS, []).filter(|n| *n > 0.0);
        let idle = w.delta.value(&f::CPU_IDLE, []);
        if let (Some(n), Some(idle)) = (self.processors, idle) {
            self.idle = (self.length > 0.0).then(|| part(idle, n * self.length));
        }
    }

    /// So many a second.
    pub fn rate(&self, n: f64) -> f64 {
        mean(n, self.length)
    }

    /// The time that threads had a request in hand, by the requests' own account.
    pub fn occupied(&self) -> f64 {
        self.receive + self.execute + self.reply
    }

    /// The operation in which most of a phase's time went, with that time.
    pub fn most(&self, of: impl Fn(&Phases) -> f64) -> Option<(&Op, f64)> {
        let all = self.ops.iter().map(|o| (o, of(&o.phases)));
        all.filter(|(_, s)| *s > 0.0)
            .max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Operations of these names, of every version.
    pub fn named(&self, names: &[&str]) -> impl Iterator<Item = &Op> {
        self.ops.iter().filter(move |o| names.contains(&&*o.op))
    }

    /// The client with the most operations, and its part of all.
    pub fn busiest(&self) -> Option<(&Client, f64)> {
        let all = sum(self.clients.iter().map(|c| c.ops));
        let first = self.clients.iter().max_by(|a, b| a.ops.total_cmp(&b.ops))?;
        Some((first, part(first.ops, all)))
    }
}

fn ops(w: &Window, phases: &ByOp) -> Vec<Op> {
    histograms(w, &f::OP_DURATION)
        .map(|([version, op], h)| Op {
            version: version.to_owned(),
            op: op.to_owned(),
            count: h.count() as f64,
            seconds: h.sum,
            phases: phases.get(&[version, op]).copied().unwrap_or_default(),
        })
        .collect()
}

/// Of each operation, and of all; `None` where operations are not split.
fn phases(w: &Window) -> (ByOp<'_>, Option<Phases>) {
    let (mut each, mut all) = (ByOp::new(), None);
    for ([version, op, phase], seconds) in numbers(w, &f::OP_PHASE) {
        each.entry([version, op]).or_default().add(phase, seconds);
        all.get_or_insert_with(Phases::default).add(phase, seconds);
    }
    (each, all)
}

fn logs(w: &Window) -> Vec<Log> {
    let log = |([fs, volume], h): ([&str; 2], &Histogram)| Log {
        fs: fs.to_owned(),
        volume: volume.to_owned(),
        waits: h.clone(),
        written: w.delta.hist(&f::LOG_COMMIT, [fs, volume]).map(|h| h.sum),
        separate: w
            .delta
            .value(&f::LOG_SEPARATE, [fs, volume])
            .map(|v| v > 0.0),
    };
    let mut all: Vec<_> = histograms(w, &f::LOG_WAIT).map(log).collect();
    all.sort_by(|a, b| b.waits.sum.total_cmp(&a.waits.sum));
    all
}

fn clients(w: &Window) -> Vec<Client> {
    // There may be thousands of them.
    let seconds: HashMap<_, _> = numbers(w, &f::CLIENT_OP_SECONDS).collect();
    let rtt: HashMap<_, _> = numbers(w, &f::CLIENT_RTT).collect();
    let named = numbers(w, &f::CLIENT_OPS).filter(|([name], n)| *name != "other" && *n > 0.0);
    let mut all: Vec<_> = named
        .map(|([name], ops)| Client {
            name: name.to_owned(),
            ops,
            seconds: seconds.get(&[name]).copied().unwrap_or(0.0),
            rtt: rtt.get(&[name]).copied(),
        })
        .collect();
    all.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    all
}

fn merged<'a>(mut all: impl Iterator<Item = &'a Histogram>) -> Option<Histogram> {
    let mut first = all.next()?.clone();
    for h in all {
        first.merge(h);
    }
    Some(first)
}

/// Histograms of a family that have something in them; what cannot be is none.
fn histograms<'a, const N: usize>(
    w: &'a Window,
    family: &Family<N>,
) -> impl Iterator<Item = ([&'a str; N], &'a Histogram)> + use<'a, N> {
    let all = w.delta.histograms(family);
    all.filter(|(_, h)| h.sum.is_finite())
}

/// Counters or gauges of a family; what cannot be is none.
fn numbers<'a, const N: usize>(
    w: &'a Window,
    family: &Family<N>,
) -> impl Iterator<Item = ([&'a str; N], f64)> + use<'a, N> {
    let all = w.delta.numbers(family).filter(|(_, v)| v.is_finite());
    all.map(|(labels, v)| (labels, v.max(0.0)))
}
