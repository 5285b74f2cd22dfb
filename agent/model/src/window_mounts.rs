//! This host's own NFS mounts in a window.

use crate::window_parts::{histograms, numbers};
use crate::{Window, family};
use std::collections::BTreeMap;

/// A mount.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WindowMount {
    /// Label `mount`.
    pub mount: String,
    /// Label `version`.
    pub version: String,
    /// Procedures of the mount, in the order of their names.
    pub ops: Vec<MountOp>,
    /// Seconds of waits for a slot of the session; `None` where they are not measured.
    pub slot_wait: Option<f64>,
    /// Lowest round-trip time of the network; `None` where it is not known.
    pub network: Option<f64>,
    /// Requests that were sent again.
    pub retransmits: f64,
}

/// A procedure of a mount. Seconds are sums over all its RPCs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MountOp {
    /// Label `op`.
    pub op: String,
    /// RPCs that ended.
    pub rpcs: f64,
    /// Seconds until the RPCs were sent.
    pub backlog: f64,
    /// Seconds from sending the RPCs until their replies came.
    pub round_trip: f64,
    /// Seconds from the replies until the client was done with the RPCs.
    pub completion: f64,
}

impl MountOp {
    /// Seconds from begin to end of the RPCs.
    pub fn seconds(&self) -> f64 {
        self.backlog + self.round_trip + self.completion
    }
}

impl WindowMount {
    /// All procedures together, without a name.
    pub fn total(&self) -> MountOp {
        let mut all = MountOp::default();
        for op in &self.ops {
            all.rpcs += op.rpcs;
            all.backlog += op.backlog;
            all.round_trip += op.round_trip;
            all.completion += op.completion;
        }
        all
    }
}

/// Mounts with RPCs in the window; empty for an agent that does not observe mounts.
pub fn mounts(w: &Window) -> Vec<WindowMount> {
    let mut all: BTreeMap<[&str; 2], BTreeMap<&str, MountOp>> = BTreeMap::new();
    for ([mount, version, op], rpcs) in numbers(w, &family::VIEW_RPCS).filter(|(_, n)| *n > 0.0) {
        let named = MountOp {
            op: op.to_owned(),
            rpcs,
            ..MountOp::default()
        };
        all.entry([mount, version]).or_default().insert(op, named);
    }
    for ([mount, version, op, stage], seconds) in numbers(w, &family::VIEW_STAGE) {
        let of = all.get_mut(&[mount, version]);
        let Some(of) = of.and_then(|ops| ops.get_mut(op)) else {
            continue;
        };
        match stage {
            "backlog" => of.backlog += seconds,
            "round_trip" => of.round_trip += seconds,
            _ => of.completion += seconds,
        }
    }
    let slots: BTreeMap<_, _> = histograms(w, &family::VIEW_SLOT_WAIT).collect();
    let network: BTreeMap<_, _> = numbers(w, &family::VIEW_NETWORK).collect();
    let again: BTreeMap<_, _> = numbers(w, &family::VIEW_RETRANSMITS).collect();
    let measured =
        numbers(w, &family::VIEW_SOURCE_INFO).any(|([source], _)| source == "tracepoints");
    all.into_iter()
        .map(|([mount, version], ops)| WindowMount {
            mount: mount.to_owned(),
            version: version.to_owned(),
            ops: ops.into_values().collect(),
            slot_wait: measured.then(|| slots.get(&[mount, version]).map_or(0.0, |h| h.sum)),
            network: network.get(&[mount, version]).copied(),
            retransmits: again.get(&[mount, version]).copied().unwrap_or(0.0),
        })
        .collect()
}
