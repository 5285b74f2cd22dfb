//! `lock_contention`: operations sleep long for nothing that has a name. Most of these sleeps are for locks that other threads
//! hold.

use crate::attribution::longest_wait;
use crate::breakdown::part;
use crate::rules::context::{Context, RuleResult};
use crate::rules::evidence::{NO_PHASES, evidence, percent};
use crate::thresholds::LONG_WAIT_SECONDS;
use nfscope_model::family as f;
use nfscope_model::finding::{Kind, Severity};
use nfscope_text::units::seconds;

pub fn rule(context: &Context) -> RuleResult {
    let (b, attribution) = (context.breakdown, context.attribution);
    let longest = longest_wait(b, |p| p.lock);
    let share = context.share(attribution.lock);
    let mut all_evidence = Vec::new();
    if let Some((op, each)) = longest {
        let text = format!(
            "one {} over NFSv{} sleeps {} on average for a lock or another thread, {} of its time",
            op.op.to_uppercase(),
            op.version,
            seconds(each),
            percent(part(op.phases.lock, op.seconds))
        );
        let limit = Some(LONG_WAIT_SECONDS);
        all_evidence.push(evidence(&f::OP_PHASE.info, each, limit, text));
    }
    let mut advice = vec![
        "find the operations and files: nfscope slow. Changes in one directory, and writes to one file, run one after the other"
            .to_owned(),
        "spread concurrent changes over more directories or files".into(),
    ];
    if attribution.log > 0.0 {
        advice.insert(
            0,
            "the holder of a lock may itself wait for the slow log: make the log faster first"
                .into(),
        );
    }
    RuleResult {
        kind: Kind::LockContention,
        share: b.phases.map(|_| share),
        of_threads: context.share_of_threads(attribution.lock),
        // Sleep is attributed only if it is long: `attribution::lock_contention`.
        condition: attribution.lock > 0.0,
        max_severity: Severity::Critical,
        summary: format!(
            "{} of request time in the server is spent waiting for locks or other threads",
            percent(share)
        ),
        evidence: all_evidence,
        advice,
        ruled_out_reason: match b.phases {
            None => NO_PHASES.into(),
            Some(_) if attribution.behind_log > attribution.disk_behind_log => format!(
                "waits for locks are {} of request time, and those who hold the locks wait for the log",
                percent(context.share(attribution.behind_log - attribution.disk_behind_log))
            ),
            Some(p) => format!(
                "waits for locks or other threads are {} of request time{}",
                percent(context.share(p.lock)),
                longest.map_or(String::new(), |(op, each)| format!(
                    ", {} for each {}",
                    seconds(each),
                    op.op.to_uppercase()
                ))
            ),
        },
    }
}
