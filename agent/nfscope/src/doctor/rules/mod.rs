//! Rules of `nfscope doctor`.

mod clients;
mod connections;
mod exports;
mod kernel;
mod kernel_bugs;
mod network;
mod protocol;
mod storage;
pub mod threads;

use crate::doctor::rule::Rule;

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
