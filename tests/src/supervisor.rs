//! `lab supervisor`: keeps a machine, or a server beside it, from outliving the process that asked for it.
//!
//! The supervisor holds the read end of a pipe whose write end only its owner has. However the owner ends - returning,
//! panicking, Ctrl-C, `kill -9` - the pipe closes, and the supervisor kills the machine's whole process group and
//! removes its directory, unless a file called `keep` says that somebody will want the logs.
//!
//! Its standard input is that pipe, its standard output the lock of the slot (held, never written to, so that a slot
//! is free only when its machine is gone), its standard error the machine's console log.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};

/// The file that tells the supervisor to leave the machine's directory behind.
pub const KEEP: &str = "keep";

/// The file that appears when the machine ended by itself; it holds the exit status.
pub const ENDED: &str = "ended";

/// Runs `command` until it ends or standard input closes.
pub fn run(dir: &Path, command: &[String]) -> Result<()> {
    let Some((program, arguments)) = command.split_first() else {
        bail!("lab supervisor: no command to run");
    };
    let console = || std::io::stderr().as_fd().try_clone_to_owned();
    // Its own group: one signal reaches vng, its shell and QEMU, and no Ctrl-C of a terminal does before us.
    let mut machine = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(console()?)
        .stderr(console()?)
        .process_group(0)
        .spawn()
        .with_context(|| {
            format!("starting {program}; is it set up? run: tests/setup/setup.sh lab")
        })?;
    let group = i32::try_from(machine.id()).ok().and_then(Pid::from_raw);
    static OWNER_GONE: AtomicBool = AtomicBool::new(false);
    thread::spawn(move || {
        let mut sink = [0; 64];
        while std::io::stdin().read(&mut sink).is_ok_and(|n| n > 0) {}
        OWNER_GONE.store(true, Ordering::SeqCst);
        if let Some(group) = group {
            tell_cpu_seconds(group);
            // It may have ended by itself; there is nothing to do about that.
            let _ = kill_process_group(group, Signal::KILL);
        }
    });
    let status = machine.wait().context("waiting for the machine")?;
    // A machine that died by itself is a finding: its owner learns of it, and may want the logs.
    fs::write(dir.join(ENDED), format!("{status}\n")).ok();
    while !OWNER_GONE.load(Ordering::SeqCst) {
        thread::sleep(Duration::from_millis(20));
    }
    for disk in ["disk.img", "log.img"] {
        fs::remove_file(dir.join(disk)).ok();
    }
    fs::remove_dir_all(dir.join("programs")).ok();
    if !dir.join(KEEP).exists() {
        fs::remove_dir_all(dir).ok();
    }
    Ok(())
}

/// Adds the test's name and the CPU time of the machine's processes to the file that `LAB_CPU_SECONDS` names. Killed from the top, they
/// leave no parent that could wait for them and be notified.
fn tell_cpu_seconds(group: Pid) {
    let Some(path) = std::env::var_os("LAB_CPU_SECONDS") else {
        return;
    };
    let ticks: u64 = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("stat")).ok())
        .filter_map(|stat| cpu_ticks(&stat, group.as_raw_nonzero().get()))
        .sum();
    let test = crate::skip::test_name();
    // A figure for a summary: without it there is one figure less.
    let _ = File::options()
        .create(true)
        .append(true)
        .open(path)
        .and_then(|mut file| writeln!(file, "{test} {:.2}", ticks as f64 / USER_HZ));
}

/// The unit of times in `/proc/<pid>/stat`: the same on every Linux.
const USER_HZ: f64 = 100.0;

/// What a process of that group has used, with the children that it has waited for.
fn cpu_ticks(stat: &str, group: i32) -> Option<u64> {
    // The name may have spaces and parentheses; what follows the last one has neither.
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let same = fields.get(2)?.parse() == Ok(group);
    let ticks = |n: usize| fields.get(n)?.parse::<u64>().ok();
    same.then(|| (11..15).filter_map(ticks).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_counted_for_the_group_alone() {
        let stat = "7 (a) S b) R 1 42 42 0 -1 4 10 20 0 0 100 20 3 4 20 0 5 0 99";
        assert_eq!(cpu_ticks(stat, 42), Some(127));
        assert_eq!(cpu_ticks(stat, 43), None);
    }
}
