//! `lab window`: a window that the machine itself takes, by its own clock.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nfscope_model::Snapshot;
use serde::{Deserialize, Serialize};

use super::figures::CpuTimes;
use crate::begun;
use crate::http;

/// Readings of one moment.
#[derive(Debug, Serialize, Deserialize)]
pub struct Moment {
    /// The kernel's times of its CPUs.
    pub cpus: CpuTimes,
    /// Snapshot of the agent.
    pub seen: Snapshot,
}

/// Longest wait until loads have begun: on a frozen file system they never do.
const BEGINNING: Duration = Duration::from_secs(5);

/// Takes both ends of a window of this length. It begins `settling` after the loads.
pub fn take(
    port: u16,
    loads: &[PathBuf],
    settling: Duration,
    length: Duration,
) -> Result<[Moment; 2]> {
    // The first answer reads pages of the agent from the host, which takes no time of the machine's clock.
    moment(port)?;
    let missing = begun::wait_for(loads, BEGINNING);
    if missing > 0 {
        eprintln!("{missing} of {} loads have not begun", loads.len());
    }
    thread::sleep(settling);
    let before = moment(port)?;
    thread::sleep(length);
    Ok([before, moment(port)?])
}

fn moment(port: u16) -> Result<Moment> {
    let answer = http::get(
        SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        "/snapshot",
        &[],
    )?;
    ensure!(
        answer.status == 200,
        "the agent answered {}: {}",
        answer.status,
        answer.text()
    );
    let path = "/proc/stat";
    let text = fs::read_to_string(path).with_context(|| format!("reading {path}"))?;
    Ok(Moment {
        cpus: CpuTimes::parse(&text)?,
        seen: serde_json::from_slice(&answer.body).context("/snapshot is no snapshot")?,
    })
}
