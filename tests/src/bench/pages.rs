//! Cost of the page at `/` for the agent: with no page open, with one, and with the maximum of eight.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::process::{cpu_seconds, kib};
use crate::http;

/// Numbers of open pages.
const OPEN: [usize; 3] = [0, 1, 8];
/// Interval at which a page asks for windows; it asks for findings and health every fifth time.
const INTERVAL: Duration = Duration::from_secs(1);
const FINDINGS: u32 = 5;
/// Time before the measurement: pages first get a quarter of an hour.
const BEGIN: Duration = Duration::from_secs(7);
/// Length of each measurement.
const LENGTH: Duration = Duration::from_secs(20);

/// Costs of the agent and of the process that serves HTTP with a number of open pages.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pages {
    /// Number of open pages.
    pub open: usize,
    /// CPU seconds a second, of both processes.
    pub busy: [f64; 2],
    /// Resident memory in KiB, of both processes.
    pub resident: [u64; 2],
}

/// Measures the agent at this address. Its processes are `both`: the agent itself, and the one that serves HTTP.
pub fn measure(address: SocketAddr, both: [u32; 2]) -> Result<Vec<Pages>> {
    OPEN.into_iter().map(|n| open(address, both, n)).collect()
}

fn open(address: SocketAddr, both: [u32; 2], n: usize) -> Result<Pages> {
    let closed = AtomicBool::new(false);
    thread::scope(|s| {
        let pages: Vec<_> = (0..n).map(|_| s.spawn(|| page(address, &closed))).collect();
        let measured = (|| {
            thread::sleep(BEGIN);
            let before = [cpu_seconds(both[0])?, cpu_seconds(both[1])?];
            let begun = Instant::now();
            thread::sleep(LENGTH);
            let seconds = begun.elapsed().as_secs_f64();
            let busy = [0, 1].map(|i| Ok((cpu_seconds(both[i])? - before[i]) / seconds));
            let [agent, http]: [Result<f64>; 2] = busy;
            Ok(Pages {
                open: n,
                busy: [agent?, http?],
                resident: [kib(both[0], "VmRSS:")?, kib(both[1], "VmRSS:")?],
            })
        })();
        closed.store(true, Ordering::Relaxed);
        for page in pages {
            page.join().ok().context("a page panicked")??;
        }
        measured
    })
}

/// Plays a page, with the requests of `agent/serve/src/http/page/main.js` each second.
fn page(address: SocketAddr, closed: &AtomicBool) -> Result<()> {
    let get = |path: &str| -> Result<Vec<u8>> {
        let answer = http::get(address, path, &[])?;
        ensure!(
            answer.status == 200 || path == "/healthz",
            "{path}: {}",
            answer.text()
        );
        Ok(answer.body)
    };
    let mut since = String::new();
    for n in 0.. {
        loop {
            let news: serde_json::Value =
                serde_json::from_slice(&get(&format!("/windows{since}"))?)?;
            since = format!("?since={}", news["since"].as_str().context("since")?);
            if news["more"] != true {
                break;
            }
        }
        if n % FINDINGS == 0 {
            get("/findings")?;
            get("/healthz")?;
        }
        if closed.load(Ordering::Relaxed) {
            break;
        }
        thread::sleep(INTERVAL);
    }
    Ok(())
}
