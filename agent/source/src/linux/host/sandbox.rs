//! Confinement of the process that answers HTTP requests of other hosts. It has neither its parent's user, nor capabilities, nor files, and
//! only the system calls that answering needs.
//!
//! For the kernel, credentials belong to a thread. One thread of the agent takes those of an unprivileged user for good, and starts the
//! process. It can therefore start the process again long after the agent has given up the right to change users.

use super::capabilities::{drop_all, forbid_more};
use super::syscalls;
use crate::confinement::{Confinement, Layer};
use crate::host_table;
use anyhow::{Context, ensure};
use caps::{CapSet, Capability};
use landlock::{ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset};
use landlock::{RulesetAttr, RulesetStatus, Scope};
use nfscope_model::host_report::Fact;
use rustix::fs::{Gid, Uid};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Resource, Rlimit, Signal};
use rustix::process::{geteuid, getrlimit, set_dumpable_behavior, setrlimit};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

/// User of the process, if the host has it.
const USER: &str = "nfscope";
/// Range of its user number otherwise: numbers that no other user has. User 65534 is not taken, because other services have it: the kernel
/// lets each process of a user end the others, and end the whole agent by its thread with that user.
const NUMBERS: std::ops::Range<u32> = 0x7ffe_0000..0x7ffe_1000;
/// User and group in a user namespace without such a number.
const NOBODY: (u32, u32) = (65534, 65534);
/// Memory of the process in bytes. Bodies of a large server take a hundredth.
const MEMORY: u64 = 512 << 20;

/// Gives this thread the user of the process that answers HTTP requests, and takes every capability from it, all for good. Returns the user
/// as text.
///
/// # Errors
/// Fails if the kernel refuses to take capabilities away, which no sane one does.
pub fn leave_user() -> anyhow::Result<String> {
    let mut who = "as the agent's own user".to_owned();
    // Taking away the ways to capabilities needs a capability that is lost with the user.
    forbid_more()?;
    if geteuid().is_root() {
        let passwd = host_table::read("/etc/passwd").unwrap_or_default();
        let (uid, gid) = unprivileged(&passwd);
        who = match become_user(uid, gid) {
            Ok(()) => format!("as user {uid}"),
            Err(Errno::INVAL) => match become_user(NOBODY.0, NOBODY.1) {
                Ok(()) => "as user nobody, whose other processes may end the agent (this user namespace has no other number)"
                    .to_owned(),
                Err(e) => as_root(e),
            },
            Err(e) => as_root(e),
        };
    }
    drop_all()?;
    Ok(who)
}

fn as_root(e: Errno) -> String {
    format!(
        "as root, because this agent may not change its user ({e}; CAP_SETUID and CAP_SETGID allow it)"
    )
}

/// Numbers of a user and a group that no other service of the host has.
fn unprivileged(passwd: &str) -> (u32, u32) {
    let users = || {
        passwd.lines().filter_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            let mut number = |n| fields.nth(n)?.parse::<u32>().ok();
            Some((name, number(1)?, number(0)?))
        })
    };
    let own = users().find(|(name, uid, gid)| *name == USER && *uid != 0 && *gid != 0);
    let free = |n: &u32| users().all(|(_, uid, gid)| uid != *n && gid != *n);
    own.map(|(_, uid, gid)| (uid, gid))
        .or_else(|| NUMBERS.into_iter().find(free).map(|n| (n, n)))
        .unwrap_or(NOBODY)
}

fn become_user(uid: u32, gid: u32) -> rustix::io::Result<()> {
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    set_thread_groups(&[])?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)
}

/// Keeps other processes of its user out of this process's memory, which will have keys and passwords.
///
/// # Errors
/// Fails if the kernel refuses, which no sane one does.
pub fn hide_memory() -> anyhow::Result<()> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .context("cannot hide the memory of this process")
}

/// Confines this process, which has one thread so far, for good. Returns the parts of the confinement.
///
/// # Errors
/// Fails if the process still has a capability, or the kernel refuses what every kernel has.
pub fn confine_stranger() -> anyhow::Result<Confinement> {
    drop_all()?;
    for set in [CapSet::Effective, CapSet::Permitted] {
        ensure!(
            caps::read(None, set)?.is_empty(),
            "this process still has capabilities"
        );
    }
    hide_memory()?;
    limit(Resource::Core, 0);
    limit(Resource::Data, MEMORY);
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .context("cannot end with the agent")?;
    let user = match rustix::process::geteuid().is_root() {
        true => Layer::Refused("it runs as root".to_owned()),
        false => Layer::Holds,
    };
    let landlock = landlock();
    let seccomp = match syscalls::restrict() {
        Ok(()) => Layer::Holds,
        Err(e) => Layer::Refused(format!("{e:#}")),
    };
    Ok(Confinement {
        user,
        seccomp,
        landlock,
    })
}

/// Applies Landlock as far as possible. Returns the reason if it is not there at all.
fn landlock() -> Layer {
    if let Err(why) = landlock_version() {
        return why;
    }
    match no_files() {
        Ok(true) => Layer::Holds,
        Ok(false) => Layer::Refused("the kernel enforces none of its rules".to_owned()),
        Err(e) => Layer::Refused(format!("{e:#}")),
    }
}

/// Version of Landlock that the kernel has, or the reason why this process gets none.
fn landlock_version() -> Result<i64, Layer> {
    const VERSION: libc::c_uint = 1;
    // SAFETY: landlock_create_ruleset(2) with this flag takes no attributes, makes nothing and returns a number.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            VERSION,
        )
    };
    if version >= 1 {
        return Ok(version);
    }
    let e = std::io::Error::last_os_error();
    let known = (e.raw_os_error() == Some(libc::ENOSYS))
        .then(landlock_of_kernel)
        .flatten();
    Err(why_no_landlock(&e, known, is_filtered()))
}

/// Reason why landlock_create_ruleset(2) failed. Container engines answer ENOSYS, as kernels without Landlock do. Then `known` decides,
/// which says if the kernel has Landlock; if that is not known, `is_filtered` decides.
fn why_no_landlock(e: &std::io::Error, known: Option<bool>, is_filtered: bool) -> Layer {
    match (e.raw_os_error(), known) {
        (Some(libc::ENOSYS), Some(true)) => Layer::Refused(
            "the kernel has it, and a filter of system calls around this service hides it (ENOSYS)"
                .to_owned(),
        ),
        (Some(libc::ENOSYS), None) if is_filtered => Layer::Refused(
            "a filter of system calls around this service may hide it (ENOSYS), and nothing here tells whether the kernel has it"
                .to_owned(),
        ),
        (Some(libc::ENOSYS), _) => Layer::Absent("this kernel has none".to_owned()),
        (Some(libc::EOPNOTSUPP), _) => {
            Layer::Absent("this kernel has it turned off: lsm= at boot lacks landlock".to_owned())
        }
        _ => Layer::Refused(format!(
            "{e}: a sandbox of this service refuses landlock_create_ruleset"
        )),
    }
}

/// True if the kernel has Landlock, by its own lists; `None` if this process may read neither.
fn landlock_of_kernel() -> Option<bool> {
    if let Some(modules) = host_table::read("/sys/kernel/security/lsm") {
        // A security module that is turned off is not in the list, and then no filter would matter.
        return Some(modules.trim().split(',').any(|name| name == "landlock"));
    }
    let names = host_table::read("/proc/kallsyms")?;
    Some(names.contains("sys_landlock_create_ruleset"))
}

/// True if this process has a filter of system calls.
fn is_filtered() -> bool {
    // SAFETY: prctl(2) with this option takes no other argument and returns a number.
    unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) > 0 }
}

/// Advice for the admin, so that the process that serves HTTP is confined as far as the kernel can.
const LANDLOCK_FIX: &str = "allow landlock_create_ruleset, landlock_add_rule and landlock_restrict_self where the filter is made: SystemCallFilter= of the unit, or the seccomp profile of the container";

/// Confinement that a process that serves HTTP would have, as far as this process can tell, for `nfscope check`.
pub fn sandbox_fact() -> Fact {
    let (mut lacks, mut fixes) = (Vec::new(), Vec::new());
    let may = |capability| caps::has_cap(None, CapSet::Effective, capability).unwrap_or(false);
    if geteuid().is_root() && !(may(Capability::CAP_SETUID) && may(Capability::CAP_SETGID)) {
        lacks.push("a user of its own (CAP_SETUID and CAP_SETGID are missing)".to_owned());
        fixes.push("give the agent CAP_SETUID and CAP_SETGID, or another user than root");
    }
    // SAFETY: prctl(2) with this option takes no other argument and returns a number.
    if unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) } < 0 {
        lacks.push("a filter of system calls (this kernel has no seccomp)".to_owned());
    }
    let landlock = match landlock_version() {
        Ok(version) => format!("Landlock (version {version})"),
        Err(Layer::Absent(why)) => {
            lacks.push(format!("Landlock ({why})"));
            String::new()
        }
        Err(Layer::Refused(why)) => {
            lacks.push(format!("Landlock ({why})"));
            fixes.push(LANDLOCK_FIX);
            String::new()
        }
        Err(Layer::Holds) => String::new(),
    };
    let ok = lacks.is_empty();
    Fact {
        name: "sandbox of HTTP".to_owned(),
        value: match ok {
            true => format!("another user, a filter of system calls, {landlock}"),
            false => format!("lacks {}", lacks.join(" and ")),
        },
        ok,
        fix: match ok {
            true => String::new(),
            false if fixes.is_empty() => "no setting mends it: this kernel lacks it, and --sandbox require serves all the same".to_owned(),
            false => format!(
                "{}; nfscope_http_sandbox of an agent's /metrics tells what its process has",
                fixes.join("; ")
            ),
        },
    }
}

/// Lowers a limit. A lower limit stays.
fn limit(resource: Resource, most: u64) {
    let now = getrlimit(resource);
    let most = now.maximum.map_or(most, |n| n.min(most));
    let limit = Rlimit {
        current: Some(now.current.map_or(most, |n| n.min(most))),
        maximum: Some(most),
    };
    // The kernel refuses no lower limit.
    let _ = setrlimit(resource, limit);
}

/// Takes all access to files from this thread and those that it starts, and the other rights that this kernel's Landlock handles:
/// connections, and signals to other processes.
fn no_files() -> anyhow::Result<bool> {
    let all = ABI::V6;
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(all))?
        .handle_access(AccessNet::from_all(all))?
        .scope(Scope::from_all(all))?
        .create()?
        .restrict_self()?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_hides_landlock_is_told_apart_from_a_kernel_without_it() {
        let none = std::io::Error::from_raw_os_error(libc::ENOSYS);
        let refused = |known, is_filtered| {
            matches!(
                why_no_landlock(&none, known, is_filtered),
                Layer::Refused(_)
            )
        };
        assert!(refused(Some(true), true));
        assert!(refused(None, true));
        assert!(!refused(Some(false), true));
        assert!(!refused(None, false));
        let off = std::io::Error::from_raw_os_error(libc::EOPNOTSUPP);
        assert!(matches!(
            why_no_landlock(&off, None, true),
            Layer::Absent(_)
        ));
        let refused = std::io::Error::from_raw_os_error(libc::EPERM);
        let Layer::Refused(why) = why_no_landlock(&refused, None, true) else {
            panic!("EPERM is the answer of a filter");
        };
        assert!(why.contains("landlock_create_ruleset"), "{why}");
    }

    #[test]
    fn the_user_is_that_of_no_other_service_and_never_root() {
        let first = NUMBERS.start;
        let others = "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n";
        assert_eq!(unprivileged(others), (first, first));
        let own = format!("{others}nfscope:x:501:502::/:/bin/false\n");
        assert_eq!(unprivileged(&own), (501, 502));
        let taken = format!("{others}a:x:{first}:7::/:\nb:x:8:{}::/:\n", first + 1);
        assert_eq!(unprivileged(&taken), (first + 2, first + 2));
        for odd in [
            "",
            "nfscope",
            "nfscope:x:0:0::/:/bin/sh",
            "nfscope:x:y:z",
            "nfscope2:x:7:7",
        ] {
            assert_eq!(unprivileged(odd), (first, first), "{odd}");
        }
    }
}
