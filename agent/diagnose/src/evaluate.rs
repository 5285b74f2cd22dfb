//! Evaluates a window: breakdown, attribution, then one rule for each kind. A pure function.

use crate::attribution::Attribution;
use crate::breakdown::{Breakdown, Phases, part};
use crate::causes;
use crate::distance;
use crate::impact::Impact;
use crate::normal::{self, Normal};
use crate::observed::Observed;
use crate::rules;
use crate::rules::context::{Context, RuleResult};
use crate::rules::evidence::{evidence, percent, spread};
use crate::thresholds::{
    BEGIN_SHARE, CLEARLY_LONG, CRITICAL_SHARE, END_SHARE, MIN_BESIDE_SHARE, MIN_CONCURRENCY,
    MIN_COUNT, SATURATED, UNSEEN_ARRIVALS,
};
use nfscope_model::finding::{
    Diagnosis, Evidence, Finding, Headroom, Kind, RuledOut, Severity, Verdict,
};
use nfscope_model::window_parts::numbers;
use nfscope_model::{Window, family as f};
use nfscope_text::units::many;
use std::cmp::Ordering;

/// Evaluates a window. A kind in `active` stays a finding until its share falls below [`END_SHARE`].
pub fn evaluate(window: &Window, active: &[Kind]) -> Diagnosis {
    evaluate_breakdown(window, &Breakdown::of(window), active, None)
}

/// Evaluates a window with this breakdown, and with observations made while it was watched closely.
pub fn evaluate_observed(window: &Window, b: &Breakdown, observed: &Observed) -> Diagnosis {
    evaluate_with(window, b, &[], observed)
}

/// Evaluates a window with this breakdown.
pub(crate) fn evaluate_breakdown(
    window: &Window,
    breakdown: &Breakdown,
    active: &[Kind],
    normal: Option<Normal>,
) -> Diagnosis {
    let observed = Observed {
        normal,
        ..Observed::default()
    };
    evaluate_with(window, breakdown, active, &observed)
}

fn evaluate_with(
    window: &Window,
    breakdown: &Breakdown,
    active: &[Kind],
    observed: &Observed,
) -> Diagnosis {
    let attribution = Attribution::of(breakdown);
    let context = Context {
        breakdown,
        attribution: &attribution,
        active,
        observed,
    };
    let concurrency = part(breakdown.residence, breakdown.length);
    let loaded =
        (breakdown.requests >= MIN_COUNT && concurrency >= MIN_CONCURRENCY) || breakdown.felt > 0.0;
    let mut diagnosis = Diagnosis {
        window_seconds: breakdown.length,
        verdict: Verdict::Healthy,
        reason: String::new(),
        requests: breakdown.requests,
        residence_seconds: breakdown.residence,
        incomplete: incomplete(breakdown),
        findings: Vec::new(),
        ruled_out: Vec::new(),
        headroom: headroom(breakdown),
        warnings: not_durable(window),
        outside: distance::sentences(breakdown),
        unseen: unseen(breakdown),
    };
    // A deferred request is in no residence, and its client has felt it.
    let loaded_for = |kind| loaded || (kind == Kind::SlowUpcall && attribution.upcalls_are_felt);
    for kind in Kind::ALL {
        let result = rules::apply(kind, &context);
        // Some findings do not depend on a share of time: a single request that hangs, or a single client that is told to retry, is a
        // finding. A mount of this host does not depend on the requests of a server here.
        let whatever = !needs_times(kind) || kind == Kind::StateRecoveryStorm;
        let threshold = if active.contains(&kind) {
            END_SHARE
        } else {
            BEGIN_SHARE
        };
        // Behind few threads a cause has little of residence, and yet fills the threads' time.
        let few_threads = breakdown.saturated.is_none_or(|s| s >= SATURATED);
        let impact = Impact::of(kind, result.share.unwrap_or(0.0), &context);
        let beside = |share: f64, result: &RuleResult| {
            // Waits of the threads are listed beside the number of threads only if they are clearly long.
            let of_threads = result.of_threads * impact.weight_of_share;
            let clearly_long = impact.weight_of_share >= CLEARLY_LONG;
            few_threads && clearly_long && share >= MIN_BESIDE_SHARE && of_threads >= threshold
        };
        let reached = |share: f64, result: &RuleResult| {
            impact.is_lost && (share * impact.weight_of_share >= threshold || beside(share, result))
        };
        let untimed = breakdown.untimed.filter(|_| needs_times(kind));
        let in_hand = rules::stuck_requests::in_hand_for(breakdown, kind);
        match result.share {
            Some(share)
                if result.condition
                    && (whatever || (loaded_for(kind) && reached(share, &result))) =>
            {
                let is_critical = whatever || impact.is_critical;
                let may_be = result.max_severity == Severity::Critical && !whatever && !impact.felt;
                let mut found = finding(result, share, is_critical);
                if may_be && share >= CRITICAL_SHARE && normal::is_compared(kind) {
                    found
                        .evidence
                        .extend(usual(kind, &context, &diagnosis.findings));
                }
                found.evidence.extend(times(kind, breakdown));
                diagnosis.findings.push(found);
            }
            // Without the times of requests no cause can be ruled out.
            share => diagnosis.ruled_out.push(RuledOut {
                kind,
                share: share
                    .filter(|_| untimed.is_none() && in_hand.is_none())
                    .map(|s| if result.condition { s } else { 0.0 }),
                why: match (untimed.filter(|_| share.is_some()), in_hand) {
                    (Some(family), _) => not_measured(family),
                    (None, Some(waits)) => format!("{waits}: see stuck_requests"),
                    (None, None) if share.is_some() && nothing_ended(kind, breakdown) => {
                        "no request ended in the window".to_owned()
                    }
                    (None, None) => result.ruled_out_reason,
                },
            }),
        }
    }
    let findings = &mut diagnosis.findings;
    findings.sort_by(by_rank);
    let edges = causes::edges(breakdown, &attribution);
    causes::put_first(findings, |f| f.kind, &edges);
    causes::tell(findings, &edges);
    let share = |r: &RuledOut| r.share.unwrap_or(-1.0);
    let ruled_out = &mut diagnosis.ruled_out;
    ruled_out.sort_by(|a, b| share(b).total_cmp(&share(a)));
    (diagnosis.verdict, diagnosis.reason) = verdict(&diagnosis, breakdown, loaded);
    // Without a finding the verdict says it.
    if diagnosis.verdict == Verdict::Findings {
        diagnosis
            .outside
            .splice(0..0, rules::server_state(breakdown));
    }
    diagnosis
}

/// Sentence on what decides about the severity: the usual times, or that they are not known. The latter is said once.
fn usual(kind: Kind, context: &Context, before: &[Finding]) -> Option<Evidence> {
    let normal = context.observed.normal.as_ref();
    if let Some(sentence) = normal.and_then(|n| n.sentence(kind, context.breakdown)) {
        return Some(sentence);
    }
    let said = |f: &Finding| f.evidence.iter().any(|e| e.text == NOT_USUAL);
    let info = &f::OP_DURATION.info;
    // Without a timed operation nothing could be usual.
    let timed = !context.breakdown.ops.is_empty();
    (timed && !before.iter().any(said)).then(|| {
        evidence(
            info,
            context.breakdown.residence,
            None,
            NOT_USUAL.to_owned(),
        )
    })
}

/// Sentence on a severity that fixed limits decide about.
const NOT_USUAL: &str = "the severity follows fixed limits: how long such requests usually take on this server is not known";

/// True if the share of a kind is a part of no requests at all.
fn nothing_ended(kind: Kind, b: &Breakdown) -> bool {
    let of_requests = matches!(
        kind,
        Kind::StateRecoveryStorm
            | Kind::CpuSaturation
            | Kind::LockContention
            | Kind::UnknownWaits
            | Kind::ChattyClient
    );
    of_requests && b.requests == 0.0 && b.residence == 0.0
}

/// The largest share of the time first; see [`Kind::is_listed_behind`].
pub(crate) fn by_rank(a: &Finding, b: &Finding) -> Ordering {
    let rank = |f: &Finding| f.kind.is_listed_behind();
    rank(a).cmp(&rank(b)).then(b.share.total_cmp(&a.share))
}

/// The verdict, and its reason.
fn verdict(d: &Diagnosis, b: &Breakdown, loaded: bool) -> (Verdict, String) {
    if !d.findings.is_empty() {
        return (Verdict::Findings, String::new());
    }
    let outstanding = rules::outstanding(b);
    if !outstanding.is_empty() {
        return (Verdict::Unknown, outstanding.join("; "));
    }
    if let Some(family) = b.untimed {
        return (Verdict::Unknown, not_measured(family));
    }
    // A host without a server has no requests in hand.
    if !loaded && b.stuck.is_none() && b.threads > 0.0 {
        let reason = "this host cannot determine stuck_requests";
        return (
            Verdict::Unknown,
            format!("{}; {reason}", too_little_load(b)),
        );
    }
    if !loaded {
        return (Verdict::Healthy, too_little_load(b));
    }
    let not_measured: Vec<_> = (d.ruled_out.iter())
        .filter(|r| r.share.is_none() && !verdict_without(r.kind))
        .map(|r| r.kind.as_str())
        .collect();
    if not_measured.is_empty() {
        return (Verdict::Healthy, String::new());
    }
    let reason = format!("this host cannot determine {}", not_measured.join(", "));
    (Verdict::Unknown, reason)
}

/// Returns true for kinds that the verdict does not need. Connections, replies on their way, the durability of writes and this host's own
/// mounts are not part of the time of requests. Waits for a directory or file stay visible in any case: if they are not known as such, they
/// are `unknown_waits`.
fn verdict_without(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::ConnectionLimit
            | Kind::BadRpcs
            | Kind::RetryLater
            | Kind::LockContention
            | Kind::UnacknowledgedReplies
            | Kind::UnsafeWrites
            | Kind::SlowMount
    )
}

/// Returns true for kinds whose share is a part of requests or of their time.
fn needs_times(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::StuckRequests
            | Kind::RetryLater
            | Kind::UnacknowledgedReplies
            | Kind::UnsafeWrites
            | Kind::SlotStarvation
            | Kind::PnfsFallback
            | Kind::ConnectionLimit
            | Kind::BadRpcs
            | Kind::SlowMount
    )
}

fn not_measured(family: &str) -> String {
    format!("{family} is not measured on this host; `nfscope check` shows why")
}

/// Sentences on replies that are not followed to their clients, and on locks: a healthy server may hide trouble there.
fn unseen(b: &Breakdown) -> Vec<String> {
    let locks = b.nlm_clients.is_none().then(|| {
        "waits for locks of NFSv3 are not seen here: a client that waits for one looks idle"
            .to_owned()
    });
    let replies = match (&b.unacknowledged, b.unseen_transports.as_slice()) {
        (None, _) => "replies on their way to clients are not seen here: a client that does not receive them looks idle".to_owned(),
        (Some(_), []) => return locks.into_iter().collect(),
        (Some(_), transports) => format!(
            "replies over {} are not followed to their clients: one that does not receive them looks idle",
            transports.join(" and ")
        ),
    };
    [replies].into_iter().chain(locks).collect()
}

/// Most exports that are named; the others are counted.
const NAMED: usize = 3;

/// Exports that acknowledge writes before they are durable.
fn not_durable(window: &Window) -> Vec<String> {
    let mut warnings = Vec::new();
    for (reason, what, fix) in [
        ("async", "exported async", "export with the option sync"),
        (
            "sync_disabled",
            "on a dataset that had sync=disabled at its last commit",
            "zfs set sync=standard",
        ),
    ] {
        let of = numbers(window, &f::NOT_DURABLE).filter(|([_, r], _)| *r == reason);
        let exports: Vec<&str> = of.map(|([export, _], _)| export).collect();
        if exports.is_empty() {
            continue;
        }
        let mut names = exports[..exports.len().min(NAMED)].join(", ");
        if exports.len() > NAMED {
            names += &format!(" and {} more", exports.len() - NAMED);
        }
        let verb = if exports.len() == 1 { "is" } else { "are" };
        warnings.push(format!(
            "{names} {verb} {what}: a crash of this server loses writes that clients believe to be durable; fix: {fix}"
        ));
    }
    warnings
}

/// Warning about requests whose wait for a thread is not known.
fn incomplete(b: &Breakdown) -> Option<String> {
    let unseen = b.requests - b.queued;
    let share = part(unseen, b.requests);
    let why = match b.no_clock >= unseen / 2.0 {
        true => "no clock tells when requests over UDP or RDMA arrive",
        false => "their arrival was not seen (`nfscope check` shows what is not attached)",
    };
    (share >= UNSEEN_ARRIVALS).then(|| {
        format!(
            "{unseen:.0} of these requests ({}) have no complete time line: {why}. Their time in the server begins when a \
             thread takes them, and lacks their wait for a thread",
            percent(share)
        )
    })
}

fn too_little_load(b: &Breakdown) -> String {
    if b.requests == 0.0 {
        return "no requests: there is nothing to evaluate".to_owned();
    }
    format!(
        "{} in {:.0} s, {:.2} in the server on average: too little load for a bottleneck",
        many(b.requests, "request"),
        b.length,
        b.rate(b.residence)
    )
}

/// True if waits for a CPU within operations are at least `MIN_BESIDE_SHARE` of residence.
fn waits_in_operations(b: &Breakdown) -> bool {
    let runqueue = b.phases.and_then(|p| p.runqueue);
    part(runqueue.unwrap_or(0.0), b.residence) >= MIN_BESIDE_SHARE
}

/// How the times are spread of the operation that waits most for a cause.
fn times(kind: Kind, b: &Breakdown) -> Option<Evidence> {
    let phase: fn(&Phases) -> f64 = match kind {
        Kind::SlowIntentLog => |p| p.log.unwrap_or(0.0),
        Kind::SlowDisk => |p| p.disk,
        Kind::WriteThrottle => |p| p.throttle,
        Kind::DelegationRecalls => |p| p.recall,
        Kind::MemoryReclaim => |p| p.reclaim,
        // Requests that wait for a thread without a CPU have ended before their operations begin.
        Kind::CpuSaturation if !waits_in_operations(b) => return None,
        Kind::CpuSaturation => |p| p.runqueue.unwrap_or(0.0),
        Kind::LockContention | Kind::UnknownWaits => |p| p.lock,
        _ => return None,
    };
    spread(b.op_with_most(phase)?.0)
}

fn finding(result: RuleResult, share: f64, is_critical: bool) -> Finding {
    let severity = if share >= CRITICAL_SHARE && is_critical {
        Severity::Critical
    } else {
        Severity::Warning
    };
    Finding {
        kind: result.kind,
        severity: severity.min(result.max_severity),
        share,
        summary: result.summary,
        evidence: result.evidence,
        advice: result.advice,
    }
}

/// Utilization of the resources, from the probes' and the kernel's counters.
fn headroom(b: &Breakdown) -> Vec<Headroom> {
    let mut all = Vec::new();
    let mut add = |resource: String, utilization: f64| {
        all.push(Headroom {
            resource,
            utilization,
        });
    };
    if let Some(busy) = b.busy {
        add(many(b.threads, "thread"), busy);
    }
    if let (Some(n), Some(idle)) = (b.cpus, b.cpu_idle) {
        add(many(n, "CPU"), 1.0 - idle);
    }
    // The sum of write times is the utilization only for logs that write one at a time.
    for l in &b.logs {
        if let Some(writes) = l.writes_in_turn() {
            add(
                format!("log of {} on {}", l.fs, l.volume),
                part(writes.sum, b.length),
            );
        }
    }
    all.sort_by(|a, b| b.utilization.total_cmp(&a.utilization));
    all
}
