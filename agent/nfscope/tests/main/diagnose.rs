//! What is called a bottleneck, on windows whose cause is known because they are literals.

use crate::fixture::tale::{QUIET, Tale, added, slow_log};
use crate::fixture::{golden, histogram};
use nfscope_diagnose::tracker::{Change, Watch};
use nfscope_diagnose::{judge, render};
use nfscope_model::finding::{Diagnosis, Kind, Verdict};
use nfscope_model::{Scheme, Snapshot, family as f};
use std::time::{Duration, SystemTime};

fn kinds(d: &Diagnosis) -> Vec<Kind> {
    d.findings.iter().map(|f| f.kind).collect()
}

#[test]
fn each_cause_is_named() {
    let named = |t: Tale| kinds(&judge(&t.window(), &[]));
    let slow = Tale {
        requests: 500,
        ..QUIET
    };
    let cases = [
        (slow_log(), vec![Kind::SlowIntentLog]),
        // Threads that wait for nothing slow are too few for what comes.
        (
            Tale {
                queue: 4e-3,
                saturated: 0.9,
                log: 1e-3,
                ..slow.clone()
            },
            vec![Kind::ThreadStarvation],
        ),
        // The same queue, because threads wait for the disks.
        (
            Tale {
                queue: 40e-3,
                saturated: 0.9,
                disk: 10e-3,
                op: "read",
                ..slow.clone()
            },
            vec![Kind::SlowDisk],
        ),
        // And because there is no processor for them.
        (
            Tale {
                queue: 4e-3,
                saturated: 0.9,
                runqueue: 2e-3,
                idle: 0.01,
                ..slow.clone()
            },
            vec![Kind::CpuSaturation],
        ),
        // Whoever sends waits for a processor, too.
        (
            Tale {
                reply: 3e-3,
                runqueue: 3e-3,
                idle: 0.0,
                op: "read",
                ..slow.clone()
            },
            vec![Kind::CpuSaturation],
        ),
        // Threads are free, but do not get to run.
        (
            Tale {
                queue: 8e-3,
                idle: 0.2,
                ..slow.clone()
            },
            vec![Kind::CpuSaturation],
        ),
        (
            Tale {
                lock: 5e-3,
                op: "create",
                ..slow.clone()
            },
            vec![Kind::LockContention],
        ),
        (
            Tale {
                reply: 5e-3,
                op: "read",
                ..slow.clone()
            },
            vec![Kind::SlowReply],
        ),
        (
            Tale {
                op: "getattr",
                ..QUIET
            },
            vec![Kind::ChattyClient],
        ),
        (
            Tale {
                op: "read",
                bytes: 512.0,
                ..QUIET
            },
            vec![Kind::ChattyClient],
        ),
        (
            Tale {
                bytes: 4096.0,
                stability: "file_sync",
                log: 0.3e-3,
                ..QUIET
            },
            vec![Kind::SmallSyncWrites],
        ),
        // Two at once, the larger first.
        (
            Tale {
                log: 10e-3,
                lock: 6e-3,
                op: "create",
                ..slow.clone()
            },
            vec![Kind::SlowIntentLog, Kind::LockContention],
        ),
    ];
    for (tale, expected) in cases {
        let d = judge(&tale.window(), &[]);
        assert_eq!(kinds(&d), expected, "{d:#?}");
        let all: f64 = d.findings.iter().map(|f| f.share).sum();
        assert!(all <= 1.0 + 1e-9, "{d:#?}");
    }
    assert_eq!(named(QUIET), []);
}

#[test]
fn healthy_servers_have_no_finding() {
    for tale in [
        QUIET,
        // Durable, but much at a time.
        Tale {
            stability: "file_sync",
            bytes: 1048576.0,
            log: 0.5e-3,
            ..QUIET
        },
        // A log is not slow because all wait for it.
        Tale {
            requests: 2000,
            log: 1.2e-3,
            stability: "file_sync",
            ..QUIET
        },
        // Full processors keep nobody if nothing waits.
        Tale {
            idle: 0.02,
            runqueue: 30e-6,
            ..QUIET
        },
        // All threads busy at times.
        Tale {
            saturated: 0.05,
            queue: 60e-6,
            ..QUIET
        },
        Tale {
            op: "read",
            ..QUIET
        },
        // Small READs from flash memory.
        Tale {
            op: "read",
            bytes: 4096.0,
            disk: 1e-3,
            ..QUIET
        },
    ] {
        let d = judge(&tale.window(), &[]);
        assert_eq!(d.verdict, Verdict::Healthy, "{d:#?}");
        assert_eq!(d.findings.len() + d.ruled_out.len(), Kind::ALL.len());
    }
}

/// Operations wait for a fast log, while a local program waits for a slow one.
#[test]
fn a_slow_log_that_others_wait_for_is_not_to_blame() {
    let fast = Tale {
        requests: 2000,
        log: 1.2e-3,
        stability: "file_sync",
        ..QUIET
    };
    let window = |log: &Tale| {
        let mut s = log.snapshot(1);
        let waits = histogram(Scheme::TIME, &[(20e-3, 300)]);
        s.histogram(&f::LOG_WAIT, ["xfs", "sdb"], waits);
        s.since(&Snapshot::new(Duration::from_secs(100)))
    };
    assert_eq!(kinds(&judge(&window(&fast), &[])), []);
    // With a second one that is slow, and theirs.
    assert_eq!(
        kinds(&judge(&window(&slow_log()), &[])),
        [Kind::SlowIntentLog]
    );
}

/// Whatever the numbers, the answer is one that can be printed, stored and compared.
#[test]
fn nothing_odd_makes_a_finding_or_no_number() {
    let zero = Snapshot::new(Duration::from_secs(100));
    let later = slow_log().snapshot(3);
    let mut stopped = Snapshot::new(Duration::from_secs(130));
    stopped.gauge(&f::THREADS, ["0"], 0.0);
    let windows = [
        // No ops; nothing known at all; no time between two readings; a clock that went back.
        later.since(&later),
        zero.since(&zero),
        slow_log()
            .snapshot(1)
            .since(&Snapshot::new(Duration::from_secs(110))),
        zero.since(&later),
        // nfsd was stopped: no threads.
        stopped.since(&zero),
        // One operation, however slow.
        Tale {
            requests: 1,
            log: 5.0,
            queue: 5.0,
            ..slow_log()
        }
        .window(),
    ];
    for w in windows {
        let d = judge(&w, &Kind::ALL);
        let json = serde_json::to_string(&d).unwrap();
        assert!(!json.contains("null,\"verdict\""), "{json}");
        let back: Diagnosis = serde_json::from_str(&json).unwrap();
        assert_eq!(d, back, "what JSON cannot say is no number");
        let text = render(&d, "nfs1", false);
        for word in ["NaN", "inf", "-0"] {
            assert!(!text.contains(word), "{text}");
        }
        if w.length < Duration::from_secs(1) || d.requests < 20.0 {
            assert_eq!(kinds(&d), [], "{text}");
        }
    }
    // The agent was started anew: its counters begin at zero again, and are what came since.
    let restarted = slow_log().snapshot(1);
    let mut before = slow_log().snapshot(3);
    before.at = Duration::from_secs(100);
    assert_eq!(
        kinds(&judge(&restarted.since(&before), &[])),
        [Kind::SlowIntentLog]
    );
}

#[test]
fn a_finding_neither_flaps_nor_lingers() {
    let clock = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    let mut watch = Watch::default();
    let (mut at, mut sum) = (clock, Snapshot::default());
    // Windows one after another, as sums.
    let mut step = |watch: &mut Watch, tale: &Tale| {
        at += Duration::from_secs(10);
        sum = added(&sum, tale);
        sum.probes = vec![crate::fixture::status(
            "nfsd_op_end",
            true,
            tale.state(),
            "",
        )];
        watch.step(sum.clone(), at)
    };
    let sick = slow_log();
    assert_eq!(step(&mut watch, &QUIET), []);
    assert_eq!(step(&mut watch, &QUIET), []);
    // One bad window is not enough, and neither is one good one.
    assert_eq!(step(&mut watch, &sick), []);
    assert_eq!(step(&mut watch, &QUIET), []);
    assert_eq!(step(&mut watch, &sick), []);
    let began = step(&mut watch, &sick);
    assert!(
        matches!(began[..], [Change::Began(Kind::SlowIntentLog, _)]),
        "{began:?}"
    );
    assert_eq!(step(&mut watch, &QUIET), []);
    assert_eq!(step(&mut watch, &sick), []);
    let mut s = Snapshot::default();
    watch.describe(&mut s);
    assert_eq!(s.series(&f::BOTTLENECK_ACTIVE.info).len(), Kind::ALL.len());
    assert_eq!(
        s.value(&f::BOTTLENECK_ACTIVE, ["slow_intent_log"]),
        Some(1.0)
    );
    assert!(s.value(&f::BOTTLENECK_SCORE, ["slow_intent_log"]).unwrap() > 0.8);
    assert_eq!(step(&mut watch, &QUIET), []);
    let ended = step(&mut watch, &QUIET);
    let [Change::Ended(Kind::SlowIntentLog, held)] = ended[..] else {
        panic!("{ended:?}");
    };
    assert_eq!(held, Duration::from_secs(40));
    let report = serde_json::to_value(watch.report()).unwrap();
    // What is not watched any more does not hold any more, and nothing is well either.
    let (mut gone, unwatched) = (
        watch,
        Tale {
            threads: 0.0,
            ..QUIET
        },
    );
    step(&mut gone, &sick);
    assert!(matches!(step(&mut gone, &sick)[..], [Change::Began(..)]));
    let ended = step(&mut gone, &unwatched);
    assert!(
        matches!(ended[..], [Change::Ended(Kind::SlowIntentLog, _)]),
        "{ended:?}"
    );
    assert!(gone.report().last_window.is_none());
    assert_eq!(report["active"], serde_json::json!([]));
    assert_eq!(report["history"][0]["finding"]["kind"], "slow_intent_log");
    assert_eq!(report["history"][0]["began"], 1_000_060.0);
    assert_eq!(report["history"][0]["ended"], 1_000_100.0);
    assert_eq!(report["last_window"]["verdict"], "healthy");
}

#[test]
fn what_is_said_of_it() {
    let page = |tale: &Tale| render(&judge(&tale.window(), &[]), "nfs1", false);
    // 7,000 requests of 1.1 ms each keep one thread busy for 7.8 of ten seconds.
    let starved = Tale {
        requests: 7000,
        threads: 1.0,
        queue: 4e-3,
        saturated: 0.78,
        log: 1e-3,
        ..QUIET
    };
    let both = Tale {
        log: 10e-3,
        lock: 6e-3,
        op: "create",
        requests: 500,
        ..QUIET
    };
    let chatty = Tale {
        op: "getattr",
        ..QUIET
    };
    let small = Tale {
        bytes: 4096.0,
        stability: "file_sync",
        log: 0.3e-3,
        ..QUIET
    };
    let disk = Tale {
        requests: 500,
        queue: 40e-3,
        saturated: 0.9,
        disk: 10e-3,
        op: "read",
        ..QUIET
    };
    let reply = Tale {
        requests: 500,
        reply: 5e-3,
        op: "read",
        ..QUIET
    };
    let cpu = Tale {
        requests: 500,
        queue: 4e-3,
        saturated: 0.9,
        runqueue: 2e-3,
        idle: 0.01,
        ..QUIET
    };
    let mut text = String::new();
    for tale in [
        &slow_log(),
        &starved,
        &both,
        &chatty,
        &small,
        &disk,
        &reply,
        &cpu,
        &QUIET,
    ] {
        text += &page(tale);
        text += "----\n";
    }
    golden("diagnose.txt", &text);
    golden(
        "diagnose.color.txt",
        &render(&judge(&both.window(), &[]), "nfs1", true),
    );
    let json = serde_json::to_string_pretty(&judge(&slow_log().window(), &[])).unwrap();
    golden("diagnose.json", &(json + "\n"));
}
