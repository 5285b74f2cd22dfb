//! `state_recovery_storm`: clients make new leases and sessions, or ask which of their states are left, instead of working. Each such
//! request is quick, so nothing else shows the problem.

use crate::breakdown::{Breakdown, Op, part, sum};
use crate::by_client::ClientOps;
use crate::observed::SharedOwner;
use crate::put_off::Retrying;
use crate::rules::context::{Context, RuleResult};
use crate::rules::evidence::{evidence, percent};
use crate::rules::retry_later::answers;
use crate::thresholds::{LONG_PART, MIN_COUNT, MIN_RECOVERIES, RECOVERING_RATIO, RECOVERY_RATIO};
use nfscope_model::family as f;
use nfscope_model::finding::{Evidence, Kind, Severity};
use nfscope_text::units::many;

/// Operations that make or end a lease or a session, or recover state. A client needs a few when it mounts. Each stands for one
/// request: others of a recovery, such as DELEGPURGE, are rare.
const NEW_LEASE: [&str; 8] = [
    "exchange_id",
    "create_session",
    "reclaim_complete",
    "destroy_session",
    "destroy_clientid",
    "bind_conn_to_session",
    "setclientid",
    "setclientid_confirm",
];
/// Operations that ask which states are left, and free the others.
const LOST_STATE: [&str; 2] = ["test_stateid", "free_stateid"];
/// Most owners, clients and operations that the evidence names.
const NAMED: usize = 4;

fn count(b: &Breakdown, names: &[&str]) -> f64 {
    sum(b.ops_named(names).map(|o| o.count))
}

fn recoveries(r: &Retrying) -> f64 {
    sum(r.recovers.iter().map(|a| a.count))
}

/// Returns true if a client finds its lease, session or state gone again and again, however many others work.
fn recovers_again_and_again(r: &Retrying) -> bool {
    let n = recoveries(r);
    n >= MIN_RECOVERIES && r.requests.is_some_and(|all| n >= RECOVERING_RATIO * all)
}

pub fn rule(context: &Context) -> RuleResult {
    let b = context.breakdown;
    let mut recovering: Vec<_> = (b.retrying.iter())
        .filter(|r| recovers_again_and_again(r))
        .collect();
    recovering.sort_by(|a, b| recoveries(b).total_cmp(&recoveries(a)));
    let (leases, lost) = (count(b, &NEW_LEASE), count(b, &LOST_STATE));
    let share = part(leases + lost, b.requests);
    let of_all = leases + lost >= MIN_COUNT && share >= RECOVERY_RATIO;
    let busy = busy_client(context).filter(|_| !of_all && recovering.is_empty());
    let shared = &context.observed.shared_owners;
    let mut advice = Vec::new();
    if !shared.is_empty() {
        advice.push(
            "give each of the clients above a host name of its own, or a nfs4_unique_id (parameter of the module nfs), and mount anew"
                .to_owned(),
        );
    } else if (leases >= lost && !ended_by_themselves(b)) || !recovering.is_empty() {
        advice.push(
            "look for clients with one identity, which end each other's lease in turn: cloned machines with one host name; give each a nfs4_unique_id (parameter of the module nfs)"
                .to_owned(),
        );
    }
    if leases >= lost || !recovering.is_empty() {
        advice.push(
            "look for programs that mount and unmount again and again (autofs, containers)".into(),
        );
    }
    if lost > 0.0 || !recovering.is_empty() {
        advice.push(
            "look for clients that lost their lease: the client's kernel log, the network between, and nfscope_nfs4_callbacks for callback paths that are down"
                .into(),
        );
    }
    RuleResult {
        kind: Kind::StateRecoveryStorm,
        share: Some(share),
        of_threads: 0.0,
        condition: of_all || !recovering.is_empty() || busy.is_some() || !shared.is_empty(),
        max_severity: Severity::Warning,
        summary: match recovering.as_slice() {
            _ if of_all => format!(
                "{} of the requests make or recover NFSv4 state instead of working with files",
                percent(share)
            ),
            [] => match &busy {
                Some((client, _)) => {
                    format!("{client} makes or recovers NFSv4 state instead of working with files")
                }
                None => "clients with one identity end each other's NFSv4 leases".to_owned(),
            },
            [one] => format!(
                "{} recovers its NFSv4 lease, session or state again and again instead of working with files",
                one.client
            ),
            all => format!(
                "{} recover their NFSv4 lease, session or state again and again instead of working with files",
                many(all.len() as f64, "client")
            ),
        },
        evidence: (shared.iter().take(NAMED).map(shared_evidence))
            .chain(busy.map(|(_, evidence)| evidence))
            .chain(recovering.iter().take(NAMED).map(|r| client_evidence(r)))
            .chain(evidence_for(b))
            .collect(),
        advice,
        ruled_out_reason: format!(
            "{} of the requests make or recover NFSv4 state",
            percent(share)
        ),
    }
}

/// True if clients end as many leases as they make: one whose lease another client ends does not.
fn ended_by_themselves(b: &Breakdown) -> bool {
    count(b, &["destroy_clientid"]) >= LONG_PART * count(b, &["exchange_id", "setclientid"])
}

/// The client with the most requests that recover state, if these are most of its requests. It needs operations that were counted by
/// client.
fn busy_client(context: &Context) -> Option<(String, Evidence)> {
    let counted = context.observed.clients.as_ref()?;
    let recovers = |c: &ClientOps| c.count(&NEW_LEASE) + c.count(&LOST_STATE);
    let busy = (counted.clients.iter())
        .filter(|c| recovers(c) >= MIN_COUNT && recovers(c) >= RECOVERY_RATIO * c.requests())
        .max_by(|a, b| recovers(a).total_cmp(&recovers(b)))?;
    let of = part(recovers(busy), busy.requests()).min(1.0);
    let text = format!(
        "{} of the requests of {} make or recover NFSv4 state",
        percent(of),
        busy.client
    );
    let limit = Some(RECOVERY_RATIO);
    let evidence = evidence(&f::CLIENT_OPS.info, of, limit, text);
    Some((busy.client.clone(), evidence))
}

/// Evidence about clients that the kernel takes for one.
fn shared_evidence(owner: &SharedOwner) -> Evidence {
    let addresses: Vec<_> = owner.addresses.iter().map(String::as_str).collect();
    let text = format!(
        "{} come in turn under the name of one client ({}): the lease of one ends with the next",
        addresses.join(" and "),
        owner.name
    );
    let n = owner.addresses.len() as f64;
    evidence(&f::NFS4_CLIENTS.info, n, Some(1.0), text)
}

fn client_evidence(r: &Retrying) -> Evidence {
    let text = format!(
        "{} found its lease, session or state gone: {}",
        r.client,
        answers(&r.recovers, r.requests)
    );
    evidence(
        &f::CLIENT_RETRIED.info,
        recoveries(r),
        Some(MIN_RECOVERIES),
        text,
    )
}

fn evidence_for(b: &Breakdown) -> Vec<Evidence> {
    let mut ops: Vec<&Op> = b
        .ops_named(&NEW_LEASE)
        .chain(b.ops_named(&LOST_STATE))
        .collect();
    ops.sort_by(|a, b| b.count.total_cmp(&a.count));
    let named: Vec<_> = (ops.iter().take(NAMED))
        .map(|o| {
            format!(
                "{:.1} {} over NFSv{}",
                b.rate(o.count),
                o.op.to_uppercase(),
                o.version
            )
        })
        .collect();
    let all = sum(ops.iter().map(|o| o.count));
    let text = format!(
        "{:.1} such operations/s among {:.1} requests/s: {}",
        b.rate(all),
        b.rate(b.requests),
        named.join(", ")
    );
    let of = part(all, b.requests);
    let mut evidences = vec![evidence(
        &f::OP_DURATION.info,
        of,
        Some(RECOVERY_RATIO),
        text,
    )];
    if let Some(n) = b.revoked.filter(|n| *n > 0.0) {
        let text = format!(
            "an administrator has taken away {}; no client has acknowledged that",
            many(n, "state")
        );
        evidences.push(evidence(&f::NFS4_REVOKED.info, n, None, text));
    }
    evidences
}
