//! A window's judgement: a pure function.

use crate::attribution::{Charge, FEW};
use crate::breakdown::{Account, part};
use crate::rules;
use crate::rules::{Case, Judged};
use nfscope_model::Window;
use nfscope_model::finding::{Diagnosis, Finding, Headroom, Kind, RuledOut, Severity, Verdict};
use nfscope_text::units::many;

/// A finding begins where a cause explains this part of residence,
pub const BEGINS: f64 = 0.25;
/// and ends below this.
pub const ENDS: f64 = 0.15;
/// It is critical from here on.
const CRITICAL: f64 = 0.5;
/// Requests in the server at a time (Little's law), below which nobody is kept waiting by anything.
const LOAD: f64 = 0.05;

/// Judges a window. What is in `held` stays a finding until it explains less than [`ENDS`].
pub fn judge(window: &Window, held: &[Kind]) -> Diagnosis {
    let account = Account::of(window);
    let charge = Charge::of(&account);
    let judged = rules::all(&Case {
        a: &account,
        c: &charge,
    });
    let loaded = account.requests >= FEW && part(account.residence, account.length) >= LOAD;
    let mut d = Diagnosis {
        window_seconds: account.length,
        verdict: Verdict::Healthy,
        reason: String::new(),
        requests: account.requests,
        residence_seconds: account.residence,
        findings: Vec::new(),
        ruled_out: Vec::new(),
        headroom: headroom(&account),
    };
    for j in judged {
        let enough = if held.contains(&j.kind) { ENDS } else { BEGINS };
        match j.share {
            Some(share) if loaded && j.holds && share >= enough => {
                d.findings.push(finding(j, share));
            }
            share => d.ruled_out.push(RuledOut {
                kind: j.kind,
                share: share.map(|s| if j.holds { s } else { 0.0 }),
                why: j.otherwise,
            }),
        }
    }
    d.findings.sort_by(|a, b| b.share.total_cmp(&a.share));
    let of = |r: &RuledOut| r.share.unwrap_or(-1.0);
    d.ruled_out.sort_by(|a, b| of(b).total_cmp(&of(a)));
    let untold: Vec<_> = (d.ruled_out.iter())
        .filter(|r| r.share.is_none())
        .map(|r| r.kind.as_str())
        .collect();
    (d.verdict, d.reason) = match (d.findings.is_empty(), loaded, untold.is_empty()) {
        (false, _, _) => (Verdict::Findings, String::new()),
        (true, false, _) => (Verdict::Healthy, little(&account)),
        (true, true, true) => (Verdict::Healthy, String::new()),
        (true, true, false) => (
            Verdict::Unknown,
            format!("this host does not tell {}", untold.join(", ")),
        ),
    };
    d
}

fn little(a: &Account) -> String {
    if a.requests == 0.0 {
        return "no requests: there is nothing to judge".to_owned();
    }
    format!(
        "{:.0} requests in {:.0} s, {:.2} in the server at a time: too few to keep anybody waiting",
        a.requests,
        a.length,
        a.rate(a.residence)
    )
}

fn finding(j: Judged, share: f64) -> Finding {
    let severity = if share >= CRITICAL {
        Severity::Critical
    } else {
        Severity::Warning
    };
    Finding {
        kind: j.kind,
        severity: severity.min(j.worst),
        share,
        summary: j.summary,
        evidence: j.evidence,
        advice: j.advice,
    }
}

/// What is in use, by what the probes and the kernel count.
fn headroom(a: &Account) -> Vec<Headroom> {
    let mut all = Vec::new();
    let mut add = |resource: String, used: f64| all.push(Headroom { resource, used });
    if let Some(busy) = a.busy {
        add(many(a.threads, "thread"), busy);
    }
    if let (Some(n), Some(idle)) = (a.processors, a.idle) {
        add(many(n, "processor"), 1.0 - idle);
    }
    // A journal of ext4 writes one transaction after the other. Other logs write several blocks at once, so that the sum of
    // their times does not say how full they are.
    for l in a.logs.iter().filter(|l| l.fs == "ext4") {
        if let Some(written) = l.written {
            add(
                format!("log of {} on {}", l.fs, l.volume),
                part(written, a.length),
            );
        }
    }
    all.sort_by(|a, b| b.used.total_cmp(&a.used));
    all
}
