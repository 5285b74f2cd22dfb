//! Agents with too low a limit of open files or of threads, or without a system call that they need: each ends with one sentence that names
//! the fix.

use super::command;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Standard error of an agent that cannot start: one line, and exit status 1.
fn last_words(mut agent: Command) -> String {
    let out = agent.output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert_eq!(said.lines().count(), 1, "one sentence: {said}");
    assert!(said.starts_with("error: "), "{said}");
    for never in ["panicked", "backtrace", "signal", "os error 24"] {
        assert!(!said.contains(never), "{said}");
    }
    said
}

/// Agent process that runs `first` between fork(2) and exec(2).
fn with(first: impl Fn() -> io::Result<()> + Send + Sync + 'static) -> Command {
    let mut agent = command("keep");
    // SAFETY: `first` runs between fork(2) and exec(2), and makes system calls only.
    unsafe { agent.pre_exec(first) };
    agent
}

fn limited(resource: libc::__rlimit_resource_t, soft: u64, hard: u64) -> Command {
    with(move || {
        let limit = libc::rlimit {
            rlim_cur: soft,
            rlim_max: hard,
        };
        // SAFETY: setrlimit(2) reads the structure and keeps no pointer to it.
        match unsafe { libc::setrlimit(resource, &limit) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    })
}

/// Installs a seccomp filter that fails this system call from now on, also after exec(2).
fn refuse(call: libc::c_long, errno: i32) -> io::Result<()> {
    let step = |code: u32, jt, jf, k| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let number_at = 0;
    let filter = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, number_at),
        step(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            0,
            1,
            call as u32,
        ),
        step(
            libc::BPF_RET | libc::BPF_K,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | errno as u32,
        ),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: prctl(2) reads the filter, which lives until it returns.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) == 0
    };
    match done {
        true => Ok(()),
        false => Err(io::Error::last_os_error()),
    }
}

pub fn a_low_limit_of_open_files_is_reported_with_both_numbers() {
    for few in [16, 64, 511] {
        let said = last_words(limited(libc::RLIMIT_NOFILE, few, few));
        let number = format!("may open {few} files, and needs 512: raise the limit");
        assert!(said.contains(&number), "{said}");
    }
    // Soft limit below the hard limit: the agent raises it.
    let agent = limited(libc::RLIMIT_NOFILE, 64, 4096);
    let (child, _) = super::spawned(agent, "attached ");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
    let files = limits.lines().find(|l| l.starts_with("Max open files"));
    let soft = files.unwrap().split_whitespace().nth(3);
    assert_eq!(soft, Some("512"), "{limits}");
    super::stop(child, libc::SIGTERM);
}

/// RLIMIT_NPROC is a limit of a user, and does not hold for root.
pub fn a_low_limit_of_threads_is_reported_with_the_number_needed() {
    // User ID without any process.
    const USER: u32 = 0x7ffe_7777;
    let mut agent = with(|| {
        let limit = libc::rlimit {
            rlim_cur: 4,
            rlim_max: 4,
        };
        // SAFETY: setrlimit(2) reads the structure; the other calls take numbers.
        let done = unsafe {
            libc::setrlimit(libc::RLIMIT_NPROC, &limit) == 0
                && libc::setresgid(USER, USER, USER) == 0
                && libc::setresuid(USER, USER, USER) == 0
        };
        match done {
            true => Ok(()),
            false => Err(io::Error::last_os_error()),
        }
    });
    agent.current_dir("/");
    let said = last_words(agent);
    assert!(
        said.contains("threads and processes more, and needs 12: raise the limit"),
        "{said}"
    );
}

pub fn a_refused_system_call_is_named_in_the_error() {
    let refused = |call, errno| last_words(with(move || refuse(call, errno)));
    for (name, call) in [
        ("socketpair", libc::SYS_socketpair),
        ("sendmsg", libc::SYS_sendmsg),
    ] {
        for errno in [libc::EPERM, libc::ENOSYS] {
            let said = refused(call, errno);
            let sentence = format!("error: {name}: a filter of system calls around this service");
            assert!(said.starts_with(&sentence), "{said}");
        }
    }
    let said = refused(libc::SYS_clone3, libc::EPERM);
    assert!(said.contains("or allow clone3 or clone"), "{said}");
    // ENOSYS for clone3, as from older filters: the C library falls back to clone.
    let agent = with(|| refuse(libc::SYS_clone3, libc::ENOSYS));
    let (child, _) = super::spawned(agent, "attached ");
    super::stop(child, libc::SIGTERM);
}
