//! Sentences on calls that are refused: of a flood, of many among few, and of the few that every server gets.

use super::test_server::{SERVER, judge, kinds, page, why_not};
use nfscope_model::finding::{Kind, Severity};
use nfscope_model::{Snapshot, family as f};

/// A server with a thousand requests in ten seconds, and `garbage` and `auth` calls that the kernel counts as bad.
fn with(garbage: f64, auth: f64) -> Snapshot {
    let mut s = SERVER.snapshot();
    s.counter(&f::RPC_DROPPED, ["garbage"], garbage);
    s.counter(&f::RPC_DROPPED, ["auth"], auth);
    s
}

#[test]
fn who_sends_malformed_calls_is_named() {
    let mut s = with(700.0, 0.0);
    s.counter(&f::CLIENT_REFUSED, ["10.9.1.2", "format"], 600.0);
    s.counter(&f::CLIENT_REFUSED, ["10.9.1.2", "arguments"], 300.0);
    s.counter(&f::CLIENT_REFUSED, ["10.9.2.2", "format"], 50.0);
    let d = judge(s);
    assert_eq!(kinds(&d), ["bad_rpcs"], "{d:#?}");
    let finding = d.finding(Kind::BadRpcs);
    // Calls whose arguments cannot be decoded are among the thousand requests.
    assert_eq!(finding.map(|f| f.share), Some(1000.0 / 1700.0));
    assert_eq!(finding.map(|f| f.severity), Some(Severity::Warning));
    let page = page(&d, Kind::BadRpcs);
    for says in [
        "1000 calls from 2 clients were refused before anything was executed: 59 % of all calls",
        "10.9.1.2 sent 600 of a wrong form, 300 whose arguments cannot be decoded",
        "10.9.2.2 sent 50 of a wrong form",
        "50 calls more: the kernel counts so many more than are known by client",
        "100.0 calls a second were refused; 10 are many",
        "let clients alone reach port 2049",
    ] {
        let whole = page.replace("\n     ", " ");
        assert!(whole.contains(says), "{says}: {page}");
    }
    assert!(!page.contains("keytab"), "{page}");
}

#[test]
fn refused_credentials_have_advice_of_their_own() {
    let mut s = with(0.0, 400.0);
    s.counter(&f::CLIENT_REFUSED, ["10.9.1.2", "auth"], 400.0);
    let d = judge(s);
    assert_eq!(kinds(&d), ["bad_rpcs"], "{d:#?}");
    let page = page(&d, Kind::BadRpcs);
    assert!(page.contains("keytab"), "{page}");
    assert!(!page.contains("port scanners"), "{page}");
}

#[test]
fn where_nothing_tells_who_it_was_the_number_is_told() {
    let d = judge(with(400.0, 0.0));
    let page = page(&d, Kind::BadRpcs);
    assert!(page.contains("nothing tells who sent them"), "{page}");
}

#[test]
fn the_few_that_every_server_gets_are_no_finding() {
    for (garbage, auth) in [(0.0, 0.0), (1.0, 0.0), (15.0, 4.0), (40.0, 40.0)] {
        let d = judge(with(garbage, auth));
        assert!(kinds(&d).is_empty(), "{garbage} {auth}: {d:#?}");
        let said = why_not(&d, Kind::BadRpcs);
        assert!(said.contains("before anything was executed"), "{said}");
    }
}

#[test]
fn a_host_that_counts_none_says_so_and_is_healthy_all_the_same() {
    let d = judge(SERVER.snapshot());
    let said = why_not(&d, Kind::BadRpcs);
    assert!(said.contains("does not count"), "{said}");
    assert!(!d.reason.contains("bad_rpcs"), "{}", d.reason);
}
