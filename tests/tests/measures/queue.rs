//! Queue time under load: two threads, eight writers on one connection. The client knows how long each call took, and the kernel how
//! long a thread had it in hand; the rest is the wait for a thread.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use lab::raw::pipeline::Timed;
use lab::reconcile::{agree, missed};
use lab::{Agent, Server};
use nfscope_model::family;

use crate::client_view::trace::Trace;

const WRITERS: usize = 8;
const WRITES: usize = 15;

pub fn is_what_the_client_waited(server: &Server, agent: &Agent) -> Result<()> {
    server.client(0).unmount_all()?;
    let before = lab::reconcile::settled(server, &[agent])?;
    // The trace has a buffer of its own: the common one stays small on 6.1 once there has been another (ring_buffer_expanded).
    let events = ["sunrpc/svc_stats_latency", "sunrpc/svc_xprt_dequeue"];
    let tracing = Trace::begin(server, &events, "")?;
    let output = server.lab(&format!("pipeline --writers {WRITERS} --writes {WRITES}"))?;
    let calls: Vec<Timed> = serde_json::from_str(&output.stdout)?;
    let trace = tracing.text()?;
    tracing.end()?;
    let after = lab::reconcile::settled(server, &[agent])?;
    let seen = lab::reconcile::window(&before, &after, 0).1;

    let served = executions(&trace)?;
    let mut waited = 0.0;
    for call in &calls {
        let served = served
            .get(&call.xid)
            .with_context(|| format!("call {:#x} is not in the kernel's trace", call.xid))?;
        waited += call.seconds - served;
    }
    let queue = lab::reconcile::merged(&seen, &family::RPC_QUEUE.info, |_| true)
        .context("no queue time")?;
    let calls_n = calls.len() as f64;
    let (measured, truth) = (queue.sum / calls_n, waited / calls_n);
    let latency = calls.iter().map(|c| c.seconds).sum::<f64>() / calls_n;
    let wakeup = wakeups(&trace);
    println!(
        "queue: mean {:.1} ms, by client and kernel {:.1} ms ({:+.1} %); latency {:.1} ms; the kernel's wakeup-us {:.1} ms",
        measured * 1e3,
        truth * 1e3,
        (measured / truth - 1.0) * 100.0,
        latency * 1e3,
        wakeup * 1e3
    );
    // Short waits would mean that there was no load, and would prove nothing.
    assert!(
        truth > 2.0 * super::DELAY.as_secs_f64(),
        "calls waited only {truth} s"
    );
    assert!(
        (measured / truth - 1.0).abs() <= 0.10,
        "mean queue time {measured} s, but {truth} s by the client's clock"
    );
    // A connection's first call may lie on the socket before the server has accepted the connection; the agent counts it as unknown.
    let lost = lab::reconcile::lost(&seen);
    let unknown = lost.get("nfsd arrival_unknown").copied().unwrap_or(0.0) as u64;
    let told = queue.count() + unknown;
    agree(
        "calls that have a queue time or are said to have none",
        told,
        calls.len() as u64,
        missed(agent, "nfsd")?,
    )?;
    assert!(
        unknown <= 1 || lost.contains_key("nfsd recursion"),
        "{lost:?}"
    );
    Ok(())
}

/// Clients that all come at once, each with a connection of its own: most first calls lie on their sockets before a thread accepts
/// the connection. The clients' own clocks measure the waits.
pub fn of_first_calls_is_known(server: &Server, agent: &Agent) -> Result<()> {
    let before = lab::reconcile::settled(server, &[agent])?;
    let clients =
        server.run_clients("write --from 127.20.0.1 --clients 24 --at-once 24 --times 1")?;
    let after = lab::reconcile::settled(server, &[agent])?;
    let seen = lab::reconcile::window(&before, &after, 0).1;
    let of = |info| lab::reconcile::merged(&seen, info, |_| true).context("no requests");
    let (residence, queue) = (
        of(&family::RPC_DURATION.info)?,
        of(&family::RPC_QUEUE.info)?,
    );
    let truth: f64 = clients.iter().map(|c| c.seconds).sum();
    let lost = lab::reconcile::lost(&seen);
    println!(
        "first calls: {} of {} requests have a queue time, {:.3} s in all; {:.3} s in the server, {truth:.3} s by the clients' clocks; lost {lost:?}",
        queue.count(),
        residence.count(),
        queue.sum,
        residence.sum
    );
    // A second thread may read a call before the first one has reported the connection.
    let unknown = lost.get("nfsd arrival_unknown").copied().unwrap_or(0.0) as u64;
    agree(
        "requests that have a queue time or are said to have none",
        queue.count() + unknown,
        residence.count(),
        missed(agent, "nfsd")?,
    )?;
    assert!(
        unknown <= clients.len() as u64 / 4 || lost.contains_key("nfsd recursion"),
        "{lost:?}"
    );
    assert!(
        (0.85..=1.02).contains(&(residence.sum / truth)),
        "{} s in the server, {truth} s by the clients' clocks",
        residence.sum
    );
    Ok(())
}

/// Seconds in hand by transaction id: `svc_stats_latency: xid=0x... execute-us=...`.
fn executions(trace: &str) -> Result<BTreeMap<u32, f64>> {
    let mut by_xid = BTreeMap::new();
    for line in trace.lines().filter(|l| l.contains("svc_stats_latency:")) {
        let xid = field(line, "xid=0x").and_then(|x| u32::from_str_radix(x, 16).ok());
        let us = field(line, "execute-us=").and_then(|us| us.parse::<f64>().ok());
        let (xid, us) = xid
            .zip(us)
            .with_context(|| format!("not understood: {line}"))?;
        by_xid.insert(xid, us / 1e6);
    }
    Ok(by_xid)
}

/// Mean of a clock that looks like the queue time and is not: `svc_xprt_dequeue: ... wakeup-us=...`.
fn wakeups(trace: &str) -> f64 {
    let us = trace.lines().filter(|l| l.contains("svc_xprt_dequeue:"));
    let us: Vec<f64> = us
        .filter_map(|l| field(l, "wakeup-us=")?.parse().ok())
        .collect();
    us.iter().sum::<f64>() / us.len().max(1) as f64 / 1e6
}

fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split_once(name)?.1.split_whitespace().next()
}
