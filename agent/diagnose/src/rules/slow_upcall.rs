//! `slow_upcall`: threads wait for rpc.mountd, rpc.idmapd, rpc.svcgssd or nfsdcld.
//!
//! The kernel keeps their answers for a while, so that waits are few. Each can be long: mountd asks DNS and the directory of users. A
//! thread gives up after five seconds, or after one second if no thread is free, and the request is deferred. Its time in the server is
//! then not measured, so those waits are added to residence here.

use crate::attribution::{deferred_seconds, upcall_seconds};
use crate::breakdown::{Breakdown, NamedWaits, part, sum};
use crate::rules::context::{Context, RuleResult};
use crate::rules::evidence::{NO_PHASES, NOT_APART, evidence, percent, tail};
use crate::rules::other_waits::{behind_evidence, or_behind};
use crate::thresholds::LONG_WAIT_SECONDS;
use nfscope_model::family as f;
use nfscope_model::finding::{Evidence, Kind, Severity};
use nfscope_text::units::seconds;

/// Programs that store the clients which may reclaim their state.
const TRACKER: &str = "nfsdcld or nfsdcltrack";
/// Least part of the wait time for which a daemon is named.
const NAMED_PART: f64 = 0.1;
/// Least part of the wait time for which a kind of upcall is evidence.
const TOLD_PART: f64 = 0.01;
/// Limit of the kinds of upcalls that are described.
const NAMED: usize = 3;

pub fn rule(context: &Context) -> RuleResult {
    let (b, attribution) = (context.breakdown, context.attribution);
    let slow = attribution.upcalls_are_slow;
    // Program `upcall` belongs to the probes of illumos.
    let known = b.rare_known
        && !b.not_attached.contains("upcall")
        && (upcall_seconds(b) == 0.0 || !b.lacks(&f::UPCALL_WAIT.info));
    let asked = sum(b.upcalls.iter().map(|u| u.waits.sum));
    let deferred = if slow { deferred_seconds(b) } else { 0.0 };
    let share = part(attribution.upcall + deferred, b.residence + deferred);
    RuleResult {
        kind: Kind::SlowUpcall,
        share: b.phases.filter(|_| known).map(|_| share),
        of_threads: part(attribution.upcall + deferred, b.thread_seconds() + deferred),
        condition: slow,
        max_severity: Severity::Critical,
        summary: format!(
            "{} of request time in the server{} is spent waiting for {}{}",
            percent(share),
            match deferred > 0.0 {
                true => ", and of the time of requests that were put aside,",
                false => "",
            },
            match daemons(b).as_slice() {
                [one] => one,
                _ => "daemons",
            },
            or_behind(context, Kind::SlowUpcall)
        ),
        evidence: b
            .upcalls
            .iter()
            .take(NAMED)
            .filter(|u| part(u.waits.sum, asked) >= TOLD_PART)
            .filter_map(of_one)
            .chain(behind_evidence(context, Kind::SlowUpcall))
            .chain(deferred_evidence(b, deferred))
            .collect(),
        advice: advice(b),
        ruled_out_reason: match (b.phases, b.upcalls.first().and_then(of_one)) {
            (None, _) => NO_PHASES.into(),
            _ if !known => NOT_APART.into(),
            (_, Some(e)) => e.text,
            (_, None) => "no thread waited for a daemon".into(),
        },
    }
}

/// Daemon that answers this kind of upcall, and its question in words.
fn daemon(upcall: &str) -> (&'static str, &'static str) {
    match upcall {
        "client" => ("rpc.mountd", "who a client is"),
        "groups" => ("rpc.mountd", "which groups a user is in"),
        "export" => ("rpc.mountd", "what may be exported to a client"),
        "handle" => ("rpc.mountd", "which export a file handle belongs to"),
        "idmap" => ("rpc.idmapd", "the names or numbers of users"),
        "gss" => ("rpc.svcgssd", "whether a Kerberos ticket is right"),
        "client_tracking" => (TRACKER, "which clients may reclaim their state"),
        _ => ("a daemon", "something that nfscope does not know"),
    }
}

/// Daemons with at least `NAMED_PART` of the time that threads wait for daemons, the one with the longest wait first.
fn daemons(b: &Breakdown) -> Vec<&'static str> {
    let all = sum(b.upcalls.iter().map(|u| u.waits.sum));
    let mut by_daemon: Vec<(&str, f64)> = Vec::new();
    for u in &b.upcalls {
        let name = daemon(&u.name).0;
        match by_daemon.iter_mut().find(|(known, _)| *known == name) {
            Some((_, seconds)) => *seconds += u.waits.sum,
            None => by_daemon.push((name, u.waits.sum)),
        }
    }
    by_daemon.retain(|(_, seconds)| part(*seconds, all) >= NAMED_PART);
    by_daemon.sort_by(|a, b| b.1.total_cmp(&a.1));
    by_daemon.into_iter().map(|(name, _)| name).collect()
}

fn of_one(u: &NamedWaits) -> Option<Evidence> {
    let mean = u.waits.mean()?;
    let (who, what) = daemon(&u.name);
    let text = format!(
        "threads ask {who} {what}: {:.0} waits, {} on average, {}",
        u.waits.count(),
        seconds(mean),
        tail(&u.waits, mean)
    );
    let limit = Some(LONG_WAIT_SECONDS);
    Some(evidence(&f::UPCALL_WAIT.info, mean, limit, text))
}

fn deferred_evidence(b: &Breakdown, deferred: f64) -> Option<Evidence> {
    (b.deferred > 0.0 && deferred > 0.0).then(|| {
        let text = format!(
            "{:.0} requests were put aside, because no answer came in time",
            b.deferred
        );
        evidence(&f::RPC_DROPPED.info, b.deferred, None, text)
    })
}

fn advice(b: &Breakdown) -> Vec<String> {
    let slow = daemons(b);
    let asked = |who: &str| slow.contains(&who);
    let mut all = Vec::new();
    if b.illumos {
        // The kernel asks gssd by RPC and not by a door, so that wait is not measured here.
        all.push(
            "look at mountd, nfsmapid and idmap, and at the name services that they ask (DNS, LDAP): svcs -xv; time getent hosts CLIENT; time id USER"
                .to_owned(),
        );
        return all;
    }
    if asked("rpc.mountd") {
        all.push(
            "look at rpc.mountd and at the name services that it asks (DNS, LDAP, sssd): systemctl status nfs-mountd; time getent hosts CLIENT; time id USER"
                .to_owned(),
        );
        all.push("more threads of rpc.mountd answer more questions at a time: [mountd] threads= in /etc/nfs.conf".into());
    }
    if asked("rpc.idmapd") {
        all.push("look at rpc.idmapd and at the directory of users that it asks: systemctl status nfs-idmapd".into());
    }
    if asked("rpc.svcgssd") {
        all.push(
            "look at rpc.svcgssd and at the Kerberos server: systemctl status rpc-svcgssd".into(),
        );
    }
    if asked(TRACKER) {
        all.push(
            "look at what nfsdcld or nfsdcltrack waits for: the disk below /var/lib/nfs, on which each new client is stored, or a CPU"
                .into(),
        );
    }
    all
}
