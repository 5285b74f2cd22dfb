//! `slow_disk`: operations wait for block I/O outside the log, and the waits or the devices are slow on average.

use crate::attribution::longest_wait;
use crate::export_io::ExportIo;
use crate::rules::context::{Context, RuleResult};
use crate::rules::evidence::{NO_PHASES, bytes, evidence, percent, slowest_device};
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

/// Operations that read, as far as they wait for disks.
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
/// Operations that write.
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
        all.push(
            "for reads: more memory for the page cache (or ARC), a read cache, or faster disks"
                .into(),
        );
    }
    if !is(&READS) && !written {
        all.push(
            "for writes: check which disk is slow, and whether another program uses it".into(),
        );
    }
    all
}

/// How to find who else uses the disks.
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

/// Whose the requests to the disks are, where they are not nfsd's.
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
    all
}
