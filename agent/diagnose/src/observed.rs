//! Evidence that no window has: operations by file, and the kernel stacks of sleeping operations. `nfscope diagnose` collects it while it
//! watches. The findings of the agent do not have it.

use crate::breakdown::{Breakdown, Op, Phases, part, sum};
use crate::by_client;
use crate::changes::{FILE_CHANGES, holders_explain, is_change};
use crate::normal::Normal;
use crate::page_cache::PageCache;
use crate::thresholds::{LONG_PART, MIN_STACKS, OVERLAP};
use nfscope_model::Dimension;
use nfscope_model::breakdown::Keys;
use std::collections::{BTreeMap, BTreeSet};

/// The kernel functions that wait for a lock (kernel/locking/rwsem.c and mutex.c), and for the locks that OpenZFS has instead.
const LOCKS: [&str; 4] = [
    "rwsem_down_",
    "__mutex_lock",
    "zfs_rangelock_enter",
    "zfs_dirent_lock",
];

/// Functions that take the lock of a directory or of a file themselves: fs/namei.c, fs/nfsd, and the `write_iter` of file systems.
/// `/proc/TID/stack` leaves the functions of kernel/locking out (`stack_trace_save_tsk`, .sched.text), so that a thread that waits for
/// such a lock has the function that takes it at the top.
const TAKE_LOCKS: [&str; 22] = [
    "lock_rename",
    // fs/namei.c since 6.19 takes the lock of a directory for its callers.
    "start_dirop",
    "__start_dirop",
    "start_creating",
    "start_removing",
    "start_renaming",
    "fh_lock_nested",
    "nfsd_create",
    "nfsd3_create_file",
    "nfsd4_create_file",
    "nfsd_proc_create",
    "nfsd_symlink",
    "nfsd_link",
    "nfsd_unlink",
    "nfsd_rename",
    "nfsd_setattr",
    "ext4_buffered_write_iter",
    "ext4_dio_write_iter",
    "xfs_ilock",
    "btrfs_inode_lock",
    "f2fs_file_write_iter",
    "generic_file_write_iter",
];

/// Kernel functions of waits that have a phase of their own. A thread may have come there between the reading that found it in another
/// wait, and the reading of its stack.
const ELSEWHERE: [&str; 15] = [
    "io_schedule",
    "jbd2_log_wait_commit",
    "__jbd2_log_wait_for_space",
    "wait_transaction_locked",
    "ext4_fc_commit",
    "xfs_log_force",
    "xlog_grant_head_wait",
    "btrfs_sync_log",
    "btrfs_commit_transaction",
    "zil_commit",
    "dmu_tx_wait",
    "balance_dirty_pages",
    "cache_check",
    "nfsd_wait_for_delegreturn",
    "try_to_free_pages",
];

/// Executes a request; from Linux 6.6 on it is called by `svc_recv`, in which a thread without a request sleeps (net/sunrpc/svc_xprt.c).
const EXECUTES: [&str; 1] = ["svc_process"];
const RECEIVES: [&str; 2] = ["svc_recv", "svc_get_next_xprt"];

/// Causes that kernel functions show: beginnings of the functions' names, and advice.
const SHOWN: [(&[&str], &str); 4] = [
    (
        &["fanotify_"],
        "a program that watches the file system (fanotify, as virus scanners do) must allow each access: look at that program, or \
         exclude the export from it",
    ),
    (
        &["rpc_wait_bit_killable", "nfs3_proc_", "nfs4_proc_"],
        "the export is a mount of another NFS server, and operations wait for that server: look at its round trips \
         (/proc/self/mountstats; nfscope agent --client), and at the caching of the mount (actimeo)",
    ),
    (
        &["percpu_rwsem_wait"],
        "a file system that is frozen looks like this (fsfreeze, snapshots): look for what freezes it",
    ),
    (
        &["fuse_", "request_wait_answer"],
        "operations wait for the program behind a FUSE file system: look at that program",
    ),
];

/// Kernel functions that stacks are searched for, each with what it stands for. A kernel that calls one otherwise shows a sleep that
/// nothing here names: it is printed as it is, and no cause is said.
pub fn functions() -> Vec<(&'static str, &'static str)> {
    let of = |all: &[&'static str], stands_for| -> Vec<_> {
        all.iter().map(|f| (*f, stands_for)).collect()
    };
    let mut all = [
        of(&LOCKS, "a lock"),
        of(&TAKE_LOCKS, "a lock, where it is the innermost one"),
        of(&ELSEWHERE, "a wait with a phase of its own"),
        of(&EXECUTES, "a request"),
        of(&RECEIVES, "no request"),
    ]
    .concat();
    let shown = [
        "a program that watches the file system",
        "another NFS server",
        "a frozen file system",
        "a FUSE program",
    ];
    for ((begins, _), stands_for) in SHOWN.iter().zip(shown) {
        all.extend(of(begins, stands_for));
    }
    all
}

/// Operations with a smaller part of the waiting are not those that a finding is about.
const MIN_PART: f64 = 0.1;

/// Operations by export, operation and file.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// Time for which they were counted, in seconds.
    pub length: f64,
    /// Keys that group operations, with the seconds of these operations.
    pub rows: Vec<(Keys, f64)>,
    /// Seconds of operations without a row.
    pub without_row: f64,
}

/// The operations with much of the time in a phase.
pub(crate) fn ops_with_much(phase: fn(&Phases) -> f64, b: &Breakdown) -> BTreeSet<String> {
    let all = sum(b.ops.iter().map(|o| phase(&o.phases)));
    let much = (b.ops.iter()).filter(|o| part(phase(&o.phases), all) >= MIN_PART);
    much.map(|o| o.op.clone()).collect()
}

/// Evidence from watching a window that the window itself lacks.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// Operations by export, operation and file; `None` where these were not counted.
    pub files: Option<Files>,
    /// Operations by client; `None` where these were not counted.
    pub clients: Option<by_client::Counted>,
    /// Owners of NFSv4 leases that several addresses share, as the kernel listed them; empty if they were not watched.
    pub shared_owners: Vec<SharedOwner>,
    /// Page cache of the server's host; `None` where another host watched.
    pub page_cache: Option<PageCache>,
    /// Usual times of the server's requests; `None` where no agent has learned them yet.
    pub normal: Option<Normal>,
    /// Kernel stacks of operations that slept in waits without a name, or the reason why there are none; `None` if none were sampled.
    pub sleeps: Option<Result<Sleeps, String>>,
}

/// The owner of a lease under whose name several addresses alternate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedOwner {
    /// Owner name that the clients use.
    pub name: String,
    /// The addresses.
    pub addresses: BTreeSet<String>,
}

/// Kernel stacks of operations, sampled at several moments. Long sleeps are in more samples, so parts are parts of the time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sleeps {
    /// Number of the moments.
    pub looks: u32,
    /// Stacks with the number of times that each was seen. The innermost function is the first; a module stands behind its functions,
    /// as in `nfsd_read [nfsd]`.
    pub stacks: BTreeMap<Vec<String>, u64>,
}

impl Sleeps {
    /// Adds the stack of a thread that was found in a wait without a name, unless the thread is elsewhere by now.
    pub fn add(&mut self, stack: Vec<String>) {
        let without_request = is_in(&stack, &RECEIVES) && !is_in(&stack, &EXECUTES);
        if !stack.is_empty() && !without_request && !is_in(&stack, &ELSEWHERE) {
            *self.stacks.entry(stack).or_default() += 1;
        }
    }

    /// Number of stacks.
    pub fn count(&self) -> u64 {
        self.stacks.values().sum()
    }

    /// The innermost function that has most of the stacks, the number of these, and the most frequent stack below it.
    pub fn commonest(&self) -> Option<(&str, u64, &[String])> {
        let mut by_function: BTreeMap<&str, u64> = BTreeMap::new();
        for (stack, n) in &self.stacks {
            *by_function.entry(stack.first()?).or_default() += n;
        }
        let (function, n) = by_function.into_iter().max_by_key(|(_, n)| *n)?;
        let of_it = self.stacks.iter().filter(|(s, _)| s[0] == function);
        let (stack, _) = of_it.max_by_key(|(_, n)| **n)?;
        Some((function, n, stack))
    }

    /// The part of the stacks that have a function with one of these beginnings.
    fn part_in(&self, begin: &[&str]) -> f64 {
        let in_it = self.stacks.iter().filter(|(stack, _)| is_in(stack, begin));
        part(in_it.map(|(_, n)| *n as f64).sum(), self.count() as f64)
    }

    fn are_enough(&self) -> bool {
        self.count() as f64 >= MIN_STACKS
    }

    /// True if most sleeps are waits for a lock; `None` if there are too few stacks.
    pub fn are_for_locks(&self) -> Option<bool> {
        self.are_enough().then(|| {
            1.0 - part(self.beside_locks().count() as f64, self.count() as f64) >= LONG_PART
        })
    }

    /// The sleeps that are no waits for a lock. One of them may be the sleep of its holder.
    pub fn beside_locks(&self) -> Sleeps {
        let others = self
            .stacks
            .iter()
            .filter(|(stack, _)| !waits_for_lock(stack));
        Sleeps {
            looks: self.looks,
            stacks: others.map(|(stack, n)| (stack.clone(), *n)).collect(),
        }
    }

    /// Advice on the cause that most stacks show, of those that are no waits for a lock.
    pub fn advice(&self) -> Option<&'static str> {
        let others = self.beside_locks();
        let mut shown = SHOWN.iter();
        let (_, advice) =
            shown.find(|(begin, _)| others.are_enough() && others.part_in(begin) >= LONG_PART)?;
        Some(advice)
    }
}

/// True if a stack is that of a wait for a lock.
fn waits_for_lock(stack: &[String]) -> bool {
    is_in(stack, &LOCKS) || is_in(&stack[..stack.len().min(1)], &TAKE_LOCKS)
}

/// True if a stack has a function whose name begins with one of these.
fn is_in(stack: &[String], begin: &[&str]) -> bool {
    let mut functions = stack.iter();
    functions.any(|f| begin.iter().any(|b| f.starts_with(b)))
}

/// Directories or files whose changes wait for each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contended {
    /// Number of these directories or files.
    pub places: usize,
    /// Part of the waiting operations' time that is in these, 0 to 1.
    pub share: f64,
    /// Changes at the same time, on average, of the one with most of the time.
    pub at_once: f64,
    /// True if changes of directories, and not of files, have most of that time.
    pub directories: bool,
}

/// Seconds that these operations slept in waits without a name, and seconds that they took without these waits.
fn of_changes(b: &Breakdown) -> (f64, f64) {
    let is_change = |o: &&Op| is_change(&o.op);
    let changes = || b.ops.iter().filter(is_change);
    (
        sum(changes().map(|o| o.phases.lock)),
        sum(changes().map(|o| (o.seconds - o.phases.lock).max(0.0))),
    )
}

impl Observed {
    /// The directories or files whose changes wait for each other; `None` where these are not shown to be the cause.
    pub fn contended(&self, b: &Breakdown) -> Option<Contended> {
        let (waited, held) = of_changes(b);
        let all = sum(b.ops.iter().map(|o| o.phases.lock));
        if part(waited, all) < LONG_PART {
            return None;
        }
        let stacks = self.sleeps.as_ref().and_then(|s| s.as_ref().ok());
        let shown = match stacks.and_then(|s| Some((s, s.are_for_locks()?))) {
            // Behind a holder that waits for something outside, the lock is the queue of that wait.
            Some((sleeps, are_for_locks)) => are_for_locks && sleeps.advice().is_none(),
            None => holders_explain(b, waited, held),
        };
        self.overlaps(b).filter(|_| shown)
    }

    /// The directories or files with several changes at the same time, where these have most of the time of the operations that wait.
    fn overlaps(&self, b: &Breakdown) -> Option<Contended> {
        let counted = self.files.as_ref().filter(|c| c.length > 0.0)?;
        let waiting = ops_with_much(|p| p.lock, b);
        let (mut all, mut by_place) = (0.0, BTreeMap::<_, [f64; 2]>::new());
        for (keys, seconds) in &counted.rows {
            let [op, file] = [Dimension::Op, Dimension::File].map(|d| keys[d as usize].as_str());
            if !waiting.contains(op) {
                continue;
            }
            all += seconds;
            if is_change(op) && !matches!(file, "" | "none" | "unknown") {
                let of = by_place
                    .entry((&keys[Dimension::Export as usize], file))
                    .or_default();
                of[usize::from(FILE_CHANGES.contains(&op))] += seconds;
            }
        }
        by_place.retain(|_, [d, f]| (*d + *f) / counted.length >= OVERLAP);
        let of_places = |i: usize| sum(by_place.values().map(|of| of[i]));
        let most = by_place.values().map(|[d, f]| d + f).fold(0.0, f64::max);
        let (directories, files) = (of_places(0), of_places(1));
        let share = part(directories + files, all + counted.without_row);
        (share >= LONG_PART).then_some(Contended {
            places: by_place.len(),
            share,
            at_once: most / counted.length,
            directories: directories >= files,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(stack: &[&str]) -> u64 {
        let mut sleeps = Sleeps::default();
        sleeps.add(stack.iter().map(|&f| f.to_owned()).collect());
        sleeps.count()
    }

    #[test]
    fn a_stack_counts_where_its_thread_executes_a_request() {
        // Stacks of Linux 6.12 and 6.1: the later one executes requests within svc_recv().
        let executes = ["svc_process [sunrpc]", "svc_recv [sunrpc]", "nfsd [nfsd]"];
        let waits = ["percpu_rwsem_wait", "nfsd_vfs_write [nfsd]"];
        assert_eq!(added(&[&waits[..], &executes].concat()), 1);
        assert_eq!(added(&[&waits[..], &executes[..1]].concat()), 1);
        assert_eq!(added(&["svc_recv [sunrpc]", "nfsd [nfsd]"]), 0);
        let idle = ["schedule_timeout", "svc_get_next_xprt [sunrpc]"];
        assert_eq!(added(&[&idle[..], &["svc_recv [sunrpc]"]].concat()), 0);
        // A wait with a phase of its own does not count.
        assert_eq!(added(&[&["io_schedule"], &executes[..]].concat()), 0);
    }

    #[test]
    fn a_wait_for_a_lock_is_known_by_the_function_that_takes_it() {
        let waits = |stack: &[&str]| {
            let stack: Vec<_> = stack.iter().map(|&f| f.to_owned()).collect();
            waits_for_lock(&stack)
        };
        assert!(waits(&["lock_rename", "nfsd_rename [nfsd]"]));
        assert!(waits(&[
            "ext4_buffered_write_iter [ext4]",
            "nfsd_write [nfsd]"
        ]));
        assert!(waits(&["rwsem_down_write_slowpath", "nfsd_unlink [nfsd]"]));
        // A rename that waits in a function further down does not wait for the lock of the directory.
        assert!(!waits(&["fanotify_handle_event", "nfsd_rename [nfsd]"]));
        assert!(!waits(&[]));
    }
}
