//! `slow_reply`: threads that send replies wait for the client or the network.

use crate::attribution::{LONG_WAIT_SECONDS, MIN_COUNT};
use crate::breakdown::{mean, part, sum};
use crate::rules::context::{Context, RuleResult};
use crate::rules::evidence::{evidence, percent};
use nfscope_model::family as f;
use nfscope_model::finding::{Evidence, Kind, Severity};
use nfscope_text::units::seconds;

/// A longer round trip points to the network, a shorter one to the client.
const LONG_ROUND_TRIP_SECONDS: f64 = 10e-3;

pub fn rule(context: &Context) -> RuleResult {
    let (b, attribution) = (context.breakdown, context.attribution);
    let share = context.share(attribution.reply + attribution.queue.reply);
    let each = mean(b.reply, b.requests);
    RuleResult {
        kind: Kind::SlowReply,
        share: Some(share),
        condition: b.requests >= MIN_COUNT && attribution.reply > 0.0,
        max_severity: Severity::Critical,
        summary: format!(
            "{} of request time in the server is spent on replies that wait for the client or the network",
            percent(share)
        ),
        evidence: evidence_for(context, each),
        advice: vec![
            "check the network to the clients: speed, losses (nstat TcpRetransSegs), duplex, a saturated link".into(),
            "check the clients: a client that is busy or swaps does not read its replies".into(),
            "a server behind a long link needs larger socket buffers: net.ipv4.tcp_wmem".into(),
        ],
        ruled_out_reason: format!("sending a reply takes {} on average", seconds(each)),
    }
}

fn evidence_for(context: &Context, each: f64) -> Vec<Evidence> {
    let clients = &context.breakdown.clients;
    let text = format!(
        "sending a reply takes {} on average: the socket buffer is full until the client has read more",
        seconds(each)
    );
    let limit = Some(LONG_WAIT_SECONDS);
    let mut all = vec![evidence(&f::RPC_PHASE.info, each, limit, text)];
    if let Some((name, rtt)) = (clients.iter())
        .filter_map(|c| Some((&c.name, c.rtt?)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
    {
        let text = format!(
            "the longest round-trip time is {} to {name}: {}",
            seconds(rtt),
            match rtt {
                far if far >= LONG_ROUND_TRIP_SECONDS => "the network is part of the delay",
                _ => "a short round trip, so the client itself reads slowly",
            }
        );
        all.push(evidence(&f::CLIENT_RTT.info, rtt, None, text));
    }
    if let Some(c) = clients.first() {
        let share = part(c.seconds, sum(clients.iter().map(|c| c.seconds)));
        let text = format!("{} has {} of the operation time", c.name, percent(share));
        all.push(evidence(&f::CLIENT_OP_SECONDS.info, share, None, text));
    }
    all
}
