//! Each sentence about logs, locks and disks that a rule can print, on a server that makes it true and on one that would make it false.

use super::test_server::{SERVER, Server, histogram, judge, kinds, page, why_not};
use nfscope_model::family as f;
use nfscope_model::finding::Kind;

/// A journal that stalls for half a second now and then: its mean is low, and so is its p99.
#[test]
fn the_time_in_long_waits_decides_about_a_log_and_is_told() {
    let stalls = Server {
        count: 10_000,
        log: 3e-3,
        log_waits: vec![(0.2e-3, 9_950), (0.45, 50)],
        ..SERVER
    };
    let d = stalls.diagnosis();
    assert_eq!(kinds(&d), ["slow_intent_log"], "{d:#?}");
    let text = page(&d, Kind::SlowIntentLog);
    assert!(
        text.contains("less than 1 % of these waits are long, and have 9"),
        "{text}"
    );
    assert!(
        text.contains("takes 2.45 ms on average, 500 ms at most"),
        "{text}"
    );
    // All waits are alike, so nothing is said about a part of them, and the quantile shows them.
    let steady = Server {
        log: 8e-3,
        ..SERVER
    };
    let text = page(&steady.diagnosis(), Kind::SlowIntentLog);
    assert!(
        text.contains("ms on average, p99 ") && !text.contains("these waits"),
        "{text}"
    );
    // Waits of half a millisecond are short, whatever part of the time they are.
    let fast = Server {
        log: 0.5e-3,
        ..SERVER
    };
    let d = fast.diagnosis();
    assert!(!kinds(&d).contains(&"slow_intent_log"), "{d:#?}");
    let why = why_not(&d, Kind::SlowIntentLog);
    assert_eq!(
        why,
        "a wait for the journal or intent log takes 500 µs on average"
    );
    let used = Server {
        log_in_use: 0.98,
        ..fast
    };
    let d = used.diagnosis();
    let why = why_not(&d, Kind::SlowIntentLog);
    assert!(
        why.ends_with(", and the log is in use for 98 % of the time"),
        "{why}"
    );
}

/// Threads that arrive together wait for a CPU and for each other's transactions, however quick the journal is.
#[test]
fn a_log_whose_own_writes_are_quick_is_not_slow() {
    let quick = Server {
        log: 1.3e-3,
        log_writes: vec![(0.4e-3, 900), (1.2e-3, 20)],
        ..SERVER
    };
    let d = quick.diagnosis();
    assert!(kinds(&d).is_empty(), "{d:#?}");
    assert_eq!(
        why_not(&d, Kind::SlowIntentLog),
        "a wait for the journal or intent log takes 1.30 ms on average, and one write of the log itself 417 µs"
    );
    // The journal stalls three times, and then all operations wait for it. Its quick writes take six times as long in all.
    let stalls = Server {
        count: 10_000,
        log_waits: vec![(0.6e-3, 9_970), (0.45, 30)],
        log: 1.95e-3,
        log_writes: vec![(0.4e-3, 9_000), (0.2, 3)],
        ..SERVER
    };
    assert_eq!(kinds(&stalls.diagnosis()), ["slow_intent_log"]);
    // The writes of other logs do not show all their waits. A journal without an ended write may be slow.
    let xfs = Server {
        log_fs: "xfs",
        ..quick.clone()
    };
    assert_eq!(kinds(&xfs.diagnosis()), ["slow_intent_log"]);
    let unknown = Server {
        log_writes: vec![(0.4e-3, 0)],
        ..quick
    };
    let d = unknown.diagnosis();
    assert_eq!(kinds(&d), ["slow_intent_log"]);
    let text = page(&d, Kind::SlowIntentLog);
    assert!(!text.contains("one write of the log"), "{text}");
    let text = page(&stalls.diagnosis(), Kind::SlowIntentLog);
    assert!(
        text.contains("one write of the log itself takes 467 µs on average"),
        "{text}"
    );
}

/// Local programs wait long for a quick journal, which must not hide the operations' waits for a slow one.
#[test]
fn long_waits_for_a_quick_log_hide_no_slow_one() {
    let mut both = Server {
        log: 8e-3,
        ..SERVER
    }
    .snapshot();
    let root = ["ext4", "root"];
    both.histogram(&f::LOG_WAIT, root, histogram(&[(1.3e-3, 10_000)]));
    both.histogram(&f::LOG_COMMIT, root, histogram(&[(0.4e-3, 9_000)]));
    let d = judge(both);
    assert_eq!(kinds(&d), ["slow_intent_log"], "{d:#?}");
    let text = page(&d, Kind::SlowIntentLog);
    assert!(
        text.contains("a wait for the log of ext4 on tank"),
        "{text}"
    );
}

/// Twelve clients create files in one directory, and the holder of its lock waits for the log.
#[test]
fn a_lock_whose_holder_waits_for_the_log_is_the_queue_of_the_log() {
    let creates = Server {
        op: "create",
        log: 8e-3,
        lock: 88e-3,
        log_in_use: 0.98,
        ..SERVER
    };
    let d = creates.diagnosis();
    assert_eq!(kinds(&d), ["slow_intent_log"], "{d:#?}");
    assert!(d.findings[0].share > 0.95);
    let text = page(&d, Kind::SlowIntentLog);
    assert!(
        text.contains("or for locks whose holders wait for it"),
        "{text}"
    );
    assert!(
        text.contains("which is in use for 98 % of the time"),
        "{text}"
    );
    // Several operations wait for the log of XFS at once, and the waits are no part of the time.
    let several = Server {
        log_fs: "xfs",
        count: 5000,
        ..creates.clone()
    };
    let text = page(&several.diagnosis(), Kind::SlowIntentLog);
    assert!(
        text.contains("which has 4.0 waiting operations on average"),
        "{text}"
    );
    assert!(!text.contains("in use for"), "{text}");
    let why = why_not(&d, Kind::UnknownWaits);
    assert!(
        why.ends_with("those who hold the locks wait for the log"),
        "{why}"
    );
    // The log has idle time, so something else keeps the lock.
    let spare = Server {
        log_in_use: 0.2,
        ..creates.clone()
    };
    let d = spare.diagnosis();
    assert_eq!(kinds(&d)[0], "unknown_waits", "{d:#?}");
    // The operations that wait for locks are not those that wait for the log.
    let mut other = Server {
        log: 8e-3,
        log_in_use: 0.98,
        ..SERVER
    }
    .snapshot();
    let opens = histogram(&[(20e-3, 1000)]);
    other.counter(&f::OP_PHASE, ["4.2", "open", "lock"], opens.sum);
    other.counter(&f::RPC_PHASE, ["4.2", "execute"], opens.sum);
    other.histogram(&f::OP_DURATION, ["4.2", "open"], opens);
    let d = judge(other);
    assert_eq!(kinds(&d), ["unknown_waits", "slow_intent_log"], "{d:#?}");
    assert!(!page(&d, Kind::SlowIntentLog).contains("locks"));
}

#[test]
fn a_log_device_is_judged_by_what_is_written_to_it() {
    let pool = |indirect, log_separate| Server {
        log: 8e-3,
        log_fs: "zfs",
        log_separate,
        indirect,
        ..SERVER
    };
    let text = |server: Server| page(&server.diagnosis(), Kind::SlowIntentLog);
    let past = text(pool(0.9, 1.0));
    assert!(
        past.contains("(past its log device for 90 % of the bytes)"),
        "{past}"
    );
    assert!(
        past.contains("90 % of the committed bytes bypass the log device"),
        "{past}"
    );
    assert!(!past.contains("check the separate log device"), "{past}");
    let through = text(pool(0.0, 1.0));
    assert!(through.contains("(on a separate device)"), "{through}");
    assert!(
        through.contains("check the separate log device"),
        "{through}"
    );
    assert!(!through.contains("bypass"), "{through}");
    // Without a log device nothing bypasses one.
    let none = text(pool(0.9, 0.0));
    assert!(none.contains("zpool add tank log"), "{none}");
    assert!(!none.contains("bypass"), "{none}");
}

/// A queue hides the threads' waits only where threads are too few.
#[test]
fn behind_few_threads_a_smaller_share_is_enough() {
    let with = |saturated| Server {
        queue: 10e-3,
        log: 3e-3,
        saturated,
        ..SERVER
    };
    let few = with(0.9).diagnosis();
    assert_eq!(
        kinds(&few),
        ["thread_starvation", "slow_intent_log"],
        "{few:#?}"
    );
    let enough = with(0.0).diagnosis();
    assert!(!kinds(&enough).contains(&"slow_intent_log"), "{enough:#?}");
}

/// Two pools, of which one has an export whose commits go past its log device.
#[test]
fn pools_are_judged_one_by_one() {
    let through = Server {
        log: 8e-3,
        log_fs: "zfs",
        log_separate: 1.0,
        ..SERVER
    };
    let mut s = through.snapshot();
    s.counter(&f::ZFS_ITX_BYTES, ["other", "indirect"], 1e9);
    let text = page(&judge(s), Kind::SlowIntentLog);
    assert!(text.contains("(on a separate device)"), "{text}");
    assert!(!text.contains("bypass"), "{text}");
}

/// A journal on a device of its own stalls for half a second now and then. Some WRITEs wait for blocks that it is writing, and the
/// devices below the export are quick.
#[test]
fn waits_for_blocks_that_a_stalled_log_is_writing_are_the_logs() {
    let stalls_beside = |beside: Option<&str>, device: f64, separate: f64, write: f64| {
        let n = 1000;
        let mut s = Server {
            count: n,
            log: 3.8e-3,
            log_waits: vec![(0.2e-3, 940), (0.6, 6)],
            log_separate: separate,
            ..SERVER
        }
        .snapshot();
        // Another thousand WRITEs, of which twelve wait half a second each.
        s.histogram(
            &f::OP_DURATION,
            ["4.2", "write"],
            histogram(&[(write, n - 12), (0.5, 12)]),
        );
        s.counter(&f::OP_PHASE, ["4.2", "write", "cpu"], write * 988.0);
        s.counter(&f::OP_PHASE, ["4.2", "write", "disk"], 6.0);
        s.counter(&f::RPC_PHASE, ["4.2", "execute"], 6.0 + write * 988.0);
        s.histogram(
            &f::BLOCK_DEVICE,
            ["sda", "write"],
            histogram(&[(device, 1000)]),
        );
        for device in ["sda", "tank"].into_iter().chain(beside) {
            s.gauge(&f::EXPORT_DEVICE, ["/srv", device], 1.0);
        }
        judge(s)
    };
    let stalls = |device, separate, write| stalls_beside(None, device, separate, write);
    let d = stalls(0.1e-3, 1.0, 0.2e-3);
    assert_eq!(kinds(&d), ["slow_intent_log"], "{d:#?}");
    assert!(d.findings[0].share > 0.8, "{d:#?}");
    let text = page(&d, Kind::SlowIntentLog);
    assert!(
        text.contains("that the devices of exports do not explain"),
        "{text}"
    );
    assert!(why_not(&d, Kind::SlowDisk).contains("blocks that the log is writing"));
    // The device explains these waits; or the log lies on that device, so that the two cannot be distinguished.
    for (device, separate) in [(8e-3, 1.0), (0.1e-3, 0.0)] {
        let d = stalls(device, separate, 0.2e-3);
        assert!(
            kinds(&d).contains(&"slow_disk"),
            "{device} {separate}: {d:#?}"
        );
        let text = page(&d, Kind::SlowIntentLog);
        assert!(!text.contains("do not explain"), "{text}");
    }
    // Beside an export with unknown devices, a log with a device of its own may be behind that I/O, and no other log.
    for (separate, known) in [(1.0, false), (0.0, true)] {
        let d = stalls_beside(Some(f::UNKNOWN_DEVICE), 0.1e-3, separate, 0.2e-3);
        let share = d.share(Kind::SlowIntentLog);
        assert_eq!(share.is_some(), known, "{separate}: {d:#?}");
    }
}

/// READs of half a millisecond from flash memory, beside a slow device that may or may not be the export's.
#[test]
fn only_a_device_below_an_export_is_slow_for_clients() {
    let flash = Server {
        op: "read",
        disk: 0.5e-3,
        ..SERVER
    };
    let window = |export_devices: &[&str]| {
        let mut s = flash.snapshot();
        let requests = |each| histogram(&[(each, 1000)]);
        s.histogram(&f::BLOCK_DEVICE, ["nvme0n1", "read"], requests(0.4e-3));
        s.histogram(&f::BLOCK_DEVICE, ["sdb", "read"], requests(20e-3));
        for device in export_devices {
            s.gauge(&f::EXPORT_DEVICE, ["/srv", device], 1.0);
        }
        judge(s)
    };
    let healthy = window(&["dm-0", "nvme0n1"]);
    assert_eq!(kinds(&healthy), [""; 0], "{healthy:#?}");
    let text = page(&window(&["dm-0", "sdb"]), Kind::SlowDisk);
    assert!(
        text.contains("one read request to sdb, which /srv lies on, takes 20.0 ms on average"),
        "{text}"
    );
    // The devices of exports are not known, so nothing is said about exports. Or none of them had requests: the exports lie on others.
    for devices in [&[][..], &["drbd0"], &["nvme0n1", f::UNKNOWN_DEVICE]] {
        let text = page(&window(devices), Kind::SlowDisk);
        assert!(
            text.contains("one read request to sdb takes 20.0 ms"),
            "{text}"
        );
        assert!(!text.contains("lies on"), "{text}");
    }
}

/// The evidence of a true finding names the export's device, not the slowest device of the host.
#[test]
fn the_device_below_the_export_is_named() {
    let slow = Server {
        op: "read",
        disk: 8e-3,
        ..SERVER
    };
    let mut s = slow.snapshot();
    for (device, each) in [("sda", 8e-3), ("sdb", 50e-3)] {
        let requests = histogram(&[(each, 1000)]);
        s.histogram(&f::BLOCK_DEVICE, [device, "read"], requests);
    }
    s.gauge(&f::EXPORT_DEVICE, ["/srv", "sda"], 1.0);
    let text = page(&judge(s), Kind::SlowDisk);
    assert!(text.contains("to sda, which /srv lies on"), "{text}");
    assert!(!text.contains("sdb"), "{text}");
}

/// READs of 8 ms from a disk that a program of the server floods, and from one that only nfsd uses.
#[test]
fn whose_requests_keep_the_disk_is_told() {
    let slow = Server {
        op: "read",
        disk: 8e-3,
        ..SERVER
    };
    const MIB: f64 = 1024.0 * 1024.0;
    let window = |read: f64, written: f64, nfsd: Option<[f64; 2]>, devices: &[&str]| {
        let mut s = slow.snapshot();
        s.histogram(
            &f::BLOCK_DEVICE,
            ["sda", "read"],
            histogram(&[(8e-3, 1000)]),
        );
        s.counter(&f::BLOCK_BYTES, ["sda", "read"], read * MIB);
        s.counter(&f::BLOCK_BYTES, ["sda", "write"], written * MIB);
        // Requests of another disk do not count.
        s.counter(&f::BLOCK_BYTES, ["sdb", "read"], 9000.0 * MIB);
        for device in devices {
            s.gauge(&f::EXPORT_DEVICE, ["/srv", device], 1.0);
        }
        for (op, bytes) in ["read", "write"]
            .into_iter()
            .zip(nfsd.into_iter().flatten())
        {
            s.counter(&f::THREAD_IO, [op], bytes * MIB);
        }
        page(&judge(s), Kind::SlowDisk)
    };
    let flooded = window(100.0, 0.0, Some([9.0, 0.0]), &["sda"]);
    assert!(
        flooded.contains("nfsd reads 9.0 MiB of the 100.0 MiB that are read from the devices of exports: 91 % is for other programs"),
        "{flooded}"
    );
    assert!(flooded.contains("pidstat -d 1"), "{flooded}");
    assert!(!flooded.contains("more memory"), "{flooded}");
    for own in [
        window(100.0, 0.0, Some([96.0, 0.0]), &["sda"]),
        // More was read than the devices delivered: two threads wanted the same pages.
        window(100.0, 5.0, Some([120.0, 1.0]), &["sda"]),
        // Little was read compared with what was written.
        window(1.0, 900.0, Some([0.0, 800.0]), &["sda"]),
        // I/O is not accounted, or the devices are not known.
        window(100.0, 500.0, None, &["sda"]),
        window(100.0, 500.0, Some([9.0, 0.0]), &[]),
    ] {
        assert!(own.contains("more memory"), "{own}");
        assert!(!own.contains("other programs of"), "{own}");
    }
    // The requests of a multipath device are counted on its paths, too.
    let paths = {
        let mut s = slow.snapshot();
        for device in ["dm-0", "sda"] {
            s.histogram(
                &f::BLOCK_DEVICE,
                [device, "read"],
                histogram(&[(8e-3, 500)]),
            );
            s.counter(&f::BLOCK_BYTES, [device, "read"], 100.0 * MIB);
            s.gauge(&f::EXPORT_DEVICE, ["/srv", device], 1.0);
        }
        for op in ["read", "write"] {
            s.counter(&f::THREAD_IO, [op], 95.0 * MIB);
        }
        page(&judge(s), Kind::SlowDisk)
    };
    assert!(!paths.contains("other programs of"), "{paths}");
    let written = window(10.0, 800.0, Some([10.0, 12.0]), &["sda"]);
    assert!(
        written.contains(
            "800.0 MiB are written to the devices of exports, while nfsd has changed 12.0 MiB"
        ),
        "{written}"
    );
    let journal = window(10.0, 50.0, Some([10.0, 12.0]), &["sda"]);
    assert!(!journal.contains("are written to"), "{journal}");
}
