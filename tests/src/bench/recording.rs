//! Cost of a recording.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::process::cpu_seconds;

/// CPU seconds of one window of a recording.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Window {
    /// CPU seconds of the recorded agent.
    pub agent: f64,
    /// CPU seconds of `nfscope baseline record`.
    pub recorder: f64,
}

const WINDOWS: u32 = 20;

/// Records an agent for a while in windows of half a second.
pub fn record(address: SocketAddr, pid: u32, program: &Path) -> Result<Window> {
    let store = std::env::temp_dir().join(format!("nfscope-bench-{}.db", std::process::id()));
    let before = cpu_seconds(pid)?;
    let mut recorder = Command::new(program)
        .args([
            "baseline",
            "record",
            "bench",
            "--interval",
            "500ms",
            "--for",
        ])
        .arg(format!("{}ms", WINDOWS * 500))
        .args(["--url", &format!("http://{address}"), "--store"])
        .arg(&store)
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("starting {}", program.display()))?;
    let mut own = 0.0;
    let status = loop {
        if let Some(status) = recorder.try_wait()? {
            break status;
        }
        // The recorder may end before its time is read: the last reading stays then.
        own = cpu_seconds(recorder.id()).unwrap_or(own).max(own);
        thread::sleep(Duration::from_millis(10));
    };
    ensure!(status.success(), "the recorder said {status}");
    let of_agent = cpu_seconds(pid)? - before;
    std::fs::remove_file(&store)?;
    let each = |seconds: f64| seconds / f64::from(WINDOWS);
    Ok(Window {
        agent: each(of_agent),
        recorder: each(own),
    })
}
