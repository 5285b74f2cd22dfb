//! Result of a replay, beside what was recorded.

use super::engine::Counts;
use super::nfs3::status_name;
use super::plan::{Plan, Repairs};
use super::quantiles::{Durations, Quantiles};
use super::{Options, Pace};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Result of a replay, and how far it is from what was recorded.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Server and export.
    pub target: String,
    /// Directory of the replay in the export.
    pub directory: String,
    /// `open` or `closed`.
    pub loop_kind: &'static str,
    /// Factor of the speed; `None` in a closed loop.
    pub speed: Option<f64>,
    /// Independent copies.
    pub times: u32,
    /// Connections to the server.
    pub connections: u32,
    /// Length of the trace, in seconds, from its first arrival to its last.
    pub recorded_seconds: f64,
    /// Length of the replay, in seconds, from the first call to the last reply.
    pub seconds: f64,
    /// Operations of the trace.
    pub recorded: u64,
    /// Calls that were sent, of all copies.
    pub issued: u64,
    /// Calls a second.
    pub operations_per_second: f64,
    /// From the sending of each call to its reply; `None` without calls.
    pub latency_seconds: Option<Quantiles>,
    /// Missing history.
    pub repairs: Repairs,
    /// Time from the due time of each call until it was sent; `None` in a closed loop.
    pub lateness_seconds: Option<Quantiles>,
    /// Calls that were sent more than 1 ms after they were due; `None` in a closed loop.
    pub late: Option<u64>,
    /// Calls that waited for the reply that has the handle of their file.
    pub waited_for_handle: u64,
    /// READs and WRITEs that were made shorter, because the server takes no longer ones.
    pub shortened: u64,
    /// Each version and operation.
    pub operations: Vec<OperationReport>,
    /// Operations that were not replayed.
    pub left_out: Vec<LeftOut>,
}

/// Operations of one version and name.
#[derive(Debug, Clone, Serialize)]
pub struct OperationReport {
    /// NFS version in the trace.
    pub version: &'static str,
    /// Operation in the trace.
    pub op: String,
    /// Procedure of NFSv3 that was called; `None` if there is none.
    pub procedure: Option<String>,
    /// Operations in the trace.
    pub recorded: u64,
    /// Calls that were sent, of all copies.
    pub issued: u64,
    /// Operations that succeeded in the trace.
    pub recorded_succeeded: u64,
    /// Calls that succeeded.
    pub succeeded: u64,
    /// Calls whose status was another one than in the trace.
    pub other_status: u64,
    /// Bytes that READs returned or WRITEs stored in the trace.
    pub recorded_bytes: u64,
    /// Bytes of the replay.
    pub bytes: u64,
    /// Operations that failed in the trace, by status.
    pub recorded_errors: BTreeMap<String, u64>,
    /// Calls that failed, by status.
    pub errors: BTreeMap<String, u64>,
    /// Durations in the trace, as its side measured them: see the trace's header.
    pub recorded_seconds: Option<Quantiles>,
    /// From the sending of a call to its reply, here.
    pub latency_seconds: Option<Quantiles>,
    /// From the time at which a call was due to its reply; `None` in a closed loop.
    pub latency_from_due_seconds: Option<Quantiles>,
}

/// Operations that were not replayed.
#[derive(Debug, Clone, Serialize)]
pub struct LeftOut {
    /// NFS version in the trace.
    pub version: &'static str,
    /// Operation in the trace.
    pub op: String,
    /// Number of them, of all copies.
    pub operations: u64,
    /// Reason.
    pub reason: &'static str,
}

/// Facts that only the run knows.
pub(super) struct Run {
    pub(super) directory: String,
    pub(super) connections: u32,
    pub(super) length: Duration,
    pub(super) shortened: u64,
    pub(super) left_out: BTreeMap<(u16, &'static str), u64>,
}

fn by_status(errors: &BTreeMap<u32, u64>) -> BTreeMap<String, u64> {
    errors.iter().map(|(s, n)| (status_name(*s), *n)).collect()
}

impl Report {
    pub(super) fn new(plan: &Plan, options: &Options, counts: &Counts, run: Run) -> Report {
        const NOT_MADE: &str = "its file or directory could not be made";
        let open = matches!(options.pace, Pace::Open { .. });
        let mut left_out = run.left_out;
        let mut operations = Vec::new();
        for (at, (version, op, procedure)) in plan.kinds.iter().enumerate() {
            let (recorded, kind) = (&plan.recorded[at], &counts.kinds[at]);
            if kind.not_made > 0 {
                left_out.insert((at as u16, NOT_MADE), kind.not_made);
            }
            operations.push(OperationReport {
                version: version.name(),
                op: op.clone(),
                procedure: procedure.ok().map(|p| format!("{p:?}").to_lowercase()),
                recorded: recorded.operations,
                issued: kind.issued,
                recorded_succeeded: recorded.succeeded,
                succeeded: kind.succeeded,
                other_status: kind.other_status,
                recorded_bytes: recorded.bytes,
                bytes: kind.bytes,
                recorded_errors: by_status(&recorded.errors),
                errors: by_status(&kind.errors),
                recorded_seconds: recorded.durations.quantiles(),
                latency_seconds: kind.latency.quantiles(),
                latency_from_due_seconds: kind.latency_from_due.quantiles(),
            });
        }
        operations.sort_by(|a, b| b.recorded.cmp(&a.recorded).then(a.op.cmp(&b.op)));
        let issued: u64 = counts.kinds.iter().map(|k| k.issued).sum();
        let mut latency = Durations::default();
        for kind in &counts.kinds {
            latency.merge(&kind.latency);
        }
        Report {
            target: format!("{}:{}", options.target.host, options.target.export),
            directory: run.directory,
            loop_kind: if open { "open" } else { "closed" },
            speed: match options.pace {
                Pace::Open { speed } => Some(speed),
                Pace::Closed => None,
            },
            times: options.times,
            connections: run.connections,
            recorded_seconds: plan.last.saturating_sub(plan.first) as f64 / 1e9,
            seconds: run.length.as_secs_f64(),
            recorded: plan.operations,
            issued,
            operations_per_second: issued as f64 / run.length.as_secs_f64().max(1e-9),
            latency_seconds: latency.quantiles(),
            repairs: plan.repairs,
            lateness_seconds: counts.lateness.quantiles(),
            late: open.then_some(counts.late),
            waited_for_handle: counts.waited_for_handle,
            shortened: run.shortened,
            operations,
            left_out: left_out
                .into_iter()
                .map(|((kind, reason), operations)| {
                    let (version, op, _) = &plan.kinds[usize::from(kind)];
                    LeftOut {
                        version: version.name(),
                        op: op.clone(),
                        operations,
                        reason,
                    }
                })
                .collect(),
        }
    }
}
