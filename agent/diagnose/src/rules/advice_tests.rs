//! Advice is checked against the state that it is about: page cache, bytes of devices, log devices, and what clients asked for.

use super::test_server::{SERVER, Server, histogram, judge, page};
use crate::breakdown::Breakdown;
use crate::evaluate::evaluate_observed;
use crate::observed::Observed;
use crate::page_cache::PageCache;
use nfscope_model::Window;
use nfscope_model::family as f;
use nfscope_model::finding::Kind;
use std::time::Duration;

/// READs of 8 ms whose pages were in memory not long before, or never.
#[test]
fn more_memory_is_advised_where_the_page_cache_drops_what_is_read_again() {
    const MIB: f64 = 1024.0 * 1024.0;
    let server = Server {
        op: "read",
        disk: 8e-3,
        ..SERVER
    };
    let text = |again: Option<f64>, log_fs: Option<&'static str>| {
        let mut s = server.snapshot();
        s.counter(&f::BLOCK_BYTES, ["sda", "read"], 100.0 * MIB);
        s.counter(&f::BLOCK_BYTES, ["sda", "write"], 0.0);
        s.gauge(&f::EXPORT_DEVICE, ["/srv", "sda"], 1.0);
        s.counter(&f::THREAD_IO, ["read"], 100.0 * MIB);
        s.counter(&f::THREAD_IO, ["write"], 0.0);
        if let Some(fs) = log_fs {
            s.histogram(&f::LOG_WAIT, [fs, "tank"], histogram(&[(1e-6, 1)]));
        }
        let window = Window {
            length: Duration::from_secs(10),
            delta: s,
        };
        let observed = Observed {
            page_cache: again.map(|part| PageCache {
                total: 4000.0 * MIB,
                free: 1000.0 * MIB,
                read_again: part * 100.0 * MIB,
            }),
            ..Observed::default()
        };
        let d = evaluate_observed(&window, &Breakdown::of(&window), &observed);
        page(&d, Kind::SlowDisk)
    };
    let short = text(Some(0.8), None);
    assert!(
        short.contains("more memory for the page cache, which drops what is read again"),
        "{short}"
    );
    assert!(
        short.contains(
            "80 % of what was read from the devices of exports had been in the page cache"
        ),
        "{short}"
    );
    let first = text(Some(0.0), None);
    assert!(
        first.contains("More memory for the page cache saves few of these reads"),
        "{first}"
    );
    assert!(first.contains("25 % of memory is free"), "{first}");
    // The cache of ZFS is not part of the page cache, and without a reading nothing is known.
    for unknown in [text(None, None), text(Some(0.0), Some("zfs"))] {
        assert!(
            unknown.contains("more memory for the page cache (or ARC) if that drops"),
            "{unknown}"
        );
        assert!(!unknown.contains("of memory is free"), "{unknown}");
    }
}

/// WRITEs of 8 ms to a RAID with parity.
#[test]
fn devices_that_are_read_for_writes_are_told() {
    const MIB: f64 = 1024.0 * 1024.0;
    let text = |read: f64, op: &'static str| {
        let server = Server {
            op,
            disk: 8e-3,
            ..SERVER
        };
        let mut s = server.snapshot();
        s.counter(&f::WRITE_BYTES, ["3", "unstable"], 10.0 * MIB);
        s.counter(&f::BLOCK_BYTES, ["sda", "read"], read * MIB);
        s.counter(&f::BLOCK_BYTES, ["sda", "write"], 40.0 * MIB);
        s.gauge(&f::EXPORT_DEVICE, ["/srv", "sda"], 1.0);
        s.counter(&f::THREAD_IO, ["read"], 0.0);
        s.counter(&f::THREAD_IO, ["write"], 10.0 * MIB);
        page(&judge(s), Kind::SlowDisk)
    };
    let parity = text(20.0, "write");
    assert!(
        parity.contains(
            "for each byte that clients write, the devices of exports write 4.0 bytes and read 2.0"
        ),
        "{parity}"
    );
    assert!(parity.contains("a RAID with parity does so"), "{parity}");
    let plain = text(0.0, "write");
    assert!(plain.contains("write 4.0 bytes and read 0.0"), "{plain}");
    assert!(!plain.contains("RAID"), "{plain}");
    // READs wait.
    assert!(!text(20.0, "read").contains("for each byte that clients write"));
}

/// A client fills the disk, and another one waits for it.
#[test]
fn the_client_that_fills_a_disk_is_named() {
    const MIB: f64 = 1024.0 * 1024.0;
    let text = |written: [f64; 3]| {
        let server = Server {
            throttle: 8e-3,
            ..SERVER
        };
        let mut s = server.snapshot();
        for (name, bytes) in ["10.0.0.1", "10.0.0.2", "10.0.0.3"].iter().zip(written) {
            s.counter(&f::CLIENT_OPS, [name], 100.0);
            s.counter(&f::CLIENT_IO_BYTES, [name, "write"], bytes * MIB);
        }
        s.counter(&f::RPC_PHASE, ["3", "upcall"], 0.0);
        page(&judge(s), Kind::WriteThrottle)
    };
    let one = text([5.0, 90.0, 5.0]);
    assert!(
        one.contains("client 10.0.0.2 has 90 % of the 100.0 MiB that clients wrote"),
        "{one}"
    );
    let two = text([50.0, 48.0, 2.0]);
    assert!(
        two.contains("2 of 3 clients (10.0.0.1, 10.0.0.2), 48 % to 50 % each, have 98 % of the"),
        "{two}"
    );
    // Cases in which no client is named: equal clients, and a single writer.
    for none in [
        text([33.0, 33.0, 34.0]),
        text([100.0, 0.0, 0.0]),
        text([0.0; 3]),
    ] {
        assert!(!none.contains("that clients wrote"), "{none}");
    }
}

/// Six clients of 17 % each read slowly.
#[test]
fn clients_that_read_slowly_together_are_named_together() {
    let text = |seconds: &[f64]| {
        let server = Server {
            op: "read",
            reply: 20e-3,
            ..SERVER
        };
        let mut s = server.snapshot();
        for (n, seconds) in seconds.iter().enumerate() {
            let name = format!("10.0.0.{n}");
            s.counter(&f::CLIENT_OPS, [&name], 100.0);
            s.counter(&f::CLIENT_REPLY_SECONDS, [&name], *seconds);
        }
        page(&judge(s), Kind::SlowReply)
    };
    let six = text(&[3.4, 3.4, 3.4, 3.3, 3.3, 3.2, 0.01, 0.01]);
    assert!(
        six.contains("of the time of sending replies 6 of 8 clients (10.0.0.0, 10.0.0.1, 10.0.0.2 and 3 more), 16 % to 17 % each, have 100 %"),
        "{six}"
    );
    let all = text(&[3.0; 5]);
    assert!(
        all.contains("of the time of sending replies 5 clients have 20 % each"),
        "{all}"
    );
    // Four nearly equal clients: the first one has slightly more than a quarter.
    let four = text(&[5.01, 5.0, 5.0, 5.0]);
    assert!(four.contains("4 clients have 25 % each"), "{four}");
    assert!(!four.contains("is spent on 10.0.0.0"), "{four}");
    let one = text(&[10.0, 1.0, 1.0]);
    assert!(
        one.contains("83 % of the time of sending replies is spent on 10.0.0.0"),
        "{one}"
    );
}

/// Questions that mountd answers at once, beside one that it answers after seconds, explain nothing.
#[test]
fn questions_that_are_answered_at_once_are_no_evidence() {
    let mut s = Server {
        op: "getattr",
        ..SERVER
    }
    .snapshot();
    s.counter(&f::RPC_PHASE, ["3", "upcall"], 24.0);
    s.histogram(&f::UPCALL_WAIT, ["client"], histogram(&[(3.0, 8)]));
    s.histogram(&f::UPCALL_WAIT, ["export"], histogram(&[(120e-6, 12)]));
    let text = page(&judge(s), Kind::SlowUpcall);
    assert!(text.contains("who a client is: 8 waits"), "{text}");
    assert!(!text.contains("what may be exported"), "{text}");
}

/// The wait for a journal is for the rest of one write and for the next one.
#[test]
fn a_fast_log_is_not_advised_to_a_server_that_has_one() {
    let text = |write: f64| {
        let server = Server {
            count: 20_000,
            log: 0.55e-3,
            log_writes: vec![(write, 10_000)],
            ..SERVER
        };
        let mut s = server.snapshot();
        s.counter(&f::WRITE, ["3", "file_sync"], 20_000.0);
        s.counter(&f::WRITE_BYTES, ["3", "file_sync"], 20_000.0 * 4096.0);
        page(&judge(s), Kind::SmallSyncWrites)
    };
    assert!(!text(0.25e-3).contains("fast storage"), "{}", text(0.25e-3));
    assert!(text(0.53e-3).contains("a log on fast storage makes"));
}

/// A log device that is offline or full is there and takes nothing, or a part.
#[test]
fn a_log_device_that_takes_none_or_a_part_of_the_log_is_not_the_one_to_check() {
    let pool = |to_main: f64| {
        let server = Server {
            log: 8e-3,
            log_fs: "zfs",
            log_separate: 1.0,
            ..SERVER
        };
        let mut s = server.snapshot();
        s.counter(&f::LOG_BYTES, ["zfs", "tank", "main"], to_main * 1e6);
        s.counter(
            &f::LOG_BYTES,
            ["zfs", "tank", "separate"],
            (1.0 - to_main) * 1e6,
        );
        page(&judge(s), Kind::SlowIntentLog)
    };
    let none = pool(1.0);
    assert!(
        none.contains("(past its log device, which took none of the bytes)"),
        "{none}"
    );
    assert!(
        none.contains("100 % of the log's bytes went to the pool's own disks"),
        "{none}"
    );
    assert!(none.contains("zpool status tank"), "{none}");
    assert!(!none.contains("check the separate log device"), "{none}");
    let part = pool(0.33);
    assert!(
        part.contains("(past its log device for 33 % of the bytes)"),
        "{part}"
    );
    assert!(
        part.contains("33 % of the log's bytes went to the pool's own disks"),
        "{part}"
    );
    assert!(part.contains("check the separate log device"), "{part}");
    let all = pool(0.0);
    assert!(all.contains("(on a separate device)"), "{all}");
    assert!(!all.contains("went to the pool's own disks"), "{all}");
}

/// WRITEs of a dataset with `sync=always` wait for the log although their clients ask for nothing.
#[test]
fn commits_that_no_client_asks_for_are_those_of_the_dataset() {
    let pool = |sync: &str, stability: &str| {
        let server = Server {
            log: 8e-3,
            log_fs: "zfs",
            ..SERVER
        };
        let mut s = server.snapshot();
        s.counter(&f::WRITE, ["3", stability], 1000.0);
        s.counter(&f::ZFS_COMMITS, ["tank", sync], 1000.0);
        let labels = ["tank", "tank/vm", sync, "latency"];
        s.gauge(&f::ZFS_DATASET, labels, 1.0);
        page(&judge(s), Kind::SlowIntentLog)
    };
    let always = pool("always", "unstable");
    assert!(
        always.contains(
            "100 % of the commits of pool tank are for datasets with sync=always (tank/vm)"
        ),
        "{always}"
    );
    assert!(always.contains("zfs set sync=standard tank/vm"), "{always}");
    assert!(!always.contains("fewer fsyncs"), "{always}");
    // The clients ask for the same.
    let both = pool("always", "file_sync");
    assert!(!both.contains("sync=always"), "{both}");
    assert!(both.contains("fewer fsyncs"), "{both}");
    let standard = pool("standard", "file_sync");
    assert!(!standard.contains("sync="), "{standard}");
    assert!(standard.contains("fewer fsyncs"), "{standard}");
    // Nothing shows that these clients ask for anything.
    let none = pool("standard", "unstable");
    assert!(!none.contains("fewer fsyncs"), "{none}");
}
