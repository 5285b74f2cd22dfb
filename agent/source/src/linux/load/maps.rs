//! Maps: those that probes share, and how values are read and written.

use super::pieces::Pieces;
use super::pod;
use crate::host_table;
use anyhow::Context;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, libbpf_sys};
use nfscope_probes::{Counters, Pod, types as t};
use std::cell::Cell;
use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

/// A map of the probes.
#[derive(Debug)]
pub struct Map {
    handle: MapHandle,
    /// Values of the map, if it is an array that can be mapped.
    pieces: Option<Pieces>,
    /// True if its memory grows with its entries.
    grows: bool,
}

impl From<MapHandle> for Map {
    fn from(handle: MapHandle) -> Self {
        let info = handle.info().ok();
        let on_demand = |flags| flags & libbpf_sys::BPF_F_NO_PREALLOC != 0;
        Map {
            // Values of other maps are looked up by system calls.
            pieces: info.as_ref().and_then(Pieces::of),
            grows: info.is_none_or(|i| on_demand(i.info.map_flags)),
            handle,
        }
    }
}

impl Map {
    /// Descriptor of the map.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    /// True if its memory is not allocated at once.
    pub(super) fn grows(&self) -> bool {
        self.grows
    }

    /// Gives `f` the words of a value if the value can be mapped.
    fn words<R>(
        &self,
        i: u32,
        f: impl FnOnce(&mut dyn Iterator<Item = *mut u64>) -> R,
    ) -> Option<R> {
        self.pieces.as_ref()?.words(self.handle.as_fd(), i, f)
    }

    /// Unmaps the values that were mapped for reading.
    pub(super) fn unmap(&self) {
        if let Some(pieces) = &self.pieces {
            pieces.unmap();
        }
    }

    /// Maximum number of entries.
    pub fn capacity(&self) -> u32 {
        self.handle.max_entries()
    }

    /// Size of a value in bytes.
    pub(super) fn value_size(&self) -> usize {
        self.handle.value_size() as usize
    }

    /// Row of a table of `rows`, added up over its shards. All zero if the table cannot be read.
    pub fn total<T: Counters>(&self, rows: u32, row: u32) -> T {
        let mut sum = pod::zero::<T>();
        let words = pod::words_of(&mut sum);
        for at in self.shards(rows, row) {
            let mapped = self.words(at, |values| {
                for (sum, word) in words.iter_mut().zip(values) {
                    // SAFETY: mapped and aligned; the kernel may write it meanwhile, a word at a time.
                    *sum = sum.wrapping_add(unsafe { word.read_volatile() });
                }
            });
            if mapped.is_some() {
                continue;
            }
            let Some(mut value) = self.value::<T>(&at) else {
                continue;
            };
            for (sum, word) in words.iter_mut().zip(pod::words_of(&mut value)) {
                *sum = sum.wrapping_add(*word);
            }
        }
        sum
    }

    /// First word of a row, added up over the shards: 0 for most rows that were never counted in, at little cost.
    pub fn first_word(&self, rows: u32, row: u32) -> u64 {
        let word = |at| {
            // SAFETY: as in `total`.
            self.words(at, |words| Some(unsafe { words.next()?.read_volatile() }))?
        };
        // A word that cannot be read counts as 1, so that the whole row is read.
        let all = self.shards(rows, row).map(|at| word(at).unwrap_or(1));
        all.fold(0, u64::wrapping_add)
    }

    /// Entries of a row's shards in a table of `rows`.
    pub fn shards(&self, rows: u32, row: u32) -> impl Iterator<Item = u32> + use<> {
        (row..self.capacity()).step_by(rows.max(1) as usize)
    }

    /// A value of a map that has one for all CPUs.
    pub fn value<T: Pod>(&self, key: &impl Pod) -> Option<T> {
        pod::from_bytes(
            &self
                .handle
                .lookup(pod::bytes_of(key), MapFlags::ANY)
                .ok()??,
        )
    }

    /// A value of an array.
    pub fn at<T: Pod>(&self, i: u32) -> Option<T> {
        if align_of::<T>() != align_of::<u64>() {
            return self.value(&i);
        }
        self.words(i, copied).or_else(|| self.value(&i))
    }

    /// An element of the array that is the map's only value, as in the map of a data section; `None` behind the last element.
    pub fn element<T: Pod>(&self, i: u32) -> Option<T> {
        let (at, bytes) = (i as usize * size_of::<T>(), size_of::<T>());
        if at + bytes > self.value_size() {
            return None;
        }
        let mapped = self.pieces.as_ref();
        let mapped = mapped.and_then(|p| p.part(self.handle.as_fd(), at, bytes, copied));
        mapped.or_else(|| {
            let all = self.handle.lookup(pod::bytes_of(&0u32), MapFlags::ANY);
            pod::from_bytes(all.ok()??.get(at..at + bytes)?)
        })
    }

    /// The values of a per-CPU map, one for each CPU; empty without such an entry.
    fn per_cpu<T: Pod>(&self, key: &impl Pod) -> Vec<T> {
        self.handle
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
        self.handle
            .keys()
            .filter_map(|k| pod::from_bytes(&k))
            .collect()
    }

    /// Removes an entry of a hash and returns its last value, if the entry existed and this process may remove it. Before 5.14 counts
    /// between look-up and removal are lost.
    pub fn take<T: Pod>(&self, key: &impl Pod) -> Option<T> {
        let at_once = self.handle.lookup_and_delete(pod::bytes_of(key));
        at_once.map_or_else(
            |_| {
                let value = self.value(key)?;
                self.handle.delete(pod::bytes_of(key)).ok().map(|()| value)
            },
            |value| pod::from_bytes(&value?),
        )
    }

    /// Removes an entry of a hash.
    pub fn remove(&self, key: &impl Pod) {
        self.remove_bytes(pod::bytes_of(key));
    }

    fn remove_bytes(&self, key: &[u8]) {
        // The entry may be gone, or the agent gave up the right to remove it: every reading then ignores the entry.
        let _ = self.handle.delete(key);
    }

    /// Removes every entry of a hash.
    pub fn clear(&self) {
        for key in self.handle.keys().collect::<Vec<_>>() {
            self.remove_bytes(&key);
        }
    }

    /// Zeroes every row of a table.
    pub fn zero_rows(&self) {
        for row in 0..self.capacity() {
            // Counts that stay in the row count for its next owner.
            self.zero(row);
        }
    }

    /// Zeroes a row of a table. Returns false if the kernel denies this process the update of the map.
    pub fn zero(&self, row: u32) -> bool {
        let mapped = self.words(row, |words| {
            for word in words {
                // SAFETY: mapped and aligned.
                unsafe { word.write_volatile(0) };
            }
        });
        let zero = || vec![0u8; self.handle.value_size() as usize];
        let update = || {
            let key = pod::bytes_of(&row);
            self.handle.update(key, &zero(), MapFlags::ANY).is_ok()
        };
        mapped.is_some() || update()
    }

    /// Queues the number of a free row. Returns false if the kernel denies this process the update of the map.
    pub fn queue_row(&self, row: u32) -> bool {
        let number = pod::bytes_of(&row);
        self.handle.update(&[], number, MapFlags::ANY).is_ok()
    }

    /// Removes all entries of the queue.
    pub fn drain_queue(&self) {
        while let Ok(Some(_)) = self.handle.lookup_and_delete(&[]) {}
    }

    /// Queues the numbers of all rows but the first.
    pub fn queue_rows(&self) {
        for row in 1..self.capacity() {
            // A row that is not queued means one more pair without a name.
            self.queue_row(row);
        }
    }

    /// Writes an entry of a per-CPU map, the same for every CPU.
    pub(super) fn update_everywhere(
        &self,
        key: &impl Pod,
        value: &impl Pod,
    ) -> libbpf_rs::Result<()> {
        let values = vec![pod::bytes_of(value).to_vec(); libbpf_rs::num_possible_cpus()?];
        self.handle
            .update_percpu(pod::bytes_of(key), &values, MapFlags::ANY)
    }

    /// Writes an entry.
    pub(super) fn update(&self, key: &impl Pod, value: &impl Pod) -> libbpf_rs::Result<()> {
        self.handle
            .update(pod::bytes_of(key), pod::bytes_of(value), MapFlags::ANY)
    }
}

/// Copies a value from its mapped words.
fn copied<T: Pod>(words: &mut dyn Iterator<Item = *mut u64>) -> T {
    let mut value = pod::zero::<T>();
    for (to, word) in pod::words_of(&mut value).iter_mut().zip(words) {
        // SAFETY: mapped and aligned; the kernel may write it meanwhile, a word at a time.
        *to = unsafe { word.read_volatile() };
    }
    value
}

/// Maps that probes share: the records of threads, to which several probes add, by name. `None` if the kernel lets this process create no
/// map; nothing loads then, and each program's reason says so.
pub struct Shared {
    records: Option<[(&'static str, Map); 2]>,
    client_rows: u32,
    /// BPF object that is loaded instead of the built-in object of probe nfsd, to measure another build of it.
    nfsd_object: Option<Vec<u8>>,
    books: Cell<bool>,
    settled: Cell<bool>,
}

/// `REQUESTS` and `REQUESTS_MORE` in lib/request.h; a test compares them.
pub(super) const REQUESTS: u32 = 8192;
pub(super) const REQUESTS_MORE: u32 = 512;

/// The names of the maps that probes share.
pub(super) const SHARED: [&str; 2] = ["nfsd_request", "nfsd_more"];

impl Shared {
    /// Creates the maps. `client_rows` is the largest number of pairs of client and export with a row of their own.
    pub fn create(client_rows: u32) -> Self {
        let make = |kind, name, entries, flags| {
            let options = libbpf_sys::bpf_map_create_opts {
                map_flags: flags,
                ..map_options()
            };
            let sizes = [
                size_of::<u32>() as u32,
                size_of::<t::request_record>() as u32,
            ];
            let map = MapHandle::create(kind, Some(name), sizes[0], sizes[1], entries, &options);
            map.ok().map(|handle| (name, Map::from(handle)))
        };
        let mapped = libbpf_sys::BPF_F_MMAPABLE;
        let places = make(MapType::Array, SHARED[0], REQUESTS, mapped);
        let more = make(MapType::Hash, SHARED[1], REQUESTS_MORE, 0);
        Shared {
            records: places.zip(more).map(|(places, more)| [places, more]),
            client_rows,
            nfsd_object: None,
            books: Cell::new(true),
            settled: Cell::new(false),
        }
    }

    /// Makes the nfsd probe use the object in this file.
    ///
    /// # Errors
    /// Fails if the file cannot be read, and for every user but root: an agent with capabilities of its file does not lend them to the user
    /// who starts it.
    pub fn replace_nfsd_object(&mut self, path: &Path) -> anyhow::Result<()> {
        anyhow::ensure!(
            rustix::process::getuid().is_root(),
            "only root may give the agent another probe"
        );
        let object = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        self.nfsd_object = Some(object);
        Ok(())
    }

    /// See [`Shared::replace_nfsd_object`].
    pub(super) fn nfsd_object(&self) -> Option<&[u8]> {
        self.nfsd_object.as_deref()
    }

    /// True if the waits of operations come from the scheduler's books, as far as this process has found.
    pub(super) fn books(&self) -> bool {
        self.books.get()
    }

    /// Notes that waits do not come from the books: the kernel refuses their programs, or phases are not wanted.
    pub fn without_books(&self) {
        self.books.set(false);
    }

    /// Notes that programs measure operations, by the scheduler's books or at context switches. The choice between the two does not change
    /// until they are detached.
    pub fn settle(&self, measured: bool) {
        self.settled.set(measured);
    }

    /// See [`Shared::settle`].
    pub(super) fn is_settled(&self) -> bool {
        self.settled.get()
    }

    /// Largest number of pairs of client and export with a row of their own.
    pub(super) fn client_rows(&self) -> u32 {
        self.client_rows
    }

    /// Map of this name.
    pub(super) fn get(&self, name: &str) -> Option<BorrowedFd<'_>> {
        let maps = self.records.as_ref()?;
        let (_, map) = maps.iter().find(|(known, _)| *known == name)?;
        Some(map.handle.as_fd())
    }

    /// Forgets the records of all threads: no program will see the end of the requests in them.
    pub fn clear(&self) {
        if let Some([(_, places), (_, more)]) = &self.records {
            // A record that stays is at worst one request with an early beginning.
            places.zero_rows();
            places.unmap();
            more.clear();
        }
    }
}

/// Bytes of memory of a BPF descriptor of this process.
pub(super) fn locked(descriptor: i32) -> Option<u64> {
    let text = host_table::read_at(
        "/proc/self/fdinfo/FD",
        format!("/proc/self/fdinfo/{descriptor}"),
    )?;
    let line = text.lines().find_map(|l| l.strip_prefix("memlock:"))?;
    line.trim().parse().ok()
}

pub(super) fn map_options() -> libbpf_sys::bpf_map_create_opts {
    libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as _,
        ..Default::default()
    }
}

/// True if this thread may look up map entries with its present rights.
///
/// The test needs no map: the kernel checks the right to call before it looks at the descriptor, so that EPERM and EBADF distinguish the
/// two cases.
pub fn may_read_maps() -> bool {
    // SAFETY: with descriptor -1 the kernel looks at neither pointer.
    let result =
        unsafe { libbpf_sys::bpf_map_lookup_elem(-1, std::ptr::null(), std::ptr::null_mut()) };
    result != -libc::EPERM
}
