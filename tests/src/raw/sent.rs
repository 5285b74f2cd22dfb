//! What was sent, counted as the server is to count it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What was sent, as the server is to count it by the kernel's own rules.
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
    /// NFSv4 COMPOUND procedures, whatever is in them.
    pub compounds: u64,
    /// NFSv4 component operations that the server must have executed. A replayed slot's are not executed again.
    pub ops4: BTreeMap<String, u64>,
    /// Compounds answered from a slot's cache.
    pub slot_replays: u64,
    /// Compounds whose SEQUENCE succeeded, by slots in use as it says.
    pub slots_used: BTreeMap<u32, u64>,
    /// Of these, those with every slot in use that the server granted in its answer.
    pub slots_full: u64,
    /// Slots that the last of them was granted.
    pub slots_granted: u32,
    /// SEQUENCEs that failed, by status (RFC 8881, 15.1).
    pub sequence_errors: BTreeMap<u32, u64>,
    /// Component operations with a number that does not exist.
    pub illegal_ops: u64,
    /// What was tried, and the status that came back.
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
