//! Severity follows what is more than usual on this server, where that is known.

use super::test_server::{SERVER, Server, page};
use crate::breakdown::Breakdown;
use crate::evaluate::evaluate_observed;
use crate::normal::{Learner, Normal};
use crate::observed::Observed;
use nfscope_model::Window;
use nfscope_model::finding::{Diagnosis, Kind, Severity};
use std::time::Duration;

const LENGTH: Duration = Duration::from_secs(10);

fn window(server: &Server) -> Window {
    Window {
        length: LENGTH,
        delta: server.snapshot(),
    }
}

/// Usual times after N windows.
fn learned(server: &Server, windows: usize) -> Option<Normal> {
    let mut learner = Learner::default();
    let b = Breakdown::of(&window(server));
    (0..windows).for_each(|_| learner.add(&b));
    learner.normal()
}

fn judged(server: &Server, normal: Option<Normal>) -> Diagnosis {
    let window = window(server);
    let observed = Observed {
        normal,
        ..Observed::default()
    };
    evaluate_observed(&window, &Breakdown::of(&window), &observed)
}

fn severity(d: &Diagnosis, kind: Kind) -> Option<Severity> {
    d.finding(kind).map(|f| f.severity)
}

#[test]
fn a_log_that_was_always_so_slow_is_not_critical() {
    let slow = Server::with_busy_log(8e-3);
    let d = judged(&slow, None);
    assert_eq!(severity(&d, Kind::SlowIntentLog), Some(Severity::Critical));
    let text = page(&d, Kind::SlowIntentLog);
    assert!(
        text.contains("usually take on this server is not known"),
        "{text}"
    );
    let d = judged(&slow, learned(&slow, 360));
    assert_eq!(severity(&d, Kind::SlowIntentLog), Some(Severity::Warning));
    let text = page(&d, Kind::SlowIntentLog);
    assert!(
        text.contains(
            "takes 8.10 ms on average, and usually 8.10 ms on this server (the last 1h without"
        ),
        "{text}"
    );
    assert!(
        text.contains("0 % of these waits are more than usual"),
        "{text}"
    );
    assert!(!text.contains("is not known"), "{text}");
    // Another device, three times as slow.
    let d = judged(&Server::with_busy_log(24e-3), learned(&slow, 360));
    assert_eq!(severity(&d, Kind::SlowIntentLog), Some(Severity::Critical));
}

#[test]
fn a_log_far_slower_than_usual_is_critical_although_its_waits_are_short() {
    let waits = Server {
        count: 8000,
        ..Server::with_busy_log(0.8e-3)
    };
    let fixed = judged(&waits, None);
    assert_eq!(
        severity(&fixed, Kind::SlowIntentLog),
        Some(Severity::Warning)
    );
    let d = judged(&waits, learned(&Server::with_busy_log(100e-6), 360));
    assert_eq!(severity(&d, Kind::SlowIntentLog), Some(Severity::Critical));
    // Neither the kinds of findings nor their shares depend on the usual times.
    let shares =
        |d: &Diagnosis| -> Vec<_> { d.findings.iter().map(|f| (f.kind, f.share)).collect() };
    assert_eq!(shares(&fixed), shares(&d));
}

#[test]
fn waits_for_a_thread_are_compared_with_the_usual_ones() {
    let starved = Server {
        queue: 20e-3,
        saturated: 0.9,
        ..SERVER
    };
    for (usual, expected) in [
        (SERVER, Severity::Critical),
        (starved.clone(), Severity::Warning),
    ] {
        let d = judged(&starved, learned(&usual, 360));
        assert_eq!(
            severity(&d, Kind::ThreadStarvation),
            Some(expected),
            "{d:#?}"
        );
        let text = page(&d, Kind::ThreadStarvation);
        assert!(
            text.contains("a request waits for a thread for 20.0 ms on average, and usually"),
            "{text}"
        );
    }
}

#[test]
fn little_was_seen_means_that_nothing_is_usual() {
    assert_eq!(learned(&SERVER, 359), None);
    let few = Server { count: 2, ..SERVER };
    let normal = learned(&few, 360).unwrap();
    assert_eq!(
        (normal.ops.len(), normal.queue, normal.reply),
        (0, None, None)
    );
    // Other operations than those that wait now.
    let reads = Server {
        op: "read",
        ..SERVER
    };
    let d = judged(&Server::with_busy_log(8e-3), learned(&reads, 360));
    assert_eq!(severity(&d, Kind::SlowIntentLog), Some(Severity::Critical));
    assert!(page(&d, Kind::SlowIntentLog).contains("is not known"));
}

#[test]
fn a_request_that_is_felt_is_critical_whatever_is_usual() {
    let felt = Server::with_busy_log(0.9);
    let d = judged(&felt, learned(&felt, 360));
    assert_eq!(severity(&d, Kind::SlowIntentLog), Some(Severity::Critical));
    let text = page(&d, Kind::SlowIntentLog);
    assert!(!text.contains("usually"), "{text}");
}
