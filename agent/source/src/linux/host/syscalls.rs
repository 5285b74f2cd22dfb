//! System calls of the process that answers HTTP requests of other hosts.
//!
//! There are three filters, and the kernel takes the strictest of their answers. A call that only an intruder makes ends the process. A
//! call that is not listed fails with EPERM, so that a library that tries something else goes on without it.

use anyhow::Context;
use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};
use std::collections::BTreeMap;

/// Calls that are allowed with any arguments: memory, threads, time, and descriptors that are open.
const FREE: &[c_long] = &[
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_brk,
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_close,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_fstat,
    libc::SYS_futex,
    libc::SYS_getpeername,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_gettid,
    libc::SYS_gettimeofday,
    libc::SYS_madvise,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_ppoll,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_shutdown,
    libc::SYS_sigaltstack,
    libc::SYS_uname,
    libc::SYS_write,
    libc::SYS_writev,
];

/// The older calls of x86, which its C libraries still use.
#[cfg(target_arch = "x86_64")]
const OLD: &[c_long] = &[libc::SYS_epoll_wait, libc::SYS_poll, libc::SYS_time];
#[cfg(not(target_arch = "x86_64"))]
const OLD: &[c_long] = &[];

/// Calls that only an intruder makes: to run a program, to look into another process, to reach the kernel.
const FATAL: &[c_long] = &[
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_finit_module,
    libc::SYS_init_module,
    libc::SYS_io_uring_setup,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
];

const FCNTL: &[i32] = &[
    libc::F_DUPFD_CLOEXEC,
    libc::F_GETFD,
    libc::F_GETFL,
    libc::F_SETFD,
    libc::F_SETFL,
];

/// FIONBIO and TCGETS of asm-generic/ioctls.h: set non-blocking, and test for a terminal. C libraries give them several types.
const IOCTL: [u64; 2] = [0x5421, 0x5401];

/// Names of anonymous memory, which newer C libraries give.
const PR_SET_VMA: u64 = 0x5356_4d41;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Restricts this thread and those that it starts, for good.
///
/// # Errors
/// Fails if the kernel has no such filters, or the agent was built for a processor that they do not know.
pub fn restrict() -> anyhow::Result<()> {
    let any = |calls: &[c_long]| -> Rules { calls.iter().map(|n| (*n, vec![])).collect() };
    let (allow, refuse) = (
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EPERM as u32),
    );
    apply(any(FATAL), allow.clone(), SeccompAction::KillProcess)?;
    // clone3 fails with ENOSYS: its flags lie in memory, where a filter cannot look. A library then uses `clone`.
    let missing = SeccompAction::Errno(libc::ENOSYS as u32);
    apply(any(&[libc::SYS_clone3]), allow.clone(), missing)?;
    // The last filter, because it allows no further one.
    apply(allowed()?, refuse, allow)
}

fn apply(rules: Rules, otherwise: SeccompAction, matched: SeccompAction) -> anyhow::Result<()> {
    let processor = std::env::consts::ARCH.try_into()?;
    let filter = SeccompFilter::new(rules, otherwise, matched, processor)?;
    let program: BpfProgram = filter.try_into()?;
    apply_filter(&program).context("the kernel takes no filter")
}

fn allowed() -> anyhow::Result<Rules> {
    let mut rules: Rules = (FREE.iter().chain(OLD))
        .map(|call| (*call, vec![]))
        .collect();
    // Another filter refuses clone3: here it is allowed, so that the answer of that filter counts.
    rules.insert(libc::SYS_clone3, vec![]);
    let masked = |argument, mask: u64, value| {
        let long = SeccompCmpArgLen::Qword;
        SeccompCondition::new(argument, long, SeccompCmpOp::MaskedEq(mask), value)
    };
    let equal = |argument, value: u64| {
        let short = SeccompCmpArgLen::Dword;
        let condition = SeccompCondition::new(argument, short, SeccompCmpOp::Eq, value)?;
        SeccompRule::new(vec![condition])
    };
    // Threads are allowed, processes are not.
    let thread = libc::CLONE_THREAD as u64;
    let own = SeccompRule::new(vec![masked(0, thread, thread)?])?;
    rules.insert(libc::SYS_clone, vec![own]);
    // Executable memory is refused, and so are mappings of files.
    let (exec, anonymous) = (libc::PROT_EXEC as u64, libc::MAP_ANONYMOUS as u64);
    let plain = SeccompRule::new(vec![masked(2, exec, 0)?, masked(3, anonymous, anonymous)?])?;
    rules.insert(libc::SYS_mmap, vec![plain]);
    let plain = SeccompRule::new(vec![masked(2, exec, 0)?])?;
    rules.insert(libc::SYS_mprotect, vec![plain]);
    let all = |argument, values: &[u64]| -> anyhow::Result<Vec<SeccompRule>> {
        let rules = values.iter().map(|value| equal(argument, *value));
        Ok(rules.collect::<Result<_, _>>()?)
    };
    rules.insert(libc::SYS_ioctl, all(1, &IOCTL)?);
    let fcntl: Vec<_> = FCNTL.iter().map(|n| *n as u64).collect();
    rules.insert(libc::SYS_fcntl, all(1, &fcntl)?);
    let names = [libc::PR_SET_NAME as u64, PR_SET_VMA];
    rules.insert(libc::SYS_prctl, all(0, &names)?);
    // A failed assertion of a library ends the process by this call.
    let own = u64::from(std::process::id());
    rules.insert(libc::SYS_tgkill, all(0, &[own])?);
    Ok(rules)
}
