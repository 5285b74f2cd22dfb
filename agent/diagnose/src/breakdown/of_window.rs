//! Computes the breakdown of a window.

use super::{
    Breakdown, Client, Disk, Log, NamedWaits, Op, Pending, Phases, TINY_READ_BYTES, part, sum,
};
use crate::connections::Connections;
use crate::export_io::ExportIo;
use crate::log_bytes;
use crate::long_waits::long_waits;
use crate::put_off::{Denied, NlmClient, PutOff, Retrying};
use crate::recalls::{Layouts, Recalls};
use crate::refused::Refused;
use crate::thresholds::{FELT_SECONDS, MIN_COUNT};
use nfscope_model::family::Info;
use nfscope_model::probe::is_illumos;
use nfscope_model::unacknowledged::{Unacknowledged, unseen_transports};
use nfscope_model::window_mounts::{self};
use nfscope_model::window_parts::{self, PhaseSeconds, histograms, numbers};
use nfscope_model::{Family, HeldRequest, Histogram, Window, family as f, phase};
use std::collections::HashMap;

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
            queued: queue_times.as_ref().map_or(0.0, |h| h.count() as f64),
            no_clock: w.delta.value(&f::RPC_NO_CLOCK, []).unwrap_or(0.0),
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
            // Operations without phases mean that this host cannot measure phases. Without operations nothing is missing.
            phases: phases_of_all.or_else(|| ops.is_empty().then_some(NOTHING_WAITED)),
            ops,
            put_off: PutOff::all(w),
            denied: Denied::all(w),
            nlm_clients: NlmClient::all(w),
            lock_holders: lock_holders(w),
            in_grace: w.delta.value(&f::IN_GRACE, []).map(|v| v > 0.0),
            server_change: w.delta.value(&f::SERVER_CHANGE, []),
            retrying: Retrying::all(w),
            unacknowledged: Unacknowledged::all(&w.delta),
            unseen_transports: unseen_transports(w),
            recalls: Recalls::of(w),
            layouts: Layouts::of(w),
            mounts: window_mounts::mounts(w),
            mounts_are_seen: !lacks(w, &f::VIEW_SOURCE_INFO.info)
                && (lacks(w, &f::VIEW_STAGE.info) || !lacks(w, &f::VIEW_RPCS.info)),
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
            log_bytes: log_bytes::by_log(w),
            disks: disks(w),
            clients: clients(w),
            connections: Connections::of(w),
            refused: Refused::of(w),
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
        // With an unknown device of an export, no slow device can be excluded.
        breakdown.export_devices =
            Some(of_exports).filter(|all| !all.is_empty() && !all.contains_key(f::UNKNOWN_DEVICE));
        breakdown.export_io =
            (breakdown.export_devices.as_ref()).and_then(|devices| ExportIo::of(w, devices));
        breakdown.untimed = breakdown.untimed(w);
        let read = [
            &f::BLOCK_DEVICE.info,
            &f::COMPOUND_OPS.info,
            &f::IO_SIZE.info,
            &f::LOG_WAIT.info,
            &f::UPCALL_WAIT.info,
            &f::WRITE.info,
            &f::WRITE_BYTES.info,
        ];
        // The scripts for illumos have a series only after its first event, so a missing one means nothing there.
        let lacking = (read.into_iter()).filter(|info| !breakdown.illumos && lacks(w, info));
        breakdown.lacking = lacking.map(|info| info.name).collect();
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

    /// Returns the family of metrics that is missing. `None` if requests, their time and their operations are all measured, or if there
    /// were none.
    fn untimed(&self, w: &Window) -> Option<&'static str> {
        // A client that only checks that the server is there sends no operation.
        let operations = self.ops.iter().any(|o| o.count > 0.0);
        let requests = self.requests >= MIN_COUNT || self.felt > 0.0;
        [
            (&f::RPC_DURATION.info, operations || self.residence > 0.0),
            (&f::RPC_PHASE.info, operations || requests),
            (&f::OP_DURATION.info, requests),
        ]
        .into_iter()
        .find_map(|(info, happened)| (happened && lacks(w, info)).then_some(info.name))
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
            self.read_bytes += h.sum;
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
            let saturated = value(&f::THREADS_SATURATED, pool).map(|s| part(s, self.length));
            // All queues are 0 if no arrival was seen. Then the pool that was saturated longest counts.
            if queue > longest_queue || (queue == longest_queue && saturated > self.saturated) {
                longest_queue = queue;
                self.saturated = saturated;
            }
        }
        // Requests in hand have kept threads busy, too, and are counted when they end.
        let held = sum(self.held.iter().map(|r| r.seconds.min(self.length)));
        self.busy = busy.map(|s| part(s + held, self.threads * self.length).min(1.0));
    }

    fn add_cpus(&mut self, w: &Window) {
        self.cpus = w.delta.value(&f::CPUS, []).filter(|n| *n > 0.0);
        let idle = w.delta.value(&f::CPU_IDLE, []);
        if let (Some(n), Some(idle)) = (self.cpus, idle) {
            self.cpu_idle = (self.length > 0.0).then(|| part(idle, n * self.length));
        }
    }
}

fn lacks(w: &Window, info: &Info) -> bool {
    w.delta.series(info).is_empty()
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
            writes: log.writes.cloned(),
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

/// Clients that hold locks, those with the most first.
fn lock_holders(w: &Window) -> Vec<(String, f64)> {
    let mut all: Vec<_> = numbers(w, &f::CLIENT_LOCKS_HELD)
        .map(|([client], n)| (client.to_owned(), n))
        .collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    all
}

/// Requests of a client that were sent with `slots` (free or full) in its session.
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
            requests: (w.delta.value(&f::CLIENT_REQUESTS, [client.name])).filter(|n| n.is_finite()),
            seconds: client.seconds.unwrap_or(0.0),
            written: count(w.delta.value(&f::CLIENT_IO_BYTES, [client.name, "write"])),
            reply: replies.get(&[client.name]).copied(),
            min_rtt: client.min_rtt,
            sequenced: slots_of(w, client.name, "free") + slots_of(w, client.name, "full"),
            full: slots_of(w, client.name, "full"),
            slots: w.delta.value(&f::CLIENT_SESSION_SLOTS, [client.name]),
            walks: count(w.delta.value(&f::CLIENT_WALKS, [client.name, "4"])),
            opens: count(w.delta.value(&f::CLIENT_OPENS, [client.name])),
            open_seconds: (w.delta.value(&f::CLIENT_OPEN_SECONDS, [client.name]))
                .filter(|s| s.is_finite()),
        });
    let mut all: Vec<_> = named.collect();
    all.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    all
}
