//! `slow_intent_log`: operations wait for the journal or intent log, and its waits are slow on average.

use crate::attribution::{MIN_COUNT, SLOW_WAIT_SECONDS, slow_intent_log};
use crate::breakdown::{Log, mean, part};
use crate::rules::context::{Context, RuleResult};
use crate::rules::evidence::{NO_PHASES, evidence, percent, queue_behind};
use nfscope_model::family as f;
use nfscope_model::finding::{Evidence, Kind, Severity};
use nfscope_text::units::seconds;

/// ZFS changes that bypass the log device are worth an advice from this part of the bytes on.
const INDIRECT_RATIO: f64 = 0.1;

pub fn rule(context: &Context) -> RuleResult {
    let (b, attribution) = (context.breakdown, context.attribution);
    let measured = b.phases.is_some_and(|p| p.log.is_some());
    let slow = slow_intent_log(b);
    let share = context.share(attribution.log + attribution.queue.log);
    RuleResult {
        kind: Kind::SlowIntentLog,
        share: measured.then_some(share),
        condition: slow.is_some(),
        max_severity: Severity::Critical,
        summary: format!(
            "{} of request time in the server is spent waiting for the journal or intent log",
            percent(share)
        ),
        evidence: slow.map_or(Vec::new(), |log| evidence_for(context, log)),
        advice: slow.map_or(Vec::new(), |log| advice_for(context, log)),
        ruled_out_reason: match (measured, slow, b.logs.first()) {
            (false, _, _) if b.phases.is_none() => NO_PHASES.into(),
            (false, _, _) => {
                "waits for the journal or intent log are not measured on this host; `nfscope check` shows why"
                    .into()
            }
            (_, Some(_), _) => format!(
                "waits for the journal or intent log are {} of request time",
                percent(share)
            ),
            (_, None, Some(l)) if l.waits.count() as f64 >= MIN_COUNT => format!(
                "a wait for the journal or intent log takes {} on average",
                seconds(l.waits.mean().unwrap_or(0.0))
            ),
            _ => "almost nothing waited for a journal or intent log".into(),
        },
    }
}

fn evidence_for(context: &Context, log: &Log) -> Vec<Evidence> {
    let each = log.waits.mean().unwrap_or(0.0);
    let p99 = log.waits.quantile(0.99).unwrap_or(0.0);
    let text = format!(
        "a wait for the log of {} on {}{} takes {} on average, p99 {}; {} or more is slow",
        log.fs,
        log.volume,
        location(log),
        seconds(each),
        seconds(p99),
        seconds(SLOW_WAIT_SECONDS)
    );
    let limit = Some(SLOW_WAIT_SECONDS);
    let mut all = vec![evidence(&f::LOG_WAIT.info, each, limit, text)];
    if let Some((op, waited)) = context.breakdown.op_with_most(|p| p.log.unwrap_or(0.0)) {
        let share = part(waited, op.seconds);
        let text = format!(
            "{} over NFSv{} takes {} on average, {} of it for the log",
            op.op.to_uppercase(),
            op.version,
            seconds(mean(op.seconds, op.count)),
            percent(share)
        );
        all.push(evidence(&f::OP_PHASE.info, share, None, text));
    }
    let queue = context.attribution.queue.log;
    all.extend(queue_behind(context, queue, "the log"));
    all
}

fn location(log: &Log) -> &'static str {
    match log.separate {
        Some(true) => " (on a separate device)",
        Some(false) => " (on the data device)",
        None => "",
    }
}

fn advice_for(context: &Context, log: &Log) -> Vec<String> {
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
    let mut all = vec![match log.separate {
        Some(true) => "the separate log device is slow: check its panel on the disks dashboard, and use a device with \
                       power-loss protection (a flush then costs nothing)"
            .into(),
        _ => separate_log,
    }];
    let b = context.breakdown;
    let indirect = part(b.zfs_indirect_bytes, b.zfs_log_bytes);
    if log.fs == "zfs" && log.separate == Some(true) && indirect > INDIRECT_RATIO {
        all.push(format!(
            "{} of the committed bytes bypass the log device: zfs set logbias=latency on the dataset",
            percent(indirect)
        ));
    }
    all.push("make clients commit more data at once: larger writes, fewer fsyncs".into());
    all.push("more nfsd threads would not help: they would wait for the same log".into());
    all
}
