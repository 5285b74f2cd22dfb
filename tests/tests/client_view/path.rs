//! `nfscope path` between the mounts of a machine and its own server.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use lab::{Agent, Output, Server};
use serde::Deserialize;

use super::stats::settled;
use super::{VERSIONS, reads};

/// Milliseconds that the network's device delays each packet to the client, so that no round trip is shorter.
const DELAY: u32 = 14;

/// JSON of `nfscope path`.
#[derive(Deserialize)]
struct Path {
    versions: Vec<PathVersion>,
}

#[derive(Deserialize)]
struct PathVersion {
    version: String,
    total: BTreeMap<String, f64>,
    ops: Vec<serde_json::Value>,
    server_rpcs: f64,
    alone: bool,
}

/// Output of `nfscope path` on a window in which each version writes a file.
fn during_a_load(server: &Server, agent: &Agent) -> Result<Output> {
    let client = server.client(0);
    let program = server.nfscope_path()?;
    let port = agent.port();
    let mut path = server.spawn(&format!(
        "exec {} path http://10.9.0.1:{port} --url http://127.0.0.1:{port} --duration 60s --json",
        program.display()
    ))?;
    // `nfscope path` needs a moment for its first readings.
    lab::pass(Duration::from_secs(4));
    for version in VERSIONS {
        let file = format!("{}/path{version}", client.mount_version(version)?);
        client.sh(&format!(
            "dd if=/dev/zero of={file} bs=4k count=20 oflag=direct 2>/dev/null; stat {file} >/dev/null"
        ))?;
    }
    path.wait(Duration::from_secs(300))
}

/// Checks that the parts of the way to the server and back add up to the client's own time in mountstats. The delay of the network's
/// device must be in the network's part.
pub fn adds_up(server: &Server, agent: &Agent) -> Result<()> {
    let client = server.client(0);
    client.unmount_all()?;
    for version in VERSIONS {
        client.mount_version(version)?;
    }
    reads(agent, "tracepoints")?;
    server.sh(&format!("tc qdisc add dev s0 root netem delay {DELAY}ms"))?;
    let mut attempts = 3;
    let (before, said) = loop {
        let before = settled(server, agent)?;
        let said = during_a_load(server, agent)?;
        attempts -= 1;
        // On a busy host the two agents may answer a second apart; the program then reports it, and is run again.
        if attempts == 0 || !said.stderr.contains("are not of the same time") {
            break (before, said);
        }
    };
    server.sh("tc qdisc del dev s0 root")?;
    ensure!(said.status == 0, "{said:?}");
    let after = settled(server, agent)?;
    println!("{}", said.stdout);
    let path: Path = serde_json::from_str(&said.stdout)?;
    ensure!(path.versions.len() == VERSIONS.len(), "{}", said.stdout);
    for v in &path.versions {
        let point = format!("v{}", v.version);
        let of_version = after.0.iter().filter(|((p, _), _)| p.ends_with(&point));
        let (mut rpcs, mut whole, mut ops) = (0, 0, 0);
        for (key, now) in of_version {
            let old = before.0.get(key).copied().unwrap_or_default();
            rpcs += now[0] - old[0];
            whole += now[7] - old[7];
            ops += u64::from(now[0] > old[0]);
        }
        let of = |name: &str| v.total.get(name).copied().unwrap_or(f64::NAN);
        let parts = [
            "backlog_seconds",
            "network_seconds",
            "queue_seconds",
            "receive_seconds",
            "execute_seconds",
            "reply_seconds",
            "completion_seconds",
        ]
        .map(of);
        let sum: f64 = parts.iter().sum();
        let whole = whole as f64 / 1e3;
        println!(
            "{}: {rpcs} RPCs, {} by path, {} at the server; {sum} s, {whole} s by mountstats",
            v.version,
            of("rpcs"),
            v.server_rpcs
        );
        ensure!(
            (sum - of("seconds")).abs() < 1e-6,
            "{}: {parts:?}",
            v.version
        );
        // mountstats cuts off a part of a millisecond of each procedure, and has no NFSACL.
        let slack = 0.01 * whole + 0.001 * ops as f64;
        ensure!(
            (sum - whole).abs() <= slack || v.version == "3",
            "{}: {sum} s, {whole} s",
            v.version
        );
        ensure!(sum >= whole - slack, "{}: {sum} s, {whole} s", v.version);
        ensure!(
            v.alone && of("rpcs") >= 20.0 && v.ops.len() > 1,
            "{}",
            said.stdout
        );
        let least = f64::from(DELAY) / 1e3 * of("rpcs");
        ensure!(
            of("network_seconds") >= least,
            "{}: {parts:?}, at least {least} s",
            v.version
        );
    }
    client.unmount_all()
}
