//! Block requests, one by one: bpftrace runs beside the agent and sees what it sees.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use lab::{Agent, Running, Server};
use nfscope::model::family;
use nfscope::model::{Histogram, Sample, Snapshot};

use crate::{FAST, SLOW};

/// A flush has no sector: -1 at its end, and 0 at its beginning, where the kernel shows it as a request without one.
///
/// The kernel skips a bpftrace program that interrupts another one on its processor. A request whose beginning was
/// skipped ends with 0 ns; one whose end was skipped is left in the map, which bpftrace prints when it ends. Both are
/// requests, but took nobody knows how long.
const SCRIPT: &str = r#"
BEGIN { printf("ready\n"); }
tracepoint:block:block_rq_issue {
  @since[args->dev, args->nr_sector ? args->sector : 0, args->nr_sector, args->rwbs] = nsecs;
}
tracepoint:block:block_rq_complete {
  $now = nsecs;
  $sector = args->nr_sector ? args->sector : 0;
  $since = @since[args->dev, $sector, args->nr_sector, args->rwbs];
  printf("%d %s %d %llu %llu\n", args->dev, args->rwbs, args->nr_sector, $now, $since ? $now - $since : 0);
  delete(@since[args->dev, $sector, args->nr_sector, args->rwbs]);
}
"#;

/// bpftrace, starting.
pub struct Witness {
    bpftrace: Running,
}

/// bpftrace and the agent at one moment.
pub struct Watched {
    bpftrace: Running,
    seen: Snapshot,
}

/// One request, as bpftrace saw it.
#[derive(Debug)]
struct Request {
    device: String,
    /// When it ended, or when it began if its end was not seen.
    at: Duration,
    op: &'static str,
    fua: bool,
    bytes: u64,
    seconds: Option<f64>,
}

impl Witness {
    pub fn start(server: &Server) -> Result<Witness> {
        let script = server.dir().join("witness.bt");
        std::fs::write(&script, SCRIPT)?;
        Ok(Witness {
            bpftrace: server.spawn(&format!("exec bpftrace -B line {}", script.display()))?,
        })
    }

    /// From here on both must see the same.
    pub fn begin(self, server: &Server, agent: &Agent) -> Result<Watched> {
        let started = Instant::now();
        while !self.bpftrace.output_so_far().0.contains("ready\n") {
            if self.bpftrace.has_ended() || started.elapsed() > Duration::from_secs(90) {
                bail!(
                    "bpftrace did not start: {:?}",
                    self.bpftrace.output_so_far()
                );
            }
            thread::sleep(Duration::from_millis(200));
        }
        let seen = quiet(server, agent)?;
        Ok(Watched {
            bpftrace: self.bpftrace,
            seen,
        })
    }
}

/// Reads, writes, flushes and discards of many sizes: NFS over the slow device, and past NFS to the fast one.
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

/// Everything written, nothing under way, and nothing coming.
fn quiet(server: &Server, agent: &Agent) -> Result<Snapshot> {
    server.sh("sync")?;
    let mut last = agent.snapshot()?;
    for _ in 0..60 {
        thread::sleep(Duration::from_millis(700));
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
    pub fn agrees_with(mut self, server: &Server, agent: &Agent) -> Result<()> {
        let seen = quiet(server, agent)?.since(&self.seen).delta;
        self.bpftrace.signal(2)?;
        let output = self.bpftrace.wait(Duration::from_secs(120))?;
        assert!(
            !output.stderr.contains("Lost"),
            "bpftrace lost events: {}",
            output.stderr
        );
        let all = output.stdout.lines().filter_map(|l| parse(l).transpose());
        let mut all: Vec<Request> = all.collect::<Result<_>>()?;
        // Both use the monotonic clock. bpftrace attached while requests were under way.
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

fn same_requests(device: &str, requests: &[&Request], seen: &Snapshot) {
    for op in ["read", "write", "flush", "discard", "other"] {
        let truth: Vec<&Request> = requests.iter().copied().filter(|r| r.op == op).collect();
        let measured = seen.hist(&family::BLOCK_DEVICE, [device, op]);
        let count = measured.map_or(0, Histogram::count);
        let untimed: Vec<_> = truth.iter().filter(|r| r.seconds.is_none()).collect();
        assert_eq!(
            count,
            truth.len() as u64,
            "{device}: {op} requests; not timed by bpftrace: {untimed:?}"
        );
        let Some(measured) = measured.filter(|_| count > 0) else {
            continue;
        };
        let bytes: u64 = truth.iter().map(|r| r.bytes).sum();
        assert_eq!(
            seen.value(&family::BLOCK_BYTES, [device, op]),
            Some(bytes as f64),
            "{device}: bytes of {op}"
        );
        let total: f64 = truth.iter().filter_map(|r| r.seconds).sum();
        println!(
            "{device} {op}: {count} requests, {bytes} bytes, {:.3} ms, bpftrace {:.3} ms ({:+.2} %); p50 {:.3} ms, p99 {:.3} ms",
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
    assert_eq!(
        seen.value(&family::BLOCK_FUA, [device]).unwrap_or(0.0),
        fua,
        "{device}: FUA"
    );
    // Or the load was too small to prove anything.
    for op in ["write", "flush"] {
        assert!(
            requests.iter().any(|r| r.op == op),
            "{device}: no {op} at all"
        );
    }
    assert!(device != SLOW || fua > 0.0, "{device}: no FUA at all");
}

/// The two look at the clock one after the other, so each may see a request a little earlier or later, and where the host
/// takes the processor away between the two, later by a turn of the host's. At every bucket's edge the histogram must still
/// have counted as many as there were, give or take those so near to the edge, and one in a hundred; and its sum must be one
/// of what it has counted.
fn same_time(what: &str, truth: &[&Request], measured: &Histogram) {
    const APART: f64 = 50e-6;
    const TURN: f64 = 10e-3;
    let known: Vec<f64> = truth.iter().filter_map(|r| r.seconds).collect();
    let unknown = truth.len() - known.len();
    assert!(
        unknown <= 1 + truth.len() / 50,
        "{what}: bpftrace could not time {unknown}"
    );
    let torn = (truth.len().div_ceil(100) + unknown) as u64;
    let total = known.iter().sum::<f64>() / known.len().max(1) as f64 * truth.len() as f64;
    let apart = (measured.sum - total).abs();
    assert!(
        apart <= 0.03 * total + APART * truth.len() as f64 + TURN * torn as f64,
        "{what}: {} s, but {total} s by bpftrace",
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
        let up_to = |limit: f64| known.iter().filter(|s| **s <= limit).count() as u64;
        let least = up_to(edge * 0.97 - APART).saturating_sub(torn);
        let most = up_to(edge * 1.03 + APART) + torn;
        assert!(
            (least..=most).contains(&so_far),
            "{what}: {so_far} took up to {edge} s, but {least} to {most} by bpftrace"
        );
    }
}

/// Names of block devices by the number that tracepoints carry.
fn devices(server: &Server) -> Result<BTreeMap<String, String>> {
    let listed = server
        .sh("cd /sys/block; for d in *; do echo $(cat $d/dev) $d; done")?
        .stdout;
    listed
        .lines()
        .map(|line| {
            let (number, name) = line.split_once(' ').context("a device without a number")?;
            let (major, minor) = number.split_once(':').context("a number without a colon")?;
            let number = major.parse::<u64>()? << 20 | minor.parse::<u64>()?;
            Ok((number.to_string(), name.to_owned()))
        })
        .collect()
}

/// `<device> <rwbs> <sectors> <end> <ns>`, or what is left: `@since[<device>, <sector>, <sectors>, <rwbs>]: <begin>`. `None`
/// for what is no request: bpftrace's own words, and the second end of a request that carried a flush, without bytes.
///
/// The letters (blk_fill_rwbs() in the kernel): F for a flush before, the operation, F for FUA, and hints.
fn parse(line: &str) -> Result<Option<Request>> {
    let (device, rwbs, sectors, at, ns) = match line.strip_prefix("@since[") {
        Some(left) => {
            let (key, at) = left.split_once("]: ").context("a key without a value")?;
            let words: Vec<&str> = key.split(", ").collect();
            let [device, _, sectors, rwbs] = words[..] else {
                bail!("not understood: {line}")
            };
            (device, rwbs, sectors, at.parse()?, 0)
        }
        None => {
            let words: Vec<&str> = line.split(' ').collect();
            let [device, rwbs, sectors, at, ns] = words[..] else {
                return Ok(None);
            };
            let (Ok(at), Ok(ns)) = (at.parse(), ns.parse::<u64>()) else {
                return Ok(None);
            };
            (device, rwbs, sectors, at, ns)
        }
    };
    let mut letters = rwbs.chars().peekable();
    let first = letters.next().context("no letters")?;
    let op = match (first, letters.peek()) {
        ('F', Some('W' | 'R' | 'D' | 'F' | 'N')) => letters.next().unwrap_or(first),
        _ => first,
    };
    let bytes = sectors.parse::<u64>()? * 512;
    if bytes == 0 && ns == 0 && op != 'F' {
        return Ok(None);
    }
    Ok(Some(Request {
        device: device.to_owned(),
        at: Duration::from_nanos(at),
        op: match op {
            'R' => "read",
            'W' => "write",
            'F' => "flush",
            'D' => "discard",
            _ => "other",
        },
        fua: letters.any(|l| l == 'F'),
        bytes,
        seconds: (ns > 0).then_some(ns as f64 / 1e9),
    }))
}
