//! `lab supervisor`: ends a machine, or a server beside it, with the process that started it.
//!
//! The supervisor holds the read end of a pipe whose write end only its owner has. The pipe closes when the owner ends - returning,
//! panicking, Ctrl-C, `kill -9`. The supervisor then kills the machine's whole process group. It also removes the machine's
//! directory, unless a file called `keep` asks for the logs.
//!
//! Standard input is that pipe. Standard output is the lock of the slot, held and never written to, so that a slot is free only when
//! its machine is gone. Standard error is the machine's console log.

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

use crate::cpu_time;

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
    // A process group of its own: one signal reaches vng, its shell and QEMU, and a terminal's Ctrl-C does not reach them first.
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
            // The machine may have ended by itself; then there is nothing to kill.
            let _ = kill_process_group(group, Signal::KILL);
        }
    });
    let status = machine.wait().context("waiting for the machine")?;
    // A machine that ended by itself is a finding: its owner reads this file, and may want the logs.
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

/// Adds the test's name and the CPU time of the machine's processes to the file that `LAB_CPU_SECONDS` names. The CPU time is read
/// before the kill: killed from the top, the processes leave no parent that waits for them and gets their times.
fn tell_cpu_seconds(group: Pid) {
    let Some(path) = std::env::var_os("LAB_CPU_SECONDS") else {
        return;
    };
    let seconds = cpu_time::of_group(group);
    let test = crate::skip::test_name();
    // A failed write costs the summary one figure.
    let _ = File::options()
        .create(true)
        .append(true)
        .open(path)
        .and_then(|mut file| writeln!(file, "{test} {seconds:.2}"));
}
