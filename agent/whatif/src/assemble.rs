//! Candidate servers for a window: one for each assumption about what the window does not measure.

use crate::durations::Durations;
use crate::measured::{Kind, Measured};
use crate::server::{Class, Clients, Disk, Log, Pace, Pool, Server, Writer};

/// Part of the clients' time that is spent in the server, from which on they count as busy without a pause.
const NO_PAUSE: f64 = 0.85;
/// Part of the clients' time below which a pause counts as chance.
const CHANCE: f64 = 0.01;
/// Requests in the server per client, from which on a client has more than one under way. It is above 1, because the requests of some
/// clients wait longer in queues than the mean of all clients says.
const SEVERAL: f64 = 1.3;
/// Part of a commit's or log wait's time in a disk's queue, from which on the disk counts as queued.
const QUEUED: f64 = 0.2;
/// Part of the CPUs in use above which tasks wait for each other.
const BUSY_CPUS: f64 = 0.7;
/// Part of the CPUs in use above which they count as full.
const FULL_CPUS: f64 = 0.95;

/// Ways in which the log may work, most likely first.
pub(crate) fn logs(m: &Measured) -> Vec<Log> {
    let Some(log) = &m.log else {
        return vec![Log::Delay(Durations::Constant(0.0))];
    };
    let mut all = Vec::new();
    if let Some(commit) = &log.commit {
        let group = |at_once: usize, gather: f64| Log::Group {
            at_once,
            commit: commit.clone(),
            cpu: 0.0,
            writer: match log.fs.as_str() {
                // btrfs_sync_log() opens the next log when it has waited for the last one. In OpenZFS the first waiter whose time is up
                // issues the block (zil_commit_waiter()).
                "btrfs" | "zfs" => Writer::Waiter,
                // The checkpoint is pushed before the thread waits for the last write in xlog_force_lsn().
                "xfs" => Writer::WaiterOfClosed,
                _ => Writer::Task,
            },
            gather,
        };
        match log.fs.as_str() {
            // jbd2 commits one transaction at a time.
            "ext4" => all.push(group(1, 0.0)),
            // The intent log writes blocks side by side. It holds each block back for a part of the last one's time: 10 %, before 2.2 5 %
            // (zfs_commit_timeout_pct).
            "zfs" => {
                let gather = [0.1, 0.05, 0.0].map(|part| part * commit.mean());
                all.extend(gather.map(|gather| group(64, gather)));
                all.push(group(1, 0.0));
            }
            _ => all.extend([group(1, 0.0), group(2, 0.0), group(8, 0.0)]),
        }
    }
    // The wait for a CPU after the log wait is left out: the simulation adds it.
    let asleep = m.per_request(|k| k.log) * m.requests() / log.waits;
    let wait = asleep.min(log.wait.mean());
    all.push(Log::Delay(log.wait.with_mean(wait)));
    all
}

/// Part of execution in waits for disks, from which on it matters how many requests the disks serve at once.
const DISK_MATTERS: f64 = 0.1;

/// Returns true if waits for disks are at least `DISK_MATTERS` of execution, so that the number of requests that the disks serve at once
/// matters.
pub(crate) fn disk_decides(m: &Measured) -> bool {
    m.per_request(|k| k.disk) >= DISK_MATTERS * m.per_request(|k| k.mean)
}

/// Numbers of requests that the disks may serve at once, most likely first.
pub(crate) fn disks(m: &Measured) -> Vec<Disk> {
    let Some(disk) = &m.disk else {
        return vec![Disk {
            at_once: None,
            service: Durations::Exponential(m.per_request(|k| k.disk)),
        }];
    };
    let with = |at_once| Disk {
        at_once,
        service: disk.service.clone(),
    };
    let seen = Some(disk.in_flight.ceil() as usize);
    if !disk_decides(m) {
        return vec![with(None)];
    }
    if disk.queued > QUEUED {
        return vec![with(seen)];
    }
    vec![with(None), with(seen)]
}

/// Moment at which a client sends its next request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Asks {
    /// At the reply. Pauses that clients seem to make are waits for a CPU of the server, because their programs run there.
    AtOnce,
    /// A while after the reply.
    AfterPause,
    /// By the clock.
    ByTheClock,
}

/// Returns true if the CPUs are full.
pub(crate) fn is_full(m: &Measured) -> bool {
    m.cpu_busy > FULL_CPUS * m.cpus as f64
}

/// Moments at which clients may send their next requests, most likely first.
pub(crate) fn asks(m: &Measured) -> Vec<Asks> {
    let pauses = m.clients.iter().map(|(rate, _)| 1.0 - rate * m.residence);
    let pause = pauses.sum::<f64>() / (m.clients.len() as f64) > 1.0 - NO_PAUSE;
    let mut all = match pause {
        true => vec![Asks::ByTheClock, Asks::AfterPause],
        false => vec![Asks::AfterPause],
    };
    if m.clients_are_local && is_full(m) {
        all.insert(0, Asks::AtOnce);
    }
    all
}

/// Assumptions about the CPU time outside of nfsd, most likely first: true if it preempts nfsd, as interrupts do. Programs of clients on
/// the server itself do not preempt it. The assumption matters where CPUs are scarce.
pub(crate) fn who_is_urgent(m: &Measured) -> Vec<bool> {
    match m.cpu_busy > BUSY_CPUS * m.cpus as f64 {
        _ if m.clients_are_local => vec![false],
        true => vec![true, false],
        false => vec![true],
    }
}

/// CPU seconds of a request outside of nfsd's threads.
fn other_cpu(m: &Measured) -> f64 {
    let nfsd = m.per_request(|k| k.cpu) + m.framing;
    let room = (m.cpu_busy / m.rate - nfsd).max(0.0);
    room - (m.receive + m.reply).min(room)
}

/// Returns true if a waiting nfsd thread writes the log after the last write has ended (btrfs_sync_log()). Then the CPU time of the write
/// belongs to the operation, and the threads that woke before it go first.
fn is_written_by_threads(m: &Measured) -> bool {
    m.log.as_ref().is_some_and(|l| l.fs == "btrfs")
}

/// CPU seconds per request that writing the log may use at most. The network outside of nfsd's threads takes at least as much as receiving
/// and replying take in them, because each message has another end.
pub(crate) fn log_cpu_of(m: &Measured) -> f64 {
    let other = other_cpu(m);
    match is_written_by_threads(m) {
        true => m.per_request(|k| if k.log > 0.0 { k.cpu } else { 0.0 }),
        false => (other - (m.receive + m.reply)).max(0.0),
    }
}

/// The server with this log and these disks.
pub(crate) fn server(
    m: &Measured,
    log: &Log,
    disk: &Disk,
    asks: Asks,
    other_is_urgent: bool,
) -> Server {
    let mean_disk = disk.service.mean();
    let log_time = m.per_request(|k| k.log);
    let waits = m.log.as_ref().map_or(0.0, |l| l.waits);
    let requests: f64 = m.kinds.iter().map(|k| k.count).sum();
    let waits_per_request = waits / requests.max(1e-12);
    let nfsd = m.per_request(|k| k.cpu) + m.framing;
    let cpu_each = m.cpu_busy / m.rate;
    // Receiving and replying count as CPU time as far as the CPUs were busy at all. The rest of them is waiting for a CPU.
    let room = (cpu_each - nfsd).max(0.0);
    let network = (m.receive + m.reply).min(room);
    let scale = network / (m.receive + m.reply).max(1e-12);
    // CPU time of writing the log is a part of the threads' CPU time (btrfs), or of the CPU time outside of nfsd.
    let log_cpu = match (log, &m.log) {
        (Log::Group { cpu, .. }, Some(measured)) => cpu * measured.commits_by_request(m.requests()),
        _ => 0.0,
    };
    let (of_threads, of_others) = match is_written_by_threads(m) {
        true => (log_cpu / log_cpu_of(m).max(1e-12), 0.0),
        false => (0.0, log_cpu),
    };
    let cpu_of = |k: &Kind| match k.log > 0.0 {
        true => k.cpu * (1.0 - of_threads).max(0.0),
        false => k.cpu,
    };
    let classes = m.kinds.iter().map(|k| Class {
        name: format!("{} {}", k.op, k.version),
        receive: Durations::Even(m.receive * scale + m.framing),
        cpu: Durations::Even(cpu_of(k)),
        disk_visits: if mean_disk > 0.0 {
            k.disk / mean_disk
        } else {
            0.0
        },
        log_waits: match log_time > 0.0 {
            true => (k.log / log_time * waits_per_request).max(0.0),
            false => 0.0,
        },
        sleep: Durations::Even(k.sleep() + m.upcall),
        reply: Durations::Even(m.reply * scale),
    });
    let other_cpu = (room - network - of_others).max(0.0);
    Server {
        classes: classes.collect(),
        pools: m
            .pools
            .iter()
            .map(|(threads, share)| Pool {
                threads: *threads,
                share: *share,
            })
            .collect(),
        cpus: m.cpus,
        other_cpu: Durations::Even(other_cpu),
        other_is_urgent,
        log: log.clone(),
        disk: disk.clone(),
        clients: clients(m, asks, other_cpu),
    }
}

/// Requests that clients may pause before, on average, without a trace in the window: it begins and ends amid requests.
pub(crate) fn unseen_outside(m: &Measured, streams: f64) -> f64 {
    streams * (streams / m.requests()).max(CHANCE)
}

/// Groups clients with about the same rate and execution time. The groups with the longest execution times get the slowest kinds of
/// requests.
fn clients(m: &Measured, asks: Asks, other_cpu: f64) -> Vec<Clients> {
    let average = m.rate / m.clients.len().max(1) as f64;
    let mut one_by_one: Vec<(f64, f64)> = m
        .clients
        .iter()
        .copied()
        .filter(|c| c.0 > average * 0.02)
        .collect();
    one_by_one.sort_by(|a, b| a.1.total_cmp(&b.1));
    // (clients, rate, execution time times rate, execution time of the group's first client)
    let mut groups: Vec<(usize, f64, f64, f64)> = Vec::new();
    for (rate, mean) in one_by_one {
        match groups.last_mut() {
            Some(g) if mean < g.3 * 2.0 => {
                g.0 += 1;
                g.1 += rate;
                g.2 += rate * mean;
            }
            _ => groups.push((1, rate, rate * mean, mean)),
        }
    }
    if groups.is_empty() {
        groups.push((1, m.rate, m.rate * m.per_request(|k| k.mean), 0.0));
    }
    let all: f64 = groups.iter().map(|g| g.1).sum();
    let requests: f64 = m.kinds.iter().map(|k| k.count).sum();
    let mut left: Vec<(usize, f64)> = m
        .kinds
        .iter()
        .map(|k| k.count / requests)
        .enumerate()
        .collect();
    left.sort_by(|a, b| m.kinds[a.0].mean.total_cmp(&m.kinds[b.0].mean));
    let executed = m.per_request(|k| k.mean);
    let outside = m.residence - executed;
    let count = m.kinds.len();
    let groups = groups.into_iter().map(|(n, rate, time, _)| {
        let mut mix = vec![0.0; count];
        let mut wanted = rate / all;
        for (kind, share) in &mut left {
            let part = share.min(wanted);
            mix[*kind] += part;
            *share -= part;
            wanted -= part;
        }
        let rate = rate / all * m.rate;
        let residence = time / rate * (m.rate / all) + outside;
        let inside = rate * residence;
        let streams = match inside > n as f64 * SEVERAL {
            true => inside.round() as usize,
            false => n,
        };
        let cycle = streams as f64 / rate;
        let pause = (cycle - residence - other_cpu).max(0.0);
        (streams, cycle, pause, mix)
    });
    let groups: Vec<_> = groups.collect();
    // Little's law gives the pauses of all clients together. The pauses of one client are not known, because only the mean wait for a
    // thread is measured.
    let streams: usize = groups.iter().map(|g| g.0).sum();
    let outside = streams as f64 - m.rate * (m.residence + other_cpu);
    let outside = if outside > unseen_outside(m, streams as f64) {
        outside
    } else {
        0.0
    };
    let pausing: f64 = groups.iter().map(|g| g.0 as f64 * g.2 / g.1).sum();
    let part = (outside / pausing.max(1e-12)).min(1.0);
    groups
        .into_iter()
        .map(|(streams, cycle, pause, mix)| Clients {
            streams,
            pace: match asks {
                Asks::ByTheClock if pause > 0.0 => Pace::Period(cycle),
                Asks::AtOnce => Pace::Think(0.0),
                _ => Pace::Think(pause * part),
            },
            mix,
        })
        .collect()
}
