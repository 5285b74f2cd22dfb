//! Mounts one version of NFS at a directory of its own.

use crate::workload::fio::Stop;
use anyhow::{Context, bail};
use nfscope_source::mounts::Mounts;
use nfscope_text::console::say;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// Interval at which mount is polled for its end.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Tries of an unmount: a file that has just been closed keeps the mount busy for a moment.
const TRIES: u32 = 20;

/// A version of NFS that Linux mounts.
pub const VERSIONS: [&str; 4] = ["3", "4.0", "4.1", "4.2"];

/// A mount. Dropping it unmounts it and removes its directory.
#[derive(Debug)]
pub struct Mounted {
    at: PathBuf,
}

impl Mounted {
    /// Mounts `source` over this version at a new directory, without sharing anything with other mounts of the same export.
    ///
    /// # Errors
    /// What the server or the client says, or [`Stopped`](crate::workload::fio::Stopped).
    pub fn make(
        source: &str,
        version: &str,
        more: Option<&str>,
        at: PathBuf,
        stop: &Stop,
    ) -> anyhow::Result<Mounted> {
        fs::create_dir(&at).with_context(|| format!("cannot create {}", at.display()))?;
        // `Mounted` exists before mount runs: if mount fails, its Drop removes the directory.
        let mounted = Mounted { at };
        let mut command = Command::new("mount");
        command.args(words(source, version, more));
        run(command.arg(&mounted.at), stop)?;
        let got = version_at(&mounted.at);
        if got.as_deref() != Some(version) {
            bail!("the mount has version {}", got.as_deref().unwrap_or("-"));
        }
        Ok(mounted)
    }

    /// Directory of the mount.
    pub fn path(&self) -> &Path {
        &self.at
    }
}

/// Arguments of mount, but for the directory.
pub fn words(source: &str, version: &str, more: Option<&str>) -> Vec<String> {
    let mut options = format!("vers={version},nosharecache,retry=0");
    if version == "3" {
        // No load locks files, and rpc.statd need not run.
        options += ",nolock";
    }
    if let Some(more) = more {
        options = format!("{options},{more}");
    }
    ["-t", "nfs", "-o", &options, "--", source]
        .map(str::to_owned)
        .to_vec()
}

/// The version of the mount at a directory; `None` where nothing is mounted there.
fn version_at(at: &Path) -> Option<String> {
    let mounts = Mounts::read();
    let mount = mounts.iter().find(|m| Path::new(&m.point) == at)?;
    mount.option("vers")
}

impl Drop for Mounted {
    fn drop(&mut self) {
        for attempt in 0..TRIES {
            if version_at(&self.at).is_none() {
                break;
            }
            let mut command = Command::new("umount");
            if attempt + 1 == TRIES {
                // A lazy unmount detaches the mount when the last process that holds it has ended.
                command.arg("-l");
            }
            let command = command.arg(&self.at).process_group(0);
            let ended = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
            if !ended.is_ok_and(|s| s.success()) {
                thread::sleep(POLL_INTERVAL * 10);
            }
        }
        // remove_dir() removes an empty directory only. The export itself could still be below it.
        if let Err(e) = fs::remove_dir(&self.at) {
            let at = self.at.display();
            say(&format!(
                "cannot remove {at}: {e}; fix: umount {at} && rmdir {at}"
            ));
        }
    }
}

/// Runs a command to its end, out of reach of the terminal's signals: those stop nfscope, which then stops the command.
fn run(command: &mut Command, stop: &Stop) -> anyhow::Result<()> {
    stop.check()?;
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .env("LC_ALL", "C")
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot run {name}"))?;
    let status = loop {
        if let Some(status) = child.try_wait().context("cannot wait for mount")? {
            break status;
        }
        if let Err(stopped) = stop.check() {
            end(&mut child);
            return Err(stopped.into());
        }
        thread::sleep(POLL_INTERVAL);
    };
    let mut said = Vec::new();
    if let Some(mut errors) = child.stderr.take() {
        let _ = errors.read_to_end(&mut said);
    }
    // Paths in the output may be in any encoding.
    let said = String::from_utf8_lossy(&said);
    match status.success() {
        true => Ok(()),
        false if said.contains("bad option; for several filesystems") => {
            bail!("mount.nfs is missing; fix: apt-get install nfs-common")
        }
        false => bail!("{}", said.lines().next().unwrap_or("mount failed").trim()),
    }
}

fn end(child: &mut Child) {
    if let Ok(id) = i32::try_from(child.id())
        && let Some(group) = Pid::from_raw(id)
    {
        let _ = kill_process_group(group, Signal::TERM);
    }
    let _ = child.wait();
}
