//! Waits without a phase of their own: conditions on which they are attributed to the lock of a directory or file, or stay unknown.

use super::test_server::{SERVER, Server, histogram, kinds, measured, page, why_not};
use crate::breakdown::Breakdown;
use crate::observed::{Files, Observed, Sleeps};
use crate::{evaluate, evaluate_observed};
use nfscope_model::finding::{Diagnosis, Kind, Severity, Verdict};
use nfscope_model::{Snapshot, Window, family as f};
use std::time::Duration;

/// Twelve clients rename files in one directory: eleven of twelve wait for it. Three threads are left.
fn renames() -> Server {
    Server {
        op: "rename",
        count: 10_000,
        cpu: 1e-3,
        lock: 11e-3,
        ..SERVER
    }
}

/// Four readers open files, and each of their OPENs sleeps long.
fn opens() -> Server {
    Server {
        op: "open",
        count: 250,
        lock: 160e-3,
        ..SERVER
    }
}

fn window(mut delta: Snapshot, threads: f64, busy: f64) -> Window {
    delta.gauge(&f::THREADS, ["0"], threads);
    delta.counter(&f::THREAD_BUSY, ["0"], busy * threads * 10.0);
    Window {
        length: Duration::from_secs(10),
        delta,
    }
}

/// Operations by export, operation and file: operation, file, seconds.
fn files(rows: &[(&str, &str, f64)]) -> Observed {
    let row = |(op, file, seconds): &(&str, &str, f64)| {
        let keys = ["", "/srv", op, "", "", file].map(str::to_owned);
        (keys, *seconds)
    };
    Observed {
        files: Some(Files {
            length: 10.0,
            rows: rows.iter().map(row).collect(),
            without_row: 0.0,
        }),
        ..Observed::default()
    }
}

fn with_stacks(mut observed: Observed, stacks: &[(&[&str], u64)]) -> Observed {
    let mut sleeps = Sleeps {
        looks: 20,
        ..Sleeps::default()
    };
    for (stack, n) in stacks {
        let stack: Vec<_> = stack.iter().map(|&f| f.to_owned()).collect();
        (0..*n).for_each(|_| sleeps.add(stack.clone()));
    }
    observed.sleeps = Some(Ok(sleeps));
    observed
}

const FANOTIFY: &[&str] = &["fanotify_handle_event", "fsnotify", "nfsd4_open [nfsd]"];
const RWSEM: &[&str] = &[
    "rwsem_down_write_slowpath",
    "down_write",
    "nfsd_rename [nfsd]",
];
const FROZEN: &[&str] = &[
    "percpu_rwsem_wait",
    "__percpu_down_read",
    "nfsd_vfs_write [nfsd]",
];

fn observed_in(w: &Window, observed: &Observed) -> Diagnosis {
    evaluate_observed(w, &Breakdown::of(w), observed)
}

fn judge(server: &Server, observed: &Observed) -> Diagnosis {
    observed_in(&window(server.snapshot(), 16.0, 0.7), observed)
}

fn is_of_unknown_kind(d: &Diagnosis) -> String {
    assert_eq!(kinds(d), ["unknown_waits"], "{d:#?}");
    let text = page(d, Kind::UnknownWaits);
    for cure in ["spread", "more directories", "one after the other"] {
        assert!(!text.contains(cure), "{text}");
    }
    assert_eq!(d.findings[0].severity, Severity::Warning, "{d:#?}");
    text
}

#[test]
fn without_operations_by_file_no_cure_is_advised() {
    for server in [renames(), opens()] {
        let d = evaluate(&window(server.snapshot(), 16.0, 0.7), &[]);
        let text = is_of_unknown_kind(&d);
        assert!(text.contains("run nfscope diagnose as root"), "{text}");
        assert!(
            text.contains("in other waits (locks, other threads, anything that is not named)"),
            "{text}"
        );
        // Without counts by file the share is unknown, and not zero.
        assert_eq!(d.share(Kind::LockContention), None);
        assert!(why_not(&d, Kind::LockContention).contains("not counted"));
    }
}

#[test]
fn changes_of_one_directory_at_the_same_time_are_lock_contention() {
    let d = judge(&renames(), &files(&[("rename", "12", 120.0)]));
    assert_eq!(kinds(&d), ["lock_contention"], "{d:#?}");
    assert_eq!(d.findings[0].severity, Severity::Critical);
    let text = page(&d, Kind::LockContention);
    assert!(
        text.contains("spread concurrent changes over more directories"),
        "{text}"
    );
    assert!(
        text.contains("12.0 changes of one directory are under way at the same time"),
        "{text}"
    );
    assert_eq!(why_not(&d, Kind::UnknownWaits), "see lock_contention");
    // Three directories with four clients each.
    let three = ["12", "13", "14"].map(|file| ("rename", file, 40.0));
    let d = judge(&renames(), &files(&three));
    assert_eq!(kinds(&d), ["lock_contention"], "{d:#?}");
    assert!(page(&d, Kind::LockContention).contains("3 directories or files overlap, up to 4.0"));
}

#[test]
fn writes_to_one_file_at_the_same_time_are_lock_contention_of_a_file() {
    let writes = Server {
        op: "write",
        ..renames()
    };
    let d = judge(&writes, &files(&[("write", "12", 120.0)]));
    assert_eq!(kinds(&d), ["lock_contention"], "{d:#?}");
    let text = page(&d, Kind::LockContention);
    assert!(
        text.contains("over more files") && !text.contains("directories"),
        "{text}"
    );
}

#[test]
fn operations_that_change_nothing_are_of_unknown_kind_wherever_they_are() {
    for op in ["open", "lookup", "getattr", "read", "access"] {
        let server = Server { op, ..opens() };
        is_of_unknown_kind(&judge(&server, &files(&[(op, "12", 40.0)])));
    }
}

#[test]
fn changes_that_do_not_overlap_are_of_unknown_kind() {
    // Each client has a directory of its own.
    let own: Vec<_> = [
        "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12",
    ]
    .iter()
    .map(|&file| ("rename", file, 10.0))
    .collect();
    is_of_unknown_kind(&judge(&renames(), &files(&own)));
    // Two changes overlap in one directory, but others have most of the time.
    let mut most_elsewhere = own.clone();
    most_elsewhere[0].2 = 30.0;
    is_of_unknown_kind(&judge(&renames(), &files(&most_elsewhere)));
    // Renames without a known directory show no lock of one.
    is_of_unknown_kind(&judge(&renames(), &files(&[("rename", "unknown", 120.0)])));
    is_of_unknown_kind(&judge(&renames(), &files(&[])));
}

/// A lock has a holder, which does not sleep in other waits. Without a holder, all operations wait for something else.
#[test]
fn waits_without_a_holder_are_no_lock_contention() {
    let frozen = Server {
        op: "write",
        count: 200,
        cpu: 0.1e-3,
        lock: 600e-3,
        ..SERVER
    };
    let one_file = files(&[("write", "12", 120.0)]);
    is_of_unknown_kind(&judge(&frozen, &one_file));
    // A program on the server holds the lock: only stacks show that.
    let d = judge(&frozen, &with_stacks(one_file, &[(RWSEM, 40)]));
    assert_eq!(kinds(&d), ["lock_contention"], "{d:#?}");
}

#[test]
fn stacks_without_a_lock_refute_lock_contention() {
    let one = || files(&[("rename", "12", 120.0)]);
    let text = is_of_unknown_kind(&judge(&renames(), &with_stacks(one(), &[(FROZEN, 30)])));
    assert!(
        text.contains("100 % of them in the kernel function percpu_rwsem_wait"),
        "{text}"
    );
    assert!(text.contains("frozen"), "{text}");
    // A quarter of the stacks is for something else, so the lock decides. Too few stacks decide nothing.
    let busy: &[&str] = &["do_nanosleep"];
    for stacks in [&[(RWSEM, 30), (busy, 10)][..], &[(FROZEN, 9)], &[]] {
        let d = judge(&renames(), &with_stacks(one(), stacks));
        assert_eq!(kinds(&d), ["lock_contention"], "{d:#?}");
    }
    // The holder of the lock waits for another NFS server.
    let upstream: &[&str] = &["rpc_wait_bit_killable [sunrpc]", "vfs_unlink"];
    let stacks = [(RWSEM, 45), (upstream, 15)];
    let text = is_of_unknown_kind(&judge(&renames(), &with_stacks(one(), &stacks)));
    assert!(
        text.contains("15 of them did not wait for a lock, 100 % of them in the kernel function rpc_wait_bit_killable"),
        "{text}"
    );
    assert!(text.contains("another NFS server"), "{text}");
    // The lock belongs to no directory or file that clients change.
    let text = is_of_unknown_kind(&judge(&opens(), &with_stacks(files(&[]), &[(RWSEM, 30)])));
    assert!(text.contains("rwsem_down_write_slowpath"), "{text}");
}

#[test]
fn the_commonest_kernel_function_is_shown_with_what_it_means() {
    let other: &[&str] = &["cv_wait_common [spl]", "txg_wait_open [zfs]"];
    let seen = |stacks: &[(&[&str], u64)]| {
        is_of_unknown_kind(&judge(&opens(), &with_stacks(files(&[]), stacks)))
    };
    let text = seen(&[(FANOTIFY, 70), (other, 10)]);
    assert!(
        text.contains(
            "in 20 looks 80 operations were in such a wait, 88 % of them in the kernel function fanotify_handle_event: \
             fanotify_handle_event < fsnotify < nfsd4_open [nfsd]"
        ),
        "{text}"
    );
    assert!(
        text.contains("a program that watches the file system"),
        "{text}"
    );
    let upstream: &[&str] = &[
        "rpc_wait_bit_killable [sunrpc]",
        "nfs4_proc_getattr [nfsv4]",
    ];
    assert!(seen(&[(upstream, 30)]).contains("another NFS server"));
    // A function of nfsd itself does not point to a mount.
    let own: &[&str] = &["do_nanosleep", "nfs4_get_vfs_file [nfsd]"];
    let text = seen(&[(own, 30)]);
    assert!(!text.contains("another NFS server"), "{text}");
    // An unknown kernel function has no advice but its name, and too few stacks show nothing.
    let text = seen(&[(other, 30)]);
    assert!(text.contains("the kernel function above"), "{text}");
    let text = seen(&[(FANOTIFY, 5)]);
    assert!(!text.contains("a program that watches"), "{text}");
    let text = seen(&[]);
    assert!(
        text.contains("in 20 looks no operation was seen in such a wait"),
        "{text}"
    );
    let denied = Observed {
        sleeps: Some(Err("only root may read them".into())),
        ..files(&[])
    };
    let text = is_of_unknown_kind(&judge(&opens(), &denied));
    assert!(
        text.contains("are not known: only root may read them"),
        "{text}"
    );
}

/// 123 requests a second, some of them RENAMEs of 1.5 ms, and 1 % of the threads in use.
#[test]
fn a_server_whose_threads_rest_has_no_finding() {
    let server = Server {
        op: "rename",
        count: 300,
        cpu: 0.05e-3,
        lock: 1.45e-3,
        ..SERVER
    };
    let mut delta = server.snapshot();
    let quick = histogram(&[(0.4e-3, 930)]);
    delta.counter(&f::OP_PHASE, ["3", "read", "cpu"], quick.sum);
    delta.counter(&f::RPC_PHASE, ["3", "execute"], quick.sum);
    delta.histogram(&f::OP_DURATION, ["3", "read"], quick);
    measured(&mut delta, "3", 930);
    let w = window(delta, 8.0, 0.01);
    for active in [&[][..], &[Kind::UnknownWaits], &[Kind::LockContention]] {
        let d = evaluate(&w, active);
        assert_eq!(d.verdict, Verdict::Healthy, "{d:#?}");
        // The waits are more than half of the time, and long enough each.
        assert!(
            why_not(&d, Kind::UnknownWaits).contains("on average 0.04 operations wait"),
            "{d:#?}"
        );
    }
    let observed = with_stacks(files(&[("rename", "12", 0.45)]), &[(RWSEM, 20)]);
    assert_eq!(observed_in(&w, &observed).verdict, Verdict::Healthy);
}

#[test]
fn one_wait_that_is_felt_is_enough() {
    let server = Server {
        op: "rename",
        count: 2,
        lock: 0.8,
        ..SERVER
    };
    let d = evaluate(&window(server.snapshot(), 8.0, 0.02), &[]);
    is_of_unknown_kind(&d);
}

/// Two hundred threads, of which two are in use.
#[test]
fn lock_contention_of_few_threads_of_many_is_not_critical() {
    let two = Server {
        count: 10_000,
        cpu: 0.8e-3,
        lock: 1.1e-3,
        ..renames()
    };
    let w = window(two.snapshot(), 200.0, 0.01);
    let d = observed_in(&w, &files(&[("rename", "12", 19.0)]));
    assert_eq!(kinds(&d), ["lock_contention"], "{d:#?}");
    assert_eq!(d.findings[0].severity, Severity::Warning);
}

/// Windows near the threshold must not make a finding begin and clear again and again.
#[test]
fn an_active_finding_stays_until_far_fewer_operations_wait() {
    let waiting = |each| {
        let server = Server {
            op: "rename",
            count: 100,
            lock: each,
            ..SERVER
        };
        window(server.snapshot(), 8.0, 0.05)
    };
    let found = |each, active: &[Kind]| !kinds(&evaluate(&waiting(each), active)).is_empty();
    let active = [Kind::UnknownWaits];
    assert!(found(26e-3, &[]) && !found(20e-3, &[]));
    assert!(found(20e-3, &active) && !found(14e-3, &active));
}

/// Twelve writers of one file: the one that holds its lock is throttled, and the others wait for the lock.
#[test]
fn a_lock_whose_holder_is_throttled_is_the_queue_of_the_throttle() {
    let writers = |cpu, throttle| {
        let server = Server {
            op: "write",
            cpu,
            throttle,
            lock: 80e-3,
            ..SERVER
        };
        evaluate(&window(server.snapshot(), 16.0, 0.6), &[])
    };
    let d = writers(4e-3, 16e-3);
    assert_eq!(kinds(&d), ["write_throttle"], "{d:#?}");
    assert!((0.75..0.85).contains(&d.findings[0].share), "{d:#?}");
    let text = page(&d, Kind::WriteThrottle);
    assert!(
        text.contains("or for a file whose writer waits for that"),
        "{text}"
    );
    assert!(
        text.contains("for 64 % of request time operations wait for the lock"),
        "{text}"
    );
    assert!(why_not(&d, Kind::UnknownWaits).contains("until written data is stored"));
    // The holders do something else for most of the time.
    let d = writers(16e-3, 4e-3);
    assert_eq!(kinds(&d), ["unknown_waits"], "{d:#?}");
}
