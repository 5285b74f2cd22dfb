//! Clients that stand still while the server is idle or works for others: replies without acknowledgement, locks that are denied, answers
//! after which clients retry. Other clients only look like that.

use super::test_server::{SERVER, Server, histogram, judge, kinds, measured, page, why_not};
use crate::{evaluate, render};
use nfscope_model::finding::{Diagnosis, Kind, Severity, Verdict};
use nfscope_model::{ProbeState, ProbeStatus, Snapshot, Window, family as f};
use std::time::Duration;

const CLIENT: &str = "10.9.0.2";

/// Adds the gauges of an agent that looks at connections, with nothing waiting on them.
fn seen(mut s: Snapshot) -> Snapshot {
    s.gauge(&f::UNACKED_CONNECTIONS, [], 0.0);
    s.gauge(&f::NLM_WAITING, [], 0.0);
    s
}

/// An idle server of whose lockd nothing is known.
fn without_lockd() -> Snapshot {
    let mut s = Snapshot::new(Duration::from_secs(110));
    s.gauge(&f::STUCK_REQUESTS, ["disk"], 0.0);
    s.gauge(&f::UNACKED_CONNECTIONS, [], 0.0);
    s
}

fn idle() -> Snapshot {
    let mut s = Snapshot::new(Duration::from_secs(110));
    s.gauge(&f::STUCK_REQUESTS, ["disk"], 0.0);
    seen(s)
}

fn busy() -> Snapshot {
    seen(
        Server {
            count: 20_000,
            log: 0.5e-3,
            ..SERVER
        }
        .snapshot(),
    )
}

fn unacknowledged(
    mut s: Snapshot,
    seconds: f64,
    retransmissions: f64,
    zero_window: f64,
) -> Diagnosis {
    s.gauge(&f::UNACKED_BYTES, [CLIENT], 262_400.0);
    s.gauge(&f::UNACKED_SECONDS, [CLIENT], seconds);
    s.gauge(&f::UNACKED_RETRANSMISSIONS, [CLIENT], retransmissions);
    s.gauge(&f::UNACKED_ZERO_WINDOW, [CLIENT], zero_window);
    judge(s)
}

#[test]
fn a_client_that_acknowledges_no_replies_is_named_on_an_idle_and_on_a_busy_server() {
    for s in [idle(), busy()] {
        let d = unacknowledged(s, 25.0, 7.0, 0.0);
        assert_eq!(kinds(&d), ["unacknowledged_replies"], "{d:#?}");
        let text = page(&d, Kind::UnacknowledgedReplies);
        for says in [
            "10.9.0.2 acknowledges no replies",
            "256 KiB of replies to 10.9.0.2 have not been acknowledged for at least 25.0 s; TCP has sent the oldest 7 times again",
            "a smaller MTU",
        ] {
            assert!(text.contains(says), "{text}");
        }
        assert!(!text.contains("window of zero"), "{text}");
    }
    let d = unacknowledged(idle(), 25.0, 0.0, 262_400.0);
    let text = page(&d, Kind::UnacknowledgedReplies);
    assert!(text.contains("does not read its socket"), "{text}");
    assert!(!text.contains("MTU"), "{text}");
}

#[test]
fn a_wait_for_an_acknowledgement_that_ends_by_itself_is_no_finding() {
    for (seconds, retransmissions, zero_window, outstanding) in [
        // A client that was suspended for a moment, and one whose link loses packets now and then.
        (1.2, 1.0, 0.0, true),
        (2.9, 3.0, 0.0, true),
        // Nothing was retransmitted over a long round trip.
        (1.1, 0.0, 0.0, false),
        (60.0, 0.0, 0.0, false),
        (1.5, 0.0, 1000.0, true),
    ] {
        let d = unacknowledged(idle(), seconds, retransmissions, zero_window);
        assert_eq!(kinds(&d), [""; 0], "{d:#?}");
        let verdict = match outstanding {
            true => Verdict::Unknown,
            false => Verdict::Healthy,
        };
        assert_eq!(d.verdict, verdict, "{d:#?}");
        assert_eq!(
            d.reason.contains("not been acknowledged"),
            outstanding,
            "{d:#?}"
        );
    }
}

#[test]
fn an_idle_server_is_healthy_only_where_replies_are_seen() {
    let d = judge(idle());
    assert_eq!((d.verdict, d.unseen.len()), (Verdict::Healthy, 0), "{d:#?}");
    // Unmeasured requests in hand do not count as none.
    let mut s = Snapshot::new(Duration::from_secs(110));
    s.gauge(&f::THREADS, ["0"], 8.0);
    let d = judge(s);
    assert_eq!(d.verdict, Verdict::Unknown);
    assert!(d.reason.contains("stuck_requests"), "{}", d.reason);
    // A host that is only a client has no requests in hand.
    let d = judge(Snapshot::new(Duration::from_secs(110)));
    assert_eq!(d.verdict, Verdict::Healthy);
    let text = render(&d, "nfs1", false);
    assert!(
        text.contains("Healthy: no requests: there is nothing to evaluate.\nBut replies on their way to clients are not seen here"),
        "{text}"
    );
    let mut s = idle();
    s.gauge(&f::CONNECTIONS, ["rdma"], 2.0);
    s.gauge(&f::LISTENERS, ["udp"], 1.0);
    let text = render(&judge(s), "nfs1", false);
    assert!(
        text.contains("But replies over RDMA and UDP are not followed"),
        "{text}"
    );
}

#[test]
fn a_cause_without_requests_has_no_measured_times() {
    let d = judge(idle());
    assert_eq!(why_not(&d, Kind::SlowReply), "no reply was sent");
    for r in &d.ruled_out {
        assert!(!r.why.contains("takes 0.00"), "{r:?}");
    }
}

/// A client that was denied and granted these numbers of locks, on a server where other clients were granted some.
fn locks(denied: f64, granted: f64, of_others: u64, by_client: bool) -> Snapshot {
    let mut s = idle();
    s.counter(&f::OP_ERRORS, ["4.0", "lock", "denied"], denied);
    let all = denied as u64 + granted as u64 + of_others;
    let times = histogram(&[(50e-6, all)]);
    s.counter(&f::RPC_PHASE, ["4.0", "execute"], times.sum);
    s.histogram(&f::OP_DURATION, ["4.0", "lock"], times.clone());
    s.histogram(&f::RPC_DURATION, ["4.0"], times);
    if by_client {
        let labels = ["10.9.1.2", "4.0", "lock", "denied"];
        s.counter(&f::CLIENT_RETRIED, labels, denied);
        if granted > 0.0 {
            s.counter(&f::CLIENT_LOCKS, ["10.9.1.2"], granted);
        }
        s.counter(&f::CLIENT_LOCKS, ["10.9.2.2"], of_others as f64);
        s.gauge(&f::CLIENT_LOCKS_HELD, [CLIENT], 1.0);
    }
    s
}

#[test]
fn a_client_that_polls_for_a_lock_is_named_with_those_who_hold_locks() {
    for of_others in [0, 1000] {
        let d = judge(locks(3.0, 0.0, of_others, true));
        assert_eq!(kinds(&d), ["retry_later"], "{d:#?}");
        let text = page(&d, Kind::RetryLater);
        for says in [
            "10.9.1.2 asks again and again for a lock that is held, and sleeps for up to 30 s between, outside the server",
            "10.9.1.2 was denied a lock 3 times (NFS4ERR_DENIED), and was granted none",
            "clients with NFSv4 locks when the window ends, and on how many files: 10.9.0.2 (1)",
            "type: lock",
        ] {
            assert!(text.contains(says), "{text}");
        }
        assert!(!text.contains("delegation"), "{text}");
    }
    // A source that does not count by client shows only that there is such a client.
    let d = judge(locks(3.0, 0.0, 0, false));
    let text = page(&d, Kind::RetryLater);
    assert!(
        text.starts_with("a client asks again and again for a lock"),
        "{text}"
    );
}

#[test]
fn a_lock_that_was_denied_now_and_then_is_no_finding() {
    // Healthy cases: a program that does not wait for its lock, and one that gets other locks. A source without counts by client is healthy
    // if other clients get theirs.
    for (s, healthy) in [
        (locks(1.0, 0.0, 0, true), false),
        (locks(5.0, 1.0, 0, true), true),
        (locks(5.0, 0.0, 1000, false), true),
    ] {
        let d = judge(s);
        assert_eq!(kinds(&d), [""; 0], "{d:#?}");
        assert_eq!(d.verdict == Verdict::Healthy, healthy, "{d:#?}");
        let why = why_not(&d, Kind::RetryLater);
        assert!(why.contains("denied because the lock is held"), "{why}");
    }
    let once = judge(locks(1.0, 0.0, 0, true));
    assert_eq!(
        once.reason,
        "10.9.1.2 was denied a lock once and was granted none"
    );
    // LOCKT asks for the holder of a lock, and is answered.
    let mut s = idle();
    s.counter(&f::OP_ERRORS, ["4.0", "lockt", "denied"], 7.0);
    assert_eq!(judge(s).verdict, Verdict::Healthy);
    // Once there is a finding, a client that retries ever more rarely keeps it.
    let window = Window {
        length: Duration::from_secs(10),
        delta: locks(1.0, 0.0, 0, true),
    };
    let d = evaluate(&window, &[Kind::RetryLater]);
    assert_eq!(kinds(&d), ["retry_later"], "{d:#?}");
}

#[test]
fn each_answer_that_makes_clients_wait_is_named_by_its_status() {
    for (version, op, status, says) in [
        (
            "4.2",
            "open",
            "grace",
            "all 7 OPEN operations over NFSv4.2 were answered with NFS4ERR_GRACE",
        ),
        (
            "4.1",
            "layoutget",
            "layouttrylater",
            "NFS4ERR_LAYOUTTRYLATER",
        ),
        ("4.2", "open", "delay", "NFS4ERR_DELAY"),
        ("3", "getattr", "jukebox", "NFS3ERR_JUKEBOX"),
    ] {
        let mut s = idle();
        s.counter(&f::OP_ERRORS, [version, op, status], 7.0);
        s.histogram(&f::OP_DURATION, [version, op], histogram(&[(50e-6, 7)]));
        let d = judge(s);
        assert_eq!(kinds(&d), ["retry_later"], "{d:#?}");
        let text = page(&d, Kind::RetryLater);
        assert!(text.contains(says), "{text}");
        let advises = text.contains("NFS4ERR_GRACE ends by itself");
        assert_eq!(advises, status == "grace", "{text}");
    }
}

/// A client with `count` answers of a status among its requests, on a busy server.
fn answered(op: &str, status: &str, count: f64, requests: f64) -> Diagnosis {
    let mut s = busy();
    s.counter(&f::OP_ERRORS, ["4.2", op, status], count);
    s.histogram(&f::OP_DURATION, ["4.2", op], histogram(&[(50e-6, 5000)]));
    s.counter(&f::CLIENT_RETRIED, [CLIENT, "4.2", op, status], count);
    s.counter(&f::CLIENT_REQUESTS, [CLIENT], requests);
    s.counter(&f::CLIENT_OP_SECONDS, [CLIENT], requests * 1e-3);
    measured(&mut s, "4.2", 5000);
    judge(s)
}

#[test]
fn one_client_that_waits_or_recovers_is_seen_among_many_that_work() {
    let d = answered("open", "delay", 12.0, 20.0);
    assert_eq!(kinds(&d), ["retry_later"], "{d:#?}");
    let text = page(&d, Kind::RetryLater);
    assert!(
        text.contains("10.9.0.2 waits outside the server for 1.20 s at least: of its 20 requests, 12 OPEN with NFS4ERR_DELAY"),
        "{text}"
    );
    let d = answered("sequence", "badsession", 40.0, 200.0);
    assert_eq!(kinds(&d), ["state_recovery_storm"], "{d:#?}");
    let text = page(&d, Kind::StateRecoveryStorm);
    for says in [
        "10.9.0.2 recovers its NFSv4 lease, session or state again and again",
        "10.9.0.2 found its lease, session or state gone: of its 200 requests, 40 SEQUENCE with NFS4ERR_BADSESSION",
        "nfs4_unique_id",
    ] {
        assert!(text.contains(says), "{text}");
    }
}

#[test]
fn a_client_that_works_beside_such_answers_is_no_finding() {
    for (op, status, count, requests) in [
        // Delegations that are returned, among much work.
        ("open", "delay", 20.0, 2000.0),
        // A server that was restarted, and one that a client left for a while.
        ("sequence", "badsession", 1.0, 200.0),
        ("read", "expired", 4.0, 10.0),
        ("read", "bad_stateid", 20.0, 2000.0),
        // Final answers, after which clients do not retry.
        ("open", "noent", 40.0, 40.0),
        ("open", "access", 40.0, 40.0),
    ] {
        let d = answered(op, status, count, requests);
        assert_eq!(kinds(&d), [""; 0], "{op} {status}: {d:#?}");
        assert_eq!(d.verdict, Verdict::Healthy, "{op} {status}: {d:#?}");
    }
}

/// A server on which a client of NFSv3 has waited for a lock for `oldest` seconds.
fn waits_for_a_lock(oldest: f64) -> Snapshot {
    let mut s = idle();
    s.gauge(&f::NLM_WAITING, [], 1.0);
    s.gauge(&f::CLIENT_NLM_WAIT, ["10.9.1.2"], oldest);
    s.counter(&f::CLIENT_NLM, ["10.9.2.2", "granted"], 9.0);
    s
}

#[test]
fn a_client_of_nfsv3_that_waits_for_a_lock_is_seen_on_an_idle_server() {
    let d = judge(waits_for_a_lock(25.0));
    assert_eq!(kinds(&d), ["retry_later"], "{d:#?}");
    assert_eq!(d.findings[0].severity, Severity::Warning);
    let text = page(&d, Kind::RetryLater);
    for says in [
        "10.9.1.2 waits for a lock over NFSv3 that another holds, for 25.0 s by now",
        "10.9.1.2 has been told to wait for a lock (NLM4_BLOCKED) for 25.0 s, and was granted none since",
        "in the name of lockd",
    ] {
        assert!(text.contains(says), "{text}");
    }
    assert!(
        !text.contains("10.9.2.2") && !text.contains("NFSv4.0"),
        "{text}"
    );
}

#[test]
fn a_lock_that_is_waited_for_shortly_is_no_finding_and_yet_not_healthy() {
    let d = judge(waits_for_a_lock(2.0));
    assert_eq!(kinds(&d), [""; 0], "{d:#?}");
    assert_ne!(d.verdict, Verdict::Healthy);
    assert!(d.reason.contains("for 2.00 s by now"), "{}", d.reason);
    // Without a probe of lockd, waits for locks are unknown, and not absent.
    let unseen = judge(without_lockd());
    let why = why_not(&unseen, Kind::RetryLater);
    assert!(why.contains("are not known"), "{why}");
    let share = |d: &Diagnosis| {
        (d.ruled_out.iter().find(|r| r.kind == Kind::RetryLater))
            .unwrap()
            .share
    };
    assert_eq!(share(&unseen), None, "what is not known is not 0 %");
    assert_eq!(unseen.verdict, Verdict::Healthy, "{unseen:#?}");
    assert!(
        unseen.unseen.iter().any(|s| s.contains("locks of NFSv3")),
        "{unseen:#?}"
    );
    // Without the module there is no lockd, and so no client that waits for its locks.
    let lockd = |state| {
        let mut s = without_lockd();
        s.probes = vec![ProbeStatus {
            probe: "lockd".to_owned(),
            program: "lockd_answered".to_owned(),
            hook: String::new(),
            gives: String::new(),
            required: false,
            state,
            reason: String::new(),
            fix: String::new(),
        }];
        judge(s)
    };
    let absent = lockd(ProbeState::Unused);
    assert_eq!(share(&absent), Some(0.0));
    assert_eq!(absent.unseen, [""; 0]);
    assert_eq!(
        why_not(&absent, Kind::RetryLater),
        "no operation was answered with the request to try again later"
    );
    assert_eq!(share(&lockd(ProbeState::Unsupported)), None);
}

/// State of the server itself, which the agent reads without a probe.
#[test]
fn a_server_in_its_grace_period_or_that_does_not_stop_is_not_healthy() {
    let judged = |grace: f64, change: f64, s: Snapshot| {
        let mut s = s;
        s.gauge(&f::IN_GRACE, [], grace);
        s.gauge(&f::SERVER_CHANGE, [], change);
        judge(s)
    };
    let mut works = busy();
    measured(&mut works, "3", 20_000);
    for s in [idle(), works] {
        let well = judged(0.0, 0.2, s.clone());
        assert_eq!(well.verdict, Verdict::Healthy, "{well:#?}");
        let grace = judged(1.0, 0.0, s.clone());
        assert_eq!(grace.verdict, Verdict::Unknown);
        assert!(
            grace
                .reason
                .starts_with("the server is in its grace period"),
            "{}",
            grace.reason
        );
        let stops = judged(0.0, 40.0, s);
        assert_eq!(stops.verdict, Verdict::Unknown);
        let says = "the server has been starting, stopping or changing its threads for 40.0 s";
        assert!(stops.reason.starts_with(says), "{}", stops.reason);
        // Without a request in hand the cause of the delay is not known.
        assert!(!stops.reason.contains("in hand"), "{}", stops.reason);
    }
    // The grace period is reported beside a finding, too.
    let mut slow = Server {
        disk: 20e-3,
        op: "read",
        ..SERVER
    }
    .snapshot();
    slow.gauge(&f::IN_GRACE, [], 1.0);
    let d = judge(slow);
    assert_eq!(kinds(&d), ["slow_disk"]);
    assert!(d.outside[0].contains("grace period"), "{d:#?}");
}
