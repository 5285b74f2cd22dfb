//! NFSv4.1 sessions: the agent's counts equal the slots of the raw client, and the answers of the server.

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};
use lab::raw::Sent;
use lab::reconcile::{agree, agree_each, by_last_label, lost, merged, missed_of, settled, window};
use lab::{Agent, Server};
use nfscope_model::{Scheme, Snapshot, family};

/// Slots and SEQUENCEs of the raw client. No client may have the server mounted, because kernel clients have sessions, too.
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
        let now = agent.snapshot()?;
        are_those_sent(scenario, &seen, &sent, missed_of(&now, "nfsd"))?;
        failed += sent.sequence_errors.values().sum::<u64>();
        let granted: Vec<f64> = now
            .numbers(&family::CLIENT_SESSION_SLOTS)
            .map(|(_, n)| n)
            .collect();
        // The series of each export has the slots of the last session.
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

/// Checks slots, requests, replays and failed SEQUENCEs against the raw client's counts, but for `missed` requests that skipped
/// programs of the kernel may have made late.
pub fn are_those_sent(scenario: &str, seen: &Snapshot, sent: &Sent, missed: u64) -> Result<()> {
    let used = merged(seen, &family::SESSION_SLOTS_USED.info, |_| true);
    let used = used.unwrap_or_else(|| nfscope_model::Histogram::new(Scheme::COUNT));
    let told = used.counts.iter().copied().enumerate().collect();
    let mut expected = BTreeMap::new();
    for (slots, n) in &sent.slots_used {
        *expected
            .entry(Scheme::COUNT.bucket(f64::from(*slots)))
            .or_default() += n;
    }
    agree_each(
        &format!("{scenario}: slots in use"),
        &told,
        &expected,
        missed,
    )?;
    let all: u64 = sent.slots_used.iter().map(|(s, n)| u64::from(*s) * n).sum();
    let most = sent.slots_used.keys().max().map_or(0, |s| u64::from(*s));
    let name = format!("{scenario}: the sum of slots in use");
    agree(&name, used.sum as u64, all, missed * most)?;
    let requests: u64 = sent.slots_used.values().sum();
    let expected = BTreeMap::from([
        ("free", requests - sent.slots_full),
        ("full", sent.slots_full),
    ]);
    for family in [&family::SESSION_REQUESTS, &family::CLIENT_SESSION_REQUESTS] {
        let told = ["free", "full"].map(|slots| (slots, sum(seen, &family.info, slots)));
        let name = format!("{scenario}: {}", family.info.name);
        agree_each(&name, &BTreeMap::from(told), &expected, missed)?;
    }
    for (family, sent) in [
        (&family::CLIENT_REQUESTS, sent.calls),
        (&family::SESSION_REPLAYS, sent.slot_replays),
    ] {
        let told: f64 = seen.numbers(family).map(|(_, n)| n).sum();
        let name = format!("{scenario}: {}", family.info.name);
        agree(&name, told as u64, sent, missed)?;
    }
    let name = format!("{scenario}: SEQUENCEs that failed");
    agree_each(
        &name,
        &sequence_errors(seen),
        &named(&sent.sequence_errors)?,
        missed,
    )
}

/// The agent's counts of failed SEQUENCEs, by status.
fn sequence_errors(seen: &Snapshot) -> BTreeMap<String, u64> {
    let errors = by_last_label(seen, &family::OP_ERRORS.info, |of| of[1] == "sequence");
    let some = errors.into_iter().filter(|(_, n)| *n > 0.0);
    some.map(|(status, n)| (status, n as u64)).collect()
}

/// Names of statuses in RFC 8881 (section 15.1), in lower case.
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
