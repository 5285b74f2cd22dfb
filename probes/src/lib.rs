//! The kernel side of nfscope: the BPF objects, in the two builds of `bpf/lib/kernel.h`, and their map types.

pub mod arrivals;
pub mod time_edges;

/// A BPF object file in its two builds.
#[derive(Debug)]
pub struct Object {
    /// Name of the probe: that of its file, its metric label and its status.
    pub word: &'static str,
    /// Build for kernels with BTF of the module that has the hooks.
    pub btf: &'static [u8],
    /// Build for kernels without that BTF: raw tracepoints and kprobes. `None` where that build makes no sense.
    pub raw: Option<&'static [u8]>,
}

macro_rules! object {
    ($word:literal) => {
        Object {
            raw: Some(include_bytes!(concat!(
                env!("OUT_DIR"),
                "/",
                $word,
                "_raw.bpf.o"
            ))),
            ..object!($word, btf)
        }
    };
    ($word:literal, btf) => {
        Object {
            word: $word,
            btf: include_bytes!(concat!(env!("OUT_DIR"), "/", $word, ".bpf.o")),
            raw: None,
        }
    };
}

macro_rules! without {
    ($what:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/nfsd_without_", $what, ".bpf.o"))
    };
}

/// NFS requests and operations.
pub static NFSD: Object = object!("nfsd");
/// Context switches of nfsd threads.
pub static SCHED: Object = object!("sched", btf);
/// ext4's journal.
pub static JBD2: Object = object!("jbd2");
/// XFS's log.
pub static XFS: Object = object!("xfs", btf);
/// btrfs's tree log.
pub static BTRFS: Object = object!("btrfs", btf);
/// The intent log of OpenZFS.
pub static ZFS: Object = object!("zfs");
/// Block requests.
pub static BLOCK: Object = object!("block");

/// RPCs of this host's own NFS mounts.
pub static CLIENT: Object = object!("client", btf);
/// Delegations that servers ask this host to return.
pub static RECALL: Object = object!("recall", btf);
/// Locks of NFSv3.
pub static LOCKD: Object = object!("lockd", btf);

/// The nfsd probe driven without an NFS server: examples/native.rs.
pub static NFSD_DRIVE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/nfsd_drive.bpf.o"));

/// The nfsd probe without one of the counts beside operations, to measure the cost of that count.
pub static NFSD_WITHOUT_SLOTS: &[u8] = without!("slots");
/// See [`NFSD_WITHOUT_SLOTS`].
pub static NFSD_WITHOUT_WALKS: &[u8] = without!("walks");
/// See [`NFSD_WITHOUT_SLOTS`].
pub static NFSD_WITHOUT_DURABLE: &[u8] = without!("durable");

/// Every object.
pub static OBJECTS: [&Object; 10] = [
    &NFSD, &SCHED, &JBD2, &XFS, &BTRFS, &ZFS, &BLOCK, &CLIENT, &RECALL, &LOCKD,
];

macro_rules! types {
    ($($(#[$doc:meta])* $word:ident;)*) => {$(
        $(#[$doc])*
        #[allow(missing_docs, non_camel_case_types, dead_code, unused, clippy::all, clippy::unwrap_used, clippy::undocumented_unsafe_blocks)]
        mod $word {
            include!(concat!(env!("OUT_DIR"), "/", stringify!($word), ".skel.rs"));
        }
    )*};
}

types! {
    nfsd;
    jbd2;
    block;
    zfs;
    client;
    lockd;
}

/// Types for which any bytes of their size are a valid value: integers, and structures and arrays of integers.
///
/// # Safety
/// Only for types without invalid values and without references.
pub unsafe trait Pod: Copy {}

macro_rules! pod {
    ($($t:ty),*) => {$(
        // SAFETY: an integer.
        unsafe impl Pod for $t {}
    )*};
}

pod!(i32, u32, u64);

// SAFETY: an array of integers.
unsafe impl<const N: usize> Pod for [u8; N] {}

/// List of the types in maps and rings: by object, the structures and enumerations that its headers declare.
macro_rules! map_types {
    ($($(#[$comment:meta])* $word:ident: $($t:ident),+;)*) => {
        /// Map types as the C headers declare them, by way of the objects' BTF. All are [`Pod`].
        pub mod types {
            $($(#[$comment])* pub use crate::$word::types::{$($t),+};)*
        }
        $($(
            // SAFETY: of integers, by the BTF that the type is made of; holes are fields of their own.
            unsafe impl Pod for types::$t {}
        )+)*
    };
}

map_types! {
    block: block_event, block_row, block_times;
    client: client_event, client_mount, client_rpc;
    /// `log_row.h` is the same for every log.
    jbd2: log_event, log_row;
    lockd: lockd_client_key, lockd_procedure;
    nfsd: breakdown_by, breakdown_count, breakdown_key, breakdown_row, breakdown_want, client_answer_key, client_key, client_row, error_key, event, held_op, op_row, op_times, pending, pool_now, pool_row, request_record, session_row, slow_count,
        slow_event, slow_want, state_client, state_client_key, state_key, state_kind, state_laundry, state_recall, state_row, table_shape, time_hist, transport_counts, transports_now, unacked, upcall_row, version, version_row;
    zfs: zfs_dataset_key, zfs_dataset_now, zfs_device_key, zfs_event, zfs_layout, zfs_pool_key, zfs_pool_now, zfs_pool_row;
}

/// Rows of 64-bit counters alone: rows of several shards add up word by word.
///
/// # Safety
/// Only for types without fields of another size.
pub unsafe trait Counters: Pod {}

macro_rules! counters {
    ($($t:ident),*) => {$(
        // SAFETY: histograms and numbers of 64 bits, by its header.
        unsafe impl Counters for types::$t {}
        const _: () = assert!(size_of::<types::$t>() % 8 == 0);
    )*};
}

counters!(op_times, version_row, pool_row, block_row);

/// `struct time_hist`, which every object's BTF declares anew.
pub trait TimeHist {
    /// Sum in nanoseconds, and counts per bucket.
    fn parts(&self) -> (u64, &[u64]);
}

macro_rules! time_hist {
    ($($word:ident),*) => {$(
        impl TimeHist for $word::types::time_hist {
            fn parts(&self) -> (u64, &[u64]) {
                (self.sum_ns, &self.count)
            }
        }
    )*};
}

time_hist!(nfsd, jbd2, block, zfs, client, lockd);

unsafe extern "C" {
    fn nfscope_time_bucket(ns: u64) -> u32;
    fn nfscope_size_bucket(v: u64, buckets: u32) -> u32;
    fn nfscope_comes_again(status: u32) -> bool;
}

/// Bucket in which the probes count a duration; `bpf/lib/histogram.h` compiled for this host.
pub fn time_bucket(ns: u64) -> usize {
    // SAFETY: a pure function of its argument.
    unsafe { nfscope_time_bucket(ns) as usize }
}

/// Bucket of `buckets` in which the probes count a size.
pub fn size_bucket(v: u64, buckets: u32) -> usize {
    // SAFETY: a pure function of its arguments.
    unsafe { nfscope_size_bucket(v, buckets) as usize }
}

/// True if the probes count answers of this status by client; `bpf/nfsd/comes_again.h` compiled for this host.
pub fn comes_again(status: u32) -> bool {
    // SAFETY: a pure function of its argument.
    unsafe { nfscope_comes_again(status) }
}
