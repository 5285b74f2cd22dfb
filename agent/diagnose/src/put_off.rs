//! Answers after which clients retry: in all, and by client.

use nfscope_model::comes_again::{ComesAgain, comes_again};
use nfscope_model::window_parts::numbers;
use nfscope_model::{ProbeState, ProbeStatus, Window, family as f};
use std::collections::HashMap;

/// Answers to one operation that tell the client to try again later.
#[derive(Debug, Clone)]
pub struct PutOff {
    /// Label `version`.
    pub version: String,
    /// Label `op`.
    pub op: String,
    /// Label `status`.
    pub status: String,
    /// Least seconds that a Linux client waits after such an answer.
    pub wait: f64,
    /// Number of such answers.
    pub count: f64,
    /// All answers to the operation.
    pub of: f64,
}

impl PutOff {
    /// Returns these answers by version, operation and status. Denied locks are in [`Denied`]: a client may ask for a lock without waiting
    /// for it.
    pub fn all(w: &Window) -> Vec<PutOff> {
        numbers(w, &f::OP_ERRORS)
            .filter(|(_, n)| *n > 0.0)
            .filter_map(|([version, op, status], count)| {
                let ComesAgain::Later(wait) = comes_again(op, status)? else {
                    return None;
                };
                (status != DENIED).then(|| PutOff {
                    version: version.to_owned(),
                    op: op.to_owned(),
                    status: status.to_owned(),
                    wait,
                    count,
                    of: (w.delta.hist(&f::OP_DURATION, [version, op]))
                        .map_or(0.0, |h| h.count() as f64),
                })
            })
            .collect()
    }

    /// Least seconds that Linux clients have waited outside the server.
    pub fn waited(&self) -> f64 {
        self.count * self.wait
    }
}

const DENIED: &str = "denied";

/// Locks of NFSv4 that a client, or all clients together, were denied because another one holds them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Denied {
    /// The client; `None` for all clients, if locks are not counted by client.
    pub client: Option<String>,
    /// LOCKs that were denied.
    pub count: f64,
    /// LOCKs that were granted.
    pub granted: f64,
}

impl Denied {
    /// Returns the clients that were denied a lock, the most often denied first.
    pub fn all(w: &Window) -> Vec<Denied> {
        let mut clients: HashMap<&str, Denied> = HashMap::new();
        let denied = |status: &str, op: &str, n: f64| status == DENIED && op == "lock" && n > 0.0;
        for ([client, _, op, status], n) in numbers(w, &f::CLIENT_RETRIED) {
            if denied(status, op, n) {
                let granted = w.delta.value(&f::CLIENT_LOCKS, [client]).unwrap_or(0.0);
                let entry = clients.entry(client).or_insert_with(|| Denied {
                    client: Some(client.to_owned()),
                    granted,
                    ..Denied::default()
                });
                entry.count += n;
            }
        }
        if !clients.is_empty() {
            let mut all: Vec<_> = clients.into_values().collect();
            all.sort_by(|a, b| b.count.total_cmp(&a.count).then(a.client.cmp(&b.client)));
            return all;
        }
        let mut all = Denied::default();
        for ([version, op, status], n) in numbers(w, &f::OP_ERRORS) {
            if denied(status, op, n) {
                let of = w.delta.hist(&f::OP_DURATION, [version, op]);
                all.count += n;
                all.granted += of.map_or(0.0, |h| h.count() as f64 - n).max(0.0);
            }
        }
        if all.count > 0.0 {
            vec![all]
        } else {
            Vec::new()
        }
    }

    /// The client in words.
    pub fn who(&self) -> &str {
        self.client.as_deref().unwrap_or("a client")
    }
}

/// A client of NFSv3 that was told to wait for a lock.
#[derive(Debug, Clone, PartialEq)]
pub struct NlmClient {
    /// Its address.
    pub client: String,
    /// Seconds since it was told so, without a lock that was granted to it since.
    pub waits: f64,
}

impl NlmClient {
    /// Returns these clients, the one that waits longest first; `None` if lockd is not probed.
    pub fn all(w: &Window) -> Option<Vec<NlmClient>> {
        // Without the module there is no lockd, and no client asks it for a lock.
        let mut lockd = w.delta.probes.iter().filter(|p| p.probe == "lockd");
        let is_absent = |p: &ProbeStatus| p.state == ProbeState::Unused;
        let absent = lockd.next().is_some_and(is_absent) && lockd.all(is_absent);
        if !absent {
            w.delta.value(&f::NLM_WAITING, [])?;
        }
        let waits = numbers(w, &f::CLIENT_NLM_WAIT).map(|([client], waits)| NlmClient {
            client: client.to_owned(),
            waits,
        });
        let mut all: Vec<_> = waits.collect();
        all.sort_by(|a, b| b.waits.total_cmp(&a.waits).then(a.client.cmp(&b.client)));
        Some(all)
    }
}

/// Answers of one status to a client.
#[derive(Debug, Clone, PartialEq)]
pub struct Answers {
    /// Label `version`.
    pub version: String,
    /// Label `op`.
    pub op: String,
    /// Label `status`.
    pub status: String,
    /// Their number.
    pub count: f64,
}

/// A client that was told to retry, or had to recover first.
#[derive(Debug, Clone, PartialEq)]
pub struct Retrying {
    /// Its address.
    pub client: String,
    /// Its requests in the window; `None` where they are not counted.
    pub requests: Option<f64>,
    /// Execution time of its operations.
    pub seconds: f64,
    /// Least seconds that it waited outside the server before it retried.
    pub waited: f64,
    /// Answers after which it waited and retried, the most frequent first; locks that were denied are in [`Denied`].
    pub later: Vec<Answers>,
    /// Answers after which it recovered its lease, session or state, the most frequent first.
    pub recovers: Vec<Answers>,
}

impl Retrying {
    /// Returns the clients that retry or recover.
    pub fn all(w: &Window) -> Vec<Retrying> {
        let mut clients: HashMap<&str, Retrying> = HashMap::new();
        for ([client, version, op, status], count) in numbers(w, &f::CLIENT_RETRIED) {
            let Some(how) = comes_again(op, status).filter(|_| count > 0.0 && status != DENIED)
            else {
                continue;
            };
            let r = clients.entry(client).or_insert_with(|| Retrying {
                client: client.to_owned(),
                requests: w.delta.value(&f::CLIENT_REQUESTS, [client]),
                seconds: (w.delta.value(&f::CLIENT_OP_SECONDS, [client])).unwrap_or(0.0),
                waited: 0.0,
                later: Vec::new(),
                recovers: Vec::new(),
            });
            let answers = Answers {
                version: version.to_owned(),
                op: op.to_owned(),
                status: status.to_owned(),
                count,
            };
            match how {
                ComesAgain::Later(wait) => {
                    r.waited += wait * count;
                    r.later.push(answers);
                }
                ComesAgain::Recovers => r.recovers.push(answers),
            }
        }
        let mut all: Vec<_> = clients.into_values().collect();
        for r in &mut all {
            for answers in [&mut r.later, &mut r.recovers] {
                answers.sort_by(|a, b| b.count.total_cmp(&a.count));
            }
        }
        all.sort_by(|a, b| a.client.cmp(&b.client));
        all
    }
}
