//! Parts of a window: operations, logs, disks, clients and exports with what belongs to each. The terminal and the diagnosis derive their
//! rows from these.
//!
//! A window may come from another host's agent: impossible values are left out, and nothing is below 0. Lists are in the order of the
//! snapshot.

use crate::breakdown::Moved;
use crate::probe::is_illumos;
use crate::{Family, Histogram, Window, family, phase};
use std::collections::HashMap;

/// Seconds by phase, in the order of the phases' names; `None` for a phase that this host does not distinguish.
pub type PhaseSeconds<const N: usize> = [Option<f64>; N];

/// A procedure or component operation.
#[derive(Debug, Clone, Copy)]
pub struct WindowOp<'a> {
    /// Label `version`.
    pub version: &'a str,
    /// Label `op`.
    pub op: &'a str,
    /// Times from begin to end.
    pub durations: &'a Histogram,
    /// Seconds by [`phase::OF_OP`]; `None` where operations are not split.
    pub phases: Option<PhaseSeconds<{ phase::OPS }>>,
    /// Answers with a status other than OK; `None` where nothing tells whether statuses were counted.
    pub errors: Option<f64>,
}

/// The log of one file system or pool.
#[derive(Debug, Clone, Copy)]
pub struct WindowLog<'a> {
    /// Label `fs`.
    pub fs: &'a str,
    /// Label `volume`.
    pub volume: &'a str,
    /// Waits of threads for the log; `None` if no thread waited.
    pub waits: Option<&'a Histogram>,
    /// Writes to the log, perhaps none; `None` where they are not measured.
    pub writes: Option<&'a Histogram>,
    /// Bytes written to the log, on any device.
    pub bytes: Option<f64>,
    /// True if the log lies on a device of its own.
    pub separate: Option<bool>,
}

/// Block requests of one device and kind.
#[derive(Debug, Clone, Copy)]
pub struct WindowDisk<'a> {
    /// Label `device`.
    pub device: &'a str,
    /// Label `op`.
    pub op: &'a str,
    /// Times from issue to completion.
    pub requests: &'a Histogram,
    /// Times in the scheduler's queue.
    pub queue: Option<&'a Histogram>,
    /// Bytes read or written.
    pub bytes: Option<f64>,
}

/// A client or an export with operations.
#[derive(Debug, Clone, Copy)]
pub struct WindowUser<'a> {
    /// Address or path; `other` for all without series of their own.
    pub name: &'a str,
    /// Operations.
    pub ops: f64,
    /// Seconds of these operations.
    pub seconds: Option<f64>,
    /// Bytes that READs returned and WRITEs stored; `None` where they are not counted, and for [`crate::family`]'s `other`.
    pub moved: Option<Moved>,
    /// Requests of a client that contained these operations.
    pub requests: Option<f64>,
    /// Smoothed round-trip time of a client's connection, in seconds, with delayed acknowledgements.
    pub rtt: Option<f64>,
    /// Lowest round-trip time of a client in the last minutes, in seconds.
    pub min_rtt: Option<f64>,
}

/// Operations that ended in the window.
pub fn ops(w: &Window) -> Vec<WindowOp<'_>> {
    let phases = phases(
        w,
        &family::OP_PHASE,
        &phase::OF_OP,
        |[version, op, phase]| ([version, op], phase),
    );
    let rare_known = tells_rare_phases(w);
    let mut errors: HashMap<_, f64> = HashMap::new();
    for ([version, op, _], n) in numbers(w, &family::OP_ERRORS) {
        *errors.entry([version, op]).or_default() += n;
    }
    // An agent that times operations by probes counts their statuses, too. A window without either may come from another program.
    let counted = !errors.is_empty() || !w.delta.probes.is_empty();
    histograms(w, &family::OP_DURATION)
        .map(|(labels, durations)| WindowOp {
            version: labels[0],
            op: labels[1],
            durations,
            phases: phases
                .get(&labels)
                .copied()
                .map(|p| if rare_known { with_rare(p) } else { p }),
            errors: (errors.get(&labels).copied()).or(counted.then_some(0.0)),
        })
        .collect()
}

/// True if the agent of a window measures the rare phases of operations: its requests then have the rare phase `upcall`, too. An agent on
/// illumos has a probe of its own for each rare phase, and the probe says whether it measures.
pub fn tells_rare_phases(w: &Window) -> bool {
    is_illumos(&w.delta.probes)
        || numbers(w, &family::RPC_PHASE).any(|([_, phase], _)| phase == "upcall")
}

/// Sets a rare phase without a series to 0: where phases are measured at all, it has not occurred.
fn with_rare(mut all: PhaseSeconds<{ phase::OPS }>) -> PhaseSeconds<{ phase::OPS }> {
    for (name, seconds) in phase::OF_OP.iter().zip(&mut all) {
        if phase::RARE.contains(name) {
            seconds.get_or_insert(0.0);
        }
    }
    all
}

/// Seconds of requests by version and [`phase::OF_RPC`].
pub fn rpc_phases(w: &Window) -> HashMap<&str, PhaseSeconds<5>> {
    phases(w, &family::RPC_PHASE, &phase::OF_RPC, |[version, phase]| {
        (version, phase)
    })
}

/// Logs for which a thread waited, then those that were only written.
pub fn logs(w: &Window) -> Vec<WindowLog<'_>> {
    let mut bytes: HashMap<_, f64> = HashMap::new();
    for ([fs, volume, _], n) in numbers(w, &family::LOG_BYTES) {
        *bytes.entry([fs, volume]).or_default() += n;
    }
    let separate: HashMap<_, _> = numbers(w, &family::LOG_SEPARATE).collect();
    let waits: HashMap<_, _> = histograms(w, &family::LOG_WAIT).collect();
    let waited = histograms(w, &family::LOG_WAIT).map(|(labels, h)| (labels, Some(h)));
    let unwaited = histograms(w, &family::LOG_COMMIT)
        .filter(|(labels, _)| !waits.contains_key(labels))
        .map(|(labels, _)| (labels, None));
    waited
        .chain(unwaited)
        .map(|(labels, waits)| WindowLog {
            fs: labels[0],
            volume: labels[1],
            waits,
            writes: w.delta.hist(&family::LOG_COMMIT, labels),
            bytes: bytes.get(&labels).copied(),
            separate: separate.get(&labels).map(|v| *v > 0.0),
        })
        .collect()
}

/// Devices with requests that completed.
pub fn disks(w: &Window) -> Vec<WindowDisk<'_>> {
    let bytes: HashMap<_, _> = numbers(w, &family::BLOCK_BYTES).collect();
    histograms(w, &family::BLOCK_DEVICE)
        .map(|(labels, requests)| WindowDisk {
            device: labels[0],
            op: labels[1],
            requests,
            queue: w.delta.hist(&family::BLOCK_QUEUE, labels),
            bytes: bytes.get(&labels).copied(),
        })
        .collect()
}

/// Clients with operations.
pub fn clients(w: &Window) -> Vec<WindowUser<'_>> {
    let rtt: HashMap<_, _> = numbers(w, &family::CLIENT_RTT).collect();
    let min_rtt: HashMap<_, _> = numbers(w, &family::CLIENT_MIN_RTT).collect();
    let requests: HashMap<_, _> = numbers(w, &family::CLIENT_REQUESTS).collect();
    let families = [&family::CLIENT_OPS, &family::CLIENT_OP_SECONDS];
    users(w, families, &family::CLIENT_IO_BYTES)
        .map(|user| WindowUser {
            requests: requests.get(&[user.name]).copied(),
            rtt: rtt.get(&[user.name]).copied(),
            min_rtt: min_rtt.get(&[user.name]).copied(),
            ..user
        })
        .collect()
}

/// Exports with operations.
pub fn exports(w: &Window) -> Vec<WindowUser<'_>> {
    let families = [&family::EXPORT_OPS, &family::EXPORT_OP_SECONDS];
    users(w, families, &family::EXPORT_IO_BYTES).collect()
}

fn users<'a>(
    w: &'a Window,
    [ops, seconds]: [&Family<1>; 2],
    bytes: &Family<2>,
) -> impl Iterator<Item = WindowUser<'a>> + use<'a> {
    // A window may have thousands of clients, so that each lookup is by hash.
    let seconds: HashMap<_, _> = numbers(w, seconds).collect();
    let mut moved: HashMap<&str, Moved> = HashMap::new();
    for ([name, op], n) in numbers(w, bytes) {
        let bytes = moved.entry(name).or_default();
        match op {
            "write" => bytes.written += n as u64,
            _ => bytes.read += n as u64,
        }
    }
    numbers(w, ops)
        .filter(|(_, n)| *n > 0.0)
        .map(move |([name], ops)| WindowUser {
            name,
            ops,
            seconds: seconds.get(&[name]).copied(),
            moved: moved.get(name).copied(),
            requests: None,
            rtt: None,
            min_rtt: None,
        })
}

/// The series of a family by what their labels say beside the phase.
fn phases<'a, K: std::hash::Hash + Eq, const L: usize, const N: usize>(
    w: &'a Window,
    family: &Family<L>,
    names: &[&str; N],
    split: impl Fn([&'a str; L]) -> (K, &'a str),
) -> HashMap<K, PhaseSeconds<N>> {
    let mut all: HashMap<K, PhaseSeconds<N>> = HashMap::new();
    for (labels, seconds) in numbers(w, family) {
        let (key, phase) = split(labels);
        if let Some(i) = names.iter().position(|n| *n == phase) {
            all.entry(key).or_insert([None; N])[i] = Some(seconds);
        }
    }
    all
}

/// Histograms of a family. A histogram whose sum is not finite is left out.
pub fn histograms<'a, const N: usize>(
    w: &'a Window,
    family: &Family<N>,
) -> impl Iterator<Item = ([&'a str; N], &'a Histogram)> + use<'a, N> {
    let all = w.delta.histograms(family);
    all.filter(|(_, h)| h.sum.is_finite())
}

/// Counters or gauges of a family. A value that is not finite is left out, a negative one counts as 0.
pub fn numbers<'a, const N: usize>(
    w: &'a Window,
    family: &Family<N>,
) -> impl Iterator<Item = ([&'a str; N], f64)> + use<'a, N> {
    let all = w.delta.numbers(family).filter(|(_, v)| v.is_finite());
    all.map(|(labels, v)| (labels, v.max(0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Scheme, Snapshot};
    use std::time::Duration;

    fn one(seconds: f64) -> Histogram {
        let mut h = Histogram::new(Scheme::TIME);
        h.counts[Scheme::TIME.bucket(seconds)] = 1;
        h.sum = seconds;
        h
    }

    fn window(fill: impl FnOnce(&mut Snapshot)) -> Window {
        let mut delta = Snapshot::new(Duration::from_secs(1));
        fill(&mut delta);
        Window {
            length: Duration::from_secs(1),
            delta,
        }
    }

    #[test]
    fn an_operation_has_its_phases_and_its_errors() {
        let w = window(|s| {
            s.histogram(&family::OP_DURATION, ["4.2", "write"], one(0.5));
            s.histogram(&family::OP_DURATION, ["3", "write"], one(0.25));
            s.counter(&family::RPC_PHASE, ["4.2", "upcall"], 0.0);
            s.counter(&family::OP_PHASE, ["4.2", "write", "log"], 0.4);
            s.counter(&family::OP_PHASE, ["4.2", "write", "cpu"], f64::NAN);
            s.counter(&family::OP_ERRORS, ["4.2", "write", "nospc"], 2.0);
            s.counter(&family::OP_ERRORS, ["4.2", "write", "io"], 1.0);
        });
        let all = ops(&w);
        let new = all.iter().find(|o| o.version == "4.2").unwrap();
        assert_eq!(
            new.phases,
            Some([
                None,
                None,
                Some(0.4),
                None,
                Some(0.0),
                Some(0.0),
                Some(0.0),
                Some(0.0),
                None
            ])
        );
        assert_eq!((new.errors, new.durations.sum), (Some(3.0), 0.5));
        let old = all.iter().find(|o| o.version == "3").unwrap();
        assert_eq!((old.phases, old.errors), (None, Some(0.0)));
        // A window without any may come from one who does not count them.
        let of = |probes: Vec<crate::ProbeStatus>| {
            let mut w = window(|s| s.histogram(&family::OP_DURATION, ["3", "write"], one(0.25)));
            w.delta.probes = probes;
            ops(&w)[0].errors
        };
        assert_eq!(of(Vec::new()), None);
    }

    #[test]
    fn a_log_that_nobody_waits_for_is_there_all_the_same() {
        let w = window(|s| {
            s.histogram(&family::LOG_COMMIT, ["xfs", "sda"], one(0.5));
            s.histogram(&family::LOG_COMMIT, ["ext4", "sdb"], one(0.5));
            s.histogram(&family::LOG_WAIT, ["ext4", "sdb"], one(0.25));
            s.gauge(&family::LOG_SEPARATE, ["xfs", "sda"], 1.0);
        });
        let all: Vec<_> = logs(&w)
            .iter()
            .map(|l| (l.fs, l.waits.is_some(), l.writes.is_some(), l.separate))
            .collect();
        assert_eq!(
            all,
            [("ext4", true, true, None), ("xfs", false, true, Some(true))]
        );
    }

    #[test]
    fn clients_without_operations_are_left_out() {
        let w = window(|s| {
            for (name, n) in [("a", 1.0), ("b", 0.0), ("other", 2.0)] {
                s.counter(&family::CLIENT_OPS, [name], n);
            }
            s.counter(&family::CLIENT_OP_SECONDS, ["a"], -1.0);
            s.gauge(&family::CLIENT_RTT, ["a"], 0.5);
        });
        let all: Vec<_> = clients(&w)
            .iter()
            .map(|c| (c.name, c.seconds, c.rtt))
            .collect();
        assert_eq!(all, [("a", Some(0.0), Some(0.5)), ("other", None, None)]);
    }
}
