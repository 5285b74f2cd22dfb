//! `bad_rpcs`: a client sends calls that the server refuses before it executes anything. Each call takes a thread for a moment, and some
//! kernels miscount connections because of them.

use crate::breakdown::part;
use crate::refused::{OfClient, Refused};
use crate::rules::context::{Context, RuleResult};
use crate::rules::evidence::{evidence, percent};
use crate::thresholds::{BAD_RPCS_A_SECOND, BEGIN_SHARE, END_SHARE, MIN_COUNT};
use nfscope_model::family as f;
use nfscope_model::finding::{Evidence, Kind, Severity};
use nfscope_text::units::many;

/// Most clients that the evidence names.
const NAMED: usize = 3;

pub fn rule(context: &Context) -> RuleResult {
    let b = context.breakdown;
    let refused = b.refused.as_ref();
    let count = refused.map_or(0.0, |r| r.count);
    // Calls with arguments that cannot be decoded are counted as requests, too.
    let counted = refused.map_or(0.0, |r| r.clients.iter().map(|c| c.arguments).sum());
    let share = part(count, (b.requests - counted).max(0.0) + count);
    let active = context.active.contains(&Kind::BadRpcs);
    let (least_share, least_rate) = match active {
        true => (END_SHARE, BAD_RPCS_A_SECOND / 2.0),
        false => (BEGIN_SHARE, BAD_RPCS_A_SECOND),
    };
    let many_of_them = share >= least_share || rate(count, b.length) >= least_rate;
    RuleResult {
        kind: Kind::BadRpcs,
        share: refused.map(|_| share),
        of_threads: 0.0,
        condition: count >= MIN_COUNT && many_of_them,
        max_severity: Severity::Warning,
        summary: refused.map_or_else(String::new, |r| summary(r, share)),
        evidence: refused.map_or(Vec::new(), |r| evidence_for(r, b.length)),
        advice: refused.map_or(Vec::new(), advice),
        ruled_out_reason: match refused {
            None => "this host does not count calls that are refused".into(),
            Some(r) => format!(
                "{} {} refused before anything was executed",
                many(r.count, "call"),
                were(r.count)
            ),
        },
    }
}

/// Calls a second; 0 where no time has passed.
fn rate(count: f64, length: f64) -> f64 {
    if length > 0.0 { count / length } else { 0.0 }
}

fn were(n: f64) -> &'static str {
    if n == 1.0 { "was" } else { "were" }
}

fn summary(r: &Refused, share: f64) -> String {
    let from = match r.clients.as_slice() {
        [] => String::new(),
        [one] => format!(" from {}", one.client),
        more => format!(" from {}", many(more.len() as f64, "client")),
    };
    format!(
        "{}{from} {} refused before anything was executed: {} of all calls",
        many(r.count, "call"),
        were(r.count),
        percent(share)
    )
}

/// Sentence about the calls of a client.
fn of_client(c: &OfClient) -> String {
    let kinds = [
        (c.format, "of a wrong form"),
        (c.auth, "with credentials that are refused"),
        (c.arguments, "whose arguments cannot be decoded"),
    ];
    let some = kinds.iter().filter(|(n, _)| *n > 0.0);
    let texts: Vec<_> = some.map(|(n, what)| format!("{n:.0} {what}")).collect();
    format!("{} sent {}", c.client, texts.join(", "))
}

fn evidence_for(r: &Refused, length: f64) -> Vec<Evidence> {
    let info = &f::CLIENT_REFUSED.info;
    let mut all: Vec<_> = (r.clients.iter().take(NAMED))
        .map(|c| evidence(info, c.all(), None, of_client(c)))
        .collect();
    let named: f64 = r.clients.iter().take(NAMED).map(OfClient::all).sum();
    let others = (r.count - named).max(0.0);
    if others > 0.0 {
        let who = match r.clients.is_empty() {
            true => "nothing tells who sent them",
            false => "the kernel counts so many more than are known by client",
        };
        let text = format!("{} more: {who}", many(others, "call"));
        all.push(evidence(&f::RPC_DROPPED.info, others, None, text));
    }
    let rate = rate(r.count, length);
    let text = format!("{rate:.1} calls a second were refused; {BAD_RPCS_A_SECOND:.0} are many");
    let limit = Some(BAD_RPCS_A_SECOND);
    all.push(evidence(&f::RPC_DROPPED.info, rate, limit, text));
    all
}

fn advice(r: &Refused) -> Vec<String> {
    let mut all = Vec::new();
    if r.count > r.auth {
        all.push("find the program at that address: ss -tnp dport = :2049 there; port scanners, health checks of load balancers, and clients of a version that this server does not serve send such calls".to_owned());
    }
    if r.auth > 0.0 {
        all.push("credentials are refused where the export's sec= lacks the client's, where the clocks differ by minutes, or without a valid keytab (Kerberos): check these".into());
    }
    all.push(
        "let clients alone reach port 2049: a firewall takes the others before they cost anything"
            .into(),
    );
    all
}
