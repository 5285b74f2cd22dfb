//! Sentences about the kernel's limit of connections, on servers that reach it and on some that do not.

use super::test_server::{SERVER, judge, kinds, page, why_not};
use crate::render::render;
use nfscope_model::finding::{Diagnosis, Kind, Severity};
use nfscope_model::{Snapshot, family as f};

/// A server of 4 threads with `open` connections, and numbers of those that were accepted and closed because of the limit.
fn with(which: &str, open: f64, limit: f64, accepted: f64, closed: f64) -> Snapshot {
    let mut s = SERVER.snapshot();
    s.gauge(&f::CONNECTIONS, ["tcp"], open.max(500.0));
    s.gauge(&f::LIMITED_CONNECTIONS, [which], open);
    s.gauge(&f::CONNECTION_LIMIT, [which], limit);
    s.counter(&f::CONNECTIONS_ACCEPTED, ["tcp"], accepted);
    s.counter(&f::CONNECTIONS_CLOSED, ["tcp", "limit"], closed);
    s.counter(&f::CONNECTIONS_CLOSED, ["tcp", "client"], 7.0);
    s
}

#[test]
fn a_server_with_too_few_threads_for_its_connections_is_told() {
    let d = judge(with("all", 141.0, 140.0, 100.0, 60.0));
    assert_eq!(kinds(&d), ["connection_limit"], "{d:#?}");
    let finding = d.finding(Kind::ConnectionLimit);
    assert_eq!(finding.map(|f| f.share), Some(0.6));
    assert_eq!(finding.map(|f| f.severity), Some(Severity::Critical));
    let page = page(&d, Kind::ConnectionLimit);
    for says in [
        "too many connections are open: the kernel closed 60 connections of clients",
        "141 connections are open; the kernel allows 140",
        "the server accepted 100 connections, and the kernel closed 60 for being the oldest",
        // Threads for 201 connections: (141 + 60) / 20 - 3, rounded up.
        "raise the number of nfsd threads to 8 or more: rpc.nfsd 8",
    ] {
        assert!(page.contains(says), "{says}: {page}");
    }
}

/// A negative count is left by malformed requests on 6.12: read without a sign it was 4,294,967,294 connections.
#[test]
fn a_count_of_the_kernel_below_zero_is_told_with_what_mends_it() {
    for (closed, says) in [
        (0.0, "its limit of connections cannot work"),
        (60.0, "it closed 60 connections meanwhile"),
    ] {
        let d = judge(with("all", -2.0, 140.0, 100.0, closed));
        assert_eq!(kinds(&d), ["connection_limit"], "{d:#?}");
        let page = page(&d, Kind::ConnectionLimit);
        for says in [
            says,
            "the kernel's own count of connections has fallen below zero",
            "the kernel counts -2 connections for its limit of 140; 500 connections are open",
            "systemctl restart nfs-server",
        ] {
            assert!(page.contains(says), "{says}: {page}");
        }
        assert!(!page.contains("raise the number"), "{page}");
    }
}

#[test]
fn a_server_that_is_full_warns_before_anything_is_closed() {
    let d = judge(with("all", 141.0, 140.0, 0.0, 0.0));
    assert_eq!(kinds(&d), ["connection_limit"], "{d:#?}");
    let page = page(&d, Kind::ConnectionLimit);
    assert!(page.contains("closes the oldest when the server accepts another one"));
    assert!(page.contains("threads to 5 or more"), "{page}");
    assert!(!page.contains("for being the oldest"), "{page}");
}

#[test]
fn connections_that_show_no_handle_are_told_apart() {
    let d = judge(with("unproven", 65.0, 64.0, 40.0, 10.0));
    assert_eq!(kinds(&d), ["connection_limit"], "{d:#?}");
    let finding = d.finding(Kind::ConnectionLimit);
    assert_eq!(finding.map(|f| f.severity), Some(Severity::Warning));
    let page = page(&d, Kind::ConnectionLimit);
    for says in [
        "too many connections that have shown no valid file handle are open",
        "65 connections without a valid file handle are open; the kernel allows 64",
        "500 connections are open in all",
        "ss -tn 'sport = :2049'",
    ] {
        assert!(page.contains(says), "{says}: {page}");
    }
    // The limit of unproven connections does not grow with the threads.
    assert!(!page.contains("rpc.nfsd"), "{page}");
}

#[test]
fn as_many_as_are_allowed_are_none() {
    for (s, why) in [
        (
            with("all", 140.0, 140.0, 20.0, 0.0),
            "140 connections are open, and the kernel allows 140",
        ),
        (
            with("unproven", 1.0, 64.0, 900.0, 0.0),
            "1 connection without a valid file handle is open",
        ),
    ] {
        let d = judge(s);
        assert_eq!(kinds(&d), [""; 0], "{d:#?}");
        let said = why_not(&d, Kind::ConnectionLimit);
        assert!(said.contains(why), "{said}");
        assert_eq!(ruled_out_share(&d), Some(0.0));
    }
}

/// Share of the time in the list of findings that were ruled out.
fn ruled_out_share(d: &Diagnosis) -> Option<f64> {
    let mut all = d.ruled_out.iter();
    all.find(|r| r.kind == Kind::ConnectionLimit)?.share
}

#[test]
fn a_host_that_does_not_tell_the_limit_has_no_figure_of_it() {
    let d = judge(SERVER.snapshot());
    assert_eq!(kinds(&d), [""; 0], "{d:#?}");
    let said = why_not(&d, Kind::ConnectionLimit);
    assert!(said.contains("does not tell"), "{said}");
    assert_eq!(ruled_out_share(&d), None);
    let page = render(&d, "host", false);
    assert!(page.contains("    ?  connection_limit "), "{page}");
    // The missing limit does not make the times of requests unknown.
    assert!(!d.reason.contains("connection_limit"), "{}", d.reason);
    // The limit is known, but the connections closed because of it are not.
    let mut s = SERVER.snapshot();
    s.gauge(&f::LIMITED_CONNECTIONS, ["all"], 10.0);
    s.gauge(&f::CONNECTION_LIMIT, ["all"], 140.0);
    let d = judge(s);
    assert_eq!(ruled_out_share(&d), None);
    let said = why_not(&d, Kind::ConnectionLimit);
    assert!(said.contains("does not tell whether it closed"), "{said}");
}

#[test]
fn what_does_not_say_why_connections_close_closes_none() {
    let mut s = SERVER.snapshot();
    s.gauge(&f::LIMITED_CONNECTIONS, ["all"], 10.0);
    s.gauge(&f::CONNECTION_LIMIT, ["all"], 140.0);
    let d = judge(s);
    assert_eq!(kinds(&d), [""; 0], "{d:#?}");
}
