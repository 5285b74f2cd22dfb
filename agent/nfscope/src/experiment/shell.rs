//! Shell commands of a plan file. Each is a process group that ends with the run.

use anyhow::{Context, bail};
use nfscope_load::workload::fio::Stop;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Longest time between SIGTERM and SIGKILL for a process group.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// Last lines of a command's output that an error quotes.
const LINES: usize = 3;
/// Bytes at the end of the output that are searched for these lines.
const LAST_BYTES: u64 = 64 << 10;

/// Script that runs its arguments, with a loop in the same group that kills the group when nfscope is gone. A load that outlives nfscope
/// would disturb the next run.
const WATCHED: &str = "parent=$PPID
(while kill -0 \"$parent\" 2>/dev/null; do sleep 1; done; kill -s KILL 0) >/dev/null 2>&1 &
exec \"$@\"";

/// Runner of the commands of one run.
pub(super) struct Shell<'a> {
    /// Environment of every command.
    pub variables: [(&'static str, String); 2],
    pub stop: &'a Stop,
}

impl Shell<'_> {
    fn command(&self, text: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", text]).stdin(Stdio::null());
        command.envs(self.variables.iter().map(|(k, v)| (k, v)));
        // In a group of its own the command does not get Ctrl-C. nfscope gets it, and ends what it started.
        command.process_group(0);
        command
    }

    /// Runs a command to its end; returns its output, stdout and stderr.
    ///
    /// # Errors
    /// When the command fails, with its last lines, or a signal arrives.
    pub(super) fn run(&self, text: &str) -> anyhow::Result<File> {
        // A service that the command starts may keep the output open. A pipe would never end, and break when nfscope exits.
        let said = tempfile::tempfile().context("cannot make a file for the output")?;
        let mut command = self.command(text);
        command.stdout(said.try_clone()?).stderr(said.try_clone()?);
        let leader = command.spawn().context("cannot run sh")?;
        let mut group = Group { leader, ends: true };
        let status = self.end_of(&mut group.leader, || Ok(()))?;
        if status.success() {
            // Services that the command has started stay.
            group.ends = false;
            return Ok(said);
        }
        drop(group);
        let last = last_lines(&said);
        match last.is_empty() {
            true => bail!("`{text}` failed ({status})"),
            false => bail!("`{text}` failed ({status}): {last}"),
        }
    }

    /// Starts a load. With `keeps`, its stdout is kept for the numbers in it.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(super) fn start(&self, text: &str, keeps: bool) -> anyhow::Result<Load> {
        let said = match keeps {
            true => Some(tempfile::tempfile().context("cannot make a file for the output")?),
            false => None,
        };
        let stdout = match &said {
            Some(file) => Stdio::from(file.try_clone()?),
            None => Stdio::null(),
        };
        let mut command = self.command(WATCHED);
        command.args(["sh", "sh", "-c", text]).stdout(stdout);
        let leader = command.spawn().context("cannot run sh")?;
        let group = Group { leader, ends: true };
        Ok(Load { group, said })
    }

    /// Runs a recorder to its end, or until `alive` fails. The recorder is terminated then, and keeps its windows.
    ///
    /// # Errors
    /// When `alive` fails, or a signal arrives.
    pub(super) fn record(
        &self,
        recorder: &[OsString],
        alive: &mut impl FnMut() -> anyhow::Result<()>,
    ) -> anyhow::Result<ExitStatus> {
        let mut command = self.command(WATCHED);
        command.arg("sh").args(recorder);
        let leader = command.spawn().context("cannot run sh")?;
        let mut group = Group { leader, ends: true };
        let status = self.end_of(&mut group.leader, alive)?;
        self.stop.check()?;
        Ok(status)
    }

    /// Waits for the end of a process, unless `alive` fails or a signal arrives before.
    fn end_of(
        &self,
        process: &mut Child,
        mut alive: impl FnMut() -> anyhow::Result<()>,
    ) -> anyhow::Result<ExitStatus> {
        loop {
            if let Some(status) = process.try_wait().context("cannot wait for sh")? {
                return Ok(status);
            }
            self.stop.check()?;
            alive()?;
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Waits for `time`, and polls `alive` meanwhile.
    ///
    /// # Errors
    /// When `alive` fails, or a signal arrives.
    pub(super) fn wait(
        &self,
        time: Duration,
        alive: &mut impl FnMut() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            self.stop.check()?;
            alive()?;
            let left = time.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(POLL_INTERVAL));
        }
    }
}

/// Last lines of an output. Reads at an offset: the file position is shared with processes that may still write.
fn last_lines(said: &File) -> String {
    let length = said.metadata().map_or(0, |m| m.len());
    let from = length.saturating_sub(LAST_BYTES);
    let mut bytes = vec![0; usize::try_from(length - from).unwrap_or(0)];
    if said.read_exact_at(&mut bytes, from).is_err() {
        return String::new();
    }
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<_> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LINES)..].join("; ")
}

/// Running load; dropping it ends its process group.
pub(super) struct Load {
    group: Group,
    said: Option<File>,
}

impl Load {
    /// Checks that the load still runs.
    ///
    /// # Errors
    /// When the load has ended.
    pub(super) fn still_runs(&mut self) -> anyhow::Result<()> {
        let ended = self.group.leader.try_wait();
        match ended.context("cannot wait for the load")? {
            None => Ok(()),
            Some(status) => bail!("the load ended early ({status})"),
        }
    }

    /// Bytes of stdout so far; 0 if it is not kept.
    pub(super) fn printed(&self) -> u64 {
        let length = |f: &File| f.metadata().map_or(0, |m| m.len());
        self.said.as_ref().map_or(0, length)
    }

    /// Ends the load; returns its stdout if it is kept.
    pub(super) fn end(self) -> Option<File> {
        let Load { group, said } = self;
        drop(group);
        said
    }
}

/// Process group of a command.
struct Group {
    leader: Child,
    /// Dropping this ends the group.
    ends: bool,
}

impl Group {
    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.leader.id()).ok();
        if let Some(group) = id.and_then(Pid::from_raw) {
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.ends {
            return;
        }
        self.signal(Signal::TERM);
        let asked = Instant::now();
        while asked.elapsed() < STOP_TIMEOUT && matches!(self.leader.try_wait(), Ok(None)) {
            thread::sleep(POLL_INTERVAL);
        }
        self.signal(Signal::KILL);
        let _ = self.leader.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str) -> anyhow::Result<()> {
        let stop = Stop::default();
        let shell = Shell {
            variables: [
                ("NFSCOPE_RUN", "1".to_owned()),
                ("NFSCOPE_LEVELS", "log=disk".to_owned()),
            ],
            stop: &stop,
        };
        shell.run(text).map(drop)
    }

    #[test]
    fn a_command_that_fails_tells_its_last_lines() {
        let said = |text: &str| run(text).unwrap_err().to_string();
        let text = said("echo a; echo b >&2; echo; echo c; echo d >&2; exit 3");
        assert!(text.ends_with("(exit status: 3): b; c; d"), "{text}");
        assert!(said("exit 4").ends_with("failed (exit status: 4)"));
        // Output that is longer than `LAST_BYTES`.
        let text = said("head -c 1000000 /dev/zero | tr '\\0' '\\n'; echo the end; false");
        assert!(text.ends_with("(exit status: 1): the end"), "{text}");
        run("echo $NFSCOPE_LEVELS | grep -qx log=disk").unwrap();
    }

    /// `setsid` moves the service out of the command's group. It keeps the output open.
    #[test]
    fn a_service_that_a_command_leaves_is_not_waited_for() {
        let began = Instant::now();
        let text = run("setsid sleep 30 & sleep 0.5; echo why; exit 3").unwrap_err();
        assert!(text.to_string().ends_with(": why"), "{text}");
        run("setsid sleep 30 & sleep 0.5").unwrap();
        assert!(began.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn a_command_reads_nothing() {
        run("test -z \"$(cat)\"").unwrap();
    }
}
