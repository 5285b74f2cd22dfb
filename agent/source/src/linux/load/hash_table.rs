//! Hash tables that exist only while there is a subscriber: created and emptied here, filled by the probes.

use super::maps::{locked, map_options};
use super::pod;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use nfscope_probes::Pod;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd};

/// Entries that one system call removes.
const BATCH: u32 = 256;

/// A table that exists as long as this value.
pub struct HashTable<K, V> {
    map: MapHandle,
    types: PhantomData<(K, V)>,
}

impl<K: Pod, V: Pod> HashTable<K, V> {
    /// Makes a table with room for `entries` entries. All of its memory is allocated at once, because programs in any context may add to
    /// it.
    ///
    /// # Errors
    /// Fails if the kernel gives this process no map.
    pub fn create(entries: u32) -> libbpf_rs::Result<Self> {
        let sizes = [size_of::<K>() as u32, size_of::<V>() as u32];
        let (kind, name) = (MapType::Hash, Some("nfsd_by_key"));
        Ok(HashTable {
            map: MapHandle::create(kind, name, sizes[0], sizes[1], entries, &map_options())?,
            types: PhantomData,
        })
    }

    /// Descriptor by which a map of tables takes the table.
    pub(super) fn descriptor(&self) -> i32 {
        self.map.as_fd().as_raw_fd()
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// Fails if there is no room.
    pub fn put(&self, key: &K, value: &V) -> libbpf_rs::Result<()> {
        let (key, value) = (pod::bytes_of(key), pod::bytes_of(value));
        self.map.update(key, value, MapFlags::ANY)
    }

    /// Removes all entries and returns them. No program may use the table meanwhile.
    pub fn drain(&self) -> Vec<(K, V)> {
        let mut all = Vec::new();
        let mut keep = |key: &[u8], value: &[u8]| {
            all.extend(pod::from_bytes(key).zip(pod::from_bytes(value)));
        };
        let any = MapFlags::ANY;
        if let Ok(batches) = self.map.lookup_and_delete_batch(BATCH, any, any) {
            for (key, value) in batches {
                keep(&key, &value);
            }
        }
        // Entries that the batch left: the kernel has no such call, or too many entries stood in one bucket.
        for key in self.map.keys().collect::<Vec<_>>() {
            if let Ok(Some(value)) = self.map.lookup(&key, any) {
                keep(&key, &value);
            }
            // The entry exists: this function alone removes entries.
            let _ = self.map.delete(&key);
        }
        all
    }

    /// Bytes of kernel memory of the table, by the kernel's own account.
    pub fn kernel_memory(&self) -> u64 {
        locked(self.descriptor()).unwrap_or_default()
    }
}
