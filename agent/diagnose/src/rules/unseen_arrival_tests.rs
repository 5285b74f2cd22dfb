//! Servers on which the arrival of requests is not seen: an unmeasured wait is not a wait of zero.

use super::test_server::{SERVER, Server, kinds, page, why_not};
use crate::render::render;
use nfscope_model::finding::{Kind, Verdict};

/// Two threads that a slow disk keeps, and clients that wait half a second for one.
fn starved(unseen: u64, no_clock: u64) -> Server {
    Server {
        queue: 0.5,
        disk: 40e-3,
        saturated: 0.96,
        unseen,
        no_clock,
        ..SERVER
    }
}

#[test]
fn starvation_is_not_ruled_out_where_arrivals_are_not_seen() {
    for unseen in [1000, 990, 501] {
        let d = starved(unseen, 0).diagnosis();
        assert_eq!(kinds(&d).first(), Some(&"slow_disk"), "{d:#?}");
        assert_eq!(d.share(Kind::ThreadStarvation), None, "{unseen}");
        let why = why_not(&d, Kind::ThreadStarvation);
        assert!(
            why.starts_with("no thread was free for 96 % of the time"),
            "{why}"
        );
        assert!(why.contains("not measured"), "{why}");
        assert!(render(&d, "nfs1", false).contains("    ?  thread_starvation"));
    }
}

#[test]
fn starvation_is_found_where_most_arrivals_are_seen() {
    for unseen in [0, 10, 400] {
        let d = starved(unseen, 0).diagnosis();
        assert_eq!(kinds(&d).first(), Some(&"thread_starvation"), "{d:#?}");
        // The mean is that of the known waits.
        let page = page(&d, Kind::ThreadStarvation);
        assert!(
            page.contains("a request waits 500 ms for a thread"),
            "{page}"
        );
    }
}

#[test]
fn a_server_with_free_threads_starves_nobody_whatever_is_seen() {
    let server = Server {
        unseen: 1000,
        no_clock: 1000,
        saturated: 0.0,
        ..SERVER
    };
    let d = server.diagnosis();
    assert_eq!(d.share(Kind::ThreadStarvation), Some(0.0));
    assert_eq!(d.verdict, Verdict::Healthy, "{d:#?}");
}

#[test]
fn no_verdict_is_healthy_where_starvation_is_not_known() {
    let server = Server {
        unseen: 1000,
        cpu: 5e-3,
        saturated: 0.96,
        ..SERVER
    };
    let d = server.diagnosis();
    assert_eq!(d.verdict, Verdict::Unknown, "{d:#?}");
    assert!(d.reason.contains("thread_starvation"), "{}", d.reason);
}

#[test]
fn requests_without_a_complete_time_line_are_mentioned() {
    let said = |unseen, no_clock| {
        let d = starved(unseen, no_clock).diagnosis();
        // The text is compared as it is read, across the ends of lines.
        let text = render(&d, "nfs1", false);
        let words: Vec<_> = text.split_whitespace().collect();
        assert!(
            words
                .join(" ")
                .contains(&d.incomplete.clone().unwrap_or_default())
        );
        d.incomplete
    };
    assert_eq!(said(0, 0), None);
    assert_eq!(said(40, 40), None);
    let hidden = said(940, 0).unwrap();
    assert!(hidden.starts_with("940 of these requests (94 %) have no complete time line"));
    assert!(hidden.contains("`nfscope check`"), "{hidden}");
    let udp = said(940, 900).unwrap();
    assert!(udp.contains("UDP or RDMA"), "{udp}");
}
