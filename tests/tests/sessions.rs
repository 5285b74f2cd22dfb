//! NFSv4.1 sessions: what the raw client says of its slots, and what the server answers, is what the agent counts.

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};
use lab::raw::Sent;
use lab::reconcile::{by_last_label, lost, merged, settled, window};
use lab::{Agent, Server};
use nfscope_model::{Scheme, Snapshot, family};

/// Nobody may have the server mounted: kernel clients have sessions, too.
pub fn are_counted(server: &Server, agent: &Agent) -> Result<()> {
    let (mut before, mut failed) = (settled(server, &[agent])?, 0);
    for scenario in ["v4-slots", "v4-session", "v4-errors"] {
        let sent = server.raw(scenario)?;
        let after = settled(server, &[agent])?;
        let (_, seen) = window(&before, &after, 0);
        println!(
            "{scenario}: {:?}, {} full, {} replays; lost {:?}",
            sent.slots_used,
            sent.slots_full,
            sent.slot_replays,
            lost(&seen)
        );
        are_those_sent(scenario, &seen, &sent)?;
        failed += sent.sequence_errors.values().sum::<u64>();
        let now = agent.snapshot()?;
        let granted: Vec<f64> = now
            .numbers(&family::CLIENT_SESSION_SLOTS)
            .map(|(_, n)| n)
            .collect();
        // Of each export, the last session's.
        ensure!(
            granted.contains(&f64::from(sent.slots_granted)),
            "{scenario}: {} slots were granted, and {granted:?} are told",
            sent.slots_granted
        );
        before = after;
    }
    ensure!(failed >= 4, "{failed} SEQUENCEs failed");
    Ok(())
}

/// Slots, requests, replays and SEQUENCEs that failed, as the raw client knows them.
pub fn are_those_sent(scenario: &str, seen: &Snapshot, sent: &Sent) -> Result<()> {
    let used = merged(seen, &family::SESSION_SLOTS_USED.info, |_| true);
    let used = used.unwrap_or_else(|| nfscope_model::Histogram::new(Scheme::COUNT));
    let mut expected = vec![0; Scheme::COUNT.len];
    for (slots, n) in &sent.slots_used {
        expected[Scheme::COUNT.bucket(f64::from(*slots))] += n;
    }
    assert_eq!(used.counts, expected, "{scenario}: slots in use");
    let all: u64 = sent.slots_used.iter().map(|(s, n)| u64::from(*s) * n).sum();
    assert_eq!(used.sum as u64, all, "{scenario}: their sum");
    let requests: u64 = sent.slots_used.values().sum();
    let told = BTreeMap::from([
        ("free", requests - sent.slots_full),
        ("full", sent.slots_full),
    ]);
    for (slots, n) in told {
        let count = sum(seen, &family::SESSION_REQUESTS.info, slots);
        assert_eq!(count, n, "{scenario}: requests with slots {slots}");
        let count = sum(seen, &family::CLIENT_SESSION_REQUESTS.info, slots);
        assert_eq!(count, n, "{scenario}: the client's with slots {slots}");
    }
    let called: f64 = seen.numbers(&family::CLIENT_REQUESTS).map(|(_, n)| n).sum();
    assert_eq!(called as u64, sent.calls, "{scenario}: requests");
    let replays: f64 = seen.numbers(&family::SESSION_REPLAYS).map(|(_, n)| n).sum();
    assert_eq!(replays as u64, sent.slot_replays, "{scenario}: replays");
    assert_eq!(
        sequence_errors(seen),
        named(&sent.sequence_errors)?,
        "{scenario}: SEQUENCEs that failed"
    );
    Ok(())
}

/// What the agent counts of SEQUENCEs that failed, by status.
fn sequence_errors(seen: &Snapshot) -> BTreeMap<String, u64> {
    let errors = by_last_label(seen, &family::OP_ERRORS.info, |of| of[1] == "sequence");
    let some = errors.into_iter().filter(|(_, n)| *n > 0.0);
    some.map(|(status, n)| (status, n as u64)).collect()
}

/// Names of statuses as RFC 8881 has them (section 15.1), in lower case.
fn named(errors: &BTreeMap<u32, u64>) -> Result<BTreeMap<String, u64>> {
    let name = |status: u32| {
        Ok(match status {
            10052 => "badsession",
            10053 => "badslot",
            10063 => "seq_misordered",
            10064 => "sequence_pos",
            other => bail!("SEQUENCE failed with {other}, which the test does not expect"),
        })
    };
    let named = errors
        .iter()
        .map(|(status, n)| Ok((name(*status)?.to_owned(), *n)));
    named.collect()
}

fn sum(seen: &Snapshot, info: &family::Info, last: &str) -> u64 {
    by_last_label(seen, info, |_| true)
        .get(last)
        .map_or(0, |n| *n as u64)
}
