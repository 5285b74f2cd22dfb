//! Calibration: from what was measured to servers that behave like it.
//!
//! A window leaves questions open: how many commits run at a time, how many requests a disk serves at once, when a client sends its next
//! request. Each combination of answers is a variant. Variants that do not reproduce the measured rate, residence and log wait are dropped.
//! The others all predict, and their spread is the interval (K. Beven and A. Binley, The future of distributed models, Hydrological
//! Processes 6, 1992).

use crate::assemble::{asks, disks, is_full, log_cpu_of, logs, server, who_is_urgent};
use crate::check::check;
use crate::durations::Durations;
use crate::measured::Measured;
use crate::outcome::Outcome;
use crate::refusal::Refusal;
use crate::server::{Log, Server};
use crate::simulation::{Length, simulate};

/// Largest relative error of a variant that is kept.
pub(crate) const TOLERANCE: f64 = 0.15;
/// Largest relative error of the times of requests on full CPUs.
pub(crate) const FULL_TOLERANCE: f64 = 0.5;
/// Simulations of the search for the CPU time of a commit.
const STEPS: usize = 5;

/// A candidate server: one answer to each question that the window leaves open.
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
    let mut rank = 0;
    let urgent = who_is_urgent(m);
    let mut known = Vec::new();
    for log in logs(m) {
        known.extend(urgent.iter().map(|u| (with_cpu(m, &log, *u, length), *u)));
    }
    // The variant without CPU time in a commit.
    let plain = logs(m).into_iter().next();
    if let Some(log) = plain.filter(|log| known.iter().all(|(other, _)| other != log)) {
        known.push((log, urgent[0]));
    }
    for (log, other_is_urgent) in known {
        for disk in disks(m) {
            for asks in asks(m) {
                rank += 1;
                let v = variant(m, server(m, &log, &disk, asks, other_is_urgent), length);
                if best.as_ref().is_none_or(|b| v.error < b.error) {
                    best = Some(v.clone());
                }
                if v.error <= TOLERANCE {
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
    // Variants that only repeat the measured log waits count only if no variant with commits fits.
    let group = |v: &Variant| matches!(v.server.log, Log::Group { .. });
    if fitting.iter().any(|(_, v)| group(v)) {
        fitting.retain(|(_, v)| group(v));
    }
    // Variants whose error is within 0.05 of the least one come first, in the order in which `logs` lists them.
    let near = |v: &Variant| v.error <= least + 0.05;
    fitting.sort_by_key(|(rank, v)| (!near(v), *rank));
    Ok(fitting.into_iter().map(|(_, v)| v).collect())
}

fn variant(m: &Measured, mut server: Server, length: Length) -> Variant {
    let mut base = simulate(&server, length);
    let mut error = error_of(m, &base);
    if error > TOLERANCE {
        others_on_the_cpus(m, &mut server, &base);
        base = simulate(&server, length);
        error = error_of(m, &base);
    }
    Variant {
        server,
        base,
        error,
    }
}

/// Estimates the CPU time of a commit. A commit takes longer than its device's requests: what writes the log needs CPU time, and waits for
/// CPUs that the threads use. The simulation adds the waits, so it only needs the CPU time. The estimate makes a simulated commit take as
/// long as measured, and is no more than the CPU time that was there. The device has the rest of the commit.
///
/// For XFS and OpenZFS a commit is measured from the issue of a write until it is durable: none of that is the writer's CPU time.
fn with_cpu(m: &Measured, log: &Log, other_is_urgent: bool, length: Length) -> Log {
    let (
        Log::Group {
            at_once,
            commit,
            writer,
            gather,
            ..
        },
        Some(measured),
    ) = (log, &m.log)
    else {
        return log.clone();
    };
    let Some((_, device, path)) = &measured.device else {
        return log.clone();
    };
    if !matches!(measured.fs.as_str(), "ext4" | "btrfs") {
        return log.clone();
    }
    let on_device = (device * path).min(commit.mean());
    let there_was = log_cpu_of(m) / measured.commits_by_request(m.requests()).max(1e-12);
    let most = there_was.min(commit.mean() - on_device);
    let with = |time: f64, cpu: f64| Log::Group {
        at_once: *at_once,
        commit: commit.with_mean(time),
        cpu,
        writer: *writer,
        gather: *gather,
    };
    let disks = disks(m);
    let Some(disk) = disks.first() else {
        return log.clone();
    };
    let asks = asks(m)[0];
    let seen = |cpu: f64| {
        let server = server(m, &with(on_device, cpu), disk, asks, other_is_urgent);
        simulate(&server, length).commit
    };
    // Bisection: a commit takes longer the more CPU time it has.
    let (mut low, mut high) = (0.0, most);
    for _ in 0..STEPS {
        let middle = (low + high) / 2.0;
        match seen(middle) > commit.mean() {
            true => high = middle,
            false => low = middle,
        }
    }
    let cpu = (low + high) / 2.0;
    let time = seen(cpu);
    with(on_device + (commit.mean() - time).max(0.0), cpu)
}

/// Adds sleep to requests whose threads waited for CPUs longer than the simulation explains: other programs make them wait as long as
/// before the change.
fn others_on_the_cpus(m: &Measured, server: &mut Server, base: &Outcome) {
    for ((class, kind), seen) in server.classes.iter_mut().zip(&m.kinds).zip(&base.classes) {
        let more = (kind.mean - seen.mean).clamp(0.0, kind.runqueue);
        class.sleep = Durations::Even(class.sleep.mean() + more);
    }
}

fn error_of(m: &Measured, o: &Outcome) -> f64 {
    let off = |sim: f64, measured: f64| (sim / measured.max(1e-12) - 1.0).abs();
    let residence = off(o.residence, m.residence);
    // On full CPUs the scheduler decides which request waits, at an equal rate. Their times get a larger tolerance.
    let residence = match is_full(m) {
        true => residence * TOLERANCE / FULL_TOLERANCE,
        false => residence,
    };
    let mut worst = off(o.rate, m.rate).max(residence);
    if let Some(log) = &m.log {
        let part = m.per_request(|k| k.log) / m.per_request(|k| k.mean).max(1e-12);
        if part > 0.1 {
            worst = worst.max(off(o.log_wait, log.wait.mean()));
        }
    }
    worst
}
