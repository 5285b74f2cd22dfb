use crate::evaluate;
use nfscope_model::finding::{Diagnosis, Kind, Severity, Verdict};
use nfscope_model::{HeldRequest, Histogram, Scheme, Snapshot, Window, family as f};
use std::time::Duration;

fn held(op: &str, seconds: f64, wait: &str) -> HeldRequest {
    HeldRequest {
        thread: 812,
        seconds,
        version: "3".into(),
        op: op.into(),
        wait: wait.into(),
        client: Some("192.0.2.7".into()),
        export: Some("/srv".into()),
        inode: Some(25),
        xid: None,
        stack: Vec::new(),
    }
}

/// Ten seconds in which `writes` WRITEs of a millisecond ended, and at the end of which these requests are in hand.
fn window(writes: u64, held: &[HeldRequest]) -> Window {
    let mut delta = Snapshot::new(Duration::from_secs(110));
    if writes > 0 {
        let mut h = Histogram::new(Scheme::TIME);
        h.counts[Scheme::TIME.bucket(1e-3)] = writes;
        h.sum = writes as f64 * 1e-3;
        delta.counter(&f::OP_PHASE, ["3", "write", "cpu"], h.sum);
        delta.counter(&f::OP_PHASE, ["3", "write", "log"], 0.0);
        delta.counter(&f::OP_PHASE, ["3", "write", "runqueue"], 0.0);
        delta.counter(&f::RPC_PHASE, ["3", "execute"], h.sum);
        delta.histogram(&f::OP_DURATION, ["3", "write"], h.clone());
        delta.histogram(&f::RPC_DURATION, ["3"], h);
    }
    delta.gauge(&f::THREADS, ["0"], 8.0);
    delta.counter(&f::THREADS_SATURATED, ["0"], 0.0);
    let old = held.iter().filter(|r| r.seconds >= 1.0).count();
    delta.gauge(&f::STUCK_REQUESTS, ["disk"], old as f64);
    delta.held = held.to_vec();
    Window {
        length: Duration::from_secs(10),
        delta,
    }
}

fn texts(d: &Diagnosis) -> Vec<&str> {
    let finding = d.finding(Kind::StuckRequests);
    let evidence = finding.iter().flat_map(|f| &f.evidence);
    evidence.map(|e| e.text.as_str()).collect()
}

#[test]
fn a_disk_that_hangs_is_no_healthy_server_although_nothing_ends() {
    let all = vec![held("write", 42.0, "disk"); 8];
    let d = evaluate(&window(0, &all), &[]);
    assert_eq!(d.verdict, Verdict::Findings);
    let finding = d.finding(Kind::StuckRequests).unwrap();
    assert_eq!(finding.severity, Severity::Critical);
    assert_eq!(finding.share, 1.0);
    assert_eq!(
        finding.summary,
        "8 requests are stuck in the server now, the oldest for 42.0 s"
    );
    let texts = texts(&d);
    assert_eq!(texts[0], "8 of 8 threads have such requests in hand");
    assert_eq!(
        texts[1],
        "a WRITE over NFSv3 of 192.0.2.7 (inode 25 on /srv) is in hand for 42.0 s and waits for a disk; 7 more are alike"
    );
    // Such requests have ended in no histogram: the threads are in use all the same, and the cause is not ruled out.
    assert!(
        d.headroom
            .iter()
            .all(|h| h.resource != "8 threads" || h.utilization == 1.0),
        "{d:#?}"
    );
    let disk = (d.ruled_out.iter()).find(|r| r.kind == Kind::SlowDisk);
    let disk = disk.unwrap();
    assert_eq!(disk.share, None);
    assert_eq!(
        disk.why,
        "8 requests are in hand and wait for a disk: see stuck_requests"
    );
    assert!(
        texts.contains(&"8 of 8 stuck requests wait for a disk"),
        "{texts:?}"
    );
    assert!(finding.advice[0].contains("dmsetup info"), "{finding:#?}");
}

#[test]
fn one_stuck_request_is_a_finding_beside_thousands_that_are_well() {
    let d = evaluate(&window(9000, &[held("write", 60.0, "lock")]), &[]);
    let finding = d.finding(Kind::StuckRequests).unwrap();
    assert_eq!(
        finding.summary,
        "1 request is stuck in the server now, the oldest for 60.0 s"
    );
    assert_eq!(texts(&d)[0], "1 of 8 threads has such a request in hand");
    let of_it = "in hand for 60.0 s, usually 1.00 ms and waits for a lock, another thread or another program";
    assert!(texts(&d)[1].ends_with(of_it), "{d:#?}");
}

#[test]
fn what_is_young_is_not_stuck() {
    // These times are long for a WRITE of a millisecond, and still normal for one of them on a busy disk.
    for seconds in [0.0, 0.4, f64::NAN, -1.0] {
        let d = evaluate(&window(9000, &[held("write", seconds, "disk")]), &[]);
        assert_eq!(d.finding(Kind::StuckRequests), None, "{seconds} s");
    }
    assert_eq!(
        evaluate(&window(9000, &[]), &[]).finding(Kind::StuckRequests),
        None
    );
    assert_eq!(evaluate(&window(0, &[]), &[]).verdict, Verdict::Healthy);
}

/// A server whose log takes half a second on average: one WRITE in a hundred takes longer than a second.
#[test]
fn a_slow_server_is_not_called_stuck_for_requests_that_end_like_others() {
    let slow = |seconds: f64| {
        let mut w = window(0, &[held("write", seconds, "log")]);
        let mut h = Histogram::new(Scheme::TIME);
        h.counts[Scheme::TIME.bucket(0.5)] = 400;
        h.counts[Scheme::TIME.bucket(1.5)] = 4;
        h.sum = 206.0;
        w.delta.counter(&f::OP_PHASE, ["3", "write", "log"], h.sum);
        w.delta.counter(&f::RPC_PHASE, ["3", "execute"], h.sum);
        w.delta
            .histogram(&f::OP_DURATION, ["3", "write"], h.clone());
        w.delta.histogram(&f::RPC_DURATION, ["3"], h);
        evaluate(&w, &[]).finding(Kind::StuckRequests).cloned()
    };
    for seconds in [1.1, 3.0, 6.0] {
        assert_eq!(slow(seconds), None, "{seconds} s");
    }
    for seconds in [10.0, 40.0] {
        let finding = slow(seconds).unwrap();
        assert_eq!(finding.severity, Severity::Critical, "{seconds} s");
    }
}

#[test]
fn a_request_of_half_a_minute_is_stuck_although_others_take_as_long() {
    let mut w = window(0, &[held("write", 31.0, "disk")]);
    let mut h = Histogram::new(Scheme::TIME);
    h.counts[Scheme::TIME.bucket(25.0)] = 20;
    h.sum = 500.0;
    w.delta.histogram(&f::OP_DURATION, ["3", "write"], h);
    assert!(evaluate(&w, &[]).finding(Kind::StuckRequests).is_some());
}

#[test]
fn a_hundred_times_its_usual_time_is_stuck_before_a_second_has_passed() {
    let unusual = held("write", 0.6, "disk");
    assert!(
        evaluate(&window(9000, std::slice::from_ref(&unusual)), &[])
            .finding(Kind::StuckRequests)
            .is_some()
    );
    // The usual time of the operation is not known.
    assert!(
        evaluate(&window(3, &[unusual]), &[])
            .finding(Kind::StuckRequests)
            .is_none()
    );
    let other = held("read", 0.6, "disk");
    assert!(
        evaluate(&window(9000, &[other]), &[])
            .finding(Kind::StuckRequests)
            .is_none()
    );
}

/// A cause is named by the threads' waits, never by likelihood.
#[test]
fn each_wait_has_its_own_words() {
    let cases = [
        ("cpu", "a CPU, or runs", "uses the CPUs"),
        ("log", "the journal or intent log", "does not answer"),
        ("disk", "a disk", "does not answer"),
        (
            "lock",
            "a lock, another thread or another program",
            "fsfreeze",
        ),
        (
            "upcall",
            "an answer of rpc.mountd or another daemon",
            "nfs-mountd",
        ),
        ("throttle", "written data to be stored", "does not answer"),
        (
            "recall",
            "a client to return a delegation",
            "/proc/THREAD/stack",
        ),
        ("reclaim", "free memory", "slabtop"),
        (
            "reply",
            "the client or the network to take its reply",
            "does not read its replies",
        ),
        (
            "unknown",
            "something that this host cannot measure",
            "/proc/THREAD/stack",
        ),
    ];
    for (wait, name, advice) in cases {
        let d = evaluate(&window(0, &[held("write", 5.0, wait)]), &[]);
        let finding = d.finding(Kind::StuckRequests).unwrap();
        let named = format!("waits for {name}");
        assert!(
            texts(&d).iter().any(|t| t.ends_with(&named)),
            "{finding:#?}"
        );
        assert_eq!(finding.advice.len(), 1);
        assert!(finding.advice[0].contains(advice), "{finding:#?}");
        for (other, other_name, _) in cases.iter().filter(|c| c.0 != wait) {
            let other_named = format!("waits for {other_name}");
            assert!(
                !texts(&d).iter().any(|t| t.ends_with(&other_named)),
                "{other}"
            );
        }
    }
}

/// The request whose disk hangs is named first, because the threads that wait for a lock may wait for that request.
#[test]
fn locks_come_behind_what_their_holders_wait_for() {
    let all = [
        held("write", 9.0, "lock"),
        held("write", 8.0, "lock"),
        held("write", 7.0, "lock"),
        held("write", 6.0, "disk"),
    ];
    let d = evaluate(&window(0, &all), &[]);
    let texts = texts(&d);
    assert!(
        texts.contains(&"1 of 4 stuck requests waits for a disk"),
        "{texts:?}"
    );
    let locks = "3 of 4 stuck requests wait for a lock, another thread or another program";
    assert!(texts.contains(&locks), "{texts:?}");
    assert!(
        texts[1].ends_with("for 6.00 s and waits for a disk"),
        "{texts:?}"
    );
    let summary = &d.finding(Kind::StuckRequests).unwrap().summary;
    assert!(summary.ends_with("the oldest for 9.00 s"), "{summary}");
    let advice = &d.finding(Kind::StuckRequests).unwrap().advice;
    assert!(
        advice[0].contains("dmesg") && advice[1].contains("fsfreeze"),
        "{advice:?}"
    );
}

#[test]
fn what_is_not_known_of_a_request_is_not_said() {
    let mut bare = held("", 5.0, "upcall");
    (bare.version, bare.client, bare.export, bare.inode) = (String::new(), None, None, None);
    let d = evaluate(&window(0, &[bare.clone()]), &[]);
    assert_eq!(
        texts(&d)[1],
        "a request is in hand for 5.00 s and waits for an answer of rpc.mountd or another daemon"
    );
    bare.stack = vec!["io_schedule".into(), "folio_wait_bit_common".into()];
    let d = evaluate(&window(0, &[bare]), &[]);
    assert_eq!(
        texts(&d)[2],
        "thread 812 sleeps in io_schedule < folio_wait_bit_common"
    );
}

#[test]
fn an_agent_that_does_not_tell_leaves_it_open() {
    let mut w = window(9000, &[]);
    w.delta = {
        let mut json = serde_json::to_value(&w.delta).unwrap();
        json["families"]
            .as_object_mut()
            .unwrap()
            .remove("nfscope_stuck_requests");
        serde_json::from_value(json).unwrap()
    };
    let d = evaluate(&w, &[]);
    assert_eq!(d.verdict, Verdict::Unknown);
    assert_eq!(d.share(Kind::StuckRequests), None);
}

/// A window, at the end of which `connections` connections have requests that no thread has taken.
fn pending(writes: u64, connections: f64, oldest: f64) -> Window {
    let mut w = window(writes, &[]);
    if writes > 0 {
        let mut queue = Histogram::new(Scheme::TIME);
        queue.counts[Scheme::TIME.bucket(0.4)] = writes;
        queue.sum = writes as f64 * 0.4;
        w.delta.histogram(&f::RPC_QUEUE, ["0"], queue);
    }
    w.delta.gauge(&f::PENDING_CONNECTIONS, [], connections);
    w.delta.gauge(&f::OLDEST_PENDING, [], oldest);
    w
}

#[test]
fn requests_that_no_thread_takes_are_stuck_although_none_is_in_hand() {
    let d = evaluate(&pending(0, 12.0, 8.0), &[]);
    let finding = d.finding(Kind::StuckRequests).unwrap();
    assert_eq!(
        finding.summary,
        "no thread takes the requests of 12 connections, the oldest for 8.00 s"
    );
    assert_eq!(
        texts(&d),
        [
            "there are 12 connections with a request that arrived 1.00 s ago or earlier and that no thread has taken; the oldest arrived 8.00 s ago"
        ]
    );
    assert!(finding.advice[0].contains("pgrep -x nfsd"), "{finding:#?}");
    assert_eq!(finding.share, 1.0);
}

/// Too few threads take every request, but late: that is another finding.
#[test]
fn requests_that_wait_as_long_as_all_others_are_not_stuck() {
    let late = evaluate(&pending(5000, 20.0, 1.5), &[]);
    assert!(late.finding(Kind::StuckRequests).is_none(), "{late:#?}");
    let lost = evaluate(&pending(5000, 1.0, 60.0), &[]);
    let finding = lost.finding(Kind::StuckRequests).unwrap();
    assert_eq!(
        finding.summary,
        "no thread takes the requests of 1 connection, the oldest for 60.0 s"
    );
    let none = evaluate(&pending(5000, 0.0, 0.0), &[]);
    assert!(none.finding(Kind::StuckRequests).is_none(), "{none:#?}");
}

#[test]
fn beside_threads_that_hang_the_queue_is_told() {
    let mut w = pending(0, 3.0, 5.0);
    w.delta.held = vec![held("write", 42.0, "disk"); 8];
    w.delta.gauge(&f::STUCK_REQUESTS, ["disk"], 8.0);
    let d = evaluate(&w, &[]);
    let finding = d.finding(Kind::StuckRequests).unwrap();
    assert_eq!(
        finding.summary,
        "8 requests are stuck in the server now, the oldest for 42.0 s; no thread takes the requests of 3 connections, the oldest for 5.00 s"
    );
    assert!(texts(&d)[1].starts_with("there are 3 connections"));
    assert!(finding.advice[0].contains("dmsetup info"), "{finding:#?}");
}

/// Each pool has a queue of its own: one can be late while another is not.
#[test]
fn a_pool_that_is_late_is_not_stuck_beside_one_that_is_not() {
    let mut w = pending(5000, 5.0, 3.0);
    let mut quick = Histogram::new(Scheme::TIME);
    quick.counts[Scheme::TIME.bucket(1e-5)] = 900_000;
    quick.sum = 9.0;
    w.delta.histogram(&f::RPC_QUEUE, ["1"], quick);
    let d = evaluate(&w, &[]);
    assert!(d.finding(Kind::StuckRequests).is_none(), "{d:#?}");
    // Beyond the last bucket the length of the wait is not known.
    let mut endless = Histogram::new(Scheme::TIME);
    *endless.counts.last_mut().unwrap() = 50;
    endless.sum = 5_000.0;
    let mut w = pending(0, 5.0, 100.0);
    w.delta.histogram(&f::RPC_QUEUE, ["0"], endless);
    let d = evaluate(&w, &[]);
    assert!(d.finding(Kind::StuckRequests).is_none(), "{d:#?}");
}

/// A window in which the devices below exports completed these numbers of reads of 20 ms.
fn beside(held: &[HeldRequest], completed: &[u64]) -> Diagnosis {
    let mut w = window(0, held);
    for ((device, export), n) in [("sda", "/srv"), ("sdb", "/home")]
        .into_iter()
        .zip(completed)
    {
        w.delta.gauge(&f::EXPORT_DEVICE, [export, device], 1.0);
        let mut h = Histogram::new(Scheme::TIME);
        h.counts[Scheme::TIME.bucket(20e-3)] = *n;
        h.sum = *n as f64 * 20e-3;
        w.delta.histogram(&f::BLOCK_DEVICE, [device, "read"], h);
    }
    evaluate(&w, &[])
}

#[test]
fn a_device_that_completes_requests_is_not_said_to_answer_nothing() {
    let advice = |d: &Diagnosis| d.finding(Kind::StuckRequests).unwrap().advice.join("\n");
    let says = |d: &Diagnosis| -> String {
        let all = texts(d);
        let of = all.iter().find(|t| t.contains(" completed "));
        of.map_or_else(String::new, |t| (*t).to_owned())
    };
    let long = [held("commit", 42.0, "disk")];
    let d = beside(&long, &[400, 300]);
    assert_eq!(
        says(&d),
        "sdb completed 300 requests in 10.0 s, all of them while that request was in hand, 20.0 ms each on average"
    );
    assert!(
        advice(&d).starts_with("the devices below the export answer"),
        "{}",
        advice(&d)
    );
    // Cases without a sentence: it is not known which of two devices hangs, one that answered may have stopped when the request began, or
    // the probe of block requests is missing.
    for (held, completed, expected) in [
        (&long, &[400, 0][..], ""),
        (&long, &[0], "sda completed 0 requests in 10.0 s"),
        (&long, &[], ""),
        (
            &[held("commit", 4.0, "disk")],
            &[300],
            "sda completed 300 requests in 10.0 s, 20.0 ms each on average",
        ),
    ] {
        let d = beside(held, completed);
        assert_eq!(says(&d), expected);
        assert!(advice(&d).contains("does not answer"), "{}", advice(&d));
        // A device that answered in the window is not said to answer nothing.
        let answered = completed.iter().all(|n| *n > 0) && !completed.is_empty();
        assert_eq!(
            advice(&d).starts_with("the devices below the export answered in this window"),
            answered,
            "{}",
            advice(&d)
        );
    }
    let mut unseen = window(0, &long);
    unseen.delta.gauge(&f::EXPORT_DEVICE, ["/srv", "sda"], 1.0);
    assert_eq!(says(&evaluate(&unseen, &[])), "");
    // A device does not answer waits for a lock.
    let d = beside(&[held("commit", 42.0, "lock")], &[400, 300]);
    assert_eq!(says(&d), "");
}
