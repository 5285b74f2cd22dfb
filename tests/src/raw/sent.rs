//! Counts of the client's own calls, by the rules of the server.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Counts of sent calls, by the rules of the server's kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// RPC messages to the NFS server.
    pub calls: u64,
    /// Connections to the NFS server.
    pub connections: u64,
    /// Calls that the duplicate request cache must answer.
    pub cache_hits: u64,
    /// Calls that never become a procedure because of their format, program, version or procedure number.
    pub bad_format: u64,
    /// Calls that never become a procedure because of their credentials.
    pub bad_auth: u64,
    /// NFSv3 procedures by name, those with garbage arguments included.
    pub proc3: BTreeMap<String, u64>,
    /// NFSv4 NULL procedures.
    pub null4: u64,
    /// NFSv4 COMPOUND procedures, with any contents.
    pub compounds: u64,
    /// NFSv4 component operations that the server must have executed. A slot does not execute its replays again.
    pub ops4: BTreeMap<String, u64>,
    /// COMPOUNDs answered from a slot's cache.
    pub slot_replays: u64,
    /// COMPOUNDs whose SEQUENCE succeeded, by their number of slots in use.
    pub slots_used: BTreeMap<u32, u64>,
    /// COMPOUNDs among these that used every slot that the server granted in its answer.
    pub slots_full: u64,
    /// Slots that the last of these COMPOUNDs was granted.
    pub slots_granted: u32,
    /// SEQUENCEs that failed, by status (RFC 8881, 15.1).
    pub sequence_errors: BTreeMap<u32, u64>,
    /// Component operations with a number that does not exist.
    pub illegal_ops: u64,
    /// Description of each call, and the status of its reply.
    pub replies: Vec<(String, String)>,
}

impl Sent {
    /// NFSv3 procedures and NFSv4 component operations, as the kernel counts them.
    pub fn operations(&self) -> u64 {
        self.proc3.values().sum::<u64>() + self.ops4.values().sum::<u64>()
    }
}

pub(super) fn count(into: &mut BTreeMap<String, u64>, name: &str) {
    *into.entry(name.to_owned()).or_default() += 1;
}
