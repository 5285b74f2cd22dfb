//! Rare waits of threads: a long one is named, and its time counts for no other cause.

use super::apply;
use super::context::Context;
use super::test_server::{SERVER, Server, histogram, judge, kinds, measured, page, why_not};
use crate::attribution::Attribution;
use crate::breakdown::Breakdown;
use crate::export_io::ExportIo;
use nfscope_model::finding::Kind;
use nfscope_model::held_request::WAITS;
use nfscope_model::{HeldRequest, ProbeState, ProbeStatus, Snapshot, Window, family as f};
use std::time::Duration;

/// A server whose operations wait `each` seconds in this phase beside a tenth of a millisecond of CPU time.
fn waits(phase: &str, each: f64) -> Snapshot {
    let mut s = SERVER.snapshot();
    let n = SERVER.count as f64;
    let execute = SERVER.cpu + each;
    s.histogram(
        &f::OP_DURATION,
        ["3", "remove"],
        histogram(&[(execute, SERVER.count)]),
    );
    s.counter(&f::OP_PHASE, ["3", "remove", "cpu"], SERVER.cpu * n);
    s.counter(&f::OP_PHASE, ["3", "remove", phase], each * n);
    s.counter(&f::RPC_PHASE, ["4.2", "execute"], execute * n);
    s.histogram(
        &f::RPC_DURATION,
        ["4.2"],
        histogram(&[(execute, SERVER.count)]),
    );
    s
}

#[test]
fn each_long_one_is_a_finding_and_a_short_one_is_none() {
    for (phase, kind, words) in [
        (
            "throttle",
            Kind::WriteThrottle,
            "until written data is stored",
        ),
        (
            "recall",
            Kind::DelegationRecalls,
            "until a client returns a delegation",
        ),
        ("reclaim", Kind::MemoryReclaim, "until memory is free"),
    ] {
        let d = judge(waits(phase, 5e-3));
        assert_eq!(kinds(&d), [kind.as_str()], "{d:#?}");
        let text = page(&d, kind);
        assert!(
            text.contains("one REMOVE over NFSv3 waits 5.00 ms on average"),
            "{text}"
        );
        assert!(text.contains(words), "{text}");
        let short = judge(waits(phase, 0.5e-3));
        assert!(short.findings.is_empty(), "{short:#?}");
        let why = why_not(&short, kind);
        assert!(
            why.starts_with("one REMOVE waits 500 µs on average"),
            "{why}"
        );
        let none = judge(SERVER.snapshot());
        assert_eq!(why_not(&none, kind), format!("no operation waited {words}"));
    }
}

/// Throttled seconds are not counted as waits for a lock or a disk as well.
#[test]
fn what_is_throttled_waits_for_no_disk() {
    let d = judge(waits("throttle", 20e-3));
    for kind in [
        Kind::SlowDisk,
        Kind::LockContention,
        Kind::UnknownWaits,
        Kind::SlowIntentLog,
    ] {
        assert_eq!(d.share(kind), Some(0.0), "{d:#?}");
    }
    let all: f64 = d.findings.iter().map(|f| f.share).sum();
    assert!(all <= 1.0, "{all}");
}

#[test]
fn a_pool_that_holds_writers_back_is_named() {
    let mut s = waits("throttle", 5e-3);
    s.histogram(&f::ZFS_THROTTLE, ["tank"], histogram(&[(5e-3, 1000)]));
    let text = page(&judge(s), Kind::WriteThrottle);
    assert!(
        text.contains("the pool tank holds writers back 1000 times"),
        "{text}"
    );
    assert!(text.contains("zpool iostat"), "{text}");
    // Without a pool the devices take the pages.
    let text = page(&judge(waits("throttle", 5e-3)), Kind::WriteThrottle);
    assert!(
        text.contains("iostat -x") && !text.contains("zpool"),
        "{text}"
    );
}

/// A server with `n` waits of `each` seconds, of which `of_requests` seconds belong to requests that ended.
fn asks(upcall: &str, each: f64, n: u64, of_requests: f64) -> Snapshot {
    let mut s = SERVER.snapshot();
    s.histogram(&f::UPCALL_WAIT, [upcall], histogram(&[(each, n)]));
    s.counter(&f::UPCALL_ASKED, [upcall], n as f64);
    s.counter(&f::RPC_PHASE, ["3", "upcall"], of_requests);
    s
}

#[test]
fn the_daemon_that_keeps_threads_waiting_is_named() {
    for (upcall, daemon, advice) in [
        ("client", "rpc.mountd", "nfs-mountd"),
        ("groups", "rpc.mountd", "time id USER"),
        ("export", "rpc.mountd", "nfs-mountd"),
        ("handle", "rpc.mountd", "nfs-mountd"),
        ("idmap", "rpc.idmapd", "nfs-idmapd"),
        ("gss", "rpc.svcgssd", "rpc-svcgssd"),
        ("client_tracking", "nfsdcld", "/var/lib/nfs"),
    ] {
        let d = judge(asks(upcall, 30e-3, 40, 1.2));
        assert_eq!(kinds(&d), ["slow_upcall"], "{d:#?}");
        let text = page(&d, Kind::SlowUpcall);
        assert!(text.contains(&format!("waiting for {daemon}")), "{text}");
        assert!(text.contains("40 waits, 30.0 ms on average"), "{text}");
        assert!(text.contains(advice), "{text}");
        for other in ["rpc.mountd", "rpc.idmapd", "rpc.svcgssd", "nfsdcld"] {
            assert_eq!(text.contains(other), other == daemon, "{text}");
        }
    }
}

/// Threads gave up, and the requests were deferred: their waits are in no residence.
#[test]
fn waits_of_requests_that_were_put_aside_count() {
    let mut s = asks("export", 5.0, 6, 0.0);
    s.counter(&f::RPC_DROPPED, ["deferred"], 6.0);
    let d = judge(s);
    let finding = d.finding(Kind::SlowUpcall).unwrap();
    // The waits are 30 s beside 0.12 s of residence.
    assert!((0.99..=1.0).contains(&finding.share), "{finding:#?}");
    let text = page(&d, Kind::SlowUpcall);
    assert!(text.contains("6 requests were put aside"), "{text}");
}

#[test]
fn quick_answers_and_few_are_no_finding() {
    for (each, n) in [(0.2e-3, 500), (100e-3, 3)] {
        let d = judge(asks("client", each, n, each * n as f64));
        assert!(d.finding(Kind::SlowUpcall).is_none(), "{d:#?}");
        assert!(
            why_not(&d, Kind::SlowUpcall).contains("rpc.mountd"),
            "{d:#?}"
        );
    }
    let none = judge(SERVER.snapshot());
    assert_eq!(
        why_not(&none, Kind::SlowUpcall),
        "no thread waited for a daemon"
    );
}

/// Threads that wait for a daemon keep others waiting for a thread.
#[test]
fn what_threads_wait_for_is_told_beside_their_number() {
    let starved = Server {
        queue: 20e-3,
        saturated: 0.9,
        ..SERVER
    };
    let mut s = starved.snapshot();
    s.histogram(&f::UPCALL_WAIT, ["client"], histogram(&[(5e-3, 1000)]));
    s.counter(&f::RPC_PHASE, ["3", "upcall"], 5.0);
    let d = judge(s);
    assert_eq!(kinds(&d), ["thread_starvation", "slow_upcall"], "{d:#?}");
    let text = page(&d, Kind::ThreadStarvation);
    assert!(
        text.contains("waiting for rpc.mountd or another daemon"),
        "{text}"
    );
}

/// Waits that the agent does not measure are unknown, and not zero.
#[test]
fn a_wait_that_is_not_told_apart_is_not_ruled_out() {
    let mut s = SERVER.snapshot();
    s.probes = vec![ProbeStatus {
        program: "sched_dirty_end".into(),
        state: ProbeState::Unsupported,
        ..unattached()
    }];
    let d = judge(s);
    assert_eq!(d.share(Kind::WriteThrottle), None);
    assert!(why_not(&d, Kind::WriteThrottle).contains("does not tell such waits"));
    assert_eq!(d.share(Kind::MemoryReclaim), Some(0.0));
    // An agent of an earlier release does not report upcalls.
    let mut old = serde_json::to_value(SERVER.snapshot()).unwrap();
    let phases = old["families"][f::RPC_PHASE.info.name]
        .as_array_mut()
        .unwrap();
    phases.retain(|s| s["labels"][1] != "upcall");
    let d = judge(serde_json::from_value(old).unwrap());
    for kind in [
        Kind::WriteThrottle,
        Kind::SlowUpcall,
        Kind::DelegationRecalls,
        Kind::MemoryReclaim,
    ] {
        assert_eq!(d.share(kind), None, "{kind:?}");
    }
}

fn unattached() -> ProbeStatus {
    ProbeStatus {
        probe: "sched".into(),
        program: String::new(),
        hook: String::new(),
        gives: String::new(),
        required: false,
        state: ProbeState::Unsupported,
        reason: "no such function".into(),
        fix: String::new(),
    }
}

/// An agent of illumos, where the `missing` programs do not measure.
fn of_illumos(s: &mut Snapshot, missing: &[&str]) {
    let probe = |probe: &str, program: &str| ProbeStatus {
        probe: probe.into(),
        program: program.into(),
        state: match missing.contains(&program) {
            true => ProbeState::Unsupported,
            false => ProbeState::Attached,
        },
        hook: String::new(),
        gives: String::new(),
        required: false,
        reason: String::new(),
        fix: String::new(),
    };
    let waits = ["throttle", "upcall", "recall", "reclaim"];
    s.probes = waits.map(|program| probe("sched", program)).into();
    s.probes.push(probe("kstat", "kstat"));
}

#[test]
fn each_is_judged_on_illumos_where_its_program_measures() {
    let kinds_of = [
        ("throttle", Kind::WriteThrottle, "zpool iostat"),
        ("recall", Kind::DelegationRecalls, "sharectl set"),
        ("reclaim", Kind::MemoryReclaim, "::memstat"),
    ];
    for (phase, kind, advice) in kinds_of {
        let mut s = waits(phase, 5e-3);
        of_illumos(&mut s, &[]);
        let d = judge(s);
        assert_eq!(kinds(&d), [kind.as_str()], "{d:#?}");
        let actions = d.finding(kind).unwrap().advice.join("\n");
        assert!(
            kind == Kind::WriteThrottle || actions.contains(advice),
            "{actions}"
        );
        assert!(!actions.contains("/proc/"), "{actions}");
        let mut s = SERVER.snapshot();
        measured(&mut s, "3", 1000);
        of_illumos(&mut s, &[phase]);
        let d = judge(s);
        let open = d.ruled_out.iter().filter(|r| r.share.is_none());
        // Connections, durability and mounts are not measured there.
        let unknown = [
            Kind::RetryLater,
            Kind::UnacknowledgedReplies,
            Kind::UnsafeWrites,
            Kind::ConnectionLimit,
            Kind::BadRpcs,
            kind,
            Kind::SlowMount,
        ];
        assert_eq!(open.map(|r| r.kind).collect::<Vec<_>>(), unknown);
    }
    let mut s = SERVER.snapshot();
    measured(&mut s, "3", 1000);
    of_illumos(&mut s, &["upcall"]);
    let d = judge(s);
    let open = d.ruled_out.iter().filter(|r| r.share.is_none());
    let unknown = [
        Kind::RetryLater,
        Kind::UnacknowledgedReplies,
        Kind::UnsafeWrites,
        Kind::ConnectionLimit,
        Kind::BadRpcs,
        Kind::SlowUpcall,
        Kind::SlowMount,
    ];
    assert_eq!(open.map(|r| r.kind).collect::<Vec<_>>(), unknown);
}

#[test]
fn threads_are_added_by_the_command_of_illumos() {
    let few = Server {
        queue: 50e-3,
        cpu: 10e-3,
        saturated: 0.9,
        ..SERVER
    };
    let mut s = few.snapshot();
    of_illumos(&mut s, &[]);
    let d = judge(s);
    let advice = &d.finding(Kind::ThreadStarvation).unwrap().advice;
    assert!(advice[0].contains("sharectl set -p servers="), "{advice:?}");
    assert!(!advice.join("").contains("nfs.conf"), "{advice:?}");
}

/// A rule has its advice whether or not there is a finding.
#[test]
fn no_advice_on_illumos_names_a_command_of_linux() {
    const OF_LINUX: [&str; 13] = [
        "/proc/",
        "/sys/",
        "sysctl",
        "systemctl",
        "nfs.conf",
        "rpc.",
        "dmesg",
        "iotop",
        "pidstat",
        "iostat -x 1",
        "(top",
        "vm.",
        "mke2fs",
    ];
    let slow = Server {
        queue: 50e-3,
        log: 5e-3,
        log_fs: "zfs",
        disk: 5e-3,
        lock: 5e-3,
        saturated: 0.9,
        ..SERVER
    };
    let mut s = slow.snapshot();
    of_illumos(&mut s, &[]);
    for phase in ["throttle", "upcall", "recall", "reclaim"] {
        s.counter(&f::OP_PHASE, ["3", "write", phase], 5.0);
    }
    s.gauge(&f::PENDING_CONNECTIONS, [], 3.0);
    s.gauge(&f::OLDEST_PENDING, [], 60.0);
    s.held = WAITS.map(stuck_in).into();
    let length = Duration::from_secs(10);
    let mut breakdown = Breakdown::of(&Window { length, delta: s });
    for io in [None, Some(read_by_others())] {
        breakdown.export_io = io;
        let attribution = Attribution::of(&breakdown);
        let context = Context {
            breakdown: &breakdown,
            attribution: &attribution,
            active: &[],
            observed: &crate::Observed::default(),
        };
        // The waits of replies are not measured there.
        for kind in Kind::ALL.into_iter().filter(|k| *k != Kind::SlowReply) {
            for told in apply(kind, &context).advice {
                let of_linux = OF_LINUX.iter().find(|word| told.contains(**word));
                assert_eq!(of_linux, None, "{kind:?}: {told}");
            }
        }
    }
}

fn stuck_in(wait: &str) -> HeldRequest {
    HeldRequest {
        thread: 100,
        seconds: 60.0,
        version: "3".into(),
        op: "write".into(),
        wait: wait.into(),
        client: None,
        export: None,
        inode: None,
        xid: None,
        stack: Vec::new(),
    }
}

/// Other programs read ten times as much as nfsd.
fn read_by_others() -> ExportIo {
    ExportIo {
        read: 1e9,
        nfsd_read: 1e8,
        written: 0.0,
        nfsd_changed: 0.0,
    }
}
