//! Two counts of the same requests, the kernel's and the agent's, side by side.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use nfscope_model::breakdown::Moved;
use nfscope_model::family;
use nfscope_model::family::Info;
use nfscope_model::{Family, Histogram, Sample, Snapshot};

use crate::agent::Agent;
use crate::control;
use crate::kernel_counters::KernelCounters;
use crate::server::Server;

/// Counts of the kernel and snapshots of every agent, at a moment when the kernel counts no request.
pub fn settled(server: &Server, agents: &[&Agent]) -> Result<(KernelCounters, Vec<Snapshot>)> {
    // Clients close files and return delegations after a load's end. The pause is longer than an agent repeats its last reading.
    const PAUSE: Duration = Duration::from_millis(500);
    let mut last = server.kernel_counters()?;
    for _ in 0..60 {
        control::pass(PAUSE);
        let seen = agents.iter().map(|a| a.snapshot()).collect::<Result<_>>()?;
        let now = server.kernel_counters()?;
        if now == last {
            return Ok((now, seen));
        }
        last = now;
    }
    bail!("requests keep coming without a load")
}

/// Differences between two settled moments: of the kernel's counts, and of one agent's snapshot.
pub fn window(
    before: &(KernelCounters, Vec<Snapshot>),
    after: &(KernelCounters, Vec<Snapshot>),
    agent: usize,
) -> (KernelCounters, Snapshot) {
    let seen = after.1[agent].since(&before.1[agent]);
    (&after.0 - &before.0, seen.delta)
}

/// Counts of an agent for each NFSv3 procedure and each NFSv4 operation that exists.
pub fn operations(seen: &Snapshot) -> (BTreeMap<String, u64>, BTreeMap<String, u64>) {
    let (mut v3, mut v4) = (BTreeMap::new(), BTreeMap::new());
    for series in seen.series(&family::OP_DURATION.info) {
        let (Sample::Histogram(h), [version, op]) = (&series.sample, &series.labels[..]) else {
            continue;
        };
        let into = match (version.as_str(), op.as_str()) {
            // NFSACL is another RPC program, and NULL is no operation. The kernel counts neither here, nor operations that do not
            // exist.
            ("3", op) if op.contains("acl") => continue,
            ("3", _) => &mut v3,
            (_, "null" | "illegal") => continue,
            _ => &mut v4,
        };
        if h.count() > 0 {
            *into.entry(op.clone()).or_default() += h.count();
        }
    }
    (v3, v4)
}

/// Panics unless the agent counted every operation and every COMPOUND as often as the kernel did.
#[track_caller]
pub fn assert_same_operations(what: &str, counted: &KernelCounters, seen: &Snapshot) {
    if let Err(e) = same_operations(counted, seen, 0) {
        panic!("{what}: {e}");
    }
}

/// Number of requests that an agent may not have counted in their own window. It is the kernel's number of runs of the probe's
/// programs that it has skipped since the agent attached them (`recursion_misses` in struct bpf_prog_info). The kernel skips a
/// program if a task was preempted in the same program on that CPU. A skipped run may be the one that counts a request, which is then
/// counted with its thread's next request: at most one of each thread.
///
/// # Errors
/// Fails if the agent does not answer.
pub fn missed(agent: &Agent, probe: &str) -> Result<u64> {
    Ok(missed_of(&agent.snapshot()?, probe))
}

/// Number of [`missed`] requests by an agent's snapshot: all since its probes were attached.
pub fn missed_of(now: &Snapshot, probe: &str) -> u64 {
    let skipped = now.value(&family::EVENTS_LOST, [probe, "recursion"]);
    let of = |all: f64, (_, n): (_, f64)| all + n;
    let running = now.numbers(&family::THREADS).fold(0.0, of);
    let limit = now.numbers(&family::THREADS_LIMIT).fold(0.0, of);
    skipped.unwrap_or(0.0).min(running.max(limit)) as u64
}

/// Checks that an agent counted something as often as it happened, but for `missed`: some may be counted late, and some may belong to
/// the window before.
///
/// # Errors
/// Both counts, if they differ by more.
pub fn agree(what: &str, seen: u64, happened: u64, missed: u64) -> Result<()> {
    ensure!(
        seen.abs_diff(happened) <= missed,
        "{what}: {seen} of {happened}, and {missed} may be late"
    );
    Ok(())
}

/// Checks that an agent counted each of these as often as it happened. The differences of all together may be at most `late`: events
/// of the window before, and events that are counted in the next one.
///
/// # Errors
/// All counts, if they differ by more.
pub fn agree_each<K: Ord + Debug>(
    what: &str,
    seen: &BTreeMap<K, u64>,
    happened: &BTreeMap<K, u64>,
    late: u64,
) -> Result<()> {
    let of = |counts: &BTreeMap<K, u64>, key| counts.get(key).copied().unwrap_or(0);
    let keys: BTreeSet<_> = seen.keys().chain(happened.keys()).collect();
    let apart = keys
        .into_iter()
        .map(|key| of(seen, key).abs_diff(of(happened, key)));
    ensure!(
        apart.sum::<u64>() <= late,
        "{what}: {seen:?} of {happened:?}, and {late} may be late"
    );
    Ok(())
}

/// Checks that all events that an agent lost in a window follow from programs that the kernel skipped since the agent was attached:
/// an end without its beginning, events that a later program reported, and a wait outside of its operation.
///
/// Two losses happen without that. An arrival is unknown if the first call of a connection lies on its socket before the server looks
/// at it. A wait is outside in one of a thousand operations: it begins too early by the scheduler's books while the CPU's clock stood
/// still (docs/design/phases.md).
///
/// # Errors
/// All losses.
pub fn losses_are_explained(now: &Snapshot, window: &Snapshot, operations: u64) -> Result<()> {
    let lost = lost(window);
    let all_missed = lost_for(now, "recursion");
    for (what, n) in &lost {
        let reason = what.split_once(' ').map_or("", |(_, reason)| reason);
        let most = match reason {
            "arrival_unknown" | "recursion" => f64::INFINITY,
            "wait_outside" => all_missed + (operations as f64 / 1000.0).ceil(),
            _ => all_missed,
        };
        ensure!(*n <= most, "{what}: more than {most}: {lost:?}");
    }
    Ok(())
}

/// Checks that the agent counted every operation and every COMPOUND as often as the kernel did, but for [`missed`] ones.
///
/// # Errors
/// Both counts, if they differ.
pub fn same_operations(counted: &KernelCounters, seen: &Snapshot, missed: u64) -> Result<()> {
    let (v3, v4) = operations(seen);
    let lost = lost(seen);
    for (version, told, kernels) in [
        ("NFSv3", v3, counted.procs3()),
        ("NFSv4", v4, counted.ops4_by_name()),
    ] {
        let of = |counts: &BTreeMap<String, u64>, op| counts.get(op).copied().unwrap_or(0);
        let mut ops = told.keys().chain(kernels.keys());
        ensure!(
            ops.all(|op| of(&told, op).abs_diff(of(&kernels, op)) <= missed),
            "{version}, {missed} may be late: {told:?}, and the kernel has {kernels:?}; lost: {lost:?}"
        );
    }
    let compounds = merged(seen, &family::COMPOUND_DURATION.info, |_| true);
    let compounds = compounds.map_or(0, |h| h.count());
    agree("COMPOUNDs", compounds, counted.compounds, missed)
}

/// Sums of counters by their last label (a phase, a client), for the wanted labels.
pub fn by_last_label(
    seen: &Snapshot,
    info: &Info,
    wanted: impl Fn(&[String]) -> bool,
) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    for series in seen.series(info).iter().filter(|s| wanted(&s.labels)) {
        if let (Sample::Counter(n), Some(label)) = (&series.sample, series.labels.last()) {
            *sums.entry(label.clone()).or_default() += n;
        }
    }
    sums
}

/// Events that an agent reports as lost, by probe and reason.
pub fn lost(seen: &Snapshot) -> BTreeMap<String, f64> {
    let series = seen.series(&family::EVENTS_LOST.info).iter();
    series
        .filter_map(|s| match s.sample {
            Sample::Counter(n) if n > 0.0 => Some((s.labels.join(" "), n)),
            _ => None,
        })
        .collect()
}

/// Events that an agent reports as lost for a reason, of all probes.
pub fn lost_for(seen: &Snapshot, reason: &str) -> f64 {
    let all = seen.numbers(&family::EVENTS_LOST);
    all.filter(|([_, r], _)| *r == reason).map(|(_, n)| n).sum()
}

/// Bytes that READs returned and WRITEs stored, from the histogram of sizes.
pub fn moved(seen: &Snapshot) -> Moved {
    let of = |write: bool| {
        let all = merged(seen, &family::IO_SIZE.info, |l| (l[1] == "write") == write);
        all.map_or(0, |h| h.sum as u64)
    };
    Moved {
        read: of(false),
        written: of(true),
    }
}

/// Bytes moved by READs and WRITEs, by the names of clients or exports.
pub fn moved_by_name(seen: &Snapshot, of: &Family<2>) -> BTreeMap<String, Moved> {
    let mut all: BTreeMap<String, Moved> = BTreeMap::new();
    for ([name, op], n) in seen.numbers(of) {
        let moved = all.entry(name.to_owned()).or_default();
        match op {
            "write" => moved.written += n as u64,
            _ => moved.read += n as u64,
        }
    }
    all.retain(|_, moved| *moved != Moved::default());
    all
}

/// Sum of a family's histograms with wanted labels; `None` if there is none.
pub fn merged(
    seen: &Snapshot,
    info: &Info,
    wanted: impl Fn(&[String]) -> bool,
) -> Option<Histogram> {
    let wanted = seen.series(info).iter().filter(|s| wanted(&s.labels));
    Histogram::merged(wanted.filter_map(|s| match &s.sample {
        Sample::Histogram(h) => Some(h),
        _ => None,
    }))
}
