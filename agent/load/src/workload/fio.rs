//! The program fio: found, run, and stopped.

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Interval at which fio is polled for its end.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Time that fio has to end its jobs after a signal.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// Lines of fio's error messages that are shown.
const MAX_LINES: usize = 8;

/// The run was stopped by a signal.
#[derive(Debug, thiserror::Error)]
#[error("stopped by signal {0}")]
pub struct Stopped(pub u8);

/// Signals that end a run, noted as they come.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicUsize>);

impl Stop {
    /// Notes SIGINT, SIGTERM and SIGHUP from now on.
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn watch() -> io::Result<Stop> {
        let stop = Stop::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register_usize(signal, stop.0.clone(), signal as usize)?;
        }
        Ok(stop)
    }

    /// # Errors
    /// [`Stopped`], when a signal has come.
    pub fn check(&self) -> Result<(), Stopped> {
        match self.0.load(Ordering::Relaxed) {
            0 => Ok(()),
            signal => Err(Stopped(u8::try_from(signal).unwrap_or(u8::MAX))),
        }
    }
}

/// Version of the fio on this host, as fio reports it.
///
/// # Errors
/// When there is none.
pub fn version() -> anyhow::Result<String> {
    let out = match Command::new("fio").arg("--version").output() {
        Ok(out) => out,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            bail!("fio is not installed; fix: apt-get install fio")
        }
        Err(e) => return Err(e).context("cannot run fio"),
    };
    Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

/// Runs a job file with these variables, and returns fio's last report as JSON. `tell` gets each report.
///
/// # Errors
/// [`Stopped`], or when fio fails, with what it says.
pub fn run(
    job_file: &str,
    options: &[&str],
    variables: &[(&str, String)],
    stop: &Stop,
    mut tell: impl FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<String> {
    stop.check()?;
    // fio has a process group of its own: Ctrl-C reaches nfscope alone, which then ends fio and removes the files, in this order.
    let mut child = Command::new("fio")
        .arg("--output-format=json+")
        .args(options)
        .arg("-")
        .envs(variables.iter().map(|(k, v)| (k, v)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .context("cannot run fio; fix: apt-get install fio")?;
    let (sender, reports) = mpsc::channel();
    let output = read_reports(child.stdout.take(), sender);
    let errors = read(child.stderr.take());
    if let Some(mut stdin) = child.stdin.take() {
        // A fio that does not read its jobs reports the reason itself.
        let _ = stdin.write_all(job_file.as_bytes());
    }
    let mut last = None;
    let mut hear = |report: String| {
        let told = tell(&report);
        last = Some(report);
        told
    };
    let mut told = Ok(());
    let status = wait(&mut child, stop, || {
        for report in reports.try_iter() {
            if told.is_ok() {
                told = hear(report);
            }
        }
        told.is_ok()
    })?;
    // These checks come before the output is read to its end: a process that outlives fio would hold the pipes open.
    stop.check()?;
    told?;
    // The loop ends with the pipe.
    for report in &reports {
        hear(report)?;
    }
    let said = output.join().unwrap_or_default();
    let errors = errors.join().unwrap_or_default();
    if !status.success() {
        bail!("fio failed ({status}):\n{}", complaint(&errors, &said));
    }
    last.with_context(|| format!("fio reported nothing:\n{}", complaint(&errors, &said)))
}

/// Sends each report, which is an object of JSON. Returns the text between the reports: errors of jobs while they run.
fn read_reports(
    pipe: Option<impl Read + Send + 'static>,
    reports: Sender<String>,
) -> JoinHandle<String> {
    thread::spawn(move || {
        let (mut said, mut report) = (Vec::new(), Vec::new());
        let mut json = Braces::default();
        let Some(mut pipe) = pipe else {
            return String::new();
        };
        let mut bytes = vec![0; 64 << 10];
        while let Ok(n @ 1..) = pipe.read(&mut bytes) {
            for byte in &bytes[..n] {
                let inside = json.is_inside();
                json.next(*byte);
                match inside || json.is_inside() {
                    true => report.push(*byte),
                    false => said.push(*byte),
                }
                if inside && !json.is_inside() {
                    let whole = String::from_utf8_lossy(&report).into_owned();
                    let _ = reports.send(whole);
                    report.clear();
                }
            }
        }
        said.extend(report);
        String::from_utf8_lossy(&said).into_owned()
    })
}

/// Parser that finds where an object of JSON begins and ends.
#[derive(Default)]
struct Braces {
    depth: usize,
    in_text: bool,
    escaped: bool,
}

impl Braces {
    fn is_inside(&self) -> bool {
        self.depth > 0
    }

    fn next(&mut self, byte: u8) {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.in_text => self.escaped = true,
            b'"' if self.is_inside() => self.in_text = !self.in_text,
            b'{' if !self.in_text => self.depth += 1,
            b'}' if !self.in_text => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }
}

fn read(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Waits for fio, and ends it when a signal has come or `goes_on` returns false.
fn wait(
    child: &mut Child,
    stop: &Stop,
    mut goes_on: impl FnMut() -> bool,
) -> anyhow::Result<ExitStatus> {
    let mut signalled: Option<Instant> = None;
    loop {
        let goes_on = goes_on();
        if let Some(status) = child.try_wait().context("cannot wait for fio")? {
            return Ok(status);
        }
        let signal = match signalled {
            None if stop.check().is_err() || !goes_on => Some(Signal::TERM),
            Some(at) if at.elapsed() > STOP_TIMEOUT => Some(Signal::KILL),
            _ => None,
        };
        if let Some(signal) = signal {
            signalled = Some(Instant::now());
            if let Ok(id) = i32::try_from(child.id())
                && let Some(group) = Pid::from_raw(id)
            {
                let _ = kill_process_group(group, signal);
            }
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// The last lines of fio's output, each once: every job repeats the same words.
fn complaint(errors: &str, said: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for line in errors.lines().chain(said.lines()).map(str::trim_end) {
        if !line.is_empty() && !lines.contains(&line) {
            lines.push(line);
        }
    }
    match lines.len() {
        0 => "  (no output)".to_owned(),
        n => format!("  {}", lines[n.saturating_sub(MAX_LINES)..].join("\n  ")),
    }
}
