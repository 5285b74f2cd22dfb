//! The agent's own costs beside instructions of operations: its start, its memory, its scrapes. They are measured alike here and in
//! the machine.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use super::median::median;
use super::pages::{self, Pages};
use super::process::{cpu_seconds, kib};
use super::recording::Window;
use crate::http;

/// Time limit for attaching: text patching is slow under emulation.
const PATIENCE: Duration = Duration::from_secs(300);
/// The agent encodes a scrape at most four times a second, and answers later ones within that time with a copy.
const FRESH: Duration = Duration::from_millis(300);
const SCRAPES: usize = 9;

/// Start of an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Started {
    /// Seconds until the first answer.
    pub answered: f64,
    /// Seconds until the probes were attached, or were known to have to wait.
    pub attached: f64,
    /// CPU seconds of the agent until then. Elapsed time of an icount machine is not reliable while it is idle.
    pub busy: f64,
    /// Probe programs attached.
    pub programs: usize,
    /// Probe programs in all.
    pub of: usize,
    /// Probes of the attached programs.
    pub probes: Vec<String>,
}

/// Scrapes of one format.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Scrape {
    /// Requested format.
    pub format: String,
    /// Seconds from connecting to the last byte, the median.
    pub seconds: f64,
    /// CPU seconds of a scrape in the agent's main process, the mean.
    pub main: f64,
    /// CPU seconds of a scrape in the process that serves HTTP, the mean.
    pub http: f64,
    /// Bytes of the body.
    pub bytes: usize,
}

/// Scrapes, and the agent's memory after them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Scraped {
    /// By format.
    pub scrapes: Vec<Scrape>,
    /// Resident memory in KiB.
    pub resident: u64,
    /// Peak of the resident memory in KiB.
    pub peak: u64,
    /// Resident memory of the process that serves HTTP.
    pub http_resident: u64,
    /// Costs with pages open.
    pub pages: Vec<Pages>,
    /// Costs of a window of a recording; `None` on a host that times no operations, which cannot be recorded.
    pub window: Option<Window>,
}

/// An agent of this machine, killed when dropped.
#[derive(Debug)]
pub struct OwnAgent {
    child: Child,
    address: SocketAddr,
}

impl Drop for OwnAgent {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have ended
        let _ = self.child.wait();
    }
}

impl OwnAgent {
    /// Starts the program's agent and times its start.
    pub fn start(program: &Path, address: SocketAddr) -> Result<(OwnAgent, Started)> {
        let begun = Instant::now();
        let child = Command::new(program)
            .args(["agent", "--web.listen-address", &address.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        let mut agent = OwnAgent { child, address };
        let mut answered = None;
        let attached = loop {
            let health = http::get(address, "/healthz", &[]);
            let now = begun.elapsed();
            if let Ok(health) = health {
                answered.get_or_insert(now);
                if health.text().trim() != "attaching" {
                    break now;
                }
            }
            if let Some(status) = agent.child.try_wait()? {
                bail!("the agent ended at once: {status}; see: nfscope agent");
            }
            ensure!(now < PATIENCE, "the agent did not attach in {PATIENCE:?}");
            thread::sleep(Duration::from_millis(2));
        };
        let busy = cpu_seconds(agent.child.id())?;
        let probes = http::get(address, "/probes", &[])?.text();
        let probes: serde_json::Value = serde_json::from_str(&probes).context("/probes")?;
        let all = probes["probes"].as_array().cloned().unwrap_or_default();
        let on = |p: &&serde_json::Value| p["state"] == "attached" || p["state"] == "fallback";
        let on: Vec<_> = all.iter().filter(on).collect();
        let mut names: Vec<String> = on
            .iter()
            .filter_map(|p| Some(p["probe"].as_str()?.to_owned()))
            .collect();
        names.dedup();
        let started = Started {
            answered: answered.unwrap_or(attached).as_secs_f64(),
            attached: attached.as_secs_f64(),
            busy,
            programs: on.len(),
            of: all.len(),
            probes: names,
        };
        Ok((agent, started))
    }

    /// Scrapes the agent.
    pub fn scrape(&self) -> Result<Scraped> {
        scrape(self.address, self.child.id())
    }

    /// Stops the agent.
    pub fn stop(mut self) -> Result<()> {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM)?;
        let status = self.child.wait()?;
        ensure!(status.success(), "the agent, stopped, said {status}");
        Ok(())
    }
}

/// Scrapes an agent in both formats that Prometheus asks for.
pub fn scrape(address: SocketAddr, pid: u32) -> Result<Scraped> {
    const PROTOBUF: &str = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
    let http = serves_http(pid)?;
    let mut scrapes = Vec::new();
    for (format, accept) in [("text", "text/plain"), ("protobuf", PROTOBUF)] {
        let mut times = Vec::new();
        let mut bytes = 0;
        let before = [cpu_seconds(pid)?, cpu_seconds(http)?];
        for _ in 0..SCRAPES {
            thread::sleep(FRESH);
            let begun = Instant::now();
            let answer = http::get(address, "/metrics", &[("Accept", accept)])?;
            times.push(begun.elapsed().as_secs_f64());
            ensure!(answer.status == 200, "/metrics answered {}", answer.status);
            bytes = answer.body.len();
        }
        let each = |now: f64, before: f64| (now - before) / SCRAPES as f64;
        scrapes.push(Scrape {
            format: format.to_owned(),
            seconds: median(&mut times),
            main: each(cpu_seconds(pid)?, before[0]),
            http: each(cpu_seconds(http)?, before[1]),
            bytes,
        });
    }
    Ok(Scraped {
        scrapes,
        resident: kib(pid, "VmRSS:")?,
        peak: kib(pid, "VmHWM:")?,
        http_resident: kib(http, "VmRSS:")?,
        pages: pages::measure(address, [pid, http])?,
        window: None,
    })
}

/// Process ID of the agent's child that serves HTTP.
fn serves_http(agent: u32) -> Result<u32> {
    let of_agent = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let rest = stat.split_once("(nfscope-http) ").map(|(_, rest)| rest);
        rest.and_then(|rest| rest.split(' ').nth(1)?.parse().ok()) == Some(agent)
    };
    let mut all =
        fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    all.find(of_agent)
        .with_context(|| format!("process {agent} has no nfscope-http"))
}
