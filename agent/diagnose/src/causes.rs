//! Causes and consequences among kinds of findings: causes are listed before their consequences, whatever the shares.
//!
//! A consequence can have the larger share, but only work on the cause changes it.

use crate::attribution::{Attribution, cpus_are_busy, slowest_disk};
use crate::breakdown::{Breakdown, Client, part, sum};
use crate::rules::evidence::evidence;
use crate::thresholds::LONG_PART;
use nfscope_model::family as f;
use nfscope_model::finding::{Finding, Kind};

/// A kind of finding that causes others.
struct Causes {
    cause: Kind,
    consequences: &'static [Kind],
    /// Returns true if the window shows that the cause has its consequence.
    when: fn(Kind, &Breakdown, &Attribution) -> bool,
    /// The reason, after "a consequence of CAUSE: ".
    reason: &'static str,
}

/// Waits for locks, under either name.
const LOCKS: &[Kind] = &[Kind::LockContention, Kind::UnknownWaits];

/// A cause that the holders of locks wait for.
const fn of_holders(cause: Kind, reason: &'static str) -> Causes {
    Causes {
        cause,
        consequences: LOCKS,
        when: |cause, _, a| a.behind(cause) > 0.0,
        reason,
    }
}

/// Table of causes. Thread starvation is left out on purpose: slow waits keep threads busy, but many threads can wait at once.
const TABLE: [Causes; 10] = [
    Causes {
        cause: Kind::SlowIntentLog,
        consequences: LOCKS,
        when: |_, _, a| a.behind_log > a.disk_behind_log,
        reason: "the holders of locks wait for the log",
    },
    of_holders(Kind::SlowDisk, "the holders of locks wait for disks"),
    Causes {
        cause: Kind::SlowDisk,
        consequences: &[Kind::WriteThrottle],
        when: |_, b, _| slowest_disk(b).is_some_and(|(disk, _)| disk.op == "write"),
        reason: "writers are held back until the disks have stored what was written",
    },
    of_holders(Kind::WriteThrottle, "the holders of locks are held back"),
    of_holders(Kind::SlowUpcall, "the holders of locks wait for a daemon"),
    of_holders(
        Kind::DelegationRecalls,
        "the holders of locks wait for delegations",
    ),
    of_holders(
        Kind::MemoryReclaim,
        "the holders of locks wait for free memory",
    ),
    Causes {
        cause: Kind::CpuSaturation,
        consequences: &[
            Kind::LockContention,
            Kind::UnknownWaits,
            Kind::SmallSyncWrites,
        ],
        when: |_, b, _| cpus_are_busy(b),
        reason: "no CPU is idle, and whoever holds a lock or writes needs one",
    },
    Causes {
        cause: Kind::StateRecoveryStorm,
        consequences: &[Kind::SlowUpcall],
        when: |_, b, _| {
            let stored = b.upcalls.iter().filter(|u| u.name == "client_tracking");
            let all = sum(b.upcalls.iter().map(|u| u.waits.sum));
            part(sum(stored.map(|u| u.waits.sum)), all) >= LONG_PART
        },
        reason: "each new lease is stored by nfsdcld or nfsdcltrack",
    },
    Causes {
        cause: Kind::UnacknowledgedReplies,
        consequences: &[Kind::SlowReply],
        when: |_, b, _| {
            let late = |c: &&Client| {
                b.unacknowledged
                    .iter()
                    .flatten()
                    .any(|u| u.client == c.name)
            };
            let reply = |c: &Client| c.reply.unwrap_or(0.0);
            let of_late = b.clients.iter().filter(late).map(reply);
            part(sum(of_late), sum(b.clients.iter().map(reply))) >= LONG_PART
        },
        reason: "the socket of a client that acknowledges nothing is full",
    },
];

/// A cause, a consequence and the reason.
pub(crate) type Edge = (Kind, Kind, &'static str);

/// Pairs of a cause and its consequence in a window.
pub(crate) fn edges(b: &Breakdown, a: &Attribution) -> Vec<Edge> {
    let shown = TABLE.iter().filter(|row| (row.when)(row.cause, b, a));
    shown
        .flat_map(|row| (row.consequences.iter()).map(|c| (row.cause, *c, row.reason)))
        .collect()
}

/// Moves each cause before its first consequence. The rest of the order stays.
pub(crate) fn put_first<T>(all: &mut Vec<T>, kind: impl Fn(&T) -> Kind, edges: &[Edge]) {
    let causes = |cause, consequence| {
        let mut edges = edges.iter();
        edges.any(|(c, of, _)| (*c, *of) == (cause, consequence))
    };
    // The table has no cycle, so each pair is moved once at most.
    let mut i = 0;
    while i < all.len() {
        let later = (i + 1..all.len()).find(|j| causes(kind(&all[*j]), kind(&all[i])));
        match later {
            Some(j) => {
                let cause = all.remove(j);
                all.insert(i, cause);
            }
            None => i += 1,
        }
    }
}

/// Adds the cause to each consequence.
pub(crate) fn tell(findings: &mut [Finding], edges: &[Edge]) {
    let shares: Vec<_> = findings.iter().map(|f| (f.kind, f.share)).collect();
    for finding in findings {
        for (cause, _, reason) in edges.iter().filter(|(_, of, _)| *of == finding.kind) {
            if let Some((_, share)) = shares.iter().find(|(kind, _)| kind == cause) {
                let text = format!("a consequence of {}: {reason}", cause.as_str());
                let info = &f::BOTTLENECK_SCORE.info;
                finding.evidence.push(evidence(info, *share, None, text));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kinds that neither cause another one nor are a consequence of one, each with its reason.
    const ALONE: [(Kind, &str); 10] = [
        (
            Kind::StuckRequests,
            "what they wait for is a finding of requests that ended, or said with them",
        ),
        (
            Kind::RetryLater,
            "these clients wait outside the server, whatever it does inside",
        ),
        (
            Kind::UnsafeWrites,
            "a setting of the server, which makes nothing slow",
        ),
        (
            Kind::SlotStarvation,
            "a setting of clients, which limits what they ask for",
        ),
        (
            Kind::PnfsFallback,
            "a path of clients to the storage, which brings load and no kind of wait",
        ),
        (
            Kind::ConnectionLimit,
            "a limit of the kernel; who is put out comes again and waits for nothing in the server",
        ),
        (
            Kind::BadRpcs,
            "calls that are refused before anything waits",
        ),
        (
            Kind::ThreadStarvation,
            "what threads wait for keeps them busy, but many can wait for it at once",
        ),
        (
            Kind::ChattyClient,
            "considered only for time that nothing slow explains",
        ),
        (
            Kind::SlowMount,
            "a mount of this host, of which another server may be the cause",
        ),
    ];

    #[test]
    fn every_kind_is_in_the_table_or_has_a_reason_not_to_be() {
        let in_table = |kind: Kind| {
            let mut rows = TABLE.iter();
            rows.any(|row| row.cause == kind || row.consequences.contains(&kind))
        };
        for kind in Kind::ALL {
            let alone = ALONE.iter().find(|(k, _)| *k == kind);
            let has_reason = alone.is_some_and(|(_, reason)| !reason.is_empty());
            assert!(in_table(kind) != has_reason, "{kind:?}");
        }
        for row in &TABLE {
            assert!(!row.reason.is_empty() && !row.consequences.is_empty());
        }
    }

    #[test]
    fn no_kind_is_a_consequence_of_itself() {
        let mut all: Vec<Edge> = Vec::new();
        for row in &TABLE {
            all.extend(row.consequences.iter().map(|c| (row.cause, *c, row.reason)));
        }
        // Kinds that follow from a kind must not lead back to it.
        for kind in Kind::ALL {
            let mut reached = vec![kind];
            let mut at = 0;
            while at < reached.len() {
                let of = all.iter().filter(|(cause, ..)| *cause == reached[at]);
                let new: Vec<_> = of.map(|(_, c, _)| *c).collect();
                assert!(!new.contains(&kind), "{kind:?}");
                reached.extend(
                    new.into_iter()
                        .filter(|c| !reached.contains(c))
                        .collect::<Vec<_>>(),
                );
                at += 1;
            }
        }
    }

    #[test]
    fn causes_come_first_and_the_rest_keeps_its_order() {
        let edges = [
            (Kind::SlowDisk, Kind::WriteThrottle, ""),
            (Kind::WriteThrottle, Kind::UnknownWaits, ""),
        ];
        let mut all = vec![
            Kind::UnknownWaits,
            Kind::SlowReply,
            Kind::WriteThrottle,
            Kind::SlowDisk,
        ];
        put_first(&mut all, |k| *k, &edges);
        assert_eq!(
            all,
            [
                Kind::SlowDisk,
                Kind::WriteThrottle,
                Kind::UnknownWaits,
                Kind::SlowReply
            ]
        );
    }
}
