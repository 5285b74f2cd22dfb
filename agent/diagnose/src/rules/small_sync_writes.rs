//! `small_sync_writes`: most requests are WRITEs or COMMITs that make few bytes durable. They are not slow, only many.

use crate::attribution::{io_behind_log_is_known, slowness_of_disks_is_known};
use crate::breakdown::{Breakdown, mean, part, sum};
use crate::by_client::{self, Mostly};
use crate::rules::context::{Context, RuleResult};
use crate::rules::evidence::{busiest_client, bytes, evidence, of_client, percent};
use crate::thresholds::{
    BEGIN_SHARE, END_MANY_LOST, MANY_LOST, MIN_COUNT, SLOW_LOG_SECONDS, SMALL_BYTES, SYNC_RATIO,
};
use nfscope_model::family as f;
use nfscope_model::finding::{Evidence, Kind, Severity};

/// Least number of COMMITs per unstable WRITE from which on these WRITEs count as synchronous, too.
const COMMITS_PER_SYNC_WRITE: f64 = 0.5;

/// Difference of shares below which slow disks cannot change the printed share.
const LITTLE_SHARE: f64 = 0.005;

/// Requests that make data durable.
struct SyncWrites {
    /// COMMITs.
    commits: f64,
    /// Stable WRITEs and COMMITs.
    flushes: f64,
    /// The part of the WRITEs that is synchronous.
    write_ratio: f64,
    /// Bytes per stable WRITE or COMMIT.
    bytes_each: f64,
    /// The part of the requests that are synchronous WRITEs or COMMITs.
    of_requests: f64,
}

impl SyncWrites {
    fn of(b: &Breakdown) -> SyncWrites {
        let commits = sum(b.ops_named(&["commit"]).map(|o| o.count));
        let flushes = b.stable_writes + commits;
        let stable = part(b.stable_writes, b.writes);
        let unstable = b.writes - b.stable_writes;
        let write_ratio = stable
            + if commits >= COMMITS_PER_SYNC_WRITE * unstable {
                1.0 - stable
            } else {
                0.0
            };
        SyncWrites {
            commits,
            flushes,
            write_ratio,
            bytes_each: mean(b.write_bytes, flushes),
            of_requests: part(commits + b.writes * write_ratio, b.requests),
        }
    }
}

pub fn rule(context: &Context) -> RuleResult {
    let b = context.breakdown;
    let sync = SyncWrites::of(b);
    let share = share_of(context, &sync);
    let disk_is_known = slowness_of_disks_is_known(b)
        || share >= BEGIN_SHARE
        || share_if_disks_are_quick(context, &sync) - share < LITTLE_SHARE;
    let is_active = context.active.contains(&Kind::SmallSyncWrites);
    let of_all = sync.of_requests >= SYNC_RATIO;
    let one = one_client(context, &sync, is_active).filter(|_| !of_all);
    let share = one.as_ref().map_or(share, |one| one.share);
    let lost = part(share * b.residence, b.length);
    // A kernel without BTF of nfsd does not show the stability of WRITEs.
    let measured = !b.lacks(&f::WRITE.info) && !b.lacks(&f::WRITE_BYTES.info);
    let written = b.ops_named(&["write"]).any(|o| o.count > 0.0);
    // Time with a slow log or disk is not in the share, so it must be possible to distinguish that time.
    let known = !written || measured && disk_is_known && io_behind_log_is_known(b);
    RuleResult {
        kind: Kind::SmallSyncWrites,
        share: known.then_some(share),
        of_threads: 0.0,
        // Each request is quick, so only clients that do little else lose much.
        condition: lost >= if is_active { END_MANY_LOST } else { MANY_LOST }
            && b.writes >= MIN_COUNT
            && sync.bytes_each < SMALL_BYTES
            && (of_all || one.is_some()),
        max_severity: Severity::Warning,
        summary: format!(
            "{} of request time in the server is spent on synchronous WRITEs and COMMITs{}, {} at a time",
            percent(share),
            one.as_ref().map_or(String::new(), |one| format!(" of {}", one.client)),
            bytes(sync.bytes_each)
        ),
        evidence: one.iter().map(of_one).chain(evidence_for(context, &sync)).collect(),
        advice: [
            "find the program: nfscope slow --min-latency 0ms --op write,commit (column SYNC). Check whether it needs \
             O_SYNC or an fsync after each write"
                .into(),
            "clients that mount with sync, or open files with O_SYNC or O_DSYNC, write like this".into(),
        ]
        .into_iter()
        .chain(faster_log(b))
        .collect(),
        ruled_out_reason: match sync.flushes >= MIN_COUNT {
            _ if !known && measured => {
                "operations slept for I/O, and it is not known on which device; `nfscope check` shows why".into()
            }
            _ if !known => {
                "the stability or the bytes of WRITEs are not measured on this host; `nfscope check` shows why".into()
            }
            true => format!(
                "a stable WRITE or COMMIT is for {} on average; {} of the requests are synchronous WRITEs or COMMITs{}",
                bytes(sync.bytes_each),
                percent(sync.of_requests),
                match share >= BEGIN_SHARE && lost < MANY_LOST {
                    true => format!(", of which {lost:.2} are in the server on average: less than {MANY_LOST} is little"),
                    false => String::new(),
                }
            ),
            false if sync.flushes > 0.0 => format!(
                "{:.0} stable WRITEs and COMMITs are too few to judge: {MIN_COUNT} or more are judged",
                sync.flushes
            ),
            false => "no data had to be durable at once".into(),
        },
    }
}

/// Part of residence that synchronous WRITEs and COMMITs take without waiting for something slow.
fn share_of(context: &Context, sync: &SyncWrites) -> f64 {
    let b = context.breakdown;
    let cost = |op: &str| sum((b.ops_named(&[op])).map(|o| context.attribution.unattributed(o)));
    context.share_of_unattributed(cost("commit") + cost("write") * sync.write_ratio)
}

/// Same part of residence if none of the slow devices belongs to an export: the largest that it can be where the devices of exports are
/// not known.
fn share_if_disks_are_quick(context: &Context, sync: &SyncWrites) -> f64 {
    let mut attribution = context.attribution.clone();
    attribution.disk = 0.0;
    attribution.behind.remove(&Kind::SlowDisk);
    let quick = Context {
        breakdown: context.breakdown,
        attribution: &attribution,
        active: context.active,
        observed: context.observed,
    };
    share_of(&quick, sync)
}

/// A client that mostly writes synchronously. The stability of WRITEs is not counted by client, so that of all WRITEs is used.
fn one_client(context: &Context, sync: &SyncWrites, active: bool) -> Option<Mostly> {
    let (b, a) = (context.breakdown, context.attribution);
    let counted = context.observed.clients.as_ref();
    by_client::mostly(b, counted, SYNC_RATIO, active, |c| {
        let writes = c.count(&["write"]) * sync.write_ratio;
        let seconds = c.unattributed(&["write"], b, a) * sync.write_ratio;
        (
            writes + c.count(&["commit"]),
            seconds + c.unattributed(&["commit"], b, a),
        )
    })
}

fn of_one(one: &Mostly) -> Evidence {
    let what = "synchronous WRITEs or COMMITs, if its WRITEs are synchronous as often as those of all clients";
    of_client(one, what, SYNC_RATIO)
}

/// Advice about a faster log, by the operations that wait for the present one.
fn faster_log(b: &Breakdown) -> Option<String> {
    let waits = b.phases.and_then(|p| p.log);
    let logs = sum(b.logs.iter().map(|l| l.waits.count() as f64));
    let each = mean(sum(b.logs.iter().map(|l| l.waits.sum)), logs);
    let of_all = part(waits?, b.residence);
    // A wait for a journal is for the rest of one write and for the next one, so that a fast device has waits of twice its time.
    let writes = b.logs.iter().filter_map(|l| l.writes_in_turn()?.mean());
    let write = writes.reduce(f64::max).unwrap_or(each);
    let each = each.min(write);
    match each < SLOW_LOG_SECONDS / 2.0 || of_all < BEGIN_SHARE {
        true => None,
        false => {
            Some("if the writes must be synchronous, a log on fast storage makes them cheap".into())
        }
    }
}

fn evidence_for(context: &Context, sync: &SyncWrites) -> Vec<Evidence> {
    let b = context.breakdown;
    let size = format!(
        "a stable WRITE or COMMIT is for {} on average; less than {} is small",
        bytes(sync.bytes_each),
        bytes(SMALL_BYTES)
    );
    let ratio = format!(
        "{} of the requests are synchronous WRITEs or COMMITs",
        percent(sync.of_requests)
    );
    let rates = format!(
        "{:.0} stable WRITEs/s and {:.0} COMMITs/s, with {:.0} WRITEs/s in total",
        b.rate(b.stable_writes),
        b.rate(sync.commits),
        b.rate(b.writes)
    );
    let mut all = vec![
        evidence(
            &f::WRITE_BYTES.info,
            sync.bytes_each,
            Some(SMALL_BYTES),
            size,
        ),
        evidence(
            &f::OP_DURATION.info,
            sync.of_requests,
            Some(SYNC_RATIO),
            ratio,
        ),
        evidence(&f::WRITE.info, b.rate(sync.flushes), None, rates),
    ];
    all.extend(busiest_client(context));
    all
}
