//! Types of a view.
//!
//! `nfscope top --json` prints a view, so the names of its fields are a contract.

use crate::view::phases::Phases;
use nfscope_model::phase;
use nfscope_model::{HeldRequest, ProbeStatus};
use serde::Serialize;
use std::collections::BTreeMap;

/// Values of a window. Times are in seconds, rates per second. `None` is a value that this host or window does not have, never zero.
/// Lists begin with the row that took the most time.
#[derive(Debug, Clone, Default, Serialize)]
pub struct View {
    /// Length of the window.
    pub window_seconds: f64,
    /// Name of the server.
    pub host: String,
    /// Operations timed over operations counted by the kernel, by version.
    pub coverage: BTreeMap<String, f64>,
    /// Procedures and component operations that ended in the window.
    pub ops: Vec<Op>,
    /// Thread pools.
    pub pools: Vec<Pool>,
    /// Requests by version.
    pub rpc: Vec<Rpc>,
    /// Journals and intent logs.
    pub logs: Vec<Log>,
    /// Block devices.
    pub disks: Vec<Disk>,
    /// Busiest clients.
    pub clients: Vec<Client>,
    /// Busiest exports.
    pub exports: Vec<Export>,
    /// Requests that threads had had in hand for long at the end of the window, the oldest first. A very long list is cut.
    pub held: Vec<HeldRequest>,
    /// Lists above that are empty because this agent does not measure them, not because nothing happened.
    pub not_measured: Vec<&'static str>,
    /// Events that probes could not measure.
    pub lost: Vec<Lost>,
    /// The server's own state that clients wait for; `None` while there is nothing to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_state: Option<String>,
    /// What the agent finds to make requests slow; empty without an agent, too.
    pub findings: Vec<Found>,
    /// Changes that may cure the findings, the most valuable one first; empty where the agent cannot predict any.
    pub changes: Vec<Change>,
    /// True where NFS operations are being timed.
    pub timed: bool,
    /// Probe programs that do not run, and why.
    pub not_attached: Vec<ProbeStatus>,
    /// All probe programs.
    #[serde(skip)]
    pub probes: Vec<ProbeStatus>,
}

/// A bottleneck that an agent finds in its last windows of ten seconds.
#[derive(Debug, Clone, Serialize)]
pub struct Found {
    /// Value of the label `kind` of `nfscope_bottleneck_active`.
    pub kind: String,
    /// Part of the requests' time in the server that it explains; `None` where that is not told.
    pub share: Option<f64>,
}

/// A change of the server, by the model of `nfscope what-if`.
#[derive(Debug, Clone, Serialize)]
pub struct Change {
    /// Value of the label `change` of `nfscope_change_gain_ratio`.
    pub change: String,
    /// Least factor of requests per second, or of the time that a request stays in the server.
    pub gain: f64,
}

/// A procedure or component operation.
#[derive(Debug, Clone, Serialize)]
pub struct Op {
    /// NFS version.
    pub version: String,
    /// The RFC's name in lower case.
    pub op: String,
    /// Operations per second.
    pub rate: f64,
    /// Median.
    pub p50: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Upper edge of the highest bucket with a value; infinite (`null` in JSON) above the last edge.
    pub max: Option<f64>,
    /// Answers with a status other than OK; `None` where nothing tells whether they were counted.
    pub errors_per_s: Option<f64>,
    /// Part of the time of all operations.
    pub share: f64,
    /// Time of this operation.
    pub seconds: f64,
    /// Time of this operation by phase.
    pub phases: Option<Phases>,
}

/// A pool of nfsd threads.
#[derive(Debug, Clone, Serialize)]
pub struct Pool {
    /// Number.
    pub pool: String,
    /// Threads that run now.
    pub threads: f64,
    /// Threads with a request in hand now.
    pub busy: Option<f64>,
    /// Most threads of the pool.
    pub limit: Option<f64>,
    /// Part of the threads' time with a request in hand.
    pub busy_ratio: Option<f64>,
    /// Part of the window in which every thread had a request in hand.
    pub saturated_ratio: Option<f64>,
    /// Requests per second whose wait was seen; `None` where no wait can be.
    pub rate: Option<f64>,
    /// Median wait for a thread.
    pub queue_p50: Option<f64>,
    /// 99th percentile of the wait for a thread.
    pub queue_p99: Option<f64>,
    /// Longest wait for a thread; see [`Op::max`].
    pub queue_max: Option<f64>,
}

/// Requests of one version.
#[derive(Debug, Clone, Serialize)]
pub struct Rpc {
    /// NFS version.
    pub version: String,
    /// Requests per second.
    pub rate: f64,
    /// Median residence.
    pub p50: Option<f64>,
    /// 99th percentile of the residence.
    pub p99: Option<f64>,
    /// Longest residence; see [`Op::max`].
    pub max: Option<f64>,
    /// Sum of the residences.
    pub seconds: f64,
    /// Residences by phase.
    pub phases: Option<Phases>,
    /// Bytes of calls per second.
    pub received_per_s: Option<f64>,
    /// Bytes of replies per second.
    pub sent_per_s: Option<f64>,
}

/// The log of one file system.
#[derive(Debug, Clone, Serialize)]
pub struct Log {
    /// File system type.
    pub fs: String,
    /// Source that it is mounted from.
    pub volume: String,
    /// Waits for the log per second; `None` where they are not measured.
    pub waits_per_s: Option<f64>,
    /// Median wait.
    pub wait_p50: Option<f64>,
    /// 99th percentile of the wait.
    pub wait_p99: Option<f64>,
    /// Longest wait; see [`Op::max`].
    pub wait_max: Option<f64>,
    /// Sum of the waits.
    pub seconds: Option<f64>,
    /// Writes of the log per second.
    pub writes_per_s: Option<f64>,
    /// 99th percentile of a write.
    pub write_p99: Option<f64>,
    /// Bytes written to the log per second, wherever it lies.
    pub bytes_per_s: Option<f64>,
    /// True if the log lies on a device of its own.
    pub separate: Option<bool>,
}

/// Requests of one kind to one block device.
#[derive(Debug, Clone, Serialize)]
pub struct Disk {
    /// Name.
    pub device: String,
    /// `read`, `write`, `flush`; empty where nothing completed and something is in flight.
    pub op: String,
    /// Completed per second.
    pub rate: Option<f64>,
    /// In the scheduler's queue: 99 of 100 waited no longer.
    pub queue_p99: Option<f64>,
    /// Median time at the device.
    pub device_p50: Option<f64>,
    /// 99th percentile of the time at the device.
    pub device_p99: Option<f64>,
    /// Longest time at the device; see [`Op::max`].
    pub device_max: Option<f64>,
    /// Sum of the times at the device.
    pub seconds: Option<f64>,
    /// Bytes per second.
    pub bytes_per_s: Option<f64>,
    /// Requests at the device now, of every kind.
    pub in_flight: Option<f64>,
}

/// A client.
#[derive(Debug, Clone, Serialize)]
pub struct Client {
    /// Address, or `other`.
    pub client: String,
    /// Name of that client, where the agent knows one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Operations per second.
    pub rate: f64,
    /// Part of the time of all clients' operations.
    pub share: Option<f64>,
    /// Time of this client's operations.
    pub seconds: Option<f64>,
    /// Mean time of one operation.
    pub mean: Option<f64>,
    /// Bytes per second that READs returned.
    pub read_per_s: Option<f64>,
    /// Bytes per second that WRITEs stored.
    pub written_per_s: Option<f64>,
    /// Operations in one request, on average: an NFSv4 request has several.
    pub ops_per_request: Option<f64>,
    /// Smoothed round-trip time of its TCP connection, which holds delayed acknowledgements.
    pub rtt: Option<f64>,
    /// Lowest round-trip time of its TCP connection in the last minutes.
    pub min_rtt: Option<f64>,
}

/// An export.
#[derive(Debug, Clone, Serialize)]
pub struct Export {
    /// Path, `none` or `other`.
    pub export: String,
    /// Operations per second.
    pub rate: f64,
    /// Part of the time of all exports' operations.
    pub share: Option<f64>,
    /// Time of this export's operations.
    pub seconds: Option<f64>,
    /// Mean time of one operation.
    pub mean: Option<f64>,
    /// Bytes per second that READs returned.
    pub read_per_s: Option<f64>,
    /// Bytes per second that WRITEs stored.
    pub written_per_s: Option<f64>,
}

/// Events that could not be measured.
#[derive(Debug, Clone, Serialize)]
pub struct Lost {
    /// Probe.
    pub probe: String,
    /// Value of the label `reason` of `nfscope_events_lost_total`.
    pub reason: String,
    /// Events per second.
    pub rate: f64,
}

fn occurs<'a>(names: &[&str], i: usize, rows: impl Iterator<Item = &'a Option<Phases>>) -> bool {
    let mut seconds = rows.flatten().filter_map(|p| *p.seconds.get(i)?);
    !phase::RARE.contains(&names[i]) || seconds.any(|s| s > 0.0)
}

impl View {
    /// Returns true if the legend needs the phase of operations with this index: a rare phase only if it has occurred.
    pub fn has_phase(&self, i: usize) -> bool {
        occurs(&phase::OF_OP, i, self.ops.iter().map(|o| &o.phases))
    }

    /// Returns true if the legend needs the phase of requests with this index, as [`has_phase`](Self::has_phase) does for operations.
    pub fn has_rpc_phase(&self, i: usize) -> bool {
        occurs(&phase::OF_RPC, i, self.rpc.iter().map(|r| &r.phases))
    }

    /// Coverage that is furthest from 1, above or below.
    pub fn worst_coverage(&self) -> Option<f64> {
        let off = |v: &f64| (v - 1.0).abs();
        let all = self.coverage.values().copied();
        all.max_by(|a, b| off(a).total_cmp(&off(b)))
    }

    /// Rate of all operations together.
    pub fn rate(&self) -> f64 {
        self.ops.iter().fold(0.0, |sum, o| sum + o.rate)
    }
}
