//! Counters of a version from the server's agent.

use nfscope_agent_client::http;
use nfscope_model::family as f;
use nfscope_model::op::ACL_PROCS;
use std::collections::BTreeMap;
use std::thread;

/// Totals since the agent began.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerCounts {
    /// Procedures of NFSv3, component operations of NFSv4.
    pub component_ops: u64,
    /// Requests.
    pub requests: u64,
    /// Sum of the requests' residence on the server.
    pub seconds: f64,
    /// Calls of NFSACL by procedure. A client makes them beside NFSv3, and mountstats leave them out.
    pub acl: BTreeMap<String, u64>,
}

impl ServerCounts {
    /// Reads the counters of one version. They include everything that was sent before this call.
    ///
    /// # Errors
    /// When the agent does not answer.
    pub fn read(url: &str, version: &str) -> anyhow::Result<ServerCounts> {
        thread::sleep(http::FRESH);
        let snapshot = http::snapshot(url)?;
        let mut counts = ServerCounts::default();
        for ([v, op], h) in snapshot.histograms(&f::OP_DURATION) {
            if v != version {
                continue;
            }
            counts.component_ops += h.count();
            if ACL_PROCS.contains(&op) {
                counts.acl.insert(op.to_uppercase(), h.count());
            }
        }
        for ([v], h) in snapshot.histograms(&f::RPC_DURATION) {
            if v == version {
                counts.requests += h.count();
                counts.seconds += h.sum;
            }
        }
        Ok(counts)
    }

    /// Difference from the `earlier` counters.
    pub fn since(&self, earlier: &ServerCounts) -> ServerCounts {
        let before = |name: &str| earlier.acl.get(name).copied().unwrap_or(0);
        let acl = self.acl.iter();
        let acl = acl.map(|(name, n)| (name.clone(), n.saturating_sub(before(name))));
        ServerCounts {
            component_ops: self.component_ops.saturating_sub(earlier.component_ops),
            requests: self.requests.saturating_sub(earlier.requests),
            seconds: (self.seconds - earlier.seconds).max(0.0),
            acl: acl.filter(|(_, n)| *n > 0).collect(),
        }
    }
}
