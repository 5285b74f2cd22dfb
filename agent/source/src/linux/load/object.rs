//! A probe's object in the kernel: its programs, maps and links, as long as this process keeps them.

use super::hash_table::HashTable;
use super::kretprobe::Attached;
use super::maps::{Map, SHARED, locked};
use super::program::Build;
use super::ring::Ring;
use crate::linux::host::procfs::KernelCounts;
use anyhow::Context;
use libbpf_rs::libbpf_sys;
use nfscope_probes::Pod;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// A probe's programs and maps in the kernel.
pub struct Loaded {
    /// Build that is loaded.
    pub build: Build,
    pub(super) maps: BTreeMap<String, Map>,
    /// Programs; those with a link first, in the order of the links.
    pub(super) programs: Vec<(&'static str, OwnedFd)>,
    /// Counts of the kernel when the last program attached.
    pub counted: Option<KernelCounts>,
    /// Links; dropping one detaches its program.
    pub(super) links: Vec<Attached>,
    /// Bytes of maps and programs that never grow: of all, and of those that probes share.
    pub(super) fixed_memory: OnceCell<[u64; 2]>,
}

/// Runs of a program, by the kernel's count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Runs {
    /// Runs; 0 unless statistics are on.
    pub count: u64,
    /// Time in the program; 0 unless statistics are on.
    pub nanoseconds: u64,
    /// Runs that the kernel skipped because the program was already running on that CPU. Always counted.
    pub skipped: u64,
}

impl Loaded {
    /// A map by its name; `None` where this build has none.
    pub fn map(&self, name: &str) -> Option<&Map> {
        self.maps.get(name)
    }

    fn required(&self, map: &str) -> anyhow::Result<&Map> {
        self.map(map)
            .with_context(|| format!("the probes have no {map}"))
    }

    /// Attached programs by name with their runs, without those whose runs the kernel does not report.
    pub fn runs(&self) -> impl Iterator<Item = (&'static str, Runs)> {
        self.programs
            .iter()
            .filter_map(|(name, fd)| Some((*name, runs(fd).ok()?)))
    }

    /// Runs a program that is attached to nothing, with one argument. Returns false if the kernel does not run it.
    pub fn run(&self, program: &str, argument: u64) -> bool {
        let Some((_, fd)) = self.programs.iter().find(|(name, _)| *name == program) else {
            return false;
        };
        let mut options = libbpf_sys::bpf_test_run_opts {
            sz: size_of::<libbpf_sys::bpf_test_run_opts>() as _,
            ctx_in: (&raw const argument).cast(),
            ctx_size_in: size_of_val(&argument) as u32,
            ..Default::default()
        };
        // SAFETY: the argument outlives the call, which only reads it, and the descriptor is a program's and open.
        unsafe { libbpf_sys::bpf_prog_test_run_opts(fd.as_raw_fd(), &raw mut options) == 0 }
    }

    /// Runs an iterator, and returns the words that it has written.
    ///
    /// # Errors
    /// Fails if this host has no such iterator, or the kernel does not let it be read.
    pub fn iterate(&self, program: &str) -> anyhow::Result<Vec<u64>> {
        let place = self.programs.iter().position(|(name, _)| *name == program);
        let link = place.and_then(|place| self.links.get(place));
        let link = link.with_context(|| format!("{program} is not attached"))?;
        // SAFETY: a system call without pointers.
        let fd = unsafe { libbpf_sys::bpf_iter_create(link.as_fd().as_raw_fd()) };
        if fd < 0 {
            return Err(io::Error::from_raw_os_error(-fd).into());
        }
        // SAFETY: a descriptor that no other code has.
        let mut file = fs::File::from(unsafe { OwnedFd::from_raw_fd(fd) });
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let (words, _) = bytes.as_chunks();
        Ok(words.iter().map(|word| u64::from_ne_bytes(*word)).collect())
    }

    /// Bytes of kernel memory that its maps and programs take, by the kernel's own account (`memlock` in proc(5), fdinfo). From Linux 6.4
    /// on that includes the copies of per-CPU maps for every possible CPU. Maps that probes share are left out, unless `shared`.
    ///
    /// Sizes that never grow, which is nearly all, are read once: each takes a file of its own.
    pub fn kernel_memory(&self, shared: bool) -> u64 {
        let of = |map: &Map| locked(map.descriptor().as_raw_fd());
        let maps = |grow: bool| self.maps.iter().filter(move |(_, m)| m.grows() == grow);
        let [fixed, of_all] = self.fixed_memory.get_or_init(|| {
            let programs = self.programs.iter().map(|(_, fd)| locked(fd.as_raw_fd()));
            let own = maps(false).map(|(_, map)| of(map)).chain(programs);
            let common = maps(false).filter(|(name, _)| SHARED.contains(&name.as_str()));
            [
                own.flatten().sum(),
                common.filter_map(|(_, map)| of(map)).sum(),
            ]
        });
        let grown = maps(true).filter_map(|(_, map)| of(map)).sum::<u64>();
        grown + fixed - if shared { 0 } else { *of_all }
    }

    /// Unmaps the tables that a reading has mapped into memory.
    pub fn unmap(&self) {
        self.maps.values().for_each(Map::unmap);
    }

    /// Makes a ring of `bytes` bytes (a power of two) and puts it into the first place of a map of rings.
    pub fn open_ring(&self, map: &str, bytes: u32) -> anyhow::Result<Ring> {
        let ring = Ring::create(bytes)?;
        self.required(map)?.update(&0u32, &ring.descriptor())?;
        Ok(ring)
    }

    /// Puts a table into the first place of a map of tables. When this function returns, no program uses the earlier table: the kernel has
    /// waited for those that ran (`maybe_wait_bpf_programs` in kernel/bpf/syscall.c).
    pub fn put_table<K: Pod, V: Pod>(
        &self,
        map: &str,
        table: &HashTable<K, V>,
    ) -> anyhow::Result<()> {
        self.required(map)?
            .update(&0u32, &table.descriptor())
            .with_context(|| format!("giving the probes a table ({map})"))
    }

    /// Removes the ring or the table from the first place of a map.
    pub fn close_ring(&self, map: &str) {
        if let Some(m) = self.map(map) {
            // An empty place is no failure.
            m.remove(&0u32);
        }
    }

    /// Writes the one variable of a data section.
    pub fn set(&self, section: &str, value: &impl Pod) -> anyhow::Result<()> {
        self.required(section)?
            .update(&0u32, value)
            .with_context(|| format!("writing the probes' {section}"))
    }

    /// Reads the one variable of a data section.
    pub fn get<T: Pod>(&self, section: &str) -> Option<T> {
        self.map(section)?.value(&0u32)
    }
}

/// Runs of a program as the kernel reports them.
fn runs(program: &OwnedFd) -> io::Result<Runs> {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut len = size_of_val(&info) as u32;
    // SAFETY: `info` is a plain structure of `len` bytes, and the descriptor is a program's and open.
    let rc = unsafe {
        libbpf_sys::bpf_prog_get_info_by_fd(program.as_raw_fd(), &raw mut info, &raw mut len)
    };
    if rc < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Runs {
        count: info.run_cnt,
        nanoseconds: info.run_time_ns,
        skipped: info.recursion_misses,
    })
}

/// Turns the kernel's run-time statistics on for as long as the descriptor lives.
pub fn enable_statistics() -> io::Result<OwnedFd> {
    // SAFETY: a system call without pointers.
    let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(-fd));
    }
    // SAFETY: a descriptor that no other code has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
