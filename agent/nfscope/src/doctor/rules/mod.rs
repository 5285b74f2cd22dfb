//! Rules: each is a name, a reason, a source, and a function that looks.

mod clients;
mod connections;
mod exports;
mod kernel;
mod kernel_bugs;
mod network;
mod protocol;
mod storage;
mod threads;

use crate::doctor::answer::Answer;
use crate::doctor::host::Host;

/// A rule.
#[derive(Debug)]
pub struct Rule {
    /// Its name, which stands in front of what it says.
    pub name: &'static str,
    /// Why it matters.
    pub why: &'static str,
    /// Where it comes from: a standard, a page of a manual, documentation or code of the kernel.
    pub source: &'static str,
    /// What it says of a host: at least one answer, unless it has no object there.
    pub look: fn(&Host) -> Vec<Answer>,
}

/// The rule that knows whether a server runs.
pub const THREADS: &str = "threads";

/// All rules.
pub const ALL: [&Rule; 23] = [
    &threads::THREADS,
    &threads::POOLS,
    &threads::POOL_MODE,
    &connections::LIMIT,
    &protocol::BLOCK_SIZE,
    &protocol::VERSIONS,
    &protocol::UDP,
    &protocol::GRACE,
    &exports::ASYNC,
    &exports::SUBTREE,
    &storage::ZFS,
    &storage::BARRIER,
    &storage::LOG,
    &storage::ATIME,
    &clients::CALLBACKS,
    &clients::MOUNTS,
    &clients::SLOTS,
    &network::BUFFERS,
    &network::TCP,
    &kernel::ZONE_RECLAIM,
    &kernel::CACHE_PRESSURE,
    &kernel::CPU_FREQUENCY,
    &kernel_bugs::KERNEL_BUGS,
];
