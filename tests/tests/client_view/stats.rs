//! Reader of mountstats, the kernel's own sums for each mount.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use lab::{Agent, Server};
use nfscope_model::Snapshot;

/// Row of mountstats for a procedure of a mount: RPCs, transmissions, timeouts, bytes sent and received, milliseconds of backlog,
/// round trip and the whole, errors.
pub type Row = [u64; 9];
/// Rows by mount point and procedure.
pub type Stats = BTreeMap<(String, String), Row>;

/// Rows of mountstats and snapshot of the agent, at a moment without any RPC.
pub fn settled(server: &Server, agent: &Agent) -> Result<(Stats, Snapshot)> {
    let text = || Ok(server.sh("cat /proc/self/mountstats")?.stdout);
    settled_by(text, || agent.snapshot())
}

/// Rows of a mount namespace's mountstats and snapshot of an agent, at a moment without any RPC.
pub fn settled_by(
    mountstats: impl Fn() -> Result<String>,
    snapshot: impl Fn() -> Result<Snapshot>,
) -> Result<(Stats, Snapshot)> {
    let mut last = stats(&mountstats()?)?;
    for _ in 0..60 {
        lab::pass(Duration::from_millis(500));
        let seen = snapshot()?;
        let now = stats(&mountstats()?)?;
        if now == last {
            return Ok((now, seen));
        }
        last = now;
    }
    bail!("RPCs keep coming without a load")
}

/// Reads a text of mountstats, and leaves out procedures that were not called.
pub fn stats(text: &str) -> Result<Stats> {
    let mut all = Stats::new();
    let (mut point, mut in_ops) = (None, false);
    for line in text.lines() {
        if line.starts_with("device ") {
            let words: Vec<_> = line.split(' ').collect();
            in_ops = false;
            point = words
                .get(4)
                .filter(|_| line.contains("with fstype nfs"))
                .map(|p| (*p).to_owned());
            // The line of nfsd's own file system is no mount of NFS.
            point = point.filter(|_| !line.contains("fstype nfsd"));
        } else if line.contains("per-op statistics") {
            in_ops = true;
        } else if let (Some(point), true, Some((op, numbers))) =
            (&point, in_ops, line.trim().split_once(": "))
        {
            let numbers: Vec<u64> = numbers
                .split_whitespace()
                .filter_map(|n| n.parse().ok())
                .collect();
            let row: Row = numbers.try_into().ok().with_context(|| line.to_owned())?;
            if row[0] > 0 {
                all.insert((point.clone(), op.to_ascii_lowercase()), row);
            }
        }
    }
    Ok(all)
}
