//! A block: the measurements of one version under one load.

use nfscope_text::units::{rate, seconds};
use serde::Serialize;
use std::collections::BTreeMap;

/// Measurements of a block.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Block {
    /// System calls, or I/Os of fio.
    pub host_ops: u64,
    /// Seconds from the begin of the first operation to the end of the last.
    pub seconds: f64,
    /// CPU time of the client beyond its use without the load; `None` if the block is too short for the clock's tick.
    pub cpu_seconds: Option<f64>,
    /// Mean time of a host operation.
    pub latency_seconds: Option<f64>,
    /// 99th percentile of the time of a host operation.
    pub p99_seconds: Option<f64>,
    /// Sum of the RPCs' times from sending to reply.
    pub round_trip_seconds: f64,
    /// Sum of the requests' residence on the server; `None` without its agent.
    pub server_seconds: Option<f64>,
    /// RPCs by procedure.
    pub rpcs: BTreeMap<String, u64>,
    /// NFSv4 component operations, or NFSv3 procedures, that the server executed; `None` without its agent.
    pub component_ops: Option<u64>,
    /// RPCs that had been answered when the call returned; `None` if a block has more than one call.
    pub waited_rpcs: Option<u64>,
    /// Requests of this version that the agent counted and that this client did not send for the load.
    pub others: u64,
    /// Retransmitted RPCs.
    pub retransmissions: u64,
    /// Other figures of a workload of fio by name, such as those of its jobs.
    pub numbers: BTreeMap<String, f64>,
}

/// A quantity of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// CPU time of the client per operation.
    HostCpu,
    /// Residence on the server per operation, by its agent.
    ServerTime,
    /// Round trips of the RPCs per operation, network and server together.
    RoundTrips,
    /// Operations per second.
    Throughput,
    /// Mean latency.
    Latency,
    /// 99th percentile of the latency.
    P99,
    /// RPCs per operation.
    Rpcs,
    /// Component operations per operation.
    ComponentOps,
}

impl Metric {
    /// All metrics, in the order of tables.
    pub const ALL: [Metric; 8] = [
        Metric::HostCpu,
        Metric::ServerTime,
        Metric::RoundTrips,
        Metric::Throughput,
        Metric::Latency,
        Metric::P99,
        Metric::Rpcs,
        Metric::ComponentOps,
    ];

    /// Name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Metric::HostCpu => "client CPU/op",
            Metric::ServerTime => "server time/op",
            Metric::RoundTrips => "round trips/op",
            Metric::Throughput => "throughput",
            Metric::Latency => "latency",
            Metric::P99 => "latency p99",
            Metric::Rpcs => "RPCs/op",
            Metric::ComponentOps => "component ops/op",
        }
    }

    /// Name of the metric's number in an experiment.
    pub fn number(self) -> &'static str {
        match self {
            Metric::HostCpu => "client_cpu_seconds",
            Metric::ServerTime => "server_seconds",
            Metric::RoundTrips => "round_trip_seconds",
            Metric::Throughput => "operations_per_second",
            Metric::Latency => "latency_seconds",
            Metric::P99 => "p99_seconds",
            Metric::Rpcs => "rpcs",
            Metric::ComponentOps => "component_operations",
        }
    }

    /// Value in a block; `None` if the block does not have it.
    pub fn of(self, b: &Block) -> Option<f64> {
        let ops = b.host_ops as f64;
        let each = |v: f64| v / ops;
        let value = match self {
            Metric::HostCpu => each(b.cpu_seconds?),
            Metric::ServerTime => each(b.server_seconds?),
            Metric::RoundTrips => each(b.round_trip_seconds),
            Metric::Throughput => ops / b.seconds,
            Metric::Latency => b.latency_seconds?,
            Metric::P99 => b.p99_seconds?,
            Metric::Rpcs => each(b.rpcs.values().sum::<u64>() as f64),
            Metric::ComponentOps => each(b.component_ops? as f64),
        };
        value.is_finite().then_some(value)
    }

    /// A value with its unit.
    pub fn shown(self, v: f64) -> String {
        match self {
            Metric::Throughput => format!("{}/s", rate(v)),
            Metric::Rpcs | Metric::ComponentOps => format!("{v:.2}"),
            _ => seconds(v),
        }
    }

    /// Returns true if more of the metric is better.
    pub(super) fn more_is_better(self) -> bool {
        self == Metric::Throughput
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_those_of_one_operation() {
        let block = Block {
            host_ops: 500,
            seconds: 2.0,
            cpu_seconds: Some(0.05),
            latency_seconds: Some(0.004),
            round_trip_seconds: 1.5,
            rpcs: [("READ".to_owned(), 500), ("GETATTR".to_owned(), 5)].into(),
            component_ops: Some(1500),
            ..Block::default()
        };
        let shown = Metric::ALL.map(|m| m.of(&block).map(|v| m.shown(v)));
        assert_eq!(
            shown.map(|s| s.unwrap_or_default()),
            [
                "100 µs", "", "3.00 ms", "250/s", "4.00 ms", "", "1.01", "3.00"
            ]
        );
        let none = Block::default();
        assert!(Metric::ALL.iter().all(|m| m.of(&none).is_none()));
    }
}
