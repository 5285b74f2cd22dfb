//! Slow operations are reported one by one, and those that are left out are counted.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use lab::{Delay, Disk, SlowLine, SlowOp};
use nfscope_model::Snapshot;
use nfscope_model::family;

use super::{DELAY, Watch};

/// Limit of slow operations: 2^-4 s, an edge of the histogram's buckets, so that both count the same. A write to the slow log takes
/// longer, and any other operation less.
const OVER: Duration = Duration::from_micros(62_500);

/// Trace event of each request that nfsd begins, and the buffer of all trace events.
const TRACED: &str = "/sys/kernel/tracing/events/sunrpc/svc_process";
const TRACE: &str = "/sys/kernel/tracing/trace";

/// Time limit until all counted operations are reported, too.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn operations_are_reported(watch: &mut Watch) -> Result<()> {
    let server = watch.server;
    server.delay(Disk::Log, Delay::writes(DELAY))?;
    server.sh(&format!("echo 1 >{TRACED}/enable; true >{TRACE}"))?;
    let all = reported(watch, "", 1000)?;
    let trace = server.sh(&format!("echo 0 >{TRACED}/enable; cat {TRACE}"))?;
    let some = reported(watch, "write", 3)?;
    server.delay(Disk::Log, Delay::NONE)?;

    assert_eq!(all.left_out, 0, "nothing is left out below the limit");
    assert_eq!(all.ops.len() as u64, all.slow, "operations over {OVER:?}");
    assert!(all.slow >= 40, "only {} slow operations", all.slow);
    for op in &all.ops {
        let took = op.duration_seconds;
        ensure!(took > OVER.as_secs_f64(), "not over {OVER:?}: {op:?}");
        let phases = op.phases_seconds.as_ref().context("no phases")?;
        let names: Vec<&str> = phases.keys().map(String::as_str).collect();
        ensure!(
            names
                == [
                    "cpu", "disk", "lock", "log", "recall", "reclaim", "runqueue", "throttle",
                    "upcall"
                ],
            "{op:?}"
        );
        let sum: f64 = phases.values().sum();
        ensure!(
            (sum - took).abs() <= took / 100.0,
            "phases of {sum} s: {op:?}"
        );
        ensure!(op.version == "3", "{op:?}");
        ensure!(["write", "create"].contains(&op.op.as_str()), "{op:?}");
        ensure!(op.export.as_deref() == Some("/run/exp"), "{op:?}");
        ensure!(op.status == "ok", "{op:?}");
    }
    // The kernel's own account of each request that it began: `addr=... xid=0x... service=nfsd`.
    let words = trace.stdout.split_whitespace();
    let xids: BTreeSet<&str> = words.filter_map(|w| w.strip_prefix("xid=")).collect();
    for op in &all.ops {
        let xid = op.xid.as_deref().context("no transaction id")?;
        ensure!(xids.contains(xid), "{op:?} is not in the trace: {xids:?}");
    }
    let several: BTreeSet<_> = all.ops.iter().map(|op| &op.xid).collect();
    ensure!(
        several.len() == all.ops.len(),
        "two NFSv3 operations of one transaction"
    );
    let writes: Vec<_> = all.ops.iter().filter(|o| o.op == "write").collect();
    for write in &writes {
        ensure!(write.bytes == Some(4096), "{write:?}");
        ensure!(write.stability.as_deref() == Some("file_sync"), "{write:?}");
        ensure!(write.inode.is_some(), "{write:?}");
    }

    assert!(some.ops.iter().all(|o| o.op == "write"), "{:?}", some.ops);
    assert!(
        some.left_out > 0,
        "the limit was not reached: {}",
        some.ops.len()
    );
    assert_eq!(
        some.all(),
        some.slow,
        "reported, left out, and operations over {OVER:?}"
    );
    a_command_shows_them(watch)
}

/// `nfscope slow` itself. It does not report when it begins to listen: operations go on until it has seen enough.
fn a_command_shows_them(watch: &mut Watch) -> Result<()> {
    let mut slow = watch.server.spawn(&format!(
        "exec {} slow --url http://127.0.0.1:{} --over 1us --op getattr --count 3 --json",
        lab::nfscope_program()?.display(),
        watch.agent.port()
    ))?;
    let started = Instant::now();
    while !slow.has_ended() {
        ensure!(
            started.elapsed() < 3 * PATIENCE,
            "not ended after three lines: {:?}",
            slow.output_so_far()
        );
        watch.run_clients("getattr --times 5")?;
    }
    let output = slow.wait(PATIENCE)?.ok("nfscope slow")?;
    let lines: Vec<String> = output.stdout.lines().map(str::to_owned).collect();
    let reported = Reported::read(&lines)?;
    assert_eq!(reported.ops.len(), 3, "{output:?}");
    assert!(reported.ops.iter().all(|o| o.op == "getattr"), "{output:?}");
    Ok(())
}

#[derive(Default)]
struct Reported {
    ops: Vec<SlowOp>,
    left_out: u64,
    /// Number of slow operations by the histograms.
    slow: u64,
}

impl Reported {
    fn read(lines: &[String]) -> Result<Reported> {
        let mut reported = Reported::default();
        for line in lines {
            match SlowLine::parse(line)? {
                SlowLine::Op(op) => reported.ops.push(*op),
                SlowLine::LeftOut { left_out } => reported.left_out += left_out,
            }
        }
        Ok(reported)
    }

    fn all(&self) -> u64 {
        self.ops.len() as u64 + self.left_out
    }
}

/// Runs slow writes of eight clients, and fast operations beside them; returns the reports on this operation, or on all.
fn reported(watch: &mut Watch, op: &str, limit: u32) -> Result<Reported> {
    let only = match op {
        "" => String::new(),
        op => format!("&op={op}"),
    };
    let listener = watch
        .agent
        .slow(&format!("over={}us&limit={limit}{only}", OVER.as_micros()))?;
    let server = watch.server;
    let (_, seen) = watch.during(|| {
        server.run_clients("write --clients 8 --times 5")?;
        server.run_clients("getattr --times 50").map(drop)
    })?;
    let slow = over(&seen, op);
    // The number of left out operations is reported once a second.
    let started = Instant::now();
    let mut reported = Reported::default();
    while reported.all() < slow && started.elapsed() < PATIENCE {
        lab::pass(Duration::from_millis(200));
        reported = Reported::read(&listener.so_far())?;
    }
    reported.slow = slow;
    println!(
        "slow, at most {limit} a second: {} reported, {} left out, {} by the histograms",
        reported.ops.len(),
        reported.left_out,
        reported.slow
    );
    Ok(reported)
}

/// Number of operations over the limit by the histograms, of one operation or of all.
fn over(seen: &Snapshot, op: &str) -> u64 {
    let wanted = |labels: &[String]| op.is_empty() || labels[1] == op;
    let all = lab::reconcile::merged(seen, &family::OP_DURATION.info, wanted);
    all.map_or(0, |h| {
        let first = h.scheme.bucket(OVER.as_secs_f64()) + 1;
        h.counts[first..].iter().sum()
    })
}
