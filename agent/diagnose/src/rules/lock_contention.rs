//! `lock_contention`: several changes of the same directory or file at the same time wait for its lock. Only operations counted by file
//! show that: without such counts these waits are `unknown_waits`.

use crate::observed::Contended;
use crate::rules::context::{Context, RuleResult};
use crate::rules::evidence::{NO_PHASES, evidence, percent};
use crate::rules::other_waits::{self, long_enough, longest_wait_evidence, other_waits_reason};
use crate::thresholds::{MIN_CRITICAL_USE, OVERLAP};
use nfscope_model::family as f;
use nfscope_model::finding::{Evidence, Kind, Severity};

pub fn rule(context: &Context) -> RuleResult {
    let (b, attribution) = (context.breakdown, context.attribution);
    let contended = other_waits::contended(context);
    let share = context.share(attribution.lock);
    let place = contended.map_or("a directory or file", |c| match c.directories {
        true => "a directory",
        false => "a file",
    });
    let mut all_evidence: Vec<_> = longest_wait_evidence(context).into_iter().collect();
    all_evidence.extend(contended.as_ref().map(overlap));
    let mut advice = Vec::new();
    if attribution.log > 0.0 {
        advice.push(
            "the holder of a lock may itself wait for the slow log: make the log faster first"
                .into(),
        );
    }
    advice.push(match contended.is_none_or(|c| c.directories) {
        true => "changes of one directory run one after the other: spread concurrent changes over more directories".into(),
        false => "WRITEs to one file run one after the other: spread concurrent WRITEs over more files; a program on the server that \
                  writes to the file holds the same lock (lsof FILE)"
            .into(),
    });
    let is_used = b.busy.is_some_and(|busy| busy >= MIN_CRITICAL_USE);
    let nothing_waits = attribution.lock == 0.0;
    RuleResult {
        kind: Kind::LockContention,
        share: (b.phases)
            .filter(|_| nothing_waits || context.observed.files.is_some())
            .map(|_| share),
        of_threads: context.share_of_threads(attribution.lock),
        condition: contended.is_some() && long_enough(context),
        max_severity: match is_used {
            true => Severity::Critical,
            false => Severity::Warning,
        },
        summary: format!(
            "{} of request time in the server is spent waiting for the lock of {place} that other operations change",
            percent(share)
        ),
        evidence: all_evidence,
        advice,
        ruled_out_reason: match b.phases {
            None => NO_PHASES.into(),
            Some(_) if nothing_waits || contended.is_some() => other_waits_reason(context),
            Some(_) if context.observed.files.is_some() => {
                "no directory or file is shown to have changes that wait for each other: see unknown_waits".into()
            }
            Some(_) => "operations were not counted by directory and file: see unknown_waits".into(),
        },
    }
}

fn overlap(c: &Contended) -> Evidence {
    let what = match c.directories {
        true => "directory",
        false => "file",
    };
    let text = match c.places {
        1 => format!(
            "on average {:.1} changes of one {what} are under way at the same time, with {} of the time of the operations that wait",
            c.at_once,
            percent(c.share)
        ),
        n => format!(
            "changes of {n} directories or files overlap, up to {:.1} at the same time on average, with {} of the time of the \
             operations that wait",
            c.at_once,
            percent(c.share)
        ),
    };
    evidence(&f::OP_DURATION.info, c.at_once, Some(OVERLAP), text)
}
