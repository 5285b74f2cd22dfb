//! What this host has, as it answers now.

use crate::linux::host::{file_handle, procfs, zfs_layout};
use nfscope_model::host_report::Fact;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Facts that the plan needs, and some that only `nfscope check` shows.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Kernel release, to show; nothing is decided by it.
    pub release: String,
    /// The kernel describes its own types.
    pub vmlinux_btf: bool,
    /// Modules that are loaded, of those that probes look into.
    pub loaded: BTreeSet<String>,
    /// Those of them that describe their types.
    pub module_btf: BTreeSet<String>,
    /// Tracing programs can have memory allocated for them; before, hashes that they fill must be allocated in full.
    pub on_demand: bool,
    /// The kernel may run tracepoints preemptibly: it has the fast SRCU (6.15) on which it does so from 7.x on.
    pub preemptible: bool,
    /// CPUs that the kernel could ever bring up: the length of per-CPU values.
    pub possible_cpus: usize,
    /// The kernel keeps account of how long a task waits for a CPU (CONFIG_SCHEDSTATS).
    pub run_delay: bool,
    /// Version of OpenZFS; empty where its module is not loaded.
    pub zfs: String,
    /// nfsd's pool mode: global, auto, percpu, pernode.
    pub pool_mode: String,
    /// NUMA nodes.
    pub nodes: usize,
}

/// True where this thread has CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN in effect (capabilities(7), bits 39, 38 and 21).
pub fn may_load() -> bool {
    let needed = 1u64 << 39 | 1 << 38 | 1 << 21;
    fs::read_to_string("/proc/thread-self/status")
        .ok()
        .and_then(|s| {
            let line = s.lines().find_map(|l| l.strip_prefix("CapEff:"))?;
            u64::from_str_radix(line.trim(), 16).ok()
        })
        .is_some_and(|have| have & needed == needed)
}

const MODULES: [&str; 7] = ["sunrpc", "nfsd", "ext4", "jbd2", "xfs", "btrfs", "zfs"];

impl Facts {
    /// Asks the host.
    pub fn gather() -> Self {
        let exists = |p: &str| Path::new(p).exists();
        let read = |p: &str| fs::read_to_string(p).unwrap_or_default().trim().to_owned();
        let loaded: BTreeSet<String> = MODULES
            .iter()
            .filter(|m| procfs::module_present(m))
            .map(|m| m.to_string())
            .collect();
        // A module that is built in has its types in the kernel's own BTF, and no file of its own; only loadable modules
        // have a section list.
        let module_btf = loaded
            .iter()
            .filter(|m| {
                exists(&format!("/sys/kernel/btf/{m}"))
                    || !exists(&format!("/sys/module/{m}/initstate"))
            })
            .cloned()
            .collect();
        let btf = fs::read("/sys/kernel/btf/vmlinux").unwrap_or_default();
        Facts {
            release: read("/proc/sys/kernel/osrelease"),
            vmlinux_btf: exists("/sys/kernel/btf/vmlinux"),
            loaded,
            module_btf,
            on_demand: has_name(&btf, "bpf_mem_alloc"),
            preemptible: has_name(&btf, "srcu_ctr"),
            possible_cpus: count_cpus(&read("/sys/devices/system/cpu/possible")).unwrap_or(1),
            run_delay: exists("/proc/schedstat") || read("/proc/sys/kernel/task_delayacct") == "1",
            zfs: read(zfs_layout::VERSION),
            pool_mode: read("/sys/module/sunrpc/parameters/pool_mode"),
            nodes: fs::read_dir("/sys/devices/system/node")
                .map(|d| {
                    d.flatten()
                        .filter(|e| {
                            let n = e.file_name();
                            n.to_string_lossy()
                                .strip_prefix("node")
                                .is_some_and(|r| r.parse::<u32>().is_ok())
                        })
                        .count()
                })
                .unwrap_or(1)
                .max(1),
        }
    }

    /// True where the module is there.
    pub fn loaded(&self, module: &str) -> bool {
        self.loaded.contains(module)
    }

    /// True where its types are known.
    pub fn btf_of(&self, module: &str) -> bool {
        self.module_btf.contains(module)
    }

    /// Most thread pools that nfsd can have in its pool mode; it can only be changed while no server runs, so one spare
    /// row for each NUMA node is there for a server that restarts in another mode.
    pub fn pools(&self) -> u32 {
        let n = match self.pool_mode.as_str() {
            "percpu" => self.possible_cpus,
            _ => self.nodes,
        };
        n.max(self.nodes).max(8) as u32
    }

    /// For `nfscope check`.
    pub fn show(&self) -> Vec<Fact> {
        let mut facts = vec![
            fact("kernel", &self.release, true, ""),
            fact(
                "BTF",
                if self.vmlinux_btf { "yes" } else { "no" },
                self.vmlinux_btf,
                "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y",
            ),
        ];
        for m in MODULES {
            let (value, ok, fix) = match (self.loaded(m), self.btf_of(m)) {
                (true, true) => ("loaded, with BTF", true, ""),
                (true, false) if m == "zfs" && zfs_layout::layout(&self.zfs).is_some() => {
                    ("loaded, without BTF; its layout is known", true, "")
                }
                (true, false) if m == "zfs" => ("loaded, without BTF", false, zfs_layout::ZFS_FIX),
                (true, false) => (
                    "loaded, without BTF",
                    false,
                    "a kernel of 5.11 or later built with CONFIG_DEBUG_INFO_BTF_MODULES=y",
                ),
                (false, _) => (
                    "not loaded",
                    !matches!(m, "sunrpc" | "nfsd"),
                    "start the NFS server; probes attach when it appears",
                ),
            };
            facts.push(fact(&format!("module {m}"), value, ok, fix));
        }
        if self.loaded("nfsd") {
            let readable = fs::File::open(file_handle::LIST).is_ok();
            facts.push(fact(
                "names of exports",
                if readable { "yes" } else { "not readable" },
                readable,
                "run as root: only root may read the kernel's list; until then exports are called `unknown`",
            ));
        }
        facts
    }
}

/// How many CPUs a list like `0-3,8` has; `None` for anything else.
fn count_cpus(list: &str) -> Option<usize> {
    list.split(',')
        .map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
            (last + 1).checked_sub(first)
        })
        .sum()
}

/// True where a BTF has this name: its strings lie in it between zero bytes.
fn has_name(btf: &[u8], name: &str) -> bool {
    let wanted = format!("\0{name}\0");
    btf.windows(wanted.len()).any(|w| w == wanted.as_bytes())
}

fn fact(name: &str, value: &str, ok: bool, fix: &str) -> Fact {
    Fact {
        name: name.into(),
        value: value.into(),
        ok,
        fix: if ok { String::new() } else { fix.into() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_listed_by_ranges() {
        assert_eq!(count_cpus("0"), Some(1));
        assert_eq!(count_cpus("0-127"), Some(128));
        assert_eq!(count_cpus("0-3,8,10-11"), Some(7));
        for bad in ["", "a", "3-1", "0-", "0,,1"] {
            assert_eq!(count_cpus(bad), None, "{bad}");
        }
    }
}
