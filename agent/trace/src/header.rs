//! Facts about a whole trace.

use serde::{Deserialize, Serialize};

/// Facts about a whole trace: one JSON object in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Start of the trace: nanoseconds since 1970, of the wall clock; 0 if that is not known.
    pub began: u64,
    /// End of the trace: nanoseconds since its start; `None` until it has ended, or if that is not known.
    #[serde(default)]
    pub length: Option<u64>,
    /// Side that was recorded.
    pub host: Host,
    /// 1 of how many file handles is in the trace, with all its operations; 1 for all of them.
    pub sampled_one_in: u32,
    /// Clients: pseudonyms, such as `c0`. [`Operation::client`] is an index.
    ///
    /// [`Operation::client`]: crate::Operation::client
    pub clients: Vec<String>,
    /// Operations that are not in the trace, by reason; empty if it is complete.
    #[serde(default)]
    pub dropped: Vec<Dropped>,
    /// Operations whose arrival is before that of the operation written before them. The writer sorts; this counts those that came
    /// too late for it.
    #[serde(default)]
    pub out_of_order: u64,
    /// Program that wrote the trace, with its version.
    pub program: String,
    /// Form that the trace was imported from, if it was: `nfsdump`, `tshark`.
    #[serde(default)]
    pub imported_from: Option<String>,
}

/// Side on which operations were recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Host {
    /// An NFS server: operations of all clients, with their time in the server.
    Server,
    /// An NFS client: its own RPCs, with their time until the reply.
    Client,
    /// A capture of packets, or a trace of an unknown side.
    Network,
}

/// Operations that are not in the trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// Reason, in snake case: `buffer_full`, `unreadable_line`.
    pub reason: String,
    /// Operation's name; `None` if that is not known.
    #[serde(default)]
    pub op: Option<String>,
    /// Number of operations.
    pub operations: u64,
}

impl Header {
    /// Header of a trace that has just begun, of all file handles.
    pub fn new(host: Host, program: &str) -> Header {
        Header {
            began: 0,
            length: None,
            host,
            sampled_one_in: 1,
            clients: Vec::new(),
            dropped: Vec::new(),
            out_of_order: 0,
            program: program.to_owned(),
            imported_from: None,
        }
    }

    /// Counts operations that are not in the trace.
    pub fn count_dropped(&mut self, reason: &str, op: Option<&str>, operations: u64) {
        let same = |d: &&mut Dropped| d.reason == reason && d.op.as_deref() == op;
        match self.dropped.iter_mut().find(same) {
            Some(d) => d.operations = d.operations.saturating_add(operations),
            None => self.dropped.push(Dropped {
                reason: reason.to_owned(),
                op: op.map(str::to_owned),
                operations,
            }),
        }
    }

    /// Operations that are not in the trace, for whatever reason.
    pub fn total_dropped(&self) -> u64 {
        (self.dropped.iter()).fold(0, |sum, d| sum.saturating_add(d.operations))
    }
}
