//! `slow_intent_log`: operations wait for the journal or intent log, and most of that time is in long waits. A journal of ext4 must have
//! long writes, too.

use crate::attribution::{io_behind_log_is_known, log_in_use, slow_intent_log, waits_are_long};
use crate::breakdown::{Breakdown, Log, part, sum};
use crate::log_bytes::LogBytes;
use crate::long_waits::long_waits;
use crate::rules::context::{Context, RuleResult};
use crate::rules::evidence::{NO_PHASES, evidence, percent, tail};
use crate::thresholds::{LOG_IN_USE, MIN_COUNT, SLOW_LOG_SECONDS};
use nfscope_model::family as f;
use nfscope_model::finding::{Evidence, Kind, Severity};
use nfscope_text::units::seconds;

/// Part of the bytes that bypass the log device, from which on there is advice about it.
const INDIRECT_RATIO: f64 = 0.1;
/// Part of the bytes that bypass the log device, from which on the log counts as not written there.
const MOSTLY_INDIRECT_RATIO: f64 = 0.5;
/// Commits that clients ask for, for each WRITE, below which they make no fsync to speak of.
const ASKED_RATIO: f64 = 0.1;
/// Part of the commits from which on they are mostly of one type.
const MOSTLY_RATIO: f64 = 0.5;
/// Least part of request time that a sentence reports.
const TOLD_SHARE: f64 = 0.01;
/// Part of the waits below which the number of long waits is reported.
const MOSTLY_LONG_RATIO: f64 = 0.9;

pub fn rule(context: &Context) -> RuleResult {
    let (b, attribution) = (context.breakdown, context.attribution);
    // Waits for logs are measured if operations that waited for a log have the waits of a known one.
    let measured = (b.phases.and_then(|p| p.log))
        .is_some_and(|log| log == 0.0 || !b.lacks(&f::LOG_WAIT.info))
        && io_behind_log_is_known(b);
    let slow = slow_intent_log(b);
    let waited = attribution.log + attribution.behind_log;
    let share = context.share(waited);
    RuleResult {
        kind: Kind::SlowIntentLog,
        share: measured.then_some(share),
        of_threads: context.share_of_threads(waited),
        condition: slow.is_some(),
        max_severity: Severity::Critical,
        summary: format!(
            "{} of request time in the server is spent waiting for the journal or intent log{}",
            percent(share),
            behind(context)
        ),
        evidence: slow.map_or(Vec::new(), |log| evidence_for(context, log)),
        advice: slow.map_or(Vec::new(), |log| advice_for(context, log)),
        ruled_out_reason: match (measured, slow, b.logs.first()) {
            (false, _, _) if b.phases.is_none() => NO_PHASES.into(),
            (false, _, _) => {
                "waits for the journal or intent log are not measured on this host; `nfscope check` shows why"
                    .into()
            }
            (_, Some(l), _) => format!(
                "waits for the journal or intent log are {} of request time, {} each on average: {:.2} requests wait for it at a time",
                percent(share),
                seconds(l.waits.mean().unwrap_or(0.0)),
                b.rate(waited)
            ),
            (_, None, Some(l)) if l.waits.count() as f64 >= MIN_COUNT => format!(
                "a wait for the journal or intent log takes {} on average{}{}",
                seconds(l.waits.mean().unwrap_or(0.0)),
                // This log is not slow: its writes are quick.
                match l.writes_in_turn().filter(|_| waits_are_long(l)) {
                    Some(w) => format!(
                        ", and one write of the log itself {}",
                        seconds(w.mean().unwrap_or(0.0))
                    ),
                    None => String::new(),
                },
                use_of(b, l).map_or(String::new(), |used| format!(", and the log {used}"))
            ),
            _ => "almost nothing waited for a journal or intent log".into(),
        },
    }
}

/// End of a sentence about waits that have another name, and whose cause is the log.
fn behind(context: &Context) -> &'static str {
    let a = context.attribution;
    let is_told = |seconds| context.share(seconds) >= TOLD_SHARE;
    match (
        is_told(a.disk_behind_log),
        is_told(a.behind_log - a.disk_behind_log),
    ) {
        (false, false) => "",
        (false, true) => ", or for locks whose holders wait for it",
        (true, false) => ", or for blocks that it is writing",
        (true, true) => ", for blocks that it is writing, or for locks whose holders wait for it",
    }
}

fn evidence_for(context: &Context, log: &Log) -> Vec<Evidence> {
    let each = log.waits.mean().unwrap_or(0.0);
    let long = long_waits(&log.waits, SLOW_LOG_SECONDS);
    let tail = tail(&log.waits, each);
    let text = format!(
        "a wait for the log of {} on {}{} takes {} on average, {tail} (threshold: {})",
        log.fs,
        log.volume,
        location(context, log),
        seconds(each),
        seconds(SLOW_LOG_SECONDS)
    );
    let limit = Some(SLOW_LOG_SECONDS);
    let mut all = vec![evidence(&f::LOG_WAIT.info, each, limit, text)];
    // Without a write that has ended there is no mean.
    if let Some(mean) = log.writes_in_turn().and_then(|w| w.mean()) {
        let text = format!(
            "one write of the log itself takes {} on average",
            seconds(mean)
        );
        all.push(evidence(&f::LOG_COMMIT.info, mean, None, text));
    }
    if long.of_count < MOSTLY_LONG_RATIO {
        let text = format!(
            "{} of these waits are long, and have {} of the waiting time",
            percent(long.of_count),
            percent(long.of_time)
        );
        all.push(evidence(&f::LOG_WAIT.info, long.of_time, None, text));
    }
    if let Some((op, waited)) = context.breakdown.op_with_most(|p| p.log.unwrap_or(0.0)) {
        let share = part(waited, op.seconds);
        let text = format!(
            "{} over NFSv{} waits for the log for {} of its time",
            op.op.to_uppercase(),
            op.version,
            percent(share)
        );
        all.push(evidence(&f::OP_PHASE.info, share, None, text));
    }
    let bytes = context.breakdown.bytes_of(log);
    if let Some(bytes) = bytes.filter(|_| sync_always(context.breakdown, log)) {
        let text = format!(
            "{} of the commits of pool {} are for datasets with sync=always ({}), whatever their clients asked for",
            percent(bytes.of_always()),
            log.volume,
            bytes.always_datasets.join(", ")
        );
        all.push(evidence(
            &f::ZFS_COMMITS.info,
            bytes.of_always(),
            None,
            text,
        ));
    }
    let disk = context.share(context.attribution.disk_behind_log);
    if disk >= TOLD_SHARE {
        let text = format!(
            "for {} of request time operations wait for I/O that the devices of exports do not explain: they wait for blocks that \
             the log is writing",
            percent(disk)
        );
        all.push(evidence(&f::OP_PHASE.info, disk, None, text));
    }
    let behind = context.share(context.attribution.behind_log) - disk;
    if behind >= TOLD_SHARE {
        let text = format!(
            "for {} of request time operations wait for locks, and those who hold the locks wait for the log{}",
            percent(behind),
            use_of(context.breakdown, log).map_or(String::new(), |used| format!(", which {used}"))
        );
        all.push(evidence(&f::OP_PHASE.info, behind, None, text));
    }
    all
}

/// The use of a busy log, as the end of a sentence. Only a log that makes one write at a time has a part of the time in which it is in
/// use. Of another log the waits are known, and several operations wait at once.
fn use_of(b: &Breakdown, log: &Log) -> Option<String> {
    let used = log_in_use(b, log);
    (used >= LOG_IN_USE).then(|| match log.writes_in_turn() {
        Some(_) => format!("is in use for {} of the time", percent(used)),
        None => format!(
            "has {:.1} waiting operations on average",
            log.waits.sum / b.length
        ),
    })
}

fn location(context: &Context, log: &Log) -> String {
    let on_main = written_to_main_disks(context.breakdown, log);
    let past = committed_past_log(context, log).max(on_main);
    match log.separate {
        Some(true) if on_main >= 1.0 => {
            " (past its log device, which took none of the bytes)".into()
        }
        Some(true) if past > INDIRECT_RATIO => {
            format!(" (past its log device for {} of the bytes)", percent(past))
        }
        Some(true) => " (on a separate device)".into(),
        Some(false) => " (on the data device)".into(),
        None => String::new(),
    }
}

/// The part of a log's own bytes that did not go to its log device, which is offline, full or too small.
fn written_to_main_disks(b: &Breakdown, log: &Log) -> f64 {
    let bytes = b.bytes_of(log).filter(|_| log.separate == Some(true));
    bytes.map_or(0.0, LogBytes::part_on_main)
}

/// Part of the committed bytes that a pool writes to their place in a file at once: its log has a pointer to them.
fn committed_past_log(context: &Context, log: &Log) -> f64 {
    let b = context.breakdown;
    match (log.fs.as_str(), log.separate) {
        ("zfs", Some(true)) => {
            let of_pool = b.zfs_log_bytes.get(&log.volume);
            let bytes = of_pool.or_else(|| b.zfs_log_bytes.get("all"));
            bytes.map_or(0.0, |[indirect, all]| part(*indirect, *all))
        }
        _ => 0.0,
    }
}

/// Returns true if most commits are those of datasets with `sync=always`, and clients asked for less than half of them.
fn sync_always(b: &Breakdown, log: &Log) -> bool {
    let is = |bytes: &LogBytes| {
        let asked = asked_commits(b).is_some_and(|asked| asked < MOSTLY_RATIO * bytes.always);
        bytes.of_always() >= MOSTLY_RATIO && asked
    };
    b.bytes_of(log).is_some_and(is)
}

/// Commits that clients asked for, by stable WRITEs and by COMMITs; `None` where the stability of WRITEs is not known.
fn asked_commits(b: &Breakdown) -> Option<f64> {
    let commits = sum(b.ops_named(&["commit"]).map(|o| o.count));
    (!b.lacks(&f::WRITE.info)).then_some(b.stable_writes + commits)
}

fn advice_for(context: &Context, log: &Log) -> Vec<String> {
    let b = context.breakdown;
    let separate_log = match log.fs.as_str() {
        "zfs" => format!(
            "add a log device to the pool: zpool add {} log mirror DEVICE DEVICE (SSDs with power-loss protection)",
            log.volume
        ),
        "xfs" => "put the XFS log on a separate device: mkfs.xfs -l logdev=DEVICE, mount -o logdev=DEVICE (an SSD with \
                  power-loss protection)"
            .into(),
        "btrfs" => "btrfs keeps its log on the data device: move the whole file system to faster devices".into(),
        _ => "put the journal on a separate device: mke2fs -O journal_dev DEVICE, tune2fs -J device=DEVICE (an SSD with \
              power-loss protection)"
            .into(),
    };
    let past = committed_past_log(context, log);
    let mut all = Vec::new();
    if past > INDIRECT_RATIO {
        all.push(format!(
            "{} of the committed bytes bypass the log device: zfs set logbias=latency on the dataset",
            percent(past)
        ));
    }
    let on_main = written_to_main_disks(b, log);
    if on_main > INDIRECT_RATIO {
        all.push(format!(
            "{} of the log's bytes went to the pool's own disks, and not to its log device: zpool status {} shows a log device that is \
             offline, zpool iostat -v {} one that is full; make it work, or larger",
            percent(on_main),
            log.volume,
            log.volume
        ));
    }
    all.extend(sync_always(b, log).then(|| {
        let datasets = b.bytes_of(log).map(|bytes| bytes.always_datasets.join(" "));
        format!(
            "sync=always makes WRITEs wait that no client wants durable at once; where what clients ask for is enough: \
             zfs set sync=standard {}",
            datasets.filter(|names| !names.is_empty()).unwrap_or_else(|| "DATASET".to_owned())
        )
    }));
    if past <= MOSTLY_INDIRECT_RATIO && on_main <= MOSTLY_INDIRECT_RATIO {
        all.push(match log.separate {
            Some(true) => "check the separate log device on the disks dashboard; a device with power-loss protection needs \
                           no time for a flush"
                .into(),
            _ => separate_log,
        });
    }
    let commits = b.op_with_most(|p| p.log.unwrap_or(0.0));
    let of_data = commits.is_some_and(|(op, _)| matches!(op.op.as_str(), "write" | "commit"));
    // Clients that ask for no data to be durable make no fsync either.
    let ask = asked_commits(b).is_none_or(|asked| asked >= ASKED_RATIO * b.writes);
    if of_data && ask && !sync_always(b, log) {
        all.push("make clients commit more data at once: larger writes, fewer fsyncs".into());
    }
    all
}
