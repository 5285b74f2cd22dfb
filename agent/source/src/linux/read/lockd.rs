//! Locks of NFSv3: requests of NLM, their time and their answers, in all and by client.

use super::decode::{fill, time};
use super::top_k::client_name;
use crate::linux::load::object::Loaded;
use nfscope_model::Snapshot;
use nfscope_model::family as f;
use nfscope_probes::types as t;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Procedures of NLM by their numbers; none has an empty name.
const PROCEDURES: [&str; 24] = [
    "null",
    "test",
    "lock",
    "cancel",
    "unlock",
    "granted",
    "test_msg",
    "lock_msg",
    "cancel_msg",
    "unlock_msg",
    "granted_msg",
    "test_res",
    "lock_res",
    "cancel_res",
    "unlock_res",
    "granted_res",
    "",
    "",
    "",
    "",
    "share",
    "unshare",
    "nm_lock",
    "free_all",
];

/// Answers: statuses of NLM (`enum nlm4_stats`), and three of the probe's (lockd.h).
const ANSWERS: [&str; 13] = [
    "granted",
    "denied",
    "denied_nolocks",
    "blocked",
    "denied_grace_period",
    "deadlock",
    "rofs",
    "stale_fh",
    "fbig",
    "failed",
    "none",
    "no_reply",
    "cancelled",
];

/// Time after which a client without a new request no longer waits for its lock: a Linux client asks again after 30 s
/// (`NLMCLNT_POLL_TIMEOUT`, fs/lockd/clntproc.c).
const ASKS_AGAIN: Duration = Duration::from_secs(45);

/// Clients that were told to wait for a lock.
#[derive(Debug, Default)]
pub struct Waiting(BTreeMap<String, Client>);

#[derive(Debug)]
struct Client {
    blocked: u64,
    /// Locks that were granted, or given up.
    ended: u64,
    /// The first and the last answer that told the client to wait, without a granted lock since.
    told: Option<(Instant, Instant)>,
}

impl Waiting {
    /// Reads the probe's tables.
    pub fn read(&mut self, l: &Loaded, s: &mut Snapshot) {
        if let Some(map) = l.map("lockd_procedure") {
            for (i, procedure) in (0u32..).zip(PROCEDURES) {
                if let Some(row) = map.value::<t::lockd_procedure>(&i) {
                    add_procedure(procedure, &row, s);
                }
            }
        }
        let mut counts: BTreeMap<String, [u64; 2]> = BTreeMap::new();
        if let Some(map) = l.map("lockd_client") {
            let keys = map.keys::<t::lockd_client_key>();
            fill(map, keys.len(), "lockd_client", s);
            for key in keys {
                let answer = ANSWERS.get(key.answer as usize);
                let (Some(n), Some(answer)) = (map.value::<u64>(&key), answer) else {
                    continue;
                };
                let client = client_name(key.client);
                s.counter(&f::CLIENT_NLM, [client.as_str(), answer], n as f64);
                let counts = counts.entry(client).or_default();
                match *answer {
                    "blocked" => counts[0] += n,
                    "granted" | "cancelled" => counts[1] += n,
                    _ => {}
                }
            }
        }
        let now = Instant::now();
        self.note(counts, now);
        let ages = self.ages(now);
        s.gauge(&f::NLM_WAITING, [], ages.len() as f64);
        for (client, age) in ages {
            s.gauge(&f::CLIENT_NLM_WAIT, [client], age.as_secs_f64());
        }
    }

    fn note(&mut self, counts: BTreeMap<String, [u64; 2]>, now: Instant) {
        self.0.retain(|client, _| counts.contains_key(client));
        for (client, [blocked, ended]) in counts {
            let known = self.0.entry(client).or_insert(Client {
                blocked: 0,
                ended: 0,
                told: None,
            });
            if ended != known.ended {
                known.told = None;
            } else if blocked > known.blocked {
                known.told = Some((known.told.map_or(now, |(first, _)| first), now));
            }
            known.told = known.told.filter(|(_, last)| now - *last <= ASKS_AGAIN);
            (known.blocked, known.ended) = (blocked, ended);
        }
    }

    fn ages(&self, now: Instant) -> Vec<(&str, Duration)> {
        let told = self.0.iter().filter_map(|(c, is)| Some((c, is.told?.0)));
        told.map(|(client, first)| (client.as_str(), now - first))
            .collect()
    }
}

fn add_procedure(procedure: &str, row: &t::lockd_procedure, s: &mut Snapshot) {
    let duration = time(&row.duration);
    // LOCK and UNLOCK always have series, because zero of them is known.
    let usual = ["lock", "unlock"].contains(&procedure);
    if procedure.is_empty() || (duration.count() == 0 && !usual) {
        return;
    }
    s.histogram(&f::NLM_DURATION, [procedure], duration);
    for (answer, n) in ANSWERS.iter().zip(row.answers) {
        if n > 0 {
            s.counter(&f::NLM_ANSWERS, [procedure, answer], n as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_waits_from_when_it_is_told_to_until_a_lock_is_granted_or_given_up_or_it_asks_no_more()
     {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut waiting = Waiting::default();
        let mut ages = |seconds, blocked, granted| {
            let counts = [("10.9.0.2".to_owned(), [blocked, granted])];
            waiting.note(counts.into(), at(seconds));
            let ages = waiting.ages(at(seconds));
            ages.first().map(|(_, age)| age.as_secs())
        };
        assert_eq!(ages(0, 0, 3), None);
        assert_eq!(ages(1, 1, 3), Some(0));
        assert_eq!(ages(31, 2, 3), Some(30));
        assert_eq!(ages(61, 3, 3), Some(60));
        // The client gets the lock, or its program gives up; the numbers are the same if another program of the client does.
        assert_eq!(ages(62, 3, 4), None);
        assert_eq!(ages(70, 4, 4), Some(0));
        assert_eq!(ages(100, 4, 4), Some(30));
        // A program that was ended does not ask again.
        assert_eq!(ages(116, 4, 4), None);
    }
}
