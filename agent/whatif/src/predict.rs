//! Predicts what a change would do to a server.

use crate::assemble::{is_full, unseen_outside};
use crate::assumptions::assumptions;
use crate::calibrate::{Variant, variants};
use crate::change::{Change, Part};
use crate::measured::Measured;
use crate::outcome::Outcome;
use crate::refusal::Refusal;
use crate::server::{Log, Pace, Server};
use crate::simulation::{Length, simulate};
use crate::storage::MeasuredLog;
use crate::write_size::by_byte;
use nfscope_model::Window;
use serde::Serialize;

/// Requests of a run, within an agent's CPU budget. Runs of ten times the length differ by less than the interval's least width.
pub(crate) const LENGTH: Length = Length {
    requests: 4000,
    seed: 1,
};
/// Least half width of an interval, relative: the model's error in the lab.
const LEAST: f64 = 0.05;

/// Factor between the outcome with all costs per request and the one with all costs per byte, from which on a change of the WRITE size is
/// refused.
const WIDEST: f64 = 1.5;

/// A value before and after a change, with the interval of the latter.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Predicted {
    /// Measured value, before the change.
    pub before: f64,
    /// Most likely value.
    pub after: f64,
    /// Low end of the interval.
    pub low: f64,
    /// High end of the interval.
    pub high: f64,
}

/// Times of one operation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PredictedOp {
    /// NFS version.
    pub version: String,
    /// Name.
    pub op: String,
    /// Mean execution time, in seconds.
    pub mean: Predicted,
    /// 99th percentile.
    pub p99: Predicted,
}

/// Utilization of a resource after the change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Used {
    /// threads, CPUs, log.
    pub resource: &'static str,
    /// Part of the time or of the number, 0 to 1.
    pub utilization: f64,
}

/// Part of the CPUs in use above which other programs' CPU time is taken to decide the outcome.
const BUSY: f64 = 0.7;
/// Part of the CPUs in use above which the scheduler decides who waits, which the model does not know.
const FULL_CPUS: f64 = 0.95;
/// Half width of the interval of a time in the server where the CPUs are full, relative.
const SCHEDULER: f64 = 0.5;

/// Predicted effect of a change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// The change.
    pub change: Change,
    /// nfsd threads of each pool after the change; empty where the change is not about threads.
    pub threads_by_pool: Vec<u32>,
    /// Requests per second.
    pub rate: Predicted,
    /// Mean residence in seconds.
    pub residence: Predicted,
    /// Mean wait for a thread in seconds.
    pub queue: Predicted,
    /// 99th percentile of the wait for a thread, in seconds.
    pub queue_p99: Predicted,
    /// Operations, those with the most time first.
    pub ops: Vec<PredictedOp>,
    /// Resources after the change, the fullest first.
    pub used: Vec<Used>,
    /// Requests and residence of the model without the change, relative to what was measured.
    pub calibration: [f64; 2],
    /// Assumptions of the prediction.
    pub assumptions: Vec<String>,
}

/// Predicts the effect of a change.
///
/// # Errors
/// When the window is not enough for a prediction; the refusal says why.
pub fn predict(w: &Window, change: &Change) -> Result<Prediction, Refusal> {
    let m = Measured::of(w)?;
    let variants = variants(&m, LENGTH)?;
    with(&m, &variants, change)
}

pub(crate) fn with(
    m: &Measured,
    variants: &[Variant],
    change: &Change,
) -> Result<Prediction, Refusal> {
    if *change == Change::default() {
        return Err(Refusal::NoChange);
    }
    let mut after = Vec::new();
    for v in variants {
        let server = changed(m, &v.server, change)?;
        after.push(simulate(&server, LENGTH));
    }
    // The part of a commit that is not the device's time, and waits for locks, may shrink with the device or stay.
    let relief = match (&m.log, log_seconds(m, change)) {
        (Some(log), Some(seconds)) => relieved(log, variants, change, m, seconds)?,
        _ => Vec::new(),
    };
    let pausing = unseen_pauses(m, variants, change)?;
    let steady = programs_stay(m, variants, &after, change)?;
    let larger = match change.write_bytes {
        Some(bytes) => resized(m, variants, change, bytes)?,
        None => Vec::new(),
    };
    if let (Some(a), Some(b)) = (after.first(), larger.first()) {
        let base = &variants[0].base;
        let ends = |measured: f64, part: &dyn Fn(&Outcome) -> f64| {
            let one = |o: &Outcome| scaled(measured, part(base), part(o));
            [one(a).min(one(b)), one(a).max(one(b))]
        };
        let rates = ends(m.rate, &|o| o.rate);
        let times = ends(m.residence, &|o| o.residence);
        if [rates, times]
            .iter()
            .any(|[low, high]| *high > low * WIDEST)
        {
            return Err(Refusal::WriteSize(rates, times));
        }
    }
    let each = |measured: f64, part: &dyn Fn(&Outcome) -> f64| {
        let one = |(v, o): (&Variant, &Outcome)| scaled(measured, part(&v.base), part(o));
        let also = |others| variants.iter().zip::<&Vec<Outcome>>(others);
        let all: Vec<f64> = variants
            .iter()
            .zip(&after)
            .chain(also(&relief))
            .chain(also(&steady))
            .chain(also(&larger))
            .chain(also(&pausing))
            .map(one)
            .collect();
        // The likely value is the geometric mean of the two ends, because nothing is known of costs between "per request" and "per byte".
        let likely = match larger.first() {
            Some(o) => (all[0] * one((&variants[0], o))).sqrt(),
            None => all[0],
        };
        let margin = LEAST
            .max(variants[0].error)
            .max(after[0].rate_error.min(0.2));
        Predicted {
            before: measured,
            after: likely,
            low: all.iter().copied().fold(f64::INFINITY, f64::min) * (1.0 - margin),
            high: all.iter().copied().fold(0.0, f64::max) * (1.0 + margin),
        }
    };
    let full = after[0].cpu_used > FULL_CPUS;
    let time = |measured: f64, part: &dyn Fn(&Outcome) -> f64| {
        let p = each(measured, part);
        match full {
            true => Predicted {
                low: p.low.min(p.after * (1.0 - SCHEDULER)),
                high: p.high.max(p.after * (1.0 + SCHEDULER)),
                ..p
            },
            false => p,
        }
    };
    let ops = m
        .kinds
        .iter()
        .enumerate()
        .filter(|(_, k)| k.count * k.mean > 0.01 * m.kinds[0].count * m.kinds[0].mean);
    let ops = ops.map(|(i, k)| PredictedOp {
        version: k.version.clone(),
        op: k.op.clone(),
        mean: time(k.mean, &|o| o.classes[i].mean),
        p99: time(k.p99, &|o| o.classes[i].p99),
    });
    let o = &after[0];
    let mut used = vec![
        Used {
            resource: "threads",
            utilization: o.threads_used,
        },
        Used {
            resource: "CPUs",
            utilization: o.cpu_used,
        },
    ];
    if m.log.is_some() {
        used.push(Used {
            resource: "log",
            utilization: o.log_used,
        });
    }
    used.sort_by(|a, b| b.utilization.total_cmp(&a.utilization));
    let base = &variants[0].base;
    Ok(Prediction {
        change: change.clone(),
        threads_by_pool: change
            .threads
            .map_or_else(Vec::new, |n| by_pool(n, m.pools.len())),
        rate: each(m.rate, &|o| o.rate),
        residence: at_least_in_threads(m, change, time(m.residence, &|o| o.residence)),
        queue: time(m.queue, &|o| o.queue),
        queue_p99: time(m.queue_p99, &|o| o.queue_p99),
        ops: ops.collect(),
        used,
        calibration: [base.rate / m.rate, base.residence / m.residence],
        assumptions: assumptions(m, variants, change),
    })
}

/// Bounds the time in the server from below if only the number of threads grows, because more threads shorten nothing but the wait for a
/// thread.
fn at_least_in_threads(m: &Measured, change: &Change, p: Predicted) -> Predicted {
    let more = change.part() == Some(Part::Threads)
        && change.threads.is_some_and(|n| n as usize >= m.threads());
    let least = (m.residence - m.queue) * (1.0 - LEAST);
    match more {
        true => Predicted {
            low: p.low.max(least.min(p.after)),
            ..p
        },
        false => p,
    }
}

/// Outcomes under the assumption that the whole commit and the waits for locks shrink by the factor of the log's device.
fn relieved(
    log: &MeasuredLog,
    variants: &[Variant],
    change: &Change,
    m: &Measured,
    seconds: f64,
) -> Result<Vec<Outcome>, Refusal> {
    let device = log.device.as_ref().ok_or(Refusal::NotMeasured("log"))?.1;
    let factor = (seconds / device).min(1.0);
    let one = |v: &Variant| {
        let mut server = changed(m, &v.server, change)?;
        server.log = v.server.log.with_mean(|old| old * factor);
        for class in &mut server.classes {
            class.sleep = class.sleep.with_mean(class.sleep.mean() * factor);
        }
        Ok(simulate(&server, LENGTH))
    };
    variants.iter().map(one).collect()
}

/// Seconds that the log's device takes after a change; `None` where the change leaves the log alone. A log on the disks changes with them.
pub(crate) fn log_seconds(m: &Measured, change: &Change) -> Option<f64> {
    let with_disks =
        |_: &f64| m.per_request(|k| k.log) > 0.0 && m.log.as_ref().is_some_and(|l| l.inside);
    change
        .log_seconds
        .or(change.disk_seconds.filter(with_disks))
}

/// Outcome of the likeliest variant with the longest pauses of clients that the window cannot distinguish from none. With too few threads
/// such a pause is a negligible part of the time between two requests, and with enough threads it can be most of that time.
fn unseen_pauses(
    m: &Measured,
    variants: &[Variant],
    change: &Change,
) -> Result<Vec<Outcome>, Refusal> {
    // Programs of clients on full CPUs wait for these CPUs, as the simulation has it.
    if m.clients_are_local && is_full(m) {
        return Ok(Vec::new());
    }
    let one = |v: &Variant| {
        let mut server = changed(m, &v.server, change)?;
        let streams: usize = v.server.clients.iter().map(|c| c.streams).sum();
        let unseen = unseen_outside(m, streams as f64) / m.rate;
        for clients in &mut server.clients {
            if let Pace::Think(pause) = &mut clients.pace {
                *pause = pause.max(unseen);
            }
        }
        Ok(simulate(&server, LENGTH))
    };
    variants.iter().take(1).map(one).collect()
}

/// Outcomes under the assumption that the CPU time of other programs does not grow with the requests. The assumption matters where the CPUs
/// are to become full.
fn programs_stay(
    m: &Measured,
    variants: &[Variant],
    after: &[Outcome],
    change: &Change,
) -> Result<Vec<Outcome>, Refusal> {
    let one = |(v, o): (&Variant, &Outcome)| {
        if v.base.cpu_used > BUSY || o.cpu_used < BUSY {
            return Ok(o.clone());
        }
        let mut server = changed(m, &v.server, change)?;
        let time = server.other_cpu.mean() * (v.base.rate / o.rate).min(1.0);
        server.other_cpu = server.other_cpu.with_mean(time);
        Ok(simulate(&server, LENGTH))
    };
    variants.iter().zip(after).map(one).collect()
}

/// Outcomes under the assumption that every cost that can grow with the bytes does.
fn resized(
    m: &Measured,
    variants: &[Variant],
    change: &Change,
    bytes: u64,
) -> Result<Vec<Outcome>, Refusal> {
    let one = |v: &Variant| {
        let server = by_byte(m, &changed(m, &v.server, change)?, bytes)?;
        Ok(simulate(&server, LENGTH))
    };
    variants.iter().map(one).collect()
}

/// The measured value times the simulated ratio of after to before. If the simulation was off by a factor of two, the simulated value
/// alone.
fn scaled(measured: f64, base: f64, after: f64) -> f64 {
    let ratio = base / measured.max(1e-12);
    if (0.5..2.0).contains(&ratio) {
        measured * after / base
    } else {
        after
    }
}

/// Threads of each pool, as the kernel spreads a total over the pools (/proc/fs/nfsd/threads).
fn by_pool(threads: u32, pools: usize) -> Vec<u32> {
    let pools = pools.max(1) as u32;
    let one = |i| (threads / pools + u32::from(i < threads % pools)).max(1);
    (0..pools).map(one).collect()
}

fn changed(m: &Measured, server: &Server, change: &Change) -> Result<Server, Refusal> {
    let mut s = server.clone();
    if let Some(n) = change.threads {
        let threads = by_pool(n, s.pools.len());
        for (pool, n) in s.pools.iter_mut().zip(threads) {
            pool.threads = n as usize;
        }
    }
    if let Some(cpus) = change.cpus {
        s.cpus = cpus as usize;
    }
    if let Some(device) = log_seconds(m, change) {
        let log = m.log.as_ref().ok_or(Refusal::NotUsed("log"))?;
        if change.log_seconds.is_some() && log.inside && log.fs == "btrfs" {
            return Err(Refusal::NoLogDevice(log.name.clone()));
        }
        if change.log_seconds.is_none() && log.device.is_none() {
            return Err(Refusal::SharedDisks(log.name.clone()));
        }
        s.log = log_on(&s.log, log, device)?;
    }
    if let Some(seconds) = change.disk_seconds {
        let uses_disks = m.per_request(|k| k.disk) > 0.0;
        if !uses_disks && log_seconds(m, change).is_none() {
            return Err(Refusal::NotUsed("disks"));
        }
        if uses_disks && m.disk.is_none() {
            return Err(Refusal::NotMeasured("disk"));
        }
        s.disk.service = s.disk.service.with_mean(seconds);
    }
    if let Some(times) = change.clients_factor {
        for c in &mut s.clients {
            let before = c.streams as f64;
            c.streams = (before * times).round().max(1.0) as usize;
            let really = c.streams as f64 / before;
            // The pause makes up for the rounding of the number of streams.
            let pace = |mean: f64| mean * really / times;
            c.pace = match c.pace {
                Pace::Think(mean) => Pace::Think(pace(mean)),
                Pace::Period(mean) => Pace::Period(pace(mean)),
            };
        }
    }
    Ok(s)
}

/// The log on a device that takes `seconds` for one request.
fn log_on(log: &Log, measured: &MeasuredLog, seconds: f64) -> Result<Log, Refusal> {
    let (_, device, path) = measured
        .device
        .as_ref()
        .ok_or(Refusal::NotMeasured("log"))?;
    let new = |old: f64| (old - device * path).max(0.0) + seconds * path;
    Ok(log.with_mean(new))
}
