//! Facts about this host at the moment.

use crate::host_table;
use crate::linux::host::{btf_names, file_handle, procfs, zfs_layout};
use nfscope_model::host_report::Fact;
use std::collections::BTreeSet;
use std::fs;
use std::os::linux::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// Facts that the plan needs, and some that only `nfscope check` shows.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Kernel release, to show; nothing is decided by it.
    pub release: String,
    /// True if the kernel has BTF of its own types.
    pub vmlinux_btf: bool,
    /// Loaded modules among those that probes look into.
    pub loaded: BTreeSet<String>,
    /// Loaded modules with BTF of their types.
    pub module_btf: BTreeSet<String>,
    /// True if tracing programs can have memory allocated for them; otherwise hashes that they fill must be allocated in full.
    pub on_demand: bool,
    /// True if a program may read behind a pointer without a type by an instruction, and not by a call.
    pub casts: bool,
    /// True if the kernel may run tracepoints preemptibly: it has the fast SRCU (6.15), and a structure of it for tracepoints (7.x).
    /// PREEMPT_RT makes no difference here: kernels before that disable preemption in tracepoints with it as well.
    pub preemptible: bool,
    /// True if the kernel's BTF has the fields for reading the scheduler's books: the time that a task has run and waited, and its CPU's
    /// run queue if that has a clock of its own.
    pub books: bool,
    /// True if nfsd grants delegations for writing, and has a tracepoint for that.
    pub write_delegations: bool,
    /// True if nfsd grants delegations of directories.
    pub directory_delegations: bool,
    /// Time by which the clocks of CPUs may differ (sched_clock()): about zero if the kernel trusts a counter that they share, and a tick
    /// elsewhere.
    pub clock_slack: Duration,
    /// CPUs that the kernel could ever bring up: the length of per-CPU values.
    pub possible_cpus: usize,
    /// Number of runs of which one is skipped at random, as [`Facts::preemptible`] kernels do at times; 0: none is skipped.
    pub skip_one_in: u32,
    /// Network namespace of this process, by its inode number; 0 if that cannot be read.
    pub netns: u32,
    /// Highest number of a possible CPU, plus one.
    pub cpu_ids: usize,
    /// True if the kernel accounts for the time that a task waits for a CPU (CONFIG_SCHEDSTATS).
    pub run_delay: bool,
    /// True if the kernel limits the connections whose client has not shown a valid file handle (6.12), instead of all.
    pub limits_unproven: bool,
    /// Version of OpenZFS; empty if its module is not loaded.
    pub zfs: String,
    /// Pool mode of nfsd: global, auto, percpu, pernode.
    pub pool_mode: String,
    /// Number of NUMA nodes.
    pub nodes: usize,
}

/// True if this thread has CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN in effect (capabilities(7), bits 39, 38 and 21).
pub fn may_load() -> bool {
    let needed = 1u64 << 39 | 1 << 38 | 1 << 21;
    host_table::read("/proc/thread-self/status")
        .and_then(|s| {
            let line = s.lines().find_map(|l| l.strip_prefix("CapEff:"))?;
            u64::from_str_radix(line.trim(), 16).ok()
        })
        .is_some_and(|have| have & needed == needed)
}

const MODULES: [&str; 10] = [
    "sunrpc", "nfsd", "ext4", "jbd2", "xfs", "btrfs", "zfs", "nfs", "nfsv4", "lockd",
];

/// Names that reading the scheduler's books needs; probes/bpf/lib/waits.h.
const BOOKS: [&str; 4] = [
    "sum_exec_runtime",
    "exec_start",
    "pcount",
    "io_schedule_timeout",
];
/// A kernel with one of these names keeps interrupts or stolen time out of the books. The probes find that time by way of the task's group
/// (CONFIG_FAIR_GROUP_SCHED), to which the field `my_q` belongs.
const APART: [&str; 2] = ["prev_irq_time", "prev_steal_time_rq"];
const GROUPS: &str = "my_q";

/// Name in the kernel's BTF if tracing programs can have memory allocated for them.
const ON_DEMAND: &str = "bpf_mem_alloc";
/// Name in the kernel's BTF if a program may read behind a pointer without a type.
const CASTS: &str = "bpf_rdonly_cast";
/// Names in the kernel's BTF of the fast SRCU, and of an SRCU for tracepoints. Kernels before 6.13 have the second with the usual SRCU, and
/// those from 6.15 to 6.19 have the first alone.
const FAST_SRCU: &str = "srcu_ctr";
const TRACEPOINT_SRCU: &str = "tracepoint_srcu_srcu_data";
/// A kernel whose BTF lacks this variable has none of its variables there.
const VARIABLE: &str = "runqueues";

/// Names in nfsd's BTF if it grants delegations for writing, and of directories.
const DELEGATIONS: [&str; 2] = ["btf_trace_nfsd_deleg_write", "nfsd_get_dir_deleg"];
/// Name in sunrpc's BTF if it distinguishes connections whose client has shown a valid file handle.
const PROVEN: &str = "XPT_PEER_VALID";

const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// See [`Facts::clock_slack`]. A tick is 10 ms at most (CONFIG_HZ).
fn clock_slack(source: &str) -> Duration {
    let shared = ["tsc", "kvm-clock", "arch_sys_counter"].contains(&source)
        || source.starts_with("hyperv_clocksource");
    Duration::from_millis(if shared { 1 } else { 10 })
}

impl Facts {
    /// Asks the host.
    pub fn gather() -> Self {
        let exists = |p: &str| Path::new(p).exists();
        let read = |p: &'static str| host_table::read(p).unwrap_or_default().trim().to_owned();
        let loaded: BTreeSet<String> = MODULES
            .iter()
            .filter(|m| procfs::module_present(m))
            .map(|m| m.to_string())
            .collect();
        // A module that is built in has its types in the kernel's own BTF, and no file of its own; only loadable modules
        // have a section list.
        let module_btf = loaded
            .iter()
            .filter(|m| exists(&format!("/sys/kernel/btf/{m}")) || procfs::built_in(m))
            .cloned()
            .collect();
        let possible = read("/sys/devices/system/cpu/possible");
        let single = [
            ON_DEMAND,
            CASTS,
            FAST_SRCU,
            TRACEPOINT_SRCU,
            VARIABLE,
            GROUPS,
            PROVEN,
        ];
        let mut missing: BTreeSet<&str> = BOOKS.into_iter().chain(APART).chain(single).collect();
        // A module sunrpc that is built in has no BTF file of its own.
        for of in ["vmlinux", "sunrpc"] {
            btf_names::remove(of, &mut missing);
        }
        let has = |name| !missing.contains(name);
        let mut not_granted = BTreeSet::from(DELEGATIONS);
        let nfsd = match procfs::built_in("nfsd") {
            true => "vmlinux",
            false => "nfsd",
        };
        btf_names::remove(nfsd, &mut not_granted);
        let grants = DELEGATIONS.map(|name| !not_granted.contains(name));
        let run_delay = exists("/proc/schedstat") || read("/proc/sys/kernel/task_delayacct") == "1";
        Facts {
            release: read("/proc/sys/kernel/osrelease"),
            vmlinux_btf: exists("/sys/kernel/btf/vmlinux"),
            loaded,
            module_btf,
            on_demand: has(ON_DEMAND),
            casts: has(CASTS),
            preemptible: has(FAST_SRCU) && (has(TRACEPOINT_SRCU) || !has(VARIABLE)),
            books: run_delay
                && BOOKS.into_iter().all(has)
                && (has(GROUPS) || !APART.into_iter().any(has)),
            write_delegations: grants[0],
            directory_delegations: grants[1],
            skip_one_in: 0,
            limits_unproven: has(PROVEN),
            netns: fs::metadata("/proc/self/ns/net").map_or(0, |m| m.st_ino() as u32),
            possible_cpus: count_cpus(&possible).unwrap_or(1),
            cpu_ids: last_cpu(&possible).map_or(1, |last| last + 1),
            run_delay,
            clock_slack: clock_slack(&read(CLOCK_SOURCE)),
            zfs: read(zfs_layout::VERSION),
            pool_mode: read("/sys/module/sunrpc/parameters/pool_mode"),
            nodes: host_table::entries("/sys/devices/system/node", "/sys/devices/system/node")
                .map(|d| {
                    d.filter(|e| {
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

    /// Makes the facts of a host that skips programs at random, for tests.
    pub fn skipping(mut self, one_in: u32) -> Self {
        self.skip_one_in = one_in;
        self.preemptible |= one_in > 1;
        self
    }

    /// True if the module is loaded or built in.
    pub fn loaded(&self, module: &str) -> bool {
        self.loaded.contains(module)
    }

    /// True if the types of the module are known.
    pub fn btf_of(&self, module: &str) -> bool {
        self.module_btf.contains(module)
    }

    /// Most thread pools that nfsd can have in its pool mode. The mode can only be changed while no server runs, so that one spare row for
    /// each NUMA node is enough for a server that restarts in another mode.
    pub fn pools(&self) -> u32 {
        let n = match self.pool_mode.as_str() {
            "percpu" => self.possible_cpus,
            _ => self.nodes,
        };
        n.max(self.nodes).max(8) as u32
    }

    /// Facts for `nfscope check`. `memory`: bytes that the probes take in the kernel.
    pub fn show(&self, memory: u64) -> Vec<Fact> {
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
        let possible = match self.possible_cpus {
            1 => "1 possible CPU".to_owned(),
            n => format!("{n} possible CPUs"),
        };
        let memory = format!("{:.1} MB for {possible}", memory as f64 / 1e6);
        facts.push(fact("kernel memory", &memory, true, ""));
        if self.loaded("nfsd") {
            let readable = host_table::open(file_handle::LIST, file_handle::LIST).is_ok();
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

/// Number of CPUs in a list like `0-3,8`; `None` for any other text.
fn count_cpus(list: &str) -> Option<usize> {
    list.split(',')
        .map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
            (last + 1).checked_sub(first)
        })
        .sum()
}

/// Highest number in a list like `0-3,8`.
fn last_cpu(list: &str) -> Option<usize> {
    let numbers = list.split([',', '-']).map(|n| n.parse().ok());
    numbers.collect::<Option<Vec<usize>>>()?.into_iter().max()
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
        assert_eq!(last_cpu("0-3,8,10-11"), Some(11));
        assert_eq!(last_cpu("0"), Some(0));
        for bad in ["", "a", "3-1", "0-", "0,,1"] {
            assert_eq!(count_cpus(bad), None, "{bad}");
        }
    }
}
