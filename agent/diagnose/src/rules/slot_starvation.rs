//! `slot_starvation`: a client sends its requests with every slot of its session in use. Further requests wait in the client, outside the
//! server, until a slot is free. The server cannot see that wait, but it sees the full session.

use crate::breakdown::{Client, part};
use crate::rules::context::{Context, RuleResult};
use crate::rules::evidence::{evidence, percent};
use crate::thresholds::{FULL_SLOTS, MIN_COUNT, SATURATED};
use nfscope_model::family as f;
use nfscope_model::finding::{Evidence, Kind, Severity};
use nfscope_text::units::many;

/// Most clients that the evidence names.
const NAMED: usize = 3;

pub fn rule(context: &Context) -> RuleResult {
    let b = context.breakdown;
    let mut starved: Vec<&Client> = (b.clients.iter())
        .filter(|c| c.full >= MIN_COUNT && part(c.full, c.sequenced) >= FULL_SLOTS)
        .collect();
    starved.sort_by(|a, b| b.full.total_cmp(&a.full));
    // More requests would wait for a thread instead of a slot.
    let threads_are_free = b.saturated.is_none_or(|s| s < SATURATED);
    let share = part(b.full_slots, b.sequenced.unwrap_or(0.0));
    // Full slots belong to a client; without one, the counts by client are missing.
    let known = b.full_slots < MIN_COUNT || b.clients.iter().any(|c| c.full > 0.0);
    RuleResult {
        kind: Kind::SlotStarvation,
        share: b.sequenced.filter(|_| known).map(|_| share),
        of_threads: 0.0,
        condition: !starved.is_empty() && threads_are_free,
        max_severity: Severity::Warning,
        summary: format!(
            "{} of the requests of NFSv4.1 sessions are sent with every slot in use; what a client has to send besides waits in the client",
            percent(share)
        ),
        evidence: evidence_for(context, &starved),
        advice: vec![
            "on these clients, compare the module parameter nfs.max_session_slots (64 by default) with the slots above: where it is no higher, raise it, unmount and mount again"
                .into(),
            "where it is higher, the server had too little memory for the replies of more slots: add memory, or unmount where nobody works"
                .into(),
            "nconnect= does not help: its connections share one session".into(),
            "the queue times of a Linux client tell how long requests wait there: mountstats of nfs-utils prints them".into(),
        ],
        ruled_out_reason: match b.sequenced.filter(|_| known) {
            None => "this host does not tell how many slots clients have in use; `nfscope check` shows why".into(),
            Some(0.0) => "no client uses an NFSv4.1 session".into(),
            Some(_) if !starved.is_empty() => {
                "a client has every slot in use, but no thread is free that could serve more".into()
            }
            Some(_) => format!(
                "{} of the requests are sent with every slot in use",
                percent(share)
            ),
        },
    }
}

fn evidence_for(context: &Context, starved: &[&Client]) -> Vec<Evidence> {
    let mut all: Vec<_> = (starved.iter().take(NAMED))
        .map(|c| {
            let of = part(c.full, c.sequenced);
            let slots = match c.slots {
                Some(n) => format!("all {}", many(n, "slot")),
                None => "every slot".to_owned(),
            };
            let text = format!(
                "{} sends {} of its {:.0} requests with {slots} of its session in use",
                c.name,
                percent(of),
                c.sequenced
            );
            let limit = Some(FULL_SLOTS);
            evidence(&f::CLIENT_SESSION_REQUESTS.info, of, limit, text)
        })
        .collect();
    if starved.len() > NAMED {
        let text = format!(
            "so do {} more",
            many((starved.len() - NAMED) as f64, "client")
        );
        let n = starved.len() as f64;
        all.push(evidence(&f::CLIENT_SESSION_REQUESTS.info, n, None, text));
    }
    if let Some(saturated) = context.breakdown.saturated {
        let text = format!(
            "a thread was free for {} of the time",
            percent(1.0 - saturated)
        );
        let limit = Some(SATURATED);
        all.push(evidence(&f::THREADS_SATURATED.info, saturated, limit, text));
    }
    all
}
