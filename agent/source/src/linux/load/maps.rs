//! Maps: what the probes share, how their values are read and written, and the ring of events.

use crate::linux::load::loader::Loaded;
use crate::linux::load::pod;
use anyhow::Context;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, RingBuffer, RingBufferBuilder, libbpf_sys};
use nfscope_probes::types as t;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Mutex};

/// What the probes have in common: the records of threads, to which several of them add.
pub struct Shared {
    /// `None` where the kernel lets us create no map; nothing loads then, and each program's reason says so.
    pub(super) requests: Option<MapHandle>,
}

impl Shared {
    /// Creates it.
    pub fn create() -> Self {
        let options = map_options();
        let requests = MapHandle::create(
            MapType::Array,
            Some("nfsd_request"),
            size_of::<u32>() as u32,
            size_of::<t::request_record>() as u32,
            REQUESTS,
            &options,
        );
        Shared {
            requests: requests.ok(),
        }
    }

    /// Forgets what threads have in hand: nobody will see its end.
    pub fn forget(&self) {
        let Some(requests) = &self.requests else {
            return;
        };
        let none = vec![0u8; size_of::<t::request_record>()];
        for place in 0..REQUESTS {
            // What stays is a request that began long ago, once.
            let _ = requests.update(&place.to_ne_bytes(), &none, MapFlags::ANY);
        }
    }
}

/// `REQUESTS` in lib/request.h; a test compares them.
pub(super) const REQUESTS: u32 = 8192;

/// A ring that exists as long as this does, and what came through it.
pub struct Ring {
    buffer: RingBuffer<'static>,
    /// Keeps the ring while nobody else does.
    _map: MapHandle,
    came: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Ring {
    /// Every event since the last call; never waits.
    pub fn take(&self) -> Vec<Vec<u8>> {
        // What it says is that the callback asked to stop, which it never does.
        let _ = self.buffer.consume();
        self.came
            .lock()
            .map(|mut v| std::mem::take(&mut *v))
            .unwrap_or_default()
    }
}

impl Loaded {
    /// Makes a ring of so many bytes (a power of two) and puts it into the first place of a map of rings.
    pub fn open_ring(&self, map: &str, bytes: u32) -> anyhow::Result<Ring> {
        let options = map_options();
        let ring = MapHandle::create(MapType::RingBuf, Some("nfsd_ring"), 0, 0, bytes, &options)?;
        let came = Arc::new(Mutex::new(Vec::new()));
        let keep = came.clone();
        let mut builder = RingBufferBuilder::new();
        builder.add(&ring, move |event: &[u8]| {
            if let Ok(mut v) = keep.lock() {
                v.push(event.to_vec());
            }
            0
        })?;
        let buffer = builder.build()?;
        let place = self
            .map(map)
            .with_context(|| format!("the probes have no {map}"))?;
        let fd = ring.as_fd().as_raw_fd();
        place.update(&0u32.to_ne_bytes(), &fd.to_ne_bytes(), MapFlags::ANY)?;
        Ok(Ring {
            buffer,
            _map: ring,
            came,
        })
    }

    /// Takes the ring out of such a map.
    pub fn close_ring(&self, map: &str) {
        if let Some(m) = self.map(map) {
            // Nothing there is what was wanted.
            let _ = m.delete(&0u32.to_ne_bytes());
        }
    }

    /// Writes the one variable of a data section.
    pub fn set<T: pod::Pod>(&self, section: &str, value: &T) -> anyhow::Result<()> {
        let m = self
            .map(section)
            .with_context(|| format!("the probes have no {section}"))?;
        m.update(&0u32.to_ne_bytes(), pod::bytes_of(value), MapFlags::ANY)
            .with_context(|| format!("writing the probes' {section}"))
    }

    /// Reads it.
    pub fn get<T: pod::Pod>(&self, section: &str) -> Option<T> {
        value(self.map(section)?, &0u32.to_ne_bytes())
    }
}

fn map_options() -> libbpf_sys::bpf_map_create_opts {
    libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as _,
        ..Default::default()
    }
}

/// Row `i` of a per-CPU table, one value for each CPU.
pub fn per_cpu<T: pod::Pod>(map: &MapHandle, key: &[u8]) -> Vec<T> {
    map.lookup_percpu(key, MapFlags::ANY)
        .ok()
        .flatten()
        .unwrap_or_default()
        .iter()
        .filter_map(|b| pod::from_bytes(b))
        .collect()
}

/// A value of a map that has one for all CPUs.
pub fn value<T: pod::Pod>(map: &MapHandle, key: &[u8]) -> Option<T> {
    pod::from_bytes(&map.lookup(key, MapFlags::ANY).ok()??)
}

/// Most entries of a map.
pub fn capacity(map: &MapHandle) -> usize {
    map.max_entries() as usize
}

/// Removes an entry of a hash.
pub fn forget(map: &MapHandle, key: &[u8]) {
    // It may be gone already, and an agent that gave up its rights may not: then it is left out of every reading.
    let _ = map.delete(key);
}

/// Removes every entry of a hash.
pub fn empty(map: &MapHandle) {
    for key in map.keys().collect::<Vec<_>>() {
        forget(map, &key);
    }
}

/// Takes all that is queued.
pub fn drain(queue: &MapHandle) {
    while let Ok(Some(_)) = queue.lookup_and_delete(&[]) {}
}

/// Zeroes every row of a per-CPU table.
pub fn zero(rows: &MapHandle) {
    let cpus = libbpf_rs::num_possible_cpus().unwrap_or(1);
    let zero = vec![vec![0u8; rows.value_size() as usize]; cpus];
    for row in 0..rows.max_entries() {
        // What stays in it counts for its next owner.
        let _ = rows.update_percpu(&row.to_ne_bytes(), &zero, MapFlags::ANY);
    }
}

/// Queues the numbers of all rows but the first.
pub fn queue_rows(rows: &MapHandle, queue: &MapHandle) {
    for row in 1..rows.max_entries() {
        // A row that is not queued is one pair more without a name.
        let _ = queue.update(&[], &row.to_ne_bytes(), MapFlags::ANY);
    }
}

/// Every key of a hash.
pub fn keys<T: pod::Pod>(map: &MapHandle) -> Vec<T> {
    map.keys().filter_map(|k| pod::from_bytes(&k)).collect()
}
