//! NFSv4.1 sessions: what the raw client says of its slots, and what the server answers, is what the agent counts.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use lab::reconcile::{lost, merged, settled, window};
use lab::{Agent, Server};
use nfscope_model::{Scheme, Snapshot, family};

/// Nobody may have the server mounted: kernel clients have sessions, too.
pub fn are_counted(server: &Server, agent: &Agent) -> Result<()> {
    let mut before = settled(server, &[agent])?;
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
        let used = merged(&seen, &family::SESSION_SLOTS_USED.info, |_| true);
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
            let count = sum(&seen, &family::SESSION_REQUESTS.info, slots);
            assert_eq!(count, n, "{scenario}: requests with slots {slots}");
            let count = sum(&seen, &family::CLIENT_SESSION_REQUESTS.info, slots);
            assert_eq!(count, n, "{scenario}: the client's with slots {slots}");
        }
        let called: f64 = seen.numbers(&family::CLIENT_REQUESTS).map(|(_, n)| n).sum();
        assert_eq!(called as u64, sent.calls, "{scenario}: requests");
        let replays: f64 = seen.numbers(&family::SESSION_REPLAYS).map(|(_, n)| n).sum();
        assert_eq!(replays as u64, sent.slot_replays, "{scenario}: replays");
        before = after;
    }
    let slots = agent.snapshot()?;
    let granted: Vec<f64> = slots
        .numbers(&family::CLIENT_SESSION_SLOTS)
        .map(|(_, n)| n)
        .collect();
    ensure!(granted.iter().all(|n| *n >= 1.0), "{granted:?}");
    Ok(())
}

fn sum(seen: &Snapshot, info: &family::Info, last: &str) -> u64 {
    lab::reconcile::by_last_label(seen, info, |_| true)
        .get(last)
        .map_or(0, |n| *n as u64)
}
