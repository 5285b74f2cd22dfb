//! The lab cleans up behind itself.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use lab::Kernel;

#[test]
fn vm_ctrl_c_leaves_nothing_behind() -> Result<()> {
    // Who runs tests in the background may have them ignore it.
    let mut shell = Command::new("env")
        .arg("--default-signal=INT")
        .arg(lab::lab_program()?)
        .args(["shell", "--clients", "0", "--export", "tmpfs", "-c"])
        .arg("echo; sleep 1000")
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let said = BufReader::new(shell.stdout.take().context("its output")?);
    let ready = said
        .lines()
        .map_while(Result::ok)
        .find(|line| line.contains("is shared"));
    let ready = ready.context("lab shell ended before its machine was up")?;
    // Its name ends with the slot that was free.
    let owner = format!("{}-{}-", Kernel::V6_12, shell.id());
    let machine = ready
        .split(['/', ' '])
        .find(|part| part.starts_with(&owner))
        .with_context(|| format!("{owner} is not in: {ready}"))?
        .to_owned();

    // As a terminal does it: to everything in the foreground.
    let killed = Command::new("kill")
        .args(["-INT", "--", &format!("-{}", shell.id())])
        .status()?;
    assert!(killed.success());
    shell.wait()?;
    let deadline = Instant::now() + Duration::from_secs(60);
    while Instant::now() < deadline && !processes_naming(&machine)?.is_empty() {
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(processes_naming(&machine)?, Vec::<String>::new());
    let dir = lab::target_dir()?.join("lab").join(&machine);
    assert!(!dir.exists(), "{} is still there", dir.display());
    Ok(())
}

/// The command lines of the processes that have this word in them.
fn processes_naming(word: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        // Processes end while they are looked at.
        let line = fs::read(entry?.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(word) {
            found.push(line);
        }
    }
    Ok(found)
}
