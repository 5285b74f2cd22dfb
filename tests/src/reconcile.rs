//! Two accounts of the same requests, the kernel's and the agent's, side by side.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use nfscope_model::family;
use nfscope_model::family::Info;
use nfscope_model::{Histogram, Sample, Snapshot};

use crate::agent::Agent;
use crate::kernel_counters::KernelCounters;
use crate::server::Server;

/// What the kernel has counted and what every agent knows, at a moment when nothing moves.
pub fn settled(server: &Server, agents: &[&Agent]) -> Result<(KernelCounters, Vec<Snapshot>)> {
    // Clients close files and return delegations behind a load's back. Longer than an agent repeats its last reading.
    const PAUSE: Duration = Duration::from_millis(500);
    let mut last = server.kernel_counters()?;
    for _ in 0..60 {
        thread::sleep(PAUSE);
        let seen = agents.iter().map(|a| a.snapshot()).collect::<Result<_>>()?;
        let now = server.kernel_counters()?;
        if now == last {
            return Ok((now, seen));
        }
        last = now;
    }
    bail!("requests keep coming without a load")
}

/// The difference of two settled moments: the kernel's, and that of one of the agents.
pub fn window(
    before: &(KernelCounters, Vec<Snapshot>),
    after: &(KernelCounters, Vec<Snapshot>),
    agent: usize,
) -> (KernelCounters, Snapshot) {
    let seen = after.1[agent].since(&before.1[agent]);
    (&after.0 - &before.0, seen.delta)
}

/// How often an agent saw each NFSv3 procedure and each NFSv4 operation that exists.
pub fn operations(seen: &Snapshot) -> (BTreeMap<String, u64>, BTreeMap<String, u64>) {
    let (mut v3, mut v4) = (BTreeMap::new(), BTreeMap::new());
    for series in seen.series(&family::OP_DURATION.info) {
        let (Sample::Histogram(h), [version, op]) = (&series.sample, &series.labels[..]) else {
            continue;
        };
        let into = match (version.as_str(), op.as_str()) {
            // NFSACL is another RPC program, NULL no operation; the kernel counts neither here, nor what does not exist.
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

/// Whether the agent counted every operation and every COMPOUND as often as the kernel did, but for so many requests that are told
/// before or after their own window.
///
/// # Errors
/// With both counts, where they differ.
pub fn same_operations(counted: &KernelCounters, seen: &Snapshot, late: u64) -> Result<()> {
    let (v3, v4) = operations(seen);
    let lost = lost(seen);
    for (version, told, kernels) in [
        ("NFSv3", v3, counted.procs3()),
        ("NFSv4", v4, counted.ops4_by_name()),
    ] {
        let of = |counts: &BTreeMap<String, u64>, op| counts.get(op).copied().unwrap_or(0);
        let mut ops = told.keys().chain(kernels.keys());
        ensure!(
            ops.all(|op| of(&told, op).abs_diff(of(&kernels, op)) <= late),
            "{version}, {late} may be late: {told:?}, and the kernel has {kernels:?}; lost: {lost:?}"
        );
    }
    let compounds = merged(seen, &family::COMPOUND_DURATION.info, |_| true);
    let compounds = compounds.map_or(0, |h| h.count());
    ensure!(
        compounds.abs_diff(counted.compounds) <= late,
        "{compounds} compounds, {late} may be late, and the kernel has {}",
        counted.compounds
    );
    Ok(())
}

/// Sums of counters by their last label (a phase, a client), where all labels are wanted.
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

/// What an agent says that it has lost, by probe and reason.
pub fn lost(seen: &Snapshot) -> BTreeMap<String, f64> {
    let series = seen.series(&family::EVENTS_LOST.info).iter();
    series
        .filter_map(|s| match s.sample {
            Sample::Counter(n) if n > 0.0 => Some((s.labels.join(" "), n)),
            _ => None,
        })
        .collect()
}

/// The histograms of a family whose labels are wanted, as one; `None` where there is none.
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
