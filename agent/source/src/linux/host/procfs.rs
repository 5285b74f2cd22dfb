//! Counters that the kernel keeps by itself, and its modules.

use crate::{host_table, lossless};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// `/proc/net/rpc/nfsd` of this network namespace (fs/nfsd/stats.c, net/sunrpc/stats.c).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelCounts {
    /// Duplicate request cache: hits, misses, nocache.
    pub reply_cache: [u64; 3],
    /// Bytes read and written.
    pub io: [u64; 2],
    /// RPC: calls, bad calls, bad format, bad authentication, bad client.
    pub rpc: [u64; 5],
    /// NFSv2 calls by procedure.
    pub proc2: Vec<u64>,
    /// NFSv3 calls by procedure.
    pub proc3: Vec<u64>,
    /// NFSv4 calls: NULL, COMPOUND.
    pub proc4: Vec<u64>,
    /// NFSv4 component ops by number.
    pub proc4ops: Vec<u64>,
}

impl KernelCounts {
    /// Reads the counters; `None` if no NFS server module is loaded in this network namespace.
    pub fn read() -> Option<Self> {
        Some(Self::parse(&host_table::read("/proc/net/rpc/nfsd")?))
    }

    /// Parses the file's text. Lines that a kernel does not have stay empty.
    pub fn parse(text: &str) -> Self {
        let mut c = KernelCounts::default();
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let name = words.next().unwrap_or_default();
            // A word that is no number, or is below zero, ends the line: the numbers behind it must not move to its place.
            let numbers: Vec<u64> = words.map_while(|w| w.parse().ok()).collect();
            let fill = |to: &mut [u64]| {
                for (t, n) in to.iter_mut().zip(&numbers) {
                    *t = *n;
                }
            };
            match name {
                "rc" => fill(&mut c.reply_cache),
                "io" => fill(&mut c.io),
                "rpc" => fill(&mut c.rpc),
                // The first number is the count of those that follow.
                "proc2" => c.proc2 = numbers.get(1..).unwrap_or_default().to_vec(),
                "proc3" => c.proc3 = numbers.get(1..).unwrap_or_default().to_vec(),
                "proc4" => c.proc4 = numbers.get(1..).unwrap_or_default().to_vec(),
                "proc4ops" => c.proc4ops = numbers.get(1..).unwrap_or_default().to_vec(),
                _ => {}
            }
        }
        c
    }

    /// RPC calls of the versions that are timed. Malformed and refused calls are counted apart, before this count (net/sunrpc/svc.c,
    /// svc_process_common).
    pub fn calls(&self) -> u64 {
        self.rpc[0].saturating_sub(sum(&self.proc2))
    }

    /// NFSv3 calls.
    pub fn v3(&self) -> u64 {
        sum(&self.proc3)
    }

    /// NFSv4 component ops; the first three numbers are no operations.
    pub fn v4(&self) -> u64 {
        sum(self.proc4ops.get(3..).unwrap_or_default())
    }
}

/// Sums numbers without an overflow, for any content of a file.
fn sum(numbers: &[u64]) -> u64 {
    numbers.iter().fold(0, |a, b| a.saturating_add(*b))
}

/// Threads of each pool from nfsd's own file system; `None` if it is not mounted or no server runs. Also `None` if the file system may be
/// that of another network namespace: a mount keeps the one in which it was made.
pub fn pool_threads() -> Option<Vec<u32>> {
    let netns = |of: &str| fs::read_link(format!("/proc/{of}/ns/net")).ok();
    if netns("1").is_some_and(|init| Some(init) != netns("self")) {
        return None;
    }
    let text = host_table::read_soon("/proc/fs/nfsd/pool_threads")?;
    Some(
        text.split_ascii_whitespace()
            .filter_map(|w| w.parse().ok())
            .collect(),
    )
}

/// True if the module is loaded or built in. While a module is being loaded or unloaded, its files come and go one by one: then it is not
/// present.
pub fn module_present(name: &str) -> bool {
    match host_table::read_at(
        "/sys/module/MODULE/initstate",
        Path::new("/sys/module").join(name).join("initstate"),
    ) {
        Some(state) => state.trim() == "live",
        None => built_in(name),
    }
}

/// True if the module is part of the kernel. Such a module stands under /sys/module only if it has parameters, and has no `initstate`; file
/// systems have directories of their own.
pub fn built_in(name: &str) -> bool {
    let exists = |dir: &str| Path::new(dir).join(name).exists();
    // A module that is being loaded is listed before its directory comes, and one that is being unloaded until its directory is gone.
    !listed(name)
        && (exists("/sys/module")
            || match name {
                "ext4" | "xfs" | "btrfs" => exists("/sys/fs"),
                "jbd2" => exists("/proc/fs"),
                _ => false,
            })
        && !listed(name)
}

/// True if the kernel lists it among its modules, in any state.
fn listed(name: &str) -> bool {
    let modules = host_table::read("/proc/modules").unwrap_or_default();
    modules
        .lines()
        .any(|line| line.split(' ').next() == Some(name))
}

/// Names of a directory's entries; `None` where it cannot be read.
pub fn entry_names(dir: &Path) -> Option<BTreeSet<String>> {
    let entries =
        host_table::entries("directories of block devices in /sys and /proc", dir).ok()?;
    let names = entries.map(|e| lossless::of_path(Path::new(&e.file_name())));
    Some(names.collect())
}

/// True if the kernel says that the NFS server has no threads.
pub fn no_server_runs() -> bool {
    host_table::read_soon("/proc/fs/nfsd/threads").is_some_and(|n| n.trim() == "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_counters_are_read_by_their_names() {
        let c = KernelCounts::parse(
            "rc 2 30 400\nfh 0 0 0 0 0\nio 4096 8192\nth 8 0 0.000\nnet 9 0 9 1\nrpc 9 3 1 1 1\nproc2 3 0 1 1\n\
             proc3 22 1 2 3 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 5\nproc4 2 1 7\nproc4ops 5 0 0 0 4 6\nwdeleg_getattr 0\n",
        );
        assert_eq!(c.reply_cache, [2, 30, 400]);
        assert_eq!(c.io, [4096, 8192]);
        assert_eq!(c.rpc, [9, 3, 1, 1, 1]);
        assert_eq!((c.v3(), c.proc3[21]), (11, 5));
        assert_eq!(c.calls(), 7);
        let odd = KernelCounts::parse("rc 2 -1 400\nproc3 3 1 -2 3\n");
        assert_eq!((odd.reply_cache, odd.proc3), ([2, 0, 0], vec![1]));
        assert_eq!(c.proc4, [1, 7]);
        assert_eq!(c.v4(), 10);
    }
}
