//! Functions that the rules of `lock_contention` and `unknown_waits` share. Both rules are about the phase lock: every sleep without a
//! phase of its own.

use crate::attribution::longest_wait;
use crate::breakdown::part;
use crate::observed::Contended;
use crate::rules::context::Context;
use crate::rules::evidence::{evidence, percent};
use crate::thresholds::{BEGIN_WAITING, END_WAITING, FELT_SECONDS, LONG_WAIT_SECONDS};
use nfscope_model::family as f;
use nfscope_model::finding::{Evidence, Kind};
use nfscope_text::units::seconds;

/// The directories or files whose changes wait for each other, where other waits are long.
pub fn contended(context: &Context) -> Option<Contended> {
    let long = context.attribution.lock > 0.0;
    let places = || context.observed.contended(context.breakdown);
    long.then(places).flatten()
}

/// Returns true if operations wait long enough for a client to notice, whatever part of the time it is.
pub fn long_enough(context: &Context) -> bool {
    let (b, lock) = (context.breakdown, context.attribution.lock);
    let is_active = (context.active.iter())
        .any(|kind| matches!(kind, Kind::UnknownWaits | Kind::LockContention));
    let limit = match is_active {
        true => END_WAITING,
        false => BEGIN_WAITING,
    };
    let felt = (b.ops.iter()).any(|o| o.felt > 0.0 && o.phases.lock >= FELT_SECONDS);
    part(lock, b.length) >= limit || (felt && lock > 0.0)
}

/// The operation that waits most, and how long.
pub fn longest_wait_evidence(context: &Context) -> Option<Evidence> {
    let (op, each) = longest_wait(context.breakdown, |p| p.lock)?;
    let text = format!(
        "one {} over NFSv{} is in such a wait for {} on average, {} of its time (threshold: {})",
        op.op.to_uppercase(),
        op.version,
        seconds(each),
        percent(part(op.phases.lock, op.seconds)),
        seconds(LONG_WAIT_SECONDS)
    );
    let limit = Some(LONG_WAIT_SECONDS);
    Some(evidence(&f::OP_PHASE.info, each, limit, text))
}

/// Cause that the holders of locks wait for, after "wait".
fn holders_wait(kind: Kind) -> &'static str {
    match kind {
        Kind::SlowDisk => "for disks",
        Kind::WriteThrottle => "until written data is stored",
        Kind::SlowUpcall => "for a daemon",
        Kind::DelegationRecalls => "until clients return delegations",
        Kind::MemoryReclaim => "until memory is free",
        _ => "for something else",
    }
}

/// Evidence about waits for locks whose holders wait for a cause.
pub fn behind_evidence(context: &Context, kind: Kind) -> Option<Evidence> {
    let seconds = context.attribution.behind(kind);
    let share = context.share(seconds);
    let text = format!(
        "for {} of request time operations wait for the lock of a directory or file, and the holder of the lock waits {}",
        percent(share),
        holders_wait(kind)
    );
    (seconds > 0.0).then(|| evidence(&f::OP_PHASE.info, share, None, text))
}

/// End of a sentence about waits of requests.
pub fn or_behind(context: &Context, kind: Kind) -> &'static str {
    match kind {
        _ if context.attribution.behind(kind) == 0.0 => "",
        Kind::WriteThrottle => ", or for a file whose writer waits for that",
        _ => ", or for locks whose holders wait for that",
    }
}

/// Reason why other waits are not a finding.
pub fn other_waits_reason(context: &Context) -> String {
    let (b, a) = (context.breakdown, context.attribution);
    if a.behind_log > a.disk_behind_log {
        return format!(
            "waits for locks are {} of request time, and those who hold the locks wait for the log",
            percent(context.share(a.behind_log - a.disk_behind_log))
        );
    }
    let most = a.behind.iter().max_by(|a, b| a.1.total_cmp(b.1));
    if let Some((kind, seconds)) = most {
        return format!(
            "waits for locks are {} of request time, and those who hold the locks wait {}",
            percent(context.share(*seconds)),
            holders_wait(*kind)
        );
    }
    let lock = b.phases.map_or(0.0, |p| p.lock);
    let each = longest_wait(b, |p| p.lock).map_or(String::new(), |(op, each)| {
        format!(", {} for each {}", seconds(each), op.op.to_uppercase())
    });
    let few = match a.lock > 0.0 && !long_enough(context) {
        true => format!(
            "; on average {:.2} operations wait at the same time, {BEGIN_WAITING} or more is much",
            part(lock, b.length)
        ),
        false => String::new(),
    };
    format!(
        "other waits are {} of request time{each}{few}",
        percent(context.share(lock))
    )
}
