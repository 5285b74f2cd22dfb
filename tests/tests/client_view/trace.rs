//! Kernel traces of a client's waits and recalls.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use lab::Server;

/// Number of sleeps that have ended, and the sum of their seconds.
pub fn sleeps(trace: &str) -> Result<(u64, f64)> {
    let mut asleep = BTreeMap::new();
    let (mut ended, mut seconds) = (0, 0.0);
    for line in trace.lines().filter(|l| l.contains("ForeChannel")) {
        let mut words = line.split_whitespace();
        let at = words
            .clone()
            .find_map(|w| w.strip_suffix(':')?.parse::<f64>().ok());
        let task = words
            .find(|w| w.starts_with("task:"))
            .with_context(|| line.to_owned())?;
        let at = at.with_context(|| line.to_owned())?;
        if line.contains("rpc_task_sleep") {
            asleep.insert(task, at);
        } else {
            let since = asleep.remove(task);
            seconds += at - since.with_context(|| format!("it did not sleep: {line}"))?;
            ended += 1;
        }
    }
    Ok((ended, seconds))
}

pub fn recalls(trace: &str) -> u64 {
    trace
        .lines()
        .filter(|l| l.contains("nfs4_cb_recall"))
        .count() as u64
}

/// Trace of events, for this test alone.
pub struct Trace<'a> {
    server: &'a Server,
    events: Vec<String>,
}

const INSTANCE: &str = "/sys/kernel/tracing/instances/view";

impl Trace<'_> {
    pub fn begin<'a>(server: &'a Server, events: &[&str], filter: &str) -> Result<Trace<'a>> {
        let each = |event: &&str| {
            let filter = match filter {
                "" => String::new(),
                filter => format!("echo '{filter}' >events/{event}/filter\n"),
            };
            format!("{filter}echo 1 >events/{event}/enable\n")
        };
        let enable: String = events.iter().map(each).collect();
        server.sh(&format!(
            "set -e
             mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing
             mkdir -p {INSTANCE}; cd {INSTANCE}
             echo mono >trace_clock; echo 4096 >buffer_size_kb; echo >trace
             {enable}"
        ))?;
        Ok(Trace {
            server,
            events: events.iter().map(|e| (*e).to_owned()).collect(),
        })
    }

    /// Lines of the trace, in order of time.
    pub fn text(&self) -> Result<String> {
        let said = self
            .server
            .sh(&format!("grep -v '^#' {INSTANCE}/trace || true"))?;
        Ok(said.stdout)
    }

    pub fn end(self) -> Result<()> {
        for event in &self.events {
            self.server
                .sh(&format!("echo 0 >{INSTANCE}/events/{event}/enable"))?;
        }
        self.server.sh(&format!("rmdir {INSTANCE}")).map(drop)
    }
}
