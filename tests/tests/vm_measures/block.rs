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
const SCRIPT: &str = r#"
BEGIN { printf("ready\n"); }
tracepoint:block:block_rq_issue {
  @since[args->dev, args->nr_sector ? args->sector : 0, args->rwbs] = nsecs;
}
tracepoint:block:block_rq_complete /@since[args->dev, args->nr_sector ? args->sector : 0, args->rwbs]/ {
  $sector = args->nr_sector ? args->sector : 0;
  printf("%d %s %d %d\n", args->dev, args->rwbs, args->nr_sector, nsecs - @since[args->dev, $sector, args->rwbs]);
  delete(@since[args->dev, $sector, args->rwbs]);
}
END { clear(@since); }
"#;

/// bpftrace, starting.
pub struct Witness {
    bpftrace: Running,
}

/// bpftrace and the agent at one moment.
pub struct Watched {
    bpftrace: Running,
    lines: usize,
    seen: Snapshot,
}

/// One request, as bpftrace saw it.
#[derive(Debug)]
struct Request {
    op: &'static str,
    fua: bool,
    bytes: u64,
    seconds: f64,
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
        let lines = self.bpftrace.output_so_far().0.lines().count();
        Ok(Watched {
            bpftrace: self.bpftrace,
            lines,
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
        let output = self.bpftrace.wait(Duration::from_secs(60))?;
        assert!(
            !output.stderr.contains("Lost"),
            "bpftrace lost events: {}",
            output.stderr
        );
        let lines: Vec<&str> = output.stdout.lines().skip(self.lines).collect();
        let devices = devices(server)?;
        for device in [SLOW, FAST] {
            let requests: Vec<Request> = lines
                .iter()
                .filter(|l| {
                    l.split(' ')
                        .next()
                        .and_then(|d| devices.get(d))
                        .is_some_and(|d| d == device)
                })
                .map(|l| parse(l))
                .collect::<Result<_>>()?;
            same_requests(device, &requests, &seen);
        }
        Ok(())
    }
}

fn same_requests(device: &str, requests: &[Request], seen: &Snapshot) {
    for op in ["read", "write", "flush", "discard", "other"] {
        let truth: Vec<&Request> = requests.iter().filter(|r| r.op == op).collect();
        let measured = seen.hist(&family::BLOCK_DEVICE, [device, op]);
        let count = measured.map_or(0, Histogram::count);
        assert_eq!(count, truth.len() as u64, "{device}: {op} requests");
        let Some(measured) = measured.filter(|_| count > 0) else {
            continue;
        };
        let bytes: u64 = truth.iter().map(|r| r.bytes).sum();
        assert_eq!(
            seen.value(&family::BLOCK_BYTES, [device, op]),
            Some(bytes as f64),
            "{device}: bytes of {op}"
        );
        let total: f64 = truth.iter().map(|r| r.seconds).sum();
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
/// takes the processor away between the two, much later. At every bucket's edge the histogram must still have counted as
/// many as there were, give or take those so near to the edge, and one in a hundred.
fn same_time(what: &str, truth: &[&Request], measured: &Histogram) {
    const APART: f64 = 50e-6;
    let total: f64 = truth.iter().map(|r| r.seconds).sum();
    let apart = (measured.sum - total).abs();
    assert!(
        apart <= 0.03 * total + APART * truth.len() as f64,
        "{what}: {} s, but {total} s by bpftrace",
        measured.sum
    );
    let torn = truth.len().div_ceil(100) as u64;
    let mut so_far = 0;
    for (i, n) in measured.counts.iter().enumerate() {
        so_far += n;
        let edge = measured.scheme.upper(i);
        let up_to = |limit: f64| truth.iter().filter(|r| r.seconds <= limit).count() as u64;
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

/// `<device> <rwbs> <sectors> <ns>`. The letters (blk_fill_rwbs() in the kernel): F for a flush before, the operation,
/// F for FUA, and hints.
fn parse(line: &str) -> Result<Request> {
    let words: Vec<&str> = line.split(' ').collect();
    let [_, rwbs, sectors, ns] = words[..] else {
        bail!("not understood: {line}")
    };
    let mut letters = rwbs.chars().peekable();
    let first = letters.next().context("no letters")?;
    let op = match (first, letters.peek()) {
        ('F', Some('W' | 'R' | 'D' | 'F' | 'N')) => letters.next().unwrap_or(first),
        _ => first,
    };
    Ok(Request {
        op: match op {
            'R' => "read",
            'W' => "write",
            'F' => "flush",
            'D' => "discard",
            _ => "other",
        },
        fua: letters.any(|l| l == 'F'),
        bytes: sectors.parse::<u64>()? * 512,
        seconds: ns.parse::<f64>()? / 1e9,
    })
}
