//! Sentences about sessions and about writes that may be lost, on servers that make them true and on some that would make them false.

use super::test_server::{SERVER, Server, histogram, judge, kinds, page, why_not};
use nfscope_model::finding::Kind;
use nfscope_model::{Snapshot, family as f};

/// A client with `slots` slots, and numbers of its requests with a free slot and with all slots in use.
fn with_slots(server: &Server, slots: f64, free: f64, full: f64) -> Snapshot {
    let mut s = server.snapshot();
    for (label, n) in [("free", free), ("full", full)] {
        s.counter(&f::SESSION_REQUESTS, ["4.1", label], n);
        s.counter(&f::CLIENT_SESSION_REQUESTS, ["10.0.0.7", label], n);
    }
    s.counter(&f::CLIENT_OPS, ["10.0.0.7"], free + full);
    s.gauge(&f::CLIENT_SESSION_SLOTS, ["10.0.0.7"], slots);
    s
}

#[test]
fn a_client_that_fills_its_session_is_named() {
    let d = judge(with_slots(&SERVER, 4.0, 300.0, 700.0));
    assert_eq!(kinds(&d), ["slot_starvation"], "{d:#?}");
    let page = page(&d, Kind::SlotStarvation);
    let sentence =
        "10.0.0.7 sends 70 % of its 1000 requests with all 4 slots of its session in use";
    assert!(page.contains(sentence), "{page}");
    assert!(page.contains("70 % of the requests of NFSv4.1 sessions"));
}

#[test]
fn a_session_that_is_seldom_full_is_none() {
    // Cases without a finding: a burst, too few requests, and a server without a free thread, which more requests at a time would not help.
    let busy = Server {
        saturated: 0.9,
        ..SERVER
    };
    for (s, why) in [
        (with_slots(&SERVER, 64.0, 900.0, 100.0), "10 % of the"),
        (with_slots(&SERVER, 4.0, 5.0, 15.0), "75 % of the"),
        (with_slots(&busy, 4.0, 300.0, 700.0), "no thread is free"),
        (SERVER.snapshot(), "no client uses"),
    ] {
        let d = judge(s);
        assert!(d.finding(Kind::SlotStarvation).is_none(), "{d:#?}");
        let said = why_not(&d, Kind::SlotStarvation);
        assert!(said.contains(why), "{said}");
    }
}

/// A server with `durable` durable writes, of which `lost` may be lost for this reason.
fn with_writes(durable: f64, why: &str, lost: f64) -> Snapshot {
    let mut s = SERVER.snapshot();
    s.counter(&f::DURABLE_WRITES, [], durable);
    s.counter(&f::UNSAFE_WRITES, [why], lost);
    if why != "no_wait" {
        s.gauge(&f::NOT_DURABLE, ["/srv", why], 1.0);
    }
    s
}

#[test]
fn writes_that_a_crash_loses_are_a_finding_though_nothing_is_slow() {
    for (why, says) in [
        (
            "async",
            "500 stable WRITEs and COMMITs were acknowledged on exports with the option async (/srv)",
        ),
        (
            "sync_disabled",
            "were acknowledged on exports whose dataset has sync=disabled (/srv)",
        ),
        (
            "no_wait",
            "500 stable WRITEs were acknowledged on exports of file systems with a log",
        ),
    ] {
        let d = judge(with_writes(1000.0, why, 500.0));
        assert_eq!(kinds(&d), ["unsafe_writes"], "{d:#?}");
        let page = page(&d, Kind::UnsafeWrites);
        assert!(page.contains(says), "{page}");
        assert!(page.contains("50 % of the writes"), "{page}");
    }
}

#[test]
fn writes_that_others_made_durable_are_none() {
    for (s, why) in [
        (with_writes(1000.0, "no_wait", 300.0), "0 % of the durable"),
        (with_writes(1000.0, "commit_no_wait", 900.0), "0 % of the"),
        (with_writes(30.0, "async", 10.0), "33 % of the durable"),
        (with_writes(0.0, "async", 0.0), "no client wrote"),
        (SERVER.snapshot(), "does not tell"),
    ] {
        let d = judge(s);
        assert!(d.finding(Kind::UnsafeWrites).is_none(), "{d:#?}");
        let said = why_not(&d, Kind::UnsafeWrites);
        assert!(said.contains(why), "{said}");
    }
}

/// A server with `count` requests that recover state among its `all` requests.
fn with_recovery(op: &str, count: u64, all: u64) -> Snapshot {
    let mut s = Server {
        count: all - count,
        ..SERVER
    }
    .snapshot();
    let times = || histogram(&[(50e-6, count)]);
    s.histogram(&f::OP_DURATION, ["4.1", op], times());
    s.histogram(&f::RPC_DURATION, ["4.1"], times());
    s
}

#[test]
fn clients_that_recover_instead_of_working_are_a_finding() {
    for (op, says) in [
        ("exchange_id", "nfs4_unique_id"),
        ("test_stateid", "that lost their lease"),
    ] {
        let mut s = with_recovery(op, 400, 1000);
        s.gauge(&f::NFS4_REVOKED, [], 12.0);
        let d = judge(s);
        assert_eq!(kinds(&d), ["state_recovery_storm"], "{d:#?}");
        let page = page(&d, Kind::StateRecoveryStorm);
        let name = op.to_uppercase();
        let sentence = format!("40.0 such operations/s among 100.0 requests/s: 40.0 {name}");
        assert!(page.contains(&sentence), "{page}");
        assert!(page.contains("taken away 12 states"), "{page}");
        assert!(page.contains(says), "{page}");
    }
    for s in [
        with_recovery("exchange_id", 200, 1000),
        with_recovery("exchange_id", 15, 30),
        SERVER.snapshot(),
    ] {
        let d = judge(s);
        assert!(d.finding(Kind::StateRecoveryStorm).is_none(), "{d:#?}");
        let said = why_not(&d, Kind::StateRecoveryStorm);
        assert!(said.contains("make or recover NFSv4 state"), "{said}");
    }
}
