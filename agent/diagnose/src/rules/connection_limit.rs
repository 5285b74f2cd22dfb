//! `connection_limit`: more connections are open than the kernel allows, and it closes the oldest when the server accepts another one. The
//! client of the closed connection connects again, and the next oldest is closed. No request is slow in the server because of that.

use crate::breakdown::part;
use crate::connections::{Connections, Limited};
use crate::rules::context::{Context, RuleResult};
use crate::rules::evidence::evidence;
use crate::thresholds::MIN_COUNT;
use nfscope_model::family as f;
use nfscope_model::finding::{Evidence, Kind, Severity};
use nfscope_text::units::many;

/// Connections that the kernel allows for each thread, and threads that it adds (svc_check_conn_limits(), net/sunrpc/svc_xprt.c).
const FOR_EACH_THREAD: f64 = 20.0;
const THREADS_BESIDE: f64 = 3.0;

pub fn rule(context: &Context) -> RuleResult {
    let threads = context.breakdown.threads;
    let connections = context.breakdown.connections;
    let known = connections.and_then(|c| c.closed_by_limit);
    let closed = known.unwrap_or_default();
    // Each further accepted connection closes an old one.
    let exceeded = connections.is_some_and(|c| c.limited_open > c.limit);
    let wrapped = connections.is_some_and(|c| has_wrapped(&c));
    let share = match wrapped {
        // A count that has wrapped protects no connection.
        true => 1.0,
        false => connections.map_or(0.0, |c| part(closed, c.accepted).min(1.0)),
    };
    RuleResult {
        kind: Kind::ConnectionLimit,
        share: (known.is_some() || exceeded || wrapped).then_some(share),
        of_threads: 0.0,
        condition: closed > 0.0 || exceeded || wrapped,
        max_severity: match closed >= MIN_COUNT {
            true => Severity::Critical,
            false => Severity::Warning,
        },
        summary: summary(connections, closed),
        evidence: connections.map_or(Vec::new(), |c| evidence_for(&c, closed)),
        advice: connections.map_or(Vec::new(), |c| advice(&c, threads, closed)),
        ruled_out_reason: match connections {
            None => {
                "this host does not tell how many connections are open; `nfscope check` shows why"
                    .into()
            }
            Some(c) => format!(
                "{} {} open, and the kernel allows {:.0}{}",
                counted(&c),
                if c.limited_open == 1.0 { "is" } else { "are" },
                c.limit,
                match known {
                    Some(_) => "",
                    None => "; this host does not tell whether it closed some because of that",
                }
            ),
        },
    }
}

/// Number of connections that the limit applies to, in words.
fn counted(c: &Connections) -> String {
    let n = many(c.limited_open, "connection");
    match c.limited {
        Limited::All => n,
        Limited::Unproven => format!("{n} without a valid file handle"),
    }
}

/// Returns true if the kernel's count is negative, which no number of connections is.
fn has_wrapped(c: &Connections) -> bool {
    c.limited_open < 0.0
}

fn summary(connections: Option<Connections>, closed: f64) -> String {
    if connections.is_some_and(|c| has_wrapped(&c)) {
        let told = match closed > 0.0 {
            true => format!("it closed {} meanwhile", many(closed, "connection")),
            false => "its limit of connections cannot work".to_owned(),
        };
        return format!("the kernel's own count of connections has fallen below zero: {told}");
    }
    let what = match connections.map(|c| c.limited) {
        Some(Limited::Unproven) => "connections that have shown no valid file handle",
        _ => "connections",
    };
    match closed > 0.0 {
        true => format!(
            "too many {what} are open: the kernel closed {} of clients, which connect again",
            many(closed, "connection")
        ),
        false => format!(
            "too many {what} are open: the kernel closes the oldest when the server accepts another one"
        ),
    }
}

fn evidence_for(c: &Connections, closed: f64) -> Vec<Evidence> {
    let text = match has_wrapped(c) {
        true => format!(
            "the kernel counts {:.0} connections for its limit of {:.0}; {} are open",
            c.limited_open,
            c.limit,
            many(c.open, "connection")
        ),
        false => format!("{} are open; the kernel allows {:.0}", counted(c), c.limit),
    };
    let open = c.limited_open;
    let mut all = vec![evidence(
        &f::LIMITED_CONNECTIONS.info,
        open,
        Some(c.limit),
        text,
    )];
    if c.limited == Limited::Unproven {
        let text = format!("{} are open in all", many(c.open, "connection"));
        all.push(evidence(&f::CONNECTIONS.info, c.open, None, text));
    }
    if closed > 0.0 {
        let text = format!(
            "the server accepted {}, and the kernel closed {closed:.0} for being the oldest",
            many(c.accepted, "connection")
        );
        all.push(evidence(&f::CONNECTIONS_CLOSED.info, closed, None, text));
    }
    if c.drops > 0.0 {
        let text = format!(
            "TCP dropped {} of new connections, because no thread accepted those before them",
            many(c.drops, "packet")
        );
        all.push(evidence(&f::LISTENER_DROPS.info, c.drops, None, text));
    }
    all
}

fn advice(c: &Connections, threads: f64, closed: f64) -> Vec<String> {
    if has_wrapped(c) {
        return vec![
            "restart the NFS server, which alone sets the count right: systemctl restart nfs-server".into(),
            "malformed requests bring the count down on some kernels; nfscope_rpc_dropped_total with reason garbage counts them: let clients alone reach port 2049".into(),
            "until then some kernels close the oldest connection at each new one, and others keep no limit".into(),
        ];
    }
    match c.limited {
        Limited::All => {
            // Clients whose connections were closed want a connection, too.
            let needed = ((c.limited_open + closed) / FOR_EACH_THREAD - THREADS_BESIDE).ceil();
            let needed = needed.max(threads + 1.0);
            vec![
                format!(
                    "raise the number of nfsd threads to {needed:.0} or more: rpc.nfsd {needed:.0}; each thread allows 20 connections more, unless a limit is set in /proc/fs/nfsd/max_connections"
                ),
                "where a limit is set there, or threads are enough: echo the number that you want into it".into(),
                "nconnect= on clients multiplies their connections".into(),
            ]
        }
        Limited::Unproven => vec![
            "see who connects and does not mount: ss -tn 'sport = :2049' on the server; port scanners, health checks of load balancers, and clients that no export is for do so".into(),
            "where many clients come back at once, as after a restart of the server, they connect again by themselves".into(),
            "until Linux 6.13 the limit can be raised: echo the number that you want into /proc/fs/nfsd/max_connections".into(),
        ],
    }
}
