//! Sentences about recalls of delegations and about layouts, on servers that make them true and on some that would make them false.

use super::test_server::{SERVER, histogram, judge, kinds, page, why_not};
use crate::recalls::Recalls;
use nfscope_model::finding::Kind;
use nfscope_model::{Snapshot, Window, family as f};
use std::time::Duration;

const SLOW: &str = "10.0.0.7";
const QUICK: &str = "10.0.0.8";

/// Two clients with recalls of delegations, of which the first takes long and has not returned all.
fn recalled(mut s: Snapshot) -> Snapshot {
    s.counter(&f::DELEGATION_RECALLS, [], 120.0);
    s.counter(&f::DELEGATIONS_REVOKED, [], 1.0);
    let labels = ["delegation", "returned"];
    s.histogram(
        &f::RECALL_SECONDS,
        labels,
        histogram(&[(0.024, 100), (0.001, 17)]),
    );
    s.gauge(&f::RECALLS_PENDING, ["delegation"], 2.0);
    s.gauge(&f::OLDEST_RECALL, ["delegation"], 31.0);
    for (client, recalls, seconds, pending) in [(QUICK, 17.0, 0.017, 0.0), (SLOW, 103.0, 2.4, 2.0)]
    {
        s.counter(&f::CLIENT_RECALLS, [client], recalls);
        s.counter(&f::CLIENT_RECALL_SECONDS, [client], seconds);
        s.gauge(&f::CLIENT_RECALLS_PENDING, [client], pending);
    }
    s
}

const SENTENCES: [&str; 5] = [
    "a client returns a delegation 20.7 ms after the recall on average, ",
    ": 117 of 120 recalled",
    "2 recalled delegations are not returned yet, the oldest 31.0 s after its recall",
    "the server revoked 1 delegation\n",
    "10.0.0.7 was asked to return 103 delegations, took 2.40 s in all, and has 2 still to return",
];

#[test]
fn who_holds_what_is_said_where_threads_wait_for_it() {
    let mut s = recalled(SERVER.snapshot());
    let (n, each) = (SERVER.count, 5e-3);
    s.histogram(&f::OP_DURATION, ["4.2", "setattr"], histogram(&[(each, n)]));
    s.counter(&f::OP_PHASE, ["4.2", "setattr", "recall"], each * n as f64);
    s.counter(&f::RPC_PHASE, ["4.2", "execute"], each * n as f64);
    let d = judge(s);
    assert_eq!(kinds(&d), ["delegation_recalls"], "{d:#?}");
    let page = page(&d, Kind::DelegationRecalls);
    for sentence in SENTENCES {
        assert!(page.contains(sentence), "{sentence}\n{page}");
    }
    assert!(page.find(SLOW) < page.find(QUICK), "{page}");
}

#[test]
fn and_where_clients_are_told_to_try_again_later() {
    let mut s = recalled(SERVER.snapshot());
    let labels = ["4.2", "open", "delay"];
    s.counter(&f::OP_ERRORS, labels, 40.0);
    s.histogram(&f::OP_DURATION, ["4.2", "open"], histogram(&[(1e-4, 40)]));
    let d = judge(s);
    let page = page(&d, Kind::RetryLater);
    for sentence in SENTENCES {
        assert!(page.contains(sentence), "{sentence}\n{page}");
    }
}

#[test]
fn without_recalls_nothing_is_said_of_them() {
    let of = |delta: Snapshot| {
        let length = Duration::from_secs(10);
        Recalls::of(&Window { length, delta })
    };
    assert!(of(SERVER.snapshot()).is_none());
    let mut none = SERVER.snapshot();
    none.counter(&f::DELEGATION_RECALLS, [], 0.0);
    none.counter(&f::CLIENT_RECALLS, [QUICK], 0.0);
    let none = of(none).unwrap();
    assert!(super::recall_evidence::all(&none).is_empty(), "{none:?}");
}

/// A client that holds layouts, with `reads` READs, beside another one with `others` operations.
fn with_layouts(granted: f64, reads: u64, others: f64) -> Snapshot {
    let mut s = SERVER.snapshot();
    s.histogram(
        &f::OP_DURATION,
        ["4.2", "read"],
        histogram(&[(1e-4, reads)]),
    );
    s.histogram(
        &f::OP_DURATION,
        ["4.2", "layoutget"],
        histogram(&[(1e-4, 1)]),
    );
    s.counter(&f::LAYOUTS_GRANTED, [], granted);
    s.counter(&f::CLIENT_LAYOUTS, [SLOW], granted);
    s.counter(&f::CLIENT_OPS, [SLOW], 2.0 * reads as f64);
    s.counter(&f::CLIENT_OPS, [QUICK], others);
    s
}

#[test]
fn clients_that_do_not_use_their_layouts_are_named() {
    // The client got its layouts before this window.
    for granted in [3.0, 0.0] {
        let d = judge(with_layouts(granted, 700, 100.0));
        assert_eq!(kinds(&d), ["pnfs_fallback"], "{d:#?}");
        let page = page(&d, Kind::PnfsFallback);
        for sentence in [
            "60 % of the requests are READs and WRITEs of clients that hold layouts",
            "the agent saw layouts granted to 10.0.0.7; in this window",
            "at least 600 READs and WRITEs over NFSv4.1 and later are of these clients, 60 % of all requests",
        ] {
            assert!(page.contains(sentence), "{sentence}\n{page}");
        }
    }
}

#[test]
fn reads_of_others_and_few_of_ones_own_are_no_fallback() {
    let mut nothing_told = SERVER.snapshot();
    let some = histogram(&[(1e-4, 5)]);
    nothing_told.histogram(&f::OP_DURATION, ["4.2", "layoutget"], some);
    for (s, why) in [
        // All READs and WRITEs may be the other client's.
        (with_layouts(3.0, 700, 900.0), "sent 0 READs and WRITEs"),
        (with_layouts(3.0, 10, 0.0), "sent 10 READs and WRITEs"),
        (SERVER.snapshot(), "no client was granted a layout"),
        (nothing_told, "does not tell layouts"),
    ] {
        let d = judge(s);
        assert!(d.finding(Kind::PnfsFallback).is_none(), "{d:#?}");
        let said = why_not(&d, Kind::PnfsFallback);
        assert!(said.contains(why), "{said}");
    }
    let unknown = judge(SERVER.snapshot());
    assert_eq!(unknown.share(Kind::PnfsFallback), Some(0.0));
}
