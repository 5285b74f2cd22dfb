//! Like with like: totals of another mix of work, READs of other sizes, WRITEs of other stabilities.

use crate::fixture::recordings::{DISKS, FLASH, compare_two, recording, writes};
use crate::fixture::tale::Tale;
use crate::fixture::work::{is_op, is_requests, mixed, row, share, with_values};
use nfscope_baseline::compare::result::{Quantity, Subject, Verdict};
use nfscope_model::family as f;

const P99: Quantity = Quantity::Quantile { percent: 99 };

/// No operation became slower, and the total of all did: that is another mix, and no verdict.
#[test]
fn a_total_is_not_worse_where_only_the_mix_changed() {
    for (a, b) in [(0.03, 0.1), (0.1, 0.03), (0.005, 0.02), (0.3, 0.6)] {
        let c = compare_two(&share(1, a, 1.0), &share(2, b, 1.0));
        for r in &c.rows {
            let judged = matches!(r.verdict, Verdict::Better | Verdict::Worse);
            assert!(!judged, "{a} {b}: {r:?}");
        }
        let mean = row(&c, is_requests, &Quantity::Mean);
        assert_eq!(mean.verdict, Verdict::NotComparable, "{a} {b}: {mean:?}");
        assert!(
            mean.why.as_ref().unwrap().starts_with("the mix changed: "),
            "{mean:?}"
        );
        assert!(c.headline.contains("The mix changed: "), "{}", c.headline);
        assert!(!c.headline.contains("Requests"), "{}", c.headline);
    }
    let c = compare_two(&share(1, 0.03, 1.0), &share(2, 0.1, 1.0));
    let said = "WRITE 3 was 3.0 % of the operations before, 10.0 % after";
    assert!(c.headline.contains(said), "{}", c.headline);
    // A slower server is found if the mix is the same, and if it is slower by more than the mix explains.
    let c = compare_two(&share(3, 0.03, 1.0), &share(4, 0.03, 2.0));
    assert_eq!(
        row(&c, is_requests, &Quantity::Mean).verdict,
        Verdict::Worse
    );
    assert_eq!(row(&c, is_requests, &P99).verdict, Verdict::Worse);
    let c = compare_two(&share(5, 0.03, 1.0), &share(6, 0.1, 3.0));
    assert_eq!(
        row(&c, is_requests, &Quantity::Mean).verdict,
        Verdict::Worse
    );
    assert_eq!(row(&c, is_op("write"), &P99).verdict, Verdict::Worse);
}

/// Waits for a log are a total over operations, too; so are the operations of a COMPOUND, the sizes of READs, and stabilities.
#[test]
fn other_totals_follow_their_mix_as_well() {
    let logs = |seed, commits: f64| {
        let parts = [
            ("3", "commit", commits, 20e-3, 19e-3),
            ("3", "create", 1000.0 - commits, 2e-3, 1.5e-3),
        ];
        mixed("logs", seed, &parts)
    };
    let c = compare_two(&logs(1, 50.0), &logs(2, 150.0));
    let is_log = |s: &Subject| matches!(s, Subject::Log { .. });
    for quantity in [&Quantity::Mean, &P99] {
        let r = row(&c, is_log, quantity);
        assert!(
            !matches!(r.verdict, Verdict::Worse | Verdict::Better),
            "{r:?}"
        );
    }
    assert_eq!(
        row(&c, is_log, &Quantity::Mean).verdict,
        Verdict::NotComparable
    );
    let sized = |seed, bytes: f64, log: f64| {
        let tale = Tale {
            op: "read",
            bytes,
            disk: log,
            log: 0.0,
            ..writes(DISKS)
        };
        recording("reads", seed, 150, &tale)
    };
    let c = compare_two(&sized(1, 4096.0, 2e-3), &sized(2, 65536.0, 6e-3));
    let mean = row(&c, is_op("read"), &Quantity::Mean);
    assert_eq!(mean.verdict, Verdict::NotComparable, "{mean:?}");
    assert!(
        mean.why
            .as_ref()
            .unwrap()
            .contains("mean size of READs changed")
    );
    assert_eq!(
        row(&c, is_requests, &Quantity::Mean).verdict,
        Verdict::NotComparable
    );
    // Smaller READs that take three times as long are slower whatever their size explains.
    let c = compare_two(&sized(3, 65536.0, 2e-3), &sized(4, 4096.0, 6e-3));
    assert_eq!(
        row(&c, is_op("read"), &Quantity::Mean).verdict,
        Verdict::Worse
    );
    let stability = |seed, how, log| {
        let tale = Tale {
            stability: how,
            ..writes(log)
        };
        recording("writes", seed, 150, &tale)
    };
    let c = compare_two(
        &stability(1, "unstable", FLASH),
        &stability(2, "file_sync", DISKS),
    );
    let mean = row(&c, is_op("write"), &Quantity::Mean);
    assert_eq!(mean.verdict, Verdict::NotComparable, "{mean:?}");
    assert!(
        mean.why
            .as_ref()
            .unwrap()
            .contains("stability of WRITEs changed"),
        "{mean:?}"
    );
}

/// Requests of larger READs and of smaller WRITEs are other work, whichever of both comes last.
#[test]
fn every_operation_explains_its_part_of_a_request() {
    let of = |seed, name: [&'static str; 2], sizes: [f64; 2], times: [f64; 2]| {
        let parts = [0, 1].map(|i| ("3", name[i], 500.0, times[i], 0.0));
        let r = mixed("sizes", seed, &parts);
        let r = with_values(&r, &f::IO_SIZE, ["3", name[0]], sizes[0]);
        with_values(&r, &f::IO_SIZE, ["3", name[1]], sizes[1])
    };
    for (grows, other) in [("read", "write"), ("write", "read")] {
        let c = compare_two(
            &of(1, [grows, other], [4096.0, 65536.0], [1e-3, 4e-3]),
            &of(2, [grows, other], [65536.0, 4096.0], [3e-3, 4e-3]),
        );
        for quantity in [&Quantity::Mean, &Quantity::Quantile { percent: 50 }] {
            let r = row(&c, is_requests, quantity);
            assert_eq!(r.verdict, Verdict::NotComparable, "{grows}: {r:?}");
            let why = r.why.as_ref().unwrap();
            assert!(why.contains("READs") && why.contains("WRITEs"), "{why}");
        }
    }
    // A server that became slower by more than any size explains is found.
    let names = ["read", "write"];
    let c = compare_two(
        &of(3, names, [4096.0, 4096.0], [1e-3, 4e-3]),
        &of(4, names, [8192.0, 2048.0], [5e-3, 20e-3]),
    );
    let mean = row(&c, is_requests, &Quantity::Mean);
    assert_eq!(mean.verdict, Verdict::Worse, "{mean:?}");
}
