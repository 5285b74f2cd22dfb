//! Each sentence that a rule can print, on a server that makes it true and on one that would make it false.

use super::test_server::{SERVER, Server, histogram, judge, kinds, page, why_not};
use nfscope_model::Snapshot;
use nfscope_model::family as f;
use nfscope_model::finding::Kind;
use std::time::Duration;

/// 28 clients of a log of 8 ms: with 4 threads most of their time is the queue, and 32 threads write six times as much.
#[test]
fn a_queue_is_starvation_whatever_the_threads_wait_for() {
    let behind = |log, disk, reply| Server {
        queue: 56e-3,
        log,
        disk,
        reply,
        saturated: 0.95,
        ..SERVER
    };
    let cases = [
        (
            behind(8e-3, 0.0, 0.0),
            "slow_intent_log",
            "waiting for the journal or intent log",
        ),
        (behind(0.0, 8e-3, 0.0), "slow_disk", "waiting for disks"),
        (behind(0.0, 0.0, 8e-3), "slow_reply", "sending replies"),
    ];
    for (server, beside, what) in cases {
        let d = server.diagnosis();
        assert_eq!(kinds(&d), ["thread_starvation", beside], "{d:#?}");
        let page = page(&d, Kind::ThreadStarvation);
        assert!(
            page.contains(&format!("of their time with requests {what}")),
            "{page}"
        );
        // By Little's law 6.4 requests at a time are in the server, and a quarter is added.
        assert!(page.contains("threads=9"), "{page}");
    }
    // The threads wait for something else than a log or disk.
    let busy = Server {
        queue: 56e-3,
        cpu: 8e-3,
        saturated: 0.95,
        ..SERVER
    };
    let d = busy.diagnosis();
    assert_eq!(kinds(&d), ["thread_starvation"]);
    assert!(!page(&d, Kind::ThreadStarvation).contains("of their time with requests"));
}

/// The text must not say that something would not help, unless it was computed.
#[test]
fn no_sentence_says_that_something_would_not_help() {
    let slow = Server {
        queue: 56e-3,
        saturated: 0.95,
        ..SERVER
    };
    let servers = [
        Server {
            log: 8e-3,
            ..slow.clone()
        },
        Server {
            disk: 8e-3,
            ..slow.clone()
        },
        Server {
            lock: 8e-3,
            ..slow.clone()
        },
        Server {
            reply: 8e-3,
            ..slow.clone()
        },
        Server {
            idle: 0.0,
            ..slow.clone()
        },
        slow,
        SERVER,
    ];
    for server in servers {
        let text = format!("{:?}", server.diagnosis());
        assert!(!text.contains("would not"), "{text}");
    }
}

#[test]
fn busy_cpus_have_the_queue_unless_the_threads_wait_for_something_else() {
    let busy = Server {
        queue: 20e-3,
        cpu: 2e-3,
        saturated: 0.95,
        idle: 0.01,
        ..SERVER
    };
    let d = busy.diagnosis();
    assert_eq!(kinds(&d), ["cpu_saturation"], "{d:#?}");
    let why = why_not(&d, Kind::ThreadStarvation);
    assert!(why.contains("and the CPUs are busy"), "{why}");
    let waiting = Server { log: 40e-3, ..busy };
    assert!(kinds(&waiting.diagnosis()).contains(&"thread_starvation"));
    let free = why_not(&SERVER.diagnosis(), Kind::ThreadStarvation).to_owned();
    assert_eq!(free, "a thread was free all the time");
}

#[test]
fn few_requests_count_when_each_is_felt() {
    let few = |count, disk| Server {
        op: "read",
        count,
        disk,
        ..SERVER
    };
    assert_eq!(kinds(&few(9, 1.5).diagnosis()), ["slow_disk"]);
    assert_eq!(kinds(&few(5, 1.0).diagnosis()), ["slow_disk"]);
    assert_eq!(kinds(&few(1, 3.0).diagnosis()), ["slow_disk"]);
    // The requests are neither many nor felt.
    assert_eq!(kinds(&few(9, 0.1).diagnosis()), [""; 0]);
    let d = few(9, 0.1).diagnosis();
    assert!(
        d.reason.ends_with("too little load for a bottleneck"),
        "{}",
        d.reason
    );
    let locks = Server {
        count: 5,
        lock: 1.0,
        ..SERVER
    };
    assert_eq!(kinds(&locks.diagnosis()), ["unknown_waits"]);
    let logs = Server {
        count: 5,
        log: 1.0,
        ..SERVER
    };
    assert_eq!(kinds(&logs.diagnosis()), ["slow_intent_log"]);
    let replies = Server {
        count: 5,
        reply: 1.0,
        ..SERVER
    };
    assert_eq!(kinds(&replies.diagnosis()), ["slow_reply"]);
    let queue = Server {
        count: 5,
        queue: 1.0,
        saturated: 0.9,
        ..SERVER
    };
    assert_eq!(kinds(&queue.diagnosis()), ["thread_starvation"]);
}

/// A is far away and reads at once; B is near and reads late.
#[test]
fn the_client_whose_replies_are_late_is_named() {
    let slow = Server {
        op: "read",
        reply: 20e-3,
        ..SERVER
    };
    let text = |a_reply: f64, rtts: [f64; 2]| {
        let mut s = slow.snapshot();
        for (name, reply, rtt) in [("A", a_reply, rtts[0]), ("B", 20.0 - a_reply, rtts[1])] {
            s.counter(&f::CLIENT_OPS, [name], 500.0);
            s.counter(&f::CLIENT_OP_SECONDS, [name], 0.05);
            s.counter(&f::CLIENT_REPLY_SECONDS, [name], reply);
            // TCP's smoothed time contains delayed acknowledgements, so nothing is concluded from it about the network.
            s.gauge(&f::CLIENT_RTT, [name], 40e-3);
            s.gauge(&f::CLIENT_MIN_RTT, [name], rtt);
        }
        page(&judge(s), Kind::SlowReply)
    };
    let late = text(0.5, [50e-3, 0.2e-3]);
    assert!(
        late.contains("98 % of the time of sending replies is spent on B"),
        "{late}"
    );
    assert!(
        late.contains("a short round trip, so the client itself reads slowly"),
        "{late}"
    );
    assert!(!late.contains("is spent on A"), "{late}");
    let far = text(19.5, [50e-3, 0.2e-3]);
    assert!(
        far.contains("is spent on A, whose shortest round trip is 50.0 ms"),
        "{far}"
    );
    assert!(far.contains("the network is part of the delay"), "{far}");
    assert!(
        !far.contains("reads slowly") && !far.contains("is spent on B"),
        "{far}"
    );
    // An agent that does not count replies by client names no client.
    let unknown = page(&slow.diagnosis(), Kind::SlowReply);
    assert!(
        !unknown.contains("of sending replies is spent on"),
        "{unknown}"
    );
}

#[test]
fn a_window_in_which_nothing_ended_leaves_nothing_unmeasured() {
    let mut s = Snapshot::new(Duration::from_secs(110));
    s.gauge(&f::STUCK_REQUESTS, ["disk"], 0.0);
    let d = judge(s);
    for r in &d.ruled_out {
        assert!(!r.why.contains("are not measured"), "{r:?}");
    }
}

/// Four exports of one kind, and one of another, on an idle server.
#[test]
fn exports_that_lose_acknowledged_writes_are_told_whatever_the_load() {
    let mut s = Snapshot::new(Duration::from_secs(110));
    assert_eq!(judge(s.clone()).warnings, [""; 0]);
    for export in ["/a", "/b", "/c", "/d"] {
        s.gauge(&f::NOT_DURABLE, [export, "async"], 1.0);
    }
    s.gauge(&f::NOT_DURABLE, ["/tank", "sync_disabled"], 1.0);
    let d = judge(s);
    let page = crate::render(&d, "nfs1", false);
    assert_eq!(
        d.warnings,
        [
            "/a, /b, /c and 1 more are exported async: a crash of this server loses writes that clients believe to be durable; fix: export with the option sync",
            "/tank is on a dataset that had sync=disabled at its last commit: a crash of this server loses writes that clients believe to be durable; fix: zfs set sync=standard",
        ]
    );
    assert!(
        page.contains("\nNot durable:\n  - /a, /b, /c and 1 more are exported async"),
        "{page}"
    );
}

#[test]
fn a_client_that_is_put_off_is_not_an_idle_one() {
    let answers =
        |server: &Server, version: &str, op: &str, status: &str, put_off: f64, all: u64| {
            let mut s = server.snapshot();
            s.counter(&f::OP_ERRORS, [version, op, status], put_off);
            s.histogram(&f::OP_DURATION, [version, op], histogram(&[(50e-6, all)]));
            judge(s)
        };
    let idle = Server { count: 4, ..SERVER };
    let d = answers(&idle, "4.2", "open", "delay", 7.0, 7);
    assert_eq!(kinds(&d), ["retry_later"], "{d:#?}");
    assert!(d.findings[0].share > 0.99);
    let text = page(&d, Kind::RetryLater);
    assert!(
        text.contains(
            "all 7 OPEN operations over NFSv4.2 were answered with NFS4ERR_DELAY (100 %)"
        ),
        "{text}"
    );
    assert!(
        text.contains("7 operations were answered with the request to try again later: Linux clients wait for 700 ms at least"),
        "{text}"
    );
    assert!(text.contains("/proc/fs/nfsd/clients/*/states"), "{text}");
    // A delegation is returned, and the next OPEN succeeds.
    let d = answers(&idle, "4.2", "open", "delay", 2.0, 3);
    assert_eq!(kinds(&d), [""; 0], "{d:#?}");
    assert_eq!(
        why_not(&d, Kind::RetryLater),
        "2 operations were answered with the request to try again later: Linux clients wait for 200 ms at least, outside the server"
    );
    // A busy server on which that happens now and then.
    let busy = Server {
        count: 20_000,
        log: 0.5e-3,
        ..SERVER
    };
    let d = answers(&busy, "4.2", "open", "delay", 20.0, 5000);
    assert_eq!(kinds(&d), [""; 0], "{d:#?}");
    // Clients of NFSv3 wait five seconds each time.
    let d = answers(&busy, "3", "getattr", "jukebox", 4.0, 100);
    let text = page(&d, Kind::RetryLater);
    assert!(
        text.contains(
            "4 of 100 GETATTR operations over NFSv3 were answered with NFS3ERR_JUKEBOX (4 %)"
        ),
        "{text}"
    );
    // Another status does not ask for a retry.
    let d = answers(&idle, "4.2", "open", "noent", 7.0, 7);
    assert_eq!(kinds(&d), [""; 0], "{d:#?}");
    assert_eq!(
        why_not(&d, Kind::RetryLater),
        "no operation was answered with the request to try again later; locks of NFSv3 that clients wait for are not known"
    );
}

/// A deferred client asks after 0.1 s, after 0.2 s and so on, and in the end every fifteen seconds.
#[test]
fn a_client_that_is_put_off_stays_a_finding_while_it_asks() {
    let answers = |n: u64| {
        let mut s = Snapshot::new(Duration::from_secs(110));
        s.counter(&f::OP_ERRORS, ["4.2", "open", "delay"], n as f64);
        s.histogram(&f::OP_DURATION, ["4.2", "open"], histogram(&[(50e-6, n)]));
        nfscope_model::Window {
            length: Duration::from_secs(10),
            delta: s,
        }
    };
    let found = |n, active: &[Kind]| crate::evaluate(&answers(n), active);
    assert_eq!(kinds(&found(7, &[])), ["retry_later"]);
    let d = found(1, &[Kind::RetryLater]);
    assert_eq!(kinds(&d), ["retry_later"], "{d:#?}");
    assert!(
        page(&d, Kind::RetryLater).starts_with("1 operation was answered"),
        "{d:#?}"
    );
    assert_eq!(kinds(&found(1, &[])), [""; 0]);
    assert_eq!(kinds(&found(0, &[Kind::RetryLater])), [""; 0]);
}
