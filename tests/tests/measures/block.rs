//! Block requests, one by one, against the kernel's own trace of them.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use lab::{Agent, Server};
use nfscope_model::family;
use nfscope_model::{Histogram, Sample, Snapshot};

use super::{FAST, SLOW};

/// Trace instance for this test alone (Documentation/trace/ftrace.rst, Instances).
const TRACE: &str = "/sys/kernel/tracing/instances/reference";

/// The kernel's own trace and the agent at one moment.
///
/// No BPF program is a reference for every request: if the host takes the CPU away from a task that looks up a map, the kernel skips
/// such programs at tracepoints until that task goes on (bpf_disable_instrumentation()).
pub struct Watched {
    seen: Snapshot,
}

/// Request of the kernel's trace.
#[derive(Debug)]
struct Request {
    device: String,
    /// End of the request, by the monotonic clock.
    at: Duration,
    op: &'static str,
    fua: bool,
    bytes: u64,
    seconds: f64,
}

impl Watched {
    /// Begins the comparison: from here on trace and agent must see the same requests.
    pub fn begin(server: &Server, agent: &Agent) -> Result<Watched> {
        server.sh(&format!(
            "set -e
             mkdir {TRACE}
             cd {TRACE}
             echo mono > trace_clock
             echo 8192 > buffer_size_kb
             echo 1 > events/block/block_rq_issue/enable
             echo 1 > events/block/block_rq_complete/enable"
        ))?;
        Ok(Watched {
            seen: quiet(server, agent)?,
        })
    }
}

/// Reads, writes, flushes and discards of many sizes: over NFS to the slow device, and directly to the fast one.
pub fn traffic(server: &Server) -> Result<()> {
    let mount = server.client(0).mount_v3()?;
    server.client(0).sh(&format!(
        "set -e
         dd if=/dev/zero of={mount}/traffic bs=4k count=10 oflag=direct status=none
         dd if=/dev/zero of={mount}/traffic bs=1M count=8 conv=fsync status=none
         rm {mount}/traffic"
    ))?;
    server.sh(&format!(
        "set -e
         dd if=/dev/zero of=/dev/{FAST} bs=4k count=200 oflag=direct status=none
         dd if=/dev/zero of=/dev/{FAST} bs=1M count=16 oflag=direct status=none
         dd if=/dev/{FAST} of=/dev/null bs=4k count=200 iflag=direct status=none
         dd if=/dev/{FAST} of=/dev/null bs=1M count=16 iflag=direct status=none
         for i in $(seq 10); do dd if=/dev/zero of=/dev/{FAST} bs=8k count=1 seek=$i conv=fsync status=none; done
         fstrim /run/exp"
    ))?;
    Ok(())
}

/// Waits until everything is written, no request is under way, and none follows.
fn quiet(server: &Server, agent: &Agent) -> Result<Snapshot> {
    server.sh("sync")?;
    let mut last = agent.snapshot()?;
    for _ in 0..60 {
        lab::pass(Duration::from_millis(700));
        let now = agent.snapshot()?;
        let requests = |s: &Snapshot| s.series(&family::BLOCK_DEVICE.info).to_vec();
        let in_flight = now.series(&family::BLOCK_INFLIGHT.info).iter();
        let idle = in_flight
            .into_iter()
            .all(|s| s.sample == Sample::Gauge(0.0));
        if idle && requests(&now) == requests(&last) {
            return Ok(now);
        }
        last = now;
    }
    bail!(
        "block requests keep coming without a load: {:?}",
        last.series(&family::BLOCK_INFLIGHT.info)
    )
}

impl Watched {
    pub fn agrees_with(self, server: &Server, agent: &Agent) -> Result<()> {
        let seen = quiet(server, agent)?.since(&self.seen).delta;
        let trace = server.sh(&format!(
            "set -e
             cd {TRACE}
             echo 0 > tracing_on
             cat per_cpu/cpu*/stats
             cat trace"
        ))?;
        let counters = ["overrun: ", "commit overrun: ", "dropped events: "];
        for lost in trace
            .stdout
            .lines()
            .filter(|l| counters.iter().any(|c| l.starts_with(c)))
        {
            assert!(lost.ends_with(": 0"), "the trace is not whole: {lost}");
        }
        let mut all = requests(&trace.stdout)?;
        // Requests under way at the trace's begin are left out.
        all.retain(|r| r.at > self.seen.at);
        let devices = devices(server)?;
        for device in [SLOW, FAST] {
            let on_it = |r: &&Request| devices.get(&r.device).is_some_and(|d| d == device);
            let requests: Vec<&Request> = all.iter().filter(on_it).collect();
            same_requests(device, &requests, &seen);
        }
        Ok(())
    }
}

/// From 7.x on the kernel may skip a program, and with it a request; it counts the skipped runs. Without any, all requests must be
/// there.
fn same_requests(device: &str, requests: &[&Request], seen: &Snapshot) {
    let skipped = seen.value(&family::EVENTS_LOST, ["block", "recursion"]);
    let skipped = skipped.unwrap_or(0.0) as u64;
    for op in ["read", "write", "flush", "discard", "other"] {
        let truth: Vec<&Request> = requests.iter().copied().filter(|r| r.op == op).collect();
        let measured = seen.hist(&family::BLOCK_DEVICE, [device, op]);
        let count = measured.map_or(0, Histogram::count);
        let all = truth.len() as u64;
        assert!(
            (all.saturating_sub(skipped)..=all).contains(&count),
            "{device}: {count} {op} requests, but {all} as traced, and {skipped} programs skipped"
        );
        let Some(measured) = measured.filter(|_| count > 0) else {
            continue;
        };
        let bytes: u64 = truth.iter().map(|r| r.bytes).sum();
        // A flush has no bytes.
        let reported = seen
            .value(&family::BLOCK_BYTES, [device, op])
            .unwrap_or(0.0);
        match count == all || bytes == 0 {
            true => assert_eq!(reported, bytes as f64, "{device}: bytes of {op}"),
            false => assert!(reported < bytes as f64, "{device}: bytes of {op}"),
        }
        let total: f64 = truth.iter().map(|r| r.seconds).sum();
        println!(
            "{device} {op}: {count} requests, {bytes} bytes, {:.3} ms, traced {:.3} ms ({:+.2} %); p50 {:.3} ms, p99 {:.3} ms",
            measured.sum * 1e3,
            total * 1e3,
            (measured.sum / total - 1.0) * 100.0,
            measured.quantile(0.5).unwrap_or_default() * 1e3,
            measured.quantile(0.99).unwrap_or_default() * 1e3,
        );
        same_time(&format!("{device} {op}"), &truth, measured);
    }
    let fua = requests.iter().filter(|r| r.fua).count() as f64;
    println!("{device}: {fua} with FUA");
    let reported = seen.value(&family::BLOCK_FUA, [device]).unwrap_or(0.0);
    assert!(
        (fua - skipped as f64..=fua).contains(&reported),
        "{device}: {reported} with FUA"
    );
    // A load without these operations would prove nothing.
    for op in ["write", "flush"] {
        assert!(
            requests.iter().any(|r| r.op == op),
            "{device}: no {op} at all"
        );
    }
    assert!(device != SLOW || fua > 0.0, "{device}: no FUA at all");
}

/// Compares times. Trace and agent read the clock one after the other, so each may see a request a little earlier or later; and if
/// the host takes the CPU away between the two, later by a time slice of the host. At every bucket's edge the histogram must have
/// counted as many requests as there were, but for those near the edge, and one in a hundred. Its sum must fit its buckets.
fn same_time(what: &str, truth: &[&Request], measured: &Histogram) {
    const APART: f64 = 50e-6;
    const TURN: f64 = 10e-3;
    let torn = truth.len().div_ceil(100) as u64;
    let skipped = truth.len() as u64 - measured.count();
    let total: f64 = truth.iter().map(|r| r.seconds).sum();
    let longest = truth.iter().map(|r| r.seconds).fold(0.0, f64::max);
    let apart = (measured.sum - total).abs();
    let differ = APART * truth.len() as f64 + TURN * torn as f64 + longest * skipped as f64;
    assert!(
        apart <= 0.03 * total + differ,
        "{what}: {} s, but {total} s as traced",
        measured.sum
    );
    let counted = || measured.counts.iter().enumerate().filter(|(_, n)| **n > 0);
    let sum = |edge: &dyn Fn(usize) -> f64| counted().map(|(i, n)| edge(i) * *n as f64).sum();
    let least: f64 = sum(&|i| i.checked_sub(1).map_or(0.0, |i| measured.scheme.upper(i)));
    let most: f64 = sum(&|i| measured.scheme.upper(i));
    assert!(
        (least * 0.999..=most * 1.001).contains(&measured.sum),
        "{what}: {} s, but its buckets hold {least} to {most} s",
        measured.sum
    );
    let mut so_far = 0;
    for (i, n) in measured.counts.iter().enumerate() {
        so_far += n;
        let edge = measured.scheme.upper(i);
        let up_to = |limit: f64| truth.iter().filter(|r| r.seconds <= limit).count() as u64;
        let least = up_to(edge * 0.97 - APART).saturating_sub(torn + skipped);
        let most = up_to(edge * 1.03 + APART) + torn;
        assert!(
            (least..=most).contains(&so_far),
            "{what}: {so_far} took up to {edge} s, but {least} to {most} as traced"
        );
    }
}

/// Names of block devices by their numbers in a trace: `<major>,<minor>`.
fn devices(server: &Server) -> Result<BTreeMap<String, String>> {
    let listed = server
        .sh("cd /sys/block; for d in *; do echo $(cat $d/dev) $d; done")?
        .stdout;
    listed
        .lines()
        .map(|line| {
            let (number, name) = line.split_once(' ').context("a device without a number")?;
            Ok((number.replace(':', ","), name.to_owned()))
        })
        .collect()
}

/// Identity of a request: device, letters, first sector and number of sectors. A flush has no sector: the kernel shows -1 at its end,
/// and 0 at its beginning, where it is a request without one.
type Key<'a> = (&'a str, &'a str, u64, u64);

/// Requests of a trace, in the order of their ends.
fn requests(trace: &str) -> Result<Vec<Request>> {
    let mut since: BTreeMap<Key, Duration> = BTreeMap::new();
    let mut all = Vec::new();
    for line in trace.lines() {
        let Some((before, event)) = line.split_once(": block_rq_") else {
            continue;
        };
        let (kind, key) = event.split_once(": ").context("an event without fields")?;
        let key = key_of(key).with_context(|| format!("not understood: {line}"))?;
        let at = before.rsplit(' ').next().context("no time")?;
        let at = Duration::try_from_secs_f64(at.parse()?)?;
        match kind {
            "issue" => {
                since.insert(key, at);
            }
            // An end without bytes and without an issue is the second end of a request that carried a flush.
            _ => all.extend(since.remove(&key).map(|since| request(key, at, at - since))),
        }
    }
    Ok(all)
}

/// Reads the key of a line: `8,0 W 4096 () 2048 + 8 [dd]` at the beginning, `8,0 W () 2048 + 8 [0]` at the end, with the priority
/// before the brackets since Linux 6.7.
fn key_of(fields: &str) -> Option<Key<'_>> {
    let (before, after) = fields.split_once('(')?;
    let (device, rest) = before.split_once(' ')?;
    let mut after = after.split_once(") ")?.1.split(' ');
    let sector = after.next()?.parse().ok()?;
    let sectors = after.nth(1)?.parse().ok()?;
    Some((
        device,
        rest.split(' ').next()?,
        if sectors == 0 { 0 } else { sector },
        sectors,
    ))
}

/// Reads the letters (blk_fill_rwbs() in the kernel): F for a flush before, the operation, F for FUA, and hints.
fn request((device, rwbs, _, sectors): Key, at: Duration, took: Duration) -> Request {
    let (op, hints) = match rwbs.split_at_checked(1) {
        Some(("F", rest)) if rest.starts_with(['W', 'R', 'D', 'F', 'N']) => rest.split_at(1),
        Some(split) => split,
        None => (rwbs, ""),
    };
    Request {
        device: device.to_owned(),
        at,
        op: match op {
            "R" => "read",
            "W" => "write",
            "F" => "flush",
            "D" => "discard",
            _ => "other",
        },
        fua: hints.contains('F'),
        bytes: sectors * 512,
        seconds: took.as_secs_f64(),
    }
}
