//! `slow_disk`: operations wait for block I/O outside the log, and the waits or the devices are slow on average.

use crate::attribution::longest_wait;
use crate::breakdown::{mean, part};
use crate::export_io::ExportIo;
use crate::rules::context::{Context, RuleResult};
use crate::rules::evidence::{NO_PHASES, bytes, evidence, percent, slowest_device, who_fills};
use crate::rules::other_waits::{behind_evidence, or_behind};
use crate::thresholds::{FOREIGN_READ, FOREIGN_WRITE, SLOW_DISK_SECONDS};
use nfscope_model::family as f;
use nfscope_model::finding::{Evidence, Kind, Severity};
use nfscope_text::units::seconds;

pub fn rule(context: &Context) -> RuleResult {
    let (b, attribution) = (context.breakdown, context.attribution);
    let share = context.share(attribution.disk);
    // Disk time is attributed only if disks are slow: `attribution::slow_disk`.
    let condition = attribution.disk > 0.0;
    RuleResult {
        kind: Kind::SlowDisk,
        share: b.phases.map(|_| share),
        of_threads: context.share_of_threads(attribution.disk),
        condition,
        max_severity: Severity::Critical,
        summary: format!(
            "{} of request time in the server is spent waiting for disks{}",
            percent(share),
            or_behind(context, Kind::SlowDisk)
        ),
        evidence: match condition {
            true => evidence_for(context),
            false => Vec::new(),
        },
        advice: advice(context),
        ruled_out_reason: match (b.phases, longest_wait(b, |p| p.disk)) {
            (None, _) => NO_PHASES.into(),
            _ if attribution.disk_behind_log > 0.0 => {
                "the devices of exports do not explain the waits: operations wait for blocks that the log is writing".into()
            }
            (_, Some((op, each))) => format!(
                "one {} waits {} for disks on average",
                op.op.to_uppercase(),
                seconds(each)
            ),
            (_, None) => "no operation waited for disks".into(),
        },
    }
}

/// Operations whose waits for disks are reads.
const READS: [&str; 9] = [
    "read",
    "readdir",
    "readdirplus",
    "lookup",
    "lookupp",
    "getattr",
    "access",
    "readlink",
    "open",
];
/// Operations whose waits for disks are writes.
const WRITES: [&str; 3] = ["write", "commit", "copy"];

fn advice(context: &Context) -> Vec<String> {
    let waits = longest_wait(context.breakdown, |p| p.disk).map(|(op, _)| op.op.as_str());
    let is = |ops: &[&str]| waits.is_some_and(|op| ops.contains(&op));
    let written = foreign_writes(context).is_some();
    let mut all = Vec::new();
    if written {
        all.push(foreign_advice(context, "writes"));
    }
    let read = foreign_reads(context).is_some();
    if read {
        all.push(foreign_advice(context, "reads"));
    }
    if !is(&WRITES) && !read && !written {
        all.push(for_reads(context));
    }
    if !is(&READS) && !written {
        all.push(
            "for writes: check which disk is slow, and whether another program uses it".into(),
        );
    }
    let bytes = bytes_for_writes(context);
    if bytes.is_some_and(|bytes| bytes.read >= MUCH_READ) {
        all.push(
            "the devices are read before they are written: a RAID with parity does so for parts of a stripe, and a file system for parts of \
             a block. Larger WRITEs, and programs that write whole stripes, avoid that (queue/optimal_io_size in /sys/block)"
                .into(),
        );
    }
    all
}

/// Parts of the bytes read that the page cache had dropped recently: memory is short above the first, and not short below the second.
const OFTEN_AGAIN: f64 = 0.5;
const SELDOM_AGAIN: f64 = 0.1;
/// Bytes read from the devices for each byte that clients write, from which on there is advice.
const MUCH_READ: f64 = 0.5;
/// Least bytes in a window for a ratio.
const MIN_BYTES: f64 = 1024.0 * 1024.0;

/// Part of the bytes read that the page cache had dropped recently; `None` if that is not known, as for the cache of ZFS.
fn read_again(context: &Context) -> Option<f64> {
    let io = context
        .breakdown
        .export_io
        .filter(|io| io.read >= MIN_BYTES)?;
    let is_zfs = context.breakdown.logs.iter().any(|l| l.fs == "zfs");
    let cache = context.observed.page_cache.filter(|_| !is_zfs)?;
    Some(cache.again(io.read))
}

/// Advice for reads, by the state of the page cache.
fn for_reads(context: &Context) -> String {
    match read_again(context) {
        Some(again) if again >= OFTEN_AGAIN => {
            "for reads: more memory for the page cache, which drops what is read again; or faster disks"
        }
        Some(again) if again < SELDOM_AGAIN => {
            "for reads: faster disks, or more of them. More memory for the page cache saves few of these reads"
        }
        _ => "for reads: more memory for the page cache (or ARC) if that drops what is read again, a read cache, or faster disks",
    }
    .to_owned()
}

/// State of the page cache, where reads wait.
fn page_cache(context: &Context) -> Option<Evidence> {
    let again = read_again(context)?;
    let cache = context.observed.page_cache?;
    let text = format!(
        "{} of what was read from the devices of exports had been in the page cache not long before; {} of memory is free",
        percent(again),
        percent(part(cache.free, cache.total))
    );
    Some(evidence(&f::BLOCK_BYTES.info, again, None, text))
}

/// Bytes of devices for each byte that clients write.
#[derive(Clone, Copy)]
struct ForWrites {
    read: f64,
    written: f64,
}

/// Bytes that the devices of exports read and write for each byte that clients write, where WRITEs wait. What clients read is left out.
fn bytes_for_writes(context: &Context) -> Option<ForWrites> {
    let b = context.breakdown;
    let io = b.export_io.filter(|_| b.write_bytes >= MIN_BYTES)?;
    let (op, _) = longest_wait(b, |p| p.disk)?;
    WRITES.contains(&op.op.as_str()).then(|| ForWrites {
        read: mean((io.read - b.read_bytes).max(0.0), b.write_bytes),
        written: mean(io.written, b.write_bytes),
    })
}

/// Advice on finding the other programs that use the disks.
fn foreign_advice(context: &Context, does: &str) -> String {
    let how = match context.breakdown.illumos {
        true => {
            "a program (dtrace -n 'io:::start { @[execname] = count(); }'), a scrub or a resilver (zpool status)"
        }
        false => "a program (iotop -o, pidstat -d 1), a rebuild or a scrub (/proc/mdstat)",
    };
    format!(
        "find who {does} beside nfsd: {how}. Move or limit it: clients wait for the same devices"
    )
}

/// I/O of the exports' devices, if other programs than nfsd read most of it.
fn foreign_reads(context: &Context) -> Option<ExportIo> {
    (context.breakdown.export_io)
        .filter(|io| io.read > io.written && io.foreign_read() >= FOREIGN_READ)
}

/// Written bytes of an export, if programs beside nfsd wrote most of them.
fn foreign_writes(context: &Context) -> Option<ExportIo> {
    (context.breakdown.export_io)
        .filter(|io| io.written > io.read && io.written >= FOREIGN_WRITE * io.nfsd_changed.max(1.0))
}

/// Evidence of other programs whose requests keep the disks busy.
fn whose(context: &Context) -> Vec<Evidence> {
    let mut all = Vec::new();
    if let Some(io) = foreign_reads(context) {
        let text = format!(
            "nfsd reads {} of the {} that are read from the devices of exports: {} is for other programs of this server, or for the kernel itself",
            bytes(io.nfsd_read.min(io.read)),
            bytes(io.read),
            percent(io.foreign_read())
        );
        let limit = Some(FOREIGN_READ);
        all.push(evidence(&f::THREAD_IO.info, io.foreign_read(), limit, text));
    }
    if let Some(io) = foreign_writes(context) {
        let text = format!(
            "{} are written to the devices of exports, while nfsd has changed {}",
            bytes(io.written),
            bytes(io.nfsd_changed)
        );
        all.push(evidence(&f::THREAD_IO.info, io.nfsd_changed, None, text));
    }
    all
}

fn evidence_for(context: &Context) -> Vec<Evidence> {
    let mut all = Vec::new();
    let Some((op, each)) = longest_wait(context.breakdown, |p| p.disk) else {
        return all;
    };
    let text = format!(
        "one {} over NFSv{} waits {} for disks on average; {} or more is slow",
        op.op.to_uppercase(),
        op.version,
        seconds(each),
        seconds(SLOW_DISK_SECONDS)
    );
    let limit = Some(SLOW_DISK_SECONDS);
    all.push(evidence(&f::OP_PHASE.info, each, limit, text));
    all.extend(behind_evidence(context, Kind::SlowDisk));
    all.extend(slowest_device(context.breakdown));
    all.extend(whose(context));
    if READS.contains(&op.op.as_str()) {
        all.extend(page_cache(context));
    }
    if let Some(ForWrites { read, written }) = bytes_for_writes(context) {
        let text = format!(
            "for each byte that clients write, the devices of exports write {written:.1} bytes and read {read:.1}, without what clients read"
        );
        all.push(evidence(&f::BLOCK_BYTES.info, written, None, text));
    }
    // READs also wait behind the writes of clients.
    if context
        .breakdown
        .export_io
        .is_some_and(|io| io.written > io.read)
    {
        all.extend(who_fills(context.breakdown));
    }
    all
}
