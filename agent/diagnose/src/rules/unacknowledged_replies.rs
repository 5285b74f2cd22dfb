//! `unacknowledged_replies`: the server has answered, and its TCP still keeps the replies because the client acknowledges none. To the
//! server such a client is idle, and it stands still.
//!
//! A busy connection has unacknowledged bytes for a round trip at any time. Therefore the time without an acknowledgement decides, with
//! retransmissions or a window of zero.

use crate::breakdown::{part, sum};
use crate::rules::context::{Context, RuleResult};
use crate::rules::evidence::evidence;
use crate::thresholds::{MIN_RETRANSMISSIONS, UNACKNOWLEDGED_SECONDS};
use crate::unacknowledged::described;
use nfscope_model::finding::{Evidence, Kind, Severity};
use nfscope_model::{Unacknowledged, family as f};
use nfscope_text::units::many;

/// Most clients that the evidence names.
const NAMED: usize = 3;

/// Returns true if the client has taken no data for long, which is more than a pause.
fn stands_still(c: &Unacknowledged) -> bool {
    c.seconds >= UNACKNOWLEDGED_SECONDS
        && (c.retransmissions >= MIN_RETRANSMISSIONS || c.zero_window_bytes > 0.0)
}

pub fn rule(context: &Context) -> RuleResult {
    let b = context.breakdown;
    let all = b.unacknowledged.as_deref().unwrap_or_default();
    let standing: Vec<_> = all.iter().filter(|c| stands_still(c)).collect();
    let lost = sum(standing.iter().map(|c| c.seconds.min(b.length)));
    let share = part(lost, b.residence + lost);
    RuleResult {
        kind: Kind::UnacknowledgedReplies,
        share: b.unacknowledged.as_ref().map(|_| share),
        of_threads: 0.0,
        condition: !standing.is_empty(),
        max_severity: Severity::Warning,
        summary: match standing.as_slice() {
            [one] => format!(
                "{} acknowledges no replies: it waits for them, outside the server",
                one.client
            ),
            _ => format!(
                "{} acknowledge no replies: they wait for them, outside the server",
                many(standing.len() as f64, "client")
            ),
        },
        evidence: evidence_for(&standing),
        advice: advice(&standing),
        ruled_out_reason: match &b.unacknowledged {
            None => "this host does not tell which replies clients acknowledge".into(),
            Some(all) => match all.first() {
                None => "no reply has waited for an acknowledgement for a second or longer".into(),
                Some(first) => described(first),
            },
        },
    }
}

fn evidence_for(standing: &[&Unacknowledged]) -> Vec<Evidence> {
    let limit = Some(UNACKNOWLEDGED_SECONDS);
    let info = &f::UNACKED_SECONDS.info;
    let mut all: Vec<_> = (standing.iter().take(NAMED))
        .map(|c| evidence(info, c.seconds, limit, described(c)))
        .collect();
    let more = standing.len().saturating_sub(NAMED) as f64;
    if more > 0.0 {
        let text = format!("the same is true of {} more", many(more, "client"));
        all.push(evidence(info, more, None, text));
    }
    all
}

fn advice(standing: &[&Unacknowledged]) -> Vec<String> {
    let lost = standing.iter().any(|c| c.zero_window_bytes < c.bytes);
    let full = standing.iter().any(|c| c.zero_window_bytes > 0.0);
    let mut all = Vec::new();
    if lost {
        all.push(
            "check that the client is up and that the network reaches it: ping it from this server"
                .to_owned(),
        );
        all.push("if small packets pass and large ones do not, a hop has a smaller MTU: ping -M do -s 1472 (8972 with jumbo frames); give both ends and the switches between the same MTU".into());
        all.push("ss -tin sport = :2049 shows TCP's own view of the connection".into());
    }
    if full {
        all.push("check the client: a window of zero says that it does not read its socket, for lack of memory or CPU time".into());
    }
    all
}
