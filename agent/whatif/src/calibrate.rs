//! From what was measured to servers that behave like it.
//!
//! What a window cannot tell has more than one answer: how many commits run at a time, how many requests a disk serves at once,
//! whether clients ask after each reply or by the clock. Each combination is a variant. Variants that do not reproduce the
//! measured rate, residence and log wait are dropped; the others all predict, and their spread is the interval (K. Beven and
//! A. Binley, The future of distributed models, Hydrological Processes 6, 1992).

use crate::durations::Durations;
use crate::measured::Measured;
use crate::outcome::Outcome;
use crate::refusal::Refusal;
use crate::server::{Class, Clients, Disk, Log, Pace, Pool, Server};
use crate::simulation::{Length, simulate};

/// A variant may be off by this part of what was measured.
pub(crate) const TOLERANCE: f64 = 0.15;
/// Largest part of execution in sleeps that nothing explains.
const MAX_SLEEP: f64 = 0.25;
/// Largest part of the threads' time for receiving and replying.
const MAX_NETWORK: f64 = 0.3;
const MAX_OTHER_LOGS: f64 = 0.2;
/// Clients are busy without pause if so much of their time is spent in the server.
const NO_PAUSE: f64 = 0.85;
/// Of a commit or a log wait in a disk's queue.
const QUEUED: f64 = 0.2;

/// One answer to what was not measured.
#[derive(Debug, Clone)]
pub(crate) struct Variant {
    pub server: Server,
    pub base: Outcome,
    /// Largest relative difference from what was measured.
    pub error: f64,
}

/// Servers that reproduce what was measured, the best one first.
pub(crate) fn variants(m: &Measured, length: Length) -> Result<Vec<Variant>, Refusal> {
    check(m)?;
    let mut fitting = Vec::new();
    let mut best: Option<Variant> = None;
    for (rank, log) in logs(m).into_iter().enumerate() {
        for disk in disks(m) {
            for paced in paces(m) {
                let mut server = server(m, log.clone(), disk.clone(), paced);
                let mut base = simulate(&server, length);
                let mut error = error_of(m, &base);
                if error > TOLERANCE {
                    others_on_the_cpus(m, &mut server, &base);
                    base = simulate(&server, length);
                    error = error_of(m, &base);
                }
                let v = Variant {
                    server,
                    base,
                    error,
                };
                if best.as_ref().is_none_or(|b| v.error < b.error) {
                    best = Some(v.clone());
                }
                if error <= TOLERANCE {
                    fitting.push((rank, v));
                }
            }
        }
    }
    let least = best.as_ref().map_or(0.0, |b| b.error);
    if fitting.is_empty() {
        let (rate, residence) = best.map_or((0.0, 0.0), |b| (b.base.rate, b.base.residence));
        return Err(Refusal::NotReproduced(
            [m.rate, rate],
            [m.residence, residence],
        ));
    }
    // One that only repeats the measured waits speaks where nothing else does.
    let group = |v: &Variant| matches!(v.server.log, Log::Group { .. });
    if fitting.iter().any(|(_, v)| group(v)) {
        fitting.retain(|(_, v)| group(v));
    }
    // Of those that fit nearly as well as the best, the first in the order of what is known of the log.
    let near = |v: &Variant| v.error <= least + 0.05;
    fitting.sort_by_key(|(rank, v)| (!near(v), *rank));
    Ok(fitting.into_iter().map(|(_, v)| v).collect())
}

/// Threads wait for CPUs longer than their own requests explain: what else runs makes them wait as long as before.
fn others_on_the_cpus(m: &Measured, server: &mut Server, base: &Outcome) {
    for ((class, kind), seen) in server.classes.iter_mut().zip(&m.kinds).zip(&base.classes) {
        let more = (kind.mean - seen.mean).clamp(0.0, kind.runqueue);
        class.sleep = Durations::Even(class.sleep.mean() + more);
    }
}

fn check(m: &Measured) -> Result<(), Refusal> {
    let mean = m.per_request(|k| k.mean);
    let lock = m.per_request(|k| k.lock) / mean.max(1e-12);
    if lock > MAX_SLEEP {
        return Err(Refusal::Sleeps(lock));
    }
    let network = m.receive + m.reply;
    let cpu = m.per_request(|k| k.cpu);
    let part = network / (network + mean).max(1e-12);
    if part > MAX_NETWORK && network > 2.0 * cpu.max(20e-6) {
        return Err(Refusal::Network(part));
    }
    if let Some(log) = &m.log {
        let part = m.per_request(|k| k.log) / mean.max(1e-12);
        if part > 0.1 && log.others > MAX_OTHER_LOGS {
            return Err(Refusal::ManyLogs(log.others));
        }
    }
    Ok(())
}

fn error_of(m: &Measured, o: &Outcome) -> f64 {
    let off = |sim: f64, measured: f64| (sim / measured.max(1e-12) - 1.0).abs();
    let mut worst = off(o.rate, m.rate).max(off(o.residence, m.residence));
    if let Some(log) = &m.log {
        let part = m.per_request(|k| k.log) / m.per_request(|k| k.mean).max(1e-12);
        if part > 0.1 {
            worst = worst.max(off(o.log_wait, log.wait.mean()));
        }
    }
    worst
}

/// Most likely first.
fn logs(m: &Measured) -> Vec<Log> {
    let Some(log) = &m.log else {
        return vec![Log::Delay(Durations::Constant(0.0))];
    };
    let mut all = Vec::new();
    if let Some(commit) = &log.commit {
        let group = |at_once: usize, gather: f64| Log::Group {
            at_once,
            commit: commit.clone(),
            gather,
        };
        let longer = (log.wait.mean() - commit.mean()).max(0.0);
        match log.fs.as_str() {
            // jbd2 commits one transaction at a time.
            "ext4" => all.push(group(1, 0.0)),
            // The intent log holds a block back for a part of the last one's time, and writes blocks side by side.
            "zfs" => all.extend([group(64, longer), group(64, 0.0), group(1, 0.0)]),
            _ => all.extend([group(1, 0.0), group(2, 0.0), group(8, 0.0)]),
        }
    }
    all.push(Log::Delay(log.wait.clone()));
    all
}

/// Most likely first.
fn disks(m: &Measured) -> Vec<Disk> {
    let time = m.per_request(|k| k.disk);
    let Some(disk) = &m.disk else {
        return vec![Disk {
            at_once: None,
            service: Durations::Exponential(time),
        }];
    };
    let with = |at_once| Disk {
        at_once,
        service: disk.service.clone(),
    };
    let seen = Some(disk.in_flight.ceil() as usize);
    if time < 0.1 * m.per_request(|k| k.mean) {
        return vec![with(None)];
    }
    if disk.queued > QUEUED {
        return vec![with(seen)];
    }
    vec![with(None), with(seen)]
}

/// Whether clients are taken to ask by the clock.
fn paces(m: &Measured) -> Vec<bool> {
    let pauses = m.clients.iter().map(|(rate, _)| 1.0 - rate * m.residence);
    match pauses.sum::<f64>() / (m.clients.len() as f64) > 1.0 - NO_PAUSE {
        true => vec![true, false],
        false => vec![false],
    }
}

fn server(m: &Measured, log: Log, disk: Disk, paced: bool) -> Server {
    let mean_disk = disk.service.mean();
    let log_time = m.per_request(|k| k.log);
    let waits = m.log.as_ref().map_or(0.0, |l| l.waits);
    let requests: f64 = m.kinds.iter().map(|k| k.count).sum();
    let waits_per_request = waits / requests.max(1e-12);
    let nfsd = m.per_request(|k| k.cpu) + m.framing;
    let cpu_each = m.cpu_busy / m.rate;
    // Receiving and replying is work as far as the CPUs were busy at all, and waiting for a CPU beyond that.
    let room = (cpu_each - nfsd).max(0.0);
    let network = (m.receive + m.reply).min(room);
    let scale = network / (m.receive + m.reply).max(1e-12);
    let classes = m.kinds.iter().map(|k| Class {
        name: format!("{} {}", k.op, k.version),
        receive: Durations::Even(m.receive * scale + m.framing),
        cpu: Durations::Even(k.cpu),
        disk_visits: if mean_disk > 0.0 {
            k.disk / mean_disk
        } else {
            0.0
        },
        log_waits: match log_time > 0.0 {
            true => (k.log / log_time * waits_per_request).max(0.0),
            false => 0.0,
        },
        sleep: Durations::Even(k.lock),
        reply: Durations::Even(m.reply * scale),
    });
    let other_cpu = (room - network).max(0.0);
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
        log,
        disk,
        clients: clients(m, paced, other_cpu),
    }
}

/// Clients that ask alike, so often and so long, are one group. Those whose requests take longest get the kinds that do.
fn clients(m: &Measured, paced: bool, other_cpu: f64) -> Vec<Clients> {
    let average = m.rate / m.clients.len().max(1) as f64;
    let mut one_by_one: Vec<(f64, f64)> = m
        .clients
        .iter()
        .copied()
        .filter(|c| c.0 > average * 0.02)
        .collect();
    one_by_one.sort_by(|a, b| a.1.total_cmp(&b.1));
    // (clients, rate, execution time times rate, time of the first)
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
    groups
        .into_iter()
        .map(|(n, rate, time, _)| {
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
            let streams = n.max((inside - 0.1).round() as usize).max(1);
            let cycle = streams as f64 / rate;
            let pause = (cycle - residence - other_cpu).max(0.0);
            let pace = match paced && pause > 0.0 {
                true => Pace::Period(cycle),
                false => Pace::Think(pause),
            };
            Clients { streams, pace, mix }
        })
        .collect()
}
