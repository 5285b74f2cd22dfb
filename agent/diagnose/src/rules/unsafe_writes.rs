//! `unsafe_writes`: WRITEs and COMMITs that clients take for durable are acknowledged, and a crash may lose them. No request is slow
//! because of that, but a server that is fast for this reason is not healthy.

use crate::breakdown::{part, sum};
use crate::rules::context::{Context, RuleResult};
use crate::rules::evidence::{evidence, percent};
use crate::thresholds::{MIN_COUNT, UNSAFE_RATIO};
use nfscope_model::family as f;
use nfscope_model::finding::{Evidence, Kind, Severity};

/// Most exports that the evidence names.
const NAMED: usize = 3;

pub fn rule(context: &Context) -> RuleResult {
    let b = context.breakdown;
    let of = |reason: &str| {
        let all = b.unsafe_writes.iter().filter(|(why, _)| why == reason);
        sum(all.map(|(_, n)| *n))
    };
    let durable = b.durable_writes.unwrap_or(0.0);
    let known = b.durable_writes.is_some() && (durable == 0.0 || !b.unsafe_writes.is_empty());
    let by_setting = of("async") + of("sync_disabled");
    let no_wait = of("no_wait");
    let unwaited = no_wait >= MIN_COUNT && part(no_wait, durable) >= UNSAFE_RATIO;
    let lost = by_setting + if unwaited { no_wait } else { 0.0 };
    let share = part(lost, durable);
    let mut advice = Vec::new();
    if of("async") > 0.0 {
        advice.push("export with the option sync: exportfs -v shows the options".to_owned());
    }
    if of("sync_disabled") > 0.0 {
        advice.push("zfs set sync=standard on the dataset".to_owned());
    }
    if unwaited {
        advice.push(
            "look at the devices below the exports that complete at once: a RAM disk loses writes, persistent memory does not"
                .to_owned(),
        );
    }
    advice.push("where the data may be lost, no action is needed".to_owned());
    RuleResult {
        kind: Kind::UnsafeWrites,
        share: known.then_some(share),
        of_threads: 0.0,
        condition: by_setting >= MIN_COUNT || unwaited,
        max_severity: Severity::Warning,
        summary: format!(
            "{} of the writes that clients take for durable are acknowledged before they are: a crash of this server loses them",
            percent(share)
        ),
        evidence: evidence_for(context, &of, unwaited),
        advice,
        ruled_out_reason: match b.durable_writes.filter(|_| known) {
            None => "this host does not tell which writes clients take for durable, or which of them a crash may lose".into(),
            Some(0.0) => "no client wrote anything that it takes for durable".into(),
            Some(_) => format!(
                "{} of the durable writes were acknowledged too early",
                percent(share)
            ),
        },
    }
}

fn evidence_for(context: &Context, of: &dyn Fn(&str) -> f64, unwaited: bool) -> Vec<Evidence> {
    let mut all = Vec::new();
    for (reason, on, counts) in [
        ("async", "exports with the option async", true),
        (
            "sync_disabled",
            "exports whose dataset has sync=disabled",
            true,
        ),
        (
            "no_wait",
            "exports of file systems with a log: no thread waited for a log or a disk",
            unwaited,
        ),
    ] {
        let n = of(reason);
        if n == 0.0 || !counts {
            continue;
        }
        let exports = (context.breakdown.not_durable.iter()).filter(|(why, _)| why == reason);
        let names: Vec<_> = exports.map(|(_, e)| e.as_str()).take(NAMED).collect();
        let names = match names.is_empty() {
            true => String::new(),
            false => format!(" ({})", names.join(", ")),
        };
        let text = format!("{n:.0} stable WRITEs and COMMITs were acknowledged on {on}{names}",);
        let text = match reason {
            "no_wait" => format!("{n:.0} stable WRITEs were acknowledged on {on}"),
            _ => text,
        };
        all.push(evidence(&f::UNSAFE_WRITES.info, n, None, text));
    }
    all
}
