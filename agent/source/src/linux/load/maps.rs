//! Maps: what the probes share, and how values are read and written.

use super::pod;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, libbpf_sys};
use nfscope_probes::{Pod, types as t};

/// A map of the probes.
#[derive(Debug)]
pub struct Map(MapHandle);

impl From<MapHandle> for Map {
    fn from(handle: MapHandle) -> Self {
        Map(handle)
    }
}

impl Map {
    /// Most entries that it can have.
    pub fn capacity(&self) -> u32 {
        self.0.max_entries()
    }

    /// A value of a map that has one for all CPUs.
    pub fn value<T: Pod>(&self, key: &impl Pod) -> Option<T> {
        pod::from_bytes(&self.0.lookup(pod::bytes_of(key), MapFlags::ANY).ok()??)
    }

    /// The values of a per-CPU map, one for each CPU; empty without such an entry.
    pub fn per_cpu<T: Pod>(&self, key: &impl Pod) -> Vec<T> {
        self.0
            .lookup_percpu(pod::bytes_of(key), MapFlags::ANY)
            .ok()
            .flatten()
            .unwrap_or_default()
            .iter()
            .filter_map(|b| pod::from_bytes(b))
            .collect()
    }

    /// A per-CPU counter, summed over CPUs.
    pub fn sum(&self, key: &impl Pod) -> u64 {
        self.per_cpu::<u64>(key).iter().sum()
    }

    /// Every key of a hash.
    pub fn keys<T: Pod>(&self) -> Vec<T> {
        self.0.keys().filter_map(|k| pod::from_bytes(&k)).collect()
    }

    /// Removes an entry of a hash.
    pub fn remove(&self, key: &impl Pod) {
        self.remove_bytes(pod::bytes_of(key));
    }

    fn remove_bytes(&self, key: &[u8]) {
        // It may be gone already, and an agent that gave up its rights may not: then it is left out of every reading.
        let _ = self.0.delete(key);
    }

    /// Removes every entry of a hash.
    pub fn clear(&self) {
        for key in self.0.keys().collect::<Vec<_>>() {
            self.remove_bytes(&key);
        }
    }

    /// Zeroes every row of a per-CPU table.
    pub fn zero_rows(&self) {
        let cpus = libbpf_rs::num_possible_cpus().unwrap_or(1);
        let zero = vec![vec![0u8; self.0.value_size() as usize]; cpus];
        for row in 0..self.capacity() {
            // What stays in it counts for its next owner.
            let _ = self
                .0
                .update_percpu(pod::bytes_of(&row), &zero, MapFlags::ANY);
        }
    }

    /// Takes all that is queued.
    pub fn drain_queue(&self) {
        while let Ok(Some(_)) = self.0.lookup_and_delete(&[]) {}
    }

    /// Queues the numbers of all rows of a table but the first.
    pub fn queue_rows_of(&self, table: &Map) {
        for row in 1..table.capacity() {
            // A row that is not queued is one pair more without a name.
            let _ = self.0.update(&[], pod::bytes_of(&row), MapFlags::ANY);
        }
    }

    /// Writes an entry.
    pub(super) fn update(&self, key: &impl Pod, value: &impl Pod) -> libbpf_rs::Result<()> {
        self.0
            .update(pod::bytes_of(key), pod::bytes_of(value), MapFlags::ANY)
    }
}

/// What the probes have in common: the records of threads, to which several of them add.
pub struct Shared {
    /// `None` where the kernel lets us create no map; nothing loads then, and each program's reason says so.
    pub(super) requests: Option<MapHandle>,
}

/// `REQUESTS` in lib/request.h; a test compares them.
pub(super) const REQUESTS: u32 = 8192;

impl Shared {
    /// Creates it.
    pub fn create() -> Self {
        let requests = MapHandle::create(
            MapType::Array,
            Some("nfsd_request"),
            size_of::<u32>() as u32,
            size_of::<t::request_record>() as u32,
            REQUESTS,
            &map_options(),
        );
        Shared {
            requests: requests.ok(),
        }
    }

    /// Zeroes the records of all threads: nobody will see the end of the requests in them.
    pub fn clear(&self) {
        let Some(requests) = &self.requests else {
            return;
        };
        let none = vec![0u8; size_of::<t::request_record>()];
        for place in 0..REQUESTS {
            // What stays is a request that began long ago, once.
            let _ = requests.update(pod::bytes_of(&place), &none, MapFlags::ANY);
        }
    }
}

pub(super) fn map_options() -> libbpf_sys::bpf_map_create_opts {
    libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as _,
        ..Default::default()
    }
}

/// True where this thread may look up map entries as it is now.
///
/// Asked without a map: the kernel checks the right to call before it looks at the descriptor, so that EPERM and EBADF
/// tell the two cases apart.
pub fn may_read_maps() -> bool {
    // SAFETY: with descriptor -1 the kernel looks at neither pointer.
    let result =
        unsafe { libbpf_sys::bpf_map_lookup_elem(-1, std::ptr::null(), std::ptr::null_mut()) };
    result != -libc::EPERM
}
