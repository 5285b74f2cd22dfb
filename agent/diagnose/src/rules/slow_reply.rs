//! `slow_reply`: threads that send replies wait for the client or the network.

use crate::breakdown::{Client, mean, part, sum};
use crate::group;
use crate::rules::context::{Context, RuleResult};
use crate::rules::evidence::{evidence, percent};
use crate::thresholds::LONG_WAIT_SECONDS;
use nfscope_model::family as f;
use nfscope_model::finding::{Evidence, Kind, Severity};
use nfscope_text::units::{many, seconds};

/// Least round trip that points to the network; a shorter one points to the client.
const LONG_ROUND_TRIP_SECONDS: f64 = 10e-3;
/// Round trip below which the link to a client is not long.
const NEAR_SECONDS: f64 = 1e-3;
/// Least part of the time of sending replies for which a client is named.
const NAMED_SHARE: f64 = 0.25;

pub fn rule(context: &Context) -> RuleResult {
    let (b, attribution) = (context.breakdown, context.attribution);
    let share = context.share(attribution.reply);
    let each = mean(b.reply, b.requests);
    RuleResult {
        kind: Kind::SlowReply,
        share: Some(share),
        of_threads: context.share_of_threads(attribution.reply),
        condition: b.enough() && attribution.reply > 0.0,
        max_severity: Severity::Critical,
        summary: format!(
            "{} of request time in the server is spent on replies that wait for the client or the network",
            percent(share)
        ),
        evidence: evidence_for(context, each),
        advice: advice(context),
        ruled_out_reason: match b.requests {
            0.0 => "no reply was sent".into(),
            _ => format!("sending a reply takes {} on average", seconds(each)),
        },
    }
}

/// Clients by their part of the time of sending replies, the largest first. The round trip does not matter here.
fn by_time<'a>(context: &Context<'a>) -> Vec<(&'a Client, f64)> {
    let clients = &context.breakdown.clients;
    let sent = sum(clients.iter().filter_map(|c| c.reply));
    let mut all: Vec<_> = (clients.iter())
        .filter_map(|c| Some((c, part(c.reply?, sent))))
        .filter(|(_, share)| *share > 0.0)
        .collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all
}

fn advice(context: &Context) -> Vec<String> {
    let all = by_time(context);
    let near = sum(all
        .iter()
        .filter(|(c, _)| c.min_rtt.is_some_and(|rtt| rtt < NEAR_SECONDS))
        .map(|(_, s)| *s));
    let far = sum(all
        .iter()
        .filter(|(c, _)| c.min_rtt.is_some_and(|rtt| rtt >= LONG_ROUND_TRIP_SECONDS))
        .map(|(_, s)| *s));
    let mut all = vec![
        "check the clients: a client that is busy or swaps does not read its replies".to_owned(),
        "check the network to the clients: speed, losses (nstat TcpRetransSegs), duplex, a saturated link".to_owned(),
    ];
    if far >= NAMED_SHARE {
        all.swap(0, 1);
    }
    // No clients, or no round trips: a long link is not ruled out.
    if near < 1.0 - NAMED_SHARE {
        all.push(
            "a server behind a long link needs larger socket buffers: net.ipv4.tcp_wmem".to_owned(),
        );
    }
    all
}

fn evidence_for(context: &Context, each: f64) -> Vec<Evidence> {
    let text = format!(
        "sending a reply takes {} on average: the socket buffer is full until the client has read more",
        seconds(each)
    );
    let limit = Some(LONG_WAIT_SECONDS);
    let mut all = vec![evidence(&f::RPC_PHASE.info, each, limit, text)];
    let by_time = by_time(context);
    let late: Vec<_> = by_time.iter().filter(|(_, s)| *s >= NAMED_SHARE).collect();
    let parts: Vec<_> = by_time.iter().map(|(c, s)| (c.name.as_str(), *s)).collect();
    // A client whose part is similar to that of others is named in a group with them.
    let group = group::leading(&parts).filter(|group| group.names.len() > late.len());
    if let (true, Some((first, share))) = (late.is_empty() || group.is_some(), by_time.first()) {
        let text = match group {
            Some(group) => format!(
                "of the time of sending replies {}{}",
                group.words(),
                round_trips(&by_time[..group.names.len()])
            ),
            None => format!(
                "the time of sending replies is that of {}, of which none has a quarter: {} has most, {}",
                many(by_time.len() as f64, "client"),
                first.name,
                percent(*share)
            ),
        };
        all.push(evidence(&f::CLIENT_REPLY_SECONDS.info, *share, None, text));
        return all;
    }
    for (client, share) in late {
        let text = format!(
            "{} of the time of sending replies is spent on {}{}",
            percent(*share),
            client.name,
            client
                .min_rtt
                .map_or(String::new(), |rtt| round_trip(client, rtt))
        );
        all.push(evidence(&f::CLIENT_REPLY_SECONDS.info, *share, None, text));
    }
    all
}

/// Text about the round trips of a group of clients; empty if those of some are not known.
fn round_trips(clients: &[(&Client, f64)]) -> String {
    let all: Option<Vec<_>> = clients.iter().map(|(c, _)| c.min_rtt).collect();
    let Some(all) = all else {
        return String::new();
    };
    let shortest = all.iter().copied().fold(f64::INFINITY, f64::min);
    let longest = all.iter().copied().fold(0.0, f64::max);
    if longest < NEAR_SECONDS {
        return format!(
            "; their shortest round trips are {} or less, so the clients themselves read slowly",
            seconds(longest)
        );
    }
    match shortest >= LONG_ROUND_TRIP_SECONDS {
        true => format!(
            "; their shortest round trips are {} or more: the network is part of the delay",
            seconds(shortest)
        ),
        false => String::new(),
    }
}

/// Text about a client's round trip and its replies.
fn round_trip(client: &Client, rtt: f64) -> String {
    let each = mean(client.reply.unwrap_or(0.0), client.ops);
    let of_it = match rtt {
        rtt if rtt >= LONG_ROUND_TRIP_SECONDS => "the network is part of the delay",
        rtt if each > rtt => "a short round trip, so the client itself reads slowly",
        _ => "a short round trip",
    };
    format!(", whose shortest round trip is {}: {of_it}", seconds(rtt))
}
