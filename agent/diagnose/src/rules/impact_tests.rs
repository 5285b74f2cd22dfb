//! Time that clients lose decides about a finding and its severity, and causes come before their consequences.

use super::test_server::{SERVER, Server, judge, kinds, page, why_not};
use crate::breakdown::Breakdown;
use crate::evaluate::evaluate_breakdown;
use nfscope_model::Window;
use nfscope_model::family as f;
use nfscope_model::finding::{Diagnosis, Kind, Severity};
use std::time::Duration;

fn severity(d: &Diagnosis, kind: Kind) -> Option<Severity> {
    d.finding(kind).map(|f| f.severity)
}

/// READs sleep for disks for 98 % of their time. A device a little faster or slower must not change the verdict.
#[test]
fn a_disk_a_little_faster_than_a_slow_one_is_not_healthy() {
    let reads = |disk: f64| {
        let server = Server {
            op: "read",
            count: 4000,
            cpu: disk / 49.0,
            disk,
            ..SERVER
        };
        severity(&server.diagnosis(), Kind::SlowDisk)
    };
    assert_eq!(reads(1.6e-3), Some(Severity::Warning));
    assert!(reads(1.96e-3).is_some() && reads(1.96e-3) == reads(2.04e-3));
    assert_eq!(reads(6e-3), Some(Severity::Critical));
    // Flash memory, however many READs wait for it.
    assert_eq!(reads(1e-3), None);
}

#[test]
fn a_log_a_little_faster_than_a_slow_one_is_not_healthy() {
    let writes = |log: f64| severity(&Server::with_busy_log(log).diagnosis(), Kind::SlowIntentLog);
    assert_eq!(writes(0.8e-3), Some(Severity::Warning));
    assert!(writes(0.96e-3).is_some() && writes(0.96e-3) == writes(1.04e-3));
    assert_eq!(writes(4e-3), Some(Severity::Critical));
    assert_eq!(writes(0.3e-3), None);
}

/// An idle server: half of its time is almost nothing.
#[test]
fn a_cause_that_few_requests_wait_for_is_not_critical() {
    let writes = |count| {
        let server = Server {
            count,
            log: 20e-3,
            ..SERVER
        };
        severity(&server.diagnosis(), Kind::SlowIntentLog)
    };
    assert_eq!(writes(1000), Some(Severity::Critical));
    assert_eq!(writes(50), Some(Severity::Warning));
    // The lost time is half of five operations in a hundredth of a second.
    let rests = Server {
        op: "rename",
        count: 200,
        cpu: 2e-3,
        disk: 2e-3,
        ..SERVER
    };
    assert!(kinds(&rests.diagnosis()).is_empty());
    assert!(
        kinds(
            &Server {
                count: 2000,
                ..rests
            }
            .diagnosis()
        )
        .contains(&"slow_disk")
    );
}

fn sync_writes(count: u64, log: f64) -> Diagnosis {
    let server = Server {
        count,
        cpu: 150e-6,
        log,
        log_separate: 1.0,
        ..SERVER
    };
    let mut s = server.snapshot();
    s.counter(&f::WRITE, ["3", "file_sync"], count as f64);
    s.counter(&f::WRITE_BYTES, ["3", "file_sync"], count as f64 * 4096.0);
    judge(s)
}

#[test]
fn small_synchronous_writes_of_a_server_that_rests_are_no_finding() {
    let d = sync_writes(3000, 100e-6);
    assert!(kinds(&d).is_empty(), "{d:#?}");
    let d = sync_writes(20_000, 100e-6);
    assert_eq!(kinds(&d), ["small_sync_writes"], "{d:#?}");
    let text = page(&d, Kind::SmallSyncWrites);
    assert!(!text.contains("fast storage"), "it has that: {text}");
    let d = sync_writes(20_000, 0.6e-3);
    let text = page(&d, Kind::SmallSyncWrites);
    assert!(text.contains("a log on fast storage makes"), "{text}");
}

/// ZFS with 2 % of the CPU time idle, and 41 % of the time in the run queue.
#[test]
fn cpus_that_are_never_idle_come_first_however_short_each_wait_is() {
    let server = Server {
        count: 20_000,
        cpu: 100e-6,
        runqueue: 410e-6,
        log: 360e-6,
        log_fs: "zfs",
        idle: 0.02,
        ..SERVER
    };
    let mut s = server.snapshot();
    s.counter(&f::WRITE, ["3", "file_sync"], 20_000.0);
    s.counter(&f::WRITE_BYTES, ["3", "file_sync"], 20_000.0 * 4096.0);
    let d = judge(s);
    assert_eq!(kinds(&d).first(), Some(&"cpu_saturation"), "{d:#?}");
    assert_eq!(kinds(&d)[1..], ["small_sync_writes"], "{d:#?}");
    let text = page(&d, Kind::SmallSyncWrites);
    assert!(text.contains("a consequence of cpu_saturation"), "{text}");
    // With idle CPUs such a wait is the normal wake-up of a thread.
    let idle = Server {
        idle: 0.5,
        ..server
    };
    assert!(!kinds(&idle.diagnosis()).contains(&"cpu_saturation"));
    // An unknown idle time rules nothing out.
    let mut unknown = Server { idle: 0.02, ..idle }.snapshot();
    unknown = without(unknown, "nfscope_cpu_idle_seconds_total");
    let d = judge(unknown);
    assert_eq!(d.share(Kind::CpuSaturation), None);
    assert!(why_not(&d, Kind::CpuSaturation).contains("not measured"));
}

fn without(s: nfscope_model::Snapshot, family: &str) -> nfscope_model::Snapshot {
    let mut json = serde_json::to_value(&s).unwrap();
    json["families"].as_object_mut().unwrap().remove(family);
    serde_json::from_value(json).unwrap()
}

fn eight_threads(server: &Server) -> Diagnosis {
    let mut delta = server.snapshot();
    delta.gauge(&f::THREADS, ["0"], 8.0);
    let window = Window {
        length: Duration::from_secs(10),
        delta,
    };
    evaluate_breakdown(&window, &Breakdown::of(&window), &[], None)
}

/// A wait for a lock counts as a wait for what the lock's holder waits for.
#[test]
fn a_lock_whose_holders_wait_is_the_queue_of_that() {
    let creates = Server {
        op: "create",
        cpu: 0.2e-3,
        lock: 40e-3,
        ..SERVER
    };
    let disk = Server {
        disk: 9e-3,
        ..creates.clone()
    };
    let d = eight_threads(&disk);
    assert_eq!(kinds(&d), ["slow_disk"], "{d:#?}");
    assert!(d.findings[0].share > 0.9);
    let text = page(&d, Kind::SlowDisk);
    assert!(
        text.contains("and the holder of the lock waits for disks"),
        "{text}"
    );
    let why = why_not(&d, Kind::UnknownWaits);
    assert!(
        why.ends_with("those who hold the locks wait for disks"),
        "{why}"
    );
    for (phase, kind) in [
        ("upcall", Kind::SlowUpcall),
        ("recall", Kind::DelegationRecalls),
        ("reclaim", Kind::MemoryReclaim),
    ] {
        let mut s = disk.snapshot();
        s = without_disk(s, phase);
        let mut waits = super::test_server::histogram(&[(9e-3, 1000)]);
        waits.sum = 9.0;
        s.histogram(&f::UPCALL_WAIT, ["export"], waits);
        s.gauge(&f::THREADS, ["0"], 8.0);
        let d = judge(s);
        assert_eq!(kinds(&d).first(), Some(&kind.as_str()), "{phase}: {d:#?}");
        assert!(d.findings[0].share > 0.9, "{phase}: {d:#?}");
        assert!(!kinds(&d).contains(&"unknown_waits"), "{phase}: {d:#?}");
    }
    // The journal is in use for half of the time: the holder computes between two of its waits.
    let log = Server {
        log: 9e-3,
        log_in_use: 0.5,
        ..creates.clone()
    };
    let d = eight_threads(&log);
    assert_eq!(kinds(&d), ["slow_intent_log"], "{d:#?}");
    // No nfsd thread holds the lock for 400 ms, so another task holds it.
    let foreign = Server {
        lock: 400e-3,
        ..disk.clone()
    };
    assert_eq!(kinds(&eight_threads(&foreign)), ["unknown_waits"]);
    // The holders compute.
    let computes = Server {
        cpu: 9e-3,
        ..creates
    };
    assert_eq!(kinds(&eight_threads(&computes)), ["unknown_waits"]);
    // An OPEN that waits for a program which watches the file system waits for no holder of a lock.
    let open = Server {
        op: "getattr",
        ..disk
    };
    assert!(kinds(&eight_threads(&open)).contains(&"unknown_waits"));
}

/// Moves the server's waits for disks to another phase.
fn without_disk(s: nfscope_model::Snapshot, phase: &str) -> nfscope_model::Snapshot {
    let json = serde_json::to_string(&s).unwrap();
    serde_json::from_str(&json.replace("\"disk\"", &format!("\"{phase}\""))).unwrap()
}
