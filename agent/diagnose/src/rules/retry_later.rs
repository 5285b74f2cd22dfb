//! `retry_later`: operations are answered with the request to try again later, or locks are denied. Clients wait and ask again. That time
//! passes outside the server and is in no phase, so a client that is deferred for ever looks like an idle one.

use crate::breakdown::{Breakdown, part, sum};
use crate::put_off::{Answers, Denied, NlmClient, PutOff, Retrying};
use crate::rules::context::{Context, RuleResult};
use crate::rules::evidence::{evidence, percent};
use crate::rules::recall_evidence;
use crate::thresholds::{
    BEGIN_SHARE, END_SHARE, FELT_SECONDS, LOCK_WAIT_SECONDS, MIN_DENIED, MIN_PUT_OFF,
    STANDING_RATIO,
};
use nfscope_model::comes_again::rfc_name;
use nfscope_model::family as f;
use nfscope_model::finding::{Evidence, Kind, Severity};
use nfscope_text::units::{many, seconds, times};

/// Most operations, and most clients, that the evidence names.
const NAMED: usize = 3;
/// `NFS4_LOCK_MAXTIMEOUT` (fs/nfs/nfs4proc.c): the longest time for which a Linux client sleeps between two LOCKs.
const LONGEST_SLEEP: &str = "30 s";

/// Returns true if the operation gets no other answer: a client retries again and again. Once there is a finding, one answer is enough,
/// because a client retries ever more rarely.
fn always(p: &PutOff, active: bool) -> bool {
    p.count >= if active { 1.0 } else { MIN_PUT_OFF } && p.count >= p.of
}

/// Seconds that Linux clients have waited outside the server. A client that retries again and again counts as waiting all the time.
fn lost(b: &Breakdown, p: &PutOff, active: bool) -> f64 {
    match always(p, active) {
        true => p.waited().max(b.length),
        false => p.waited(),
    }
}

/// Returns true if the client asks for a lock again and again, and gets none.
fn polls(d: &Denied, active: bool) -> bool {
    d.count >= if active { 1.0 } else { MIN_DENIED } && d.granted == 0.0
}

/// Clients of NFSv3 that have waited long for a lock.
fn long_lock_waits(b: &Breakdown, active: bool) -> Vec<&NlmClient> {
    let least = match active {
        true => FELT_SECONDS,
        false => LOCK_WAIT_SECONDS,
    };
    let waits = b.nlm_clients.iter().flatten();
    waits.filter(|c| c.waits >= least).collect()
}

/// Part of its time that a client spends outside the server, if that is much: it may be one of many that work.
fn share_of_client(b: &Breakdown, r: &Retrying, active: bool) -> Option<f64> {
    let count = sum(r.later.iter().map(|a| a.count));
    let least = if active { 1.0 } else { MIN_PUT_OFF };
    let stands = r.requests.is_some_and(|all| count >= STANDING_RATIO * all) && count >= least;
    let lost = match stands {
        true => r.waited.max(b.length),
        false => r.waited,
    };
    let share = part(lost, r.seconds + lost);
    let threshold = if active { END_SHARE } else { BEGIN_SHARE };
    (share >= threshold && lost >= BEGIN_SHARE * b.length && lost >= FELT_SECONDS).then_some(share)
}

pub fn rule(context: &Context) -> RuleResult {
    let b = context.breakdown;
    let active = context.active.contains(&Kind::RetryLater);
    let mut all: Vec<_> = (b.put_off.iter())
        .map(|p| (p, lost(b, p, active)))
        .collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    let polling: Vec<_> = b.denied.iter().filter(|d| polls(d, active)).collect();
    let standing: Vec<_> = (b.retrying.iter())
        .filter_map(|r| Some((r, share_of_client(b, r, active)?)))
        .collect();
    let lost = sum(all.iter().map(|(_, lost)| *lost)) + polling.len() as f64 * b.length;
    let of_all = part(lost, b.residence + lost);
    let of_clients = standing.iter().map(|(_, share)| *share);
    let waits = long_lock_waits(b, active);
    let threshold = if active { END_SHARE } else { BEGIN_SHARE };
    let stands = match (polling.is_empty(), waits.is_empty()) {
        (false, _) => 1.0,
        // A client that waits among many that work is listed after their causes.
        (true, false) => threshold.max(part(
            waits.len() as f64 * b.length,
            b.residence + waits.len() as f64 * b.length,
        )),
        (true, true) => 0.0,
    };
    let share = of_clients.chain([stands]).fold(of_all, f64::max);
    let lost = lost + sum(waits.iter().map(|c| c.waits));
    let put_off = !all.is_empty() || !standing.is_empty();
    RuleResult {
        kind: Kind::RetryLater,
        // Without lockd's answers the share is a lower bound.
        share: Some(share).filter(|share| *share > 0.0 || b.nlm_clients.is_some()),
        of_threads: 0.0,
        condition: share >= threshold && (active || lost >= FELT_SECONDS),
        // A lock that another client holds is often the way in which programs cooperate.
        max_severity: match put_off {
            true => Severity::Critical,
            false => Severity::Warning,
        },
        summary: said(b, &polling, &waits).unwrap_or_default(),
        evidence: [
            standing
                .iter()
                .take(NAMED)
                .map(|(r, _)| client_evidence(r))
                .collect(),
            evidence_for(&all, active),
            lock_evidence(b),
            lock_wait_evidence(&waits),
            b.recalls
                .as_ref()
                .filter(|_| put_off)
                .map(recall_evidence::all)
                .unwrap_or_default(),
        ]
        .concat(),
        advice: advice(b, put_off),
        ruled_out_reason: said(b, &[], &[]).unwrap_or_else(|| {
            let unseen = match b.nlm_clients {
                None => "; locks of NFSv3 that clients wait for are not known",
                Some(_) => "",
            };
            format!("no operation was answered with the request to try again later{unseen}")
        }),
    }
}

/// Sentences on answers that made clients wait; `None` if there were none.
fn said(b: &Breakdown, polling: &[&Denied], waits: &[&NlmClient]) -> Option<String> {
    let mut sentences: Vec<_> = lock_wait_sentence(waits).into_iter().collect();
    if !b.put_off.is_empty() {
        let answers = match sum(b.put_off.iter().map(|p| p.count)) {
            1.0 => "1 operation was".to_owned(),
            n => format!("{n:.0} operations were"),
        };
        sentences.push(format!(
            "{answers} answered with the request to try again later: Linux clients wait for {} at least, outside the server",
            seconds(sum(b.put_off.iter().map(PutOff::waited)))
        ));
    }
    sentences.extend(match polling {
        [] => match sum(b.denied.iter().map(|d| d.count)) {
            0.0 => None,
            n => Some(denied_sentence(n)),
        },
        [one] => Some(format!(
            "{} asks again and again for a lock that is held, and sleeps for up to {LONGEST_SLEEP} between, outside the server",
            one.who()
        )),
        more => Some(format!(
            "{} ask again and again for locks that are held, and sleep for up to {LONGEST_SLEEP} between, outside the server",
            many(more.len() as f64, "client")
        )),
    });
    (!sentences.is_empty()).then(|| sentences.join("; "))
}

fn lock_wait_sentence(waits: &[&NlmClient]) -> Option<String> {
    let longest = seconds(waits.first()?.waits);
    Some(match waits {
        [one] => format!(
            "{} waits for a lock over NFSv3 that another holds, for {longest} by now",
            one.client
        ),
        more => format!(
            "{} wait for locks over NFSv3 that others hold, the first of them for {longest} by now",
            many(more.len() as f64, "client")
        ),
    })
}

fn denied_sentence(n: f64) -> String {
    let locks = match n {
        1.0 => "1 LOCK was".to_owned(),
        n => format!("{n:.0} LOCKs were"),
    };
    format!("{locks} denied because the lock is held")
}

/// Sentences about operations and locks that got only such answers. Clients wait for them at the end of the window although they are no
/// finding.
pub fn outstanding(b: &Breakdown) -> Vec<String> {
    let ops = (b.put_off.iter().filter(|p| p.count >= p.of)).map(|p| {
        let op = p.op.to_uppercase();
        let status = rfc_name(&p.version, &p.status);
        match p.count {
            1.0 => format!("the only {op} was answered with {status}"),
            n => format!("all {n:.0} {op} were answered with {status}"),
        }
    });
    let locks = (b.denied.iter().filter(|d| d.granted == 0.0)).map(|d| {
        format!(
            "{} was denied a lock {} and was granted none",
            d.who(),
            times(d.count)
        )
    });
    let waits: Vec<_> = b.nlm_clients.iter().flatten().collect();
    ops.chain(locks).chain(lock_wait_sentence(&waits)).collect()
}

fn advice(b: &Breakdown, put_off: bool) -> Vec<String> {
    let mut all: Vec<&str> = Vec::new();
    if put_off {
        all.extend(match b.illumos {
            true => [
                "look for a client that does not return a delegation: nfscope slow shows the paths of its files, and a client that stays silent loses it after the lease time",
                "the server answers so, too, when the file system fetches data from slower storage: check that",
            ],
            false => [
                "look for a client that does not return a delegation: /proc/fs/nfsd/clients/*/states lists who holds what, and a client that stays silent loses it after the lease time",
                "nfsd answers so, too, when rpc.mountd does not answer, without memory, and when the file system fetches data from slower storage: check those",
            ],
        });
    }
    if b.put_off.iter().any(|p| p.status == "grace") {
        all.push("NFS4ERR_GRACE ends by itself: the server was started a short while ago, and clients claim their files and locks again (/proc/fs/nfsd/nfsv4gracetime, 90 s by default)");
    }
    if !b.denied.is_empty() || b.nlm_clients.iter().flatten().next().is_some() {
        all.push(match b.illumos {
            true => "find the program that holds the lock, and end it or wait for it",
            false => "find the program that holds the lock, and end it or wait for it: /proc/fs/nfsd/clients/*/states has lines with type: lock and the name of the file, and info beside it the client's address; /proc/locks has locks of programs on this server, and of clients of NFSv3 in the name of lockd",
        });
    }
    if !b.denied.is_empty() {
        all.push("a client of NFSv4.0 sleeps for ever longer between two LOCKs, and gets the lock long after it was free; from NFSv4.1 on the server calls the client when the lock is free");
    }
    all.into_iter().map(str::to_owned).collect()
}

fn evidence_for(all: &[(&PutOff, f64)], active: bool) -> Vec<Evidence> {
    let mut texts = Vec::new();
    for (p, _) in all.iter().take(NAMED) {
        let how_many = match always(p, active) {
            true => format!("all {:.0}", p.count.max(p.of)),
            false => format!("{:.0} of {:.0}", p.count, p.of.max(p.count)),
        };
        let text = format!(
            "{how_many} {} operations over NFSv{} were answered with {} ({})",
            p.op.to_uppercase(),
            p.version,
            rfc_name(&p.version, &p.status),
            percent(part(p.count, p.of.max(p.count)))
        );
        texts.push(evidence(&f::OP_ERRORS.info, p.count, None, text));
    }
    texts
}

fn client_evidence(r: &Retrying) -> Evidence {
    let text = format!(
        "{} waits outside the server for {} at least: {}",
        r.client,
        seconds(r.waited),
        answers(&r.later, r.requests)
    );
    let count = sum(r.later.iter().map(|a| a.count));
    evidence(&f::CLIENT_RETRIED.info, count, None, text)
}

/// Sentence about the most frequent answers, and the number of requests among which they are.
pub fn answers(all: &[Answers], requests: Option<f64>) -> String {
    let named: Vec<_> = (all.iter().take(NAMED))
        .map(|a| {
            let op = a.op.to_uppercase();
            format!(
                "{:.0} {op} with {}",
                a.count,
                rfc_name(&a.version, &a.status)
            )
        })
        .collect();
    match requests {
        Some(n) => format!("of its {n:.0} requests, {}", named.join(", ")),
        None => named.join(", "),
    }
}

/// Clients of NFSv3 that were told to wait for locks.
fn lock_wait_evidence(waits: &[&NlmClient]) -> Vec<Evidence> {
    let one = |c: &&NlmClient| {
        let text = format!(
            "{} has been told to wait for a lock (NLM4_BLOCKED) for {}, and was granted none since",
            c.client,
            seconds(c.waits)
        );
        let limit = Some(LOCK_WAIT_SECONDS);
        evidence(&f::CLIENT_NLM_WAIT.info, c.waits, limit, text)
    };
    waits.iter().take(NAMED).map(one).collect()
}

/// Clients that were denied locks, and clients that hold some.
fn lock_evidence(b: &Breakdown) -> Vec<Evidence> {
    let mut all: Vec<_> = (b.denied.iter().take(NAMED))
        .map(|d| {
            let granted = match d.granted {
                0.0 => "was granted none".to_owned(),
                n => format!("was granted {n:.0}"),
            };
            let text = format!(
                "{} was denied a lock {} (NFS4ERR_DENIED), and {granted}",
                d.who(),
                times(d.count)
            );
            evidence(&f::CLIENT_RETRIED.info, d.count, None, text)
        })
        .collect();
    if !b.denied.is_empty() && !b.lock_holders.is_empty() {
        let named: Vec<_> = (b.lock_holders.iter().take(NAMED))
            .map(|(client, n)| format!("{client} ({n:.0})"))
            .collect();
        let more = match b.lock_holders.len().saturating_sub(NAMED) {
            0 => String::new(),
            n => format!(" and {}", many(n as f64, "more client")),
        };
        let text = format!(
            "clients with NFSv4 locks when the window ends, and on how many files: {}{more}",
            named.join(", ")
        );
        let n = sum(b.lock_holders.iter().map(|(_, n)| *n));
        all.push(evidence(&f::CLIENT_LOCKS_HELD.info, n, None, text));
    }
    all
}
