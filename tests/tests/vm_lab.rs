//! The lab removes everything that it leaves on the host.

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
    // A caller that runs tests in the background may have set SIGINT to be ignored.
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
    // The machine's name ends with the number of its directory.
    let owner = format!("{}-{}-", Kernel::V6_12, shell.id());
    let machine = ready
        .split(['/', ' '])
        .find(|part| part.starts_with(&owner))
        .with_context(|| format!("{owner} is not in: {ready}"))?
        .to_owned();

    // A terminal sends SIGINT to the whole foreground group.
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

/// Command lines of processes that contain this word.
fn processes_naming(word: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        // A process may end between both readings.
        let line = fs::read(entry?.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(word) {
            found.push(line);
        }
    }
    Ok(found)
}
