//! What recording takes, and comparing what was recorded.

#[path = "../../../agent/nfscope/tests/fixture/long_recording.rs"]
#[allow(missing_docs, clippy::unwrap_used)]
mod long_recording;

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nfscope_baseline::store::Store;
use serde::{Deserialize, Serialize};

use super::agent::busy;

/// One window of a recording, in processor seconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Window {
    /// Of the agent that is asked.
    pub agent: f64,
    /// Of `nfscope baseline record`.
    pub recorder: f64,
}

const WINDOWS: u32 = 20;

/// Records an agent for a while in windows of half a second.
pub fn record(address: SocketAddr, pid: u32, program: &Path) -> Result<Window> {
    let store = std::env::temp_dir().join(format!("nfscope-bench-{}.db", std::process::id()));
    let before = busy(pid)?;
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
        // It may end meanwhile.
        own = busy(recorder.id()).unwrap_or(own).max(own);
        thread::sleep(Duration::from_millis(10));
    };
    ensure!(status.success(), "the recorder said {status}");
    let of_agent = busy(pid)? - before;
    std::fs::remove_file(&store)?;
    let each = |seconds: f64| seconds / f64::from(WINDOWS);
    Ok(Window {
        agent: each(of_agent),
        recorder: each(own),
    })
}

/// Two days, compared.
#[derive(Clone, Debug)]
pub struct Days {
    /// Bytes of the store, of one day.
    pub bytes: u64,
    /// Seconds of `nfscope baseline compare`, the median of five.
    pub seconds: f64,
}

/// Compares two recordings of 24 hours.
pub fn days(program: &Path) -> Result<Days> {
    let dir = std::env::temp_dir().join(format!("nfscope-bench-{}", std::process::id()));
    let path = dir.join("store.db");
    let mut store = Store::create(&path)?;
    for (name, seed) in [("monday", 1), ("tuesday", 2)] {
        store.put(&long_recording::recording(name, seed, long_recording::DAY))?;
    }
    drop(store);
    let bytes = std::fs::metadata(&path)?.len() / 2;
    let mut times = Vec::new();
    for _ in 0..5 {
        let begun = Instant::now();
        let output = Command::new(program)
            .args(["baseline", "compare", "monday", "tuesday", "--store"])
            .arg(&path)
            .output()?;
        ensure!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        times.push(begun.elapsed().as_secs_f64());
    }
    std::fs::remove_dir_all(&dir)?;
    Ok(Days {
        bytes,
        seconds: super::median(&mut times),
    })
}
