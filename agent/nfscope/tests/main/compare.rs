//! Comparisons of synthetic recordings with a known difference.

use crate::fixture::golden;
use crate::fixture::recordings::{
    DISKS, FLASH, compare_two, recording, series_set, undivided, writes,
};
use crate::fixture::tale::Tale;
use nfscope_baseline::capacity::{capacity, render};
use nfscope_baseline::compare::mark_changes;
use nfscope_baseline::compare::result::{Comparison, Quantity, Subject, Verdict};
use nfscope_baseline::compare::{html, text};
use nfscope_baseline::recording::{CLASSIC, Recording};
use nfscope_text::units::seconds;

const WINDOWS: usize = 150;

fn verdict(c: &Comparison, subject: &str, quantity: &Quantity) -> Verdict {
    let is = |s: &Subject| match s {
        Subject::Op { op, .. } => op == subject,
        Subject::Log { fs, .. } => fs == subject,
        Subject::Requests { .. } => subject == "requests",
        Subject::Queue => subject == "queue",
        Subject::SyncWrites => subject == "sync",
        Subject::Errors { .. } => subject == "errors",
        Subject::Dropped { .. } => subject == "dropped",
        Subject::Replays => subject == "replays",
        Subject::Workload { .. } | Subject::WorkloadErrors { .. } => subject == "workload",
    };
    let row = c
        .rows
        .iter()
        .find(|r| is(&r.subject) && r.quantity == *quantity);
    row.unwrap_or_else(|| panic!("no {subject} {quantity:?}"))
        .verdict
}

fn is_nothing(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::NoEvidence | Verdict::Small)
}

fn warned(c: &Comparison) -> Vec<&str> {
    c.caveats.iter().map(|w| w.kind).collect()
}

/// Quantiles of classic histograms are guesses: they get no verdict, not even for a server that became ten times as fast.
#[test]
fn quantiles_of_few_edges_have_no_verdict() {
    let mut before = recording("before", 3, WINDOWS, &writes(DISKS));
    let after = recording("after", 4, WINDOWS, &writes(FLASH));
    let (kind, classic) = CLASSIC;
    before.metadata.labels = [(kind.to_owned(), classic.to_owned())].into();
    let c = compare_two(&before, &after);
    assert_eq!(verdict(&c, "write", &Quantity::Mean), Verdict::Better);
    assert!(warned(&c).contains(&"few_edges"));
    for row in &c.rows {
        if matches!(row.quantity, Quantity::Quantile { .. }) {
            assert_eq!(row.verdict, Verdict::NotComparable);
            assert_eq!(row.why.as_deref(), Some("not measured before"));
        }
    }
    let neither = compare_two(&before, &before);
    let mut quantities = neither.rows.iter().map(|r| &r.quantity);
    assert!(!quantities.any(|q| matches!(q, Quantity::Quantile { .. })));
}

/// Recordings from before histograms had edges at powers of ten. FLASH is just below such an edge, so that it matters whether the two
/// halves of its bucket are merged.
#[test]
fn recordings_with_fewer_edges_are_compared_in_their_own() {
    let now = recording("now", 3, WINDOWS, &writes(FLASH));
    let before = undivided(&now, 0..WINDOWS);
    let between = undivided(&now, 0..WINDOWS / 2);
    assert_ne!(before, now);
    let same = compare_two(&before, &before);
    assert!(
        same.rows
            .iter()
            .any(|r| r.before.is_some_and(|i| i.value > 0.0))
    );
    for (a, b) in [
        (&before, &now),
        (&now, &before),
        (&between, &now),
        (&before, &between),
    ] {
        let c = compare_two(a, b);
        // Values of the old recording on both sides, in any order of the sides.
        for (row, expected) in c.rows.iter().zip(&same.rows) {
            let what = format!("{:?} {:?}", row.subject, row.quantity);
            assert_eq!(
                (row.before, row.after),
                (expected.before, expected.after),
                "{what}"
            );
            assert_eq!(row.verdict, expected.verdict, "{what}");
            assert!(!row.verdict.is_change(), "{what}");
        }
        assert_eq!(c.rows.len(), same.rows.len());
        assert_eq!(c.curves, same.curves);
    }
    // Changes are found all the same.
    let slower = recording("slower", 4, WINDOWS, &writes(DISKS));
    let p99 = Quantity::Quantile { percent: 99 };
    let c = compare_two(&undivided(&slower, 0..WINDOWS), &now);
    assert_eq!(verdict(&c, "write", &p99), Verdict::Better);
}

#[test]
fn a_faster_log_is_found_and_named_as_the_reason() {
    let before = recording("before", 1, WINDOWS, &writes(DISKS));
    let after = recording("after", 2, WINDOWS, &writes(FLASH));
    let c = compare_two(&before, &after);
    let p99 = Quantity::Quantile { percent: 99 };
    for (subject, quantity) in [
        ("write", &p99),
        ("write", &Quantity::Mean),
        ("write", &Quantity::Phase { phase: "log" }),
        ("ext4", &p99),
        ("requests", &p99),
    ] {
        assert_eq!(
            verdict(&c, subject, quantity),
            Verdict::Better,
            "{subject} {quantity:?}"
        );
    }
    for (subject, quantity) in [
        ("write", &Quantity::Rate),
        ("queue", &p99),
        ("queue", &Quantity::Mean),
        ("sync", &Quantity::Rate),
    ] {
        assert!(
            is_nothing(verdict(&c, subject, quantity)),
            "{subject} {quantity:?}"
        );
    }
    assert!(
        c.headline.contains("WRITE 3 p99 fell from"),
        "{}",
        c.headline
    );
    assert!(
        c.headline.contains("of the change of the mean is log wait"),
        "{}",
        c.headline
    );
    assert_eq!(warned(&c), Vec::<&str>::new());
    golden("compare.txt", &text::render(&c, false));
    // Reverse comparison: worse by the same factor.
    let back = compare_two(&after, &before);
    assert_eq!(verdict(&back, "write", &p99), Verdict::Worse);
    let ratio = |c: &Comparison| {
        c.rows
            .iter()
            .find_map(|r| (r.quantity == p99).then_some(r.ratio?))
    };
    let (there, back) = (ratio(&c).unwrap(), ratio(&back).unwrap());
    assert!((there.value * back.value - 1.0).abs() < 1e-9);
    assert!((there.low * back.high - 1.0).abs() < 1e-9);
}

#[test]
fn a_shorter_queue_is_reported_for_requests() {
    let queue = |queue| Tale {
        queue,
        ..writes(FLASH)
    };
    let c = compare_two(
        &recording("one thread", 20, WINDOWS, &queue(5e-3)),
        &recording("sixteen", 21, WINDOWS, &queue(20e-6)),
    );
    assert!(
        c.headline
            .starts_with("Requests 3, from arrival to reply: p99 fell from"),
        "{}",
        c.headline
    );
    assert!(
        c.headline.contains("No evidence of a change in WRITE 3."),
        "{}",
        c.headline
    );
}

#[test]
fn two_recordings_of_one_server_have_no_verdict() {
    let (a, b) = (
        recording("monday", 3, WINDOWS, &writes(DISKS)),
        recording("tuesday", 4, WINDOWS, &writes(DISKS)),
    );
    let c = compare_two(&a, &b);
    for row in &c.rows {
        assert!(is_nothing(row.verdict), "{row:?}");
    }
    let none = "No evidence of a change in the latency of operations. A rise of WRITE 3 ";
    assert!(c.headline.starts_with(none), "{}", c.headline);
    assert_eq!(warned(&c), Vec::<&str>::new());
}

#[test]
fn other_work_is_a_caveat() {
    let before = recording("before", 5, WINDOWS, &writes(DISKS));
    let busy = Tale {
        requests: 900,
        ..writes(DISKS)
    };
    let c = compare_two(&before, &recording("after", 6, WINDOWS, &busy));
    assert_eq!(warned(&c), ["load"]);
    assert!(
        c.headline.starts_with("The load differs: "),
        "{}",
        c.headline
    );

    let reads = Tale {
        op: "read",
        ..writes(DISKS)
    };
    let c = compare_two(&before, &recording("after", 7, WINDOWS, &reads));
    assert_eq!(warned(&c), ["mix"]);
    assert_eq!(
        verdict(&c, "write", &Quantity::Mean),
        Verdict::NotComparable
    );

    let mut other = recording("after", 8, WINDOWS, &writes(DISKS));
    other.metadata.kernel = Some("6.1.0".into());
    other.metadata.host = "nfs2".into();
    other.metadata.agent = "0.2.0 (def)".into();
    assert_eq!(
        warned(&compare_two(&before, &other)),
        ["host", "kernel", "agent"]
    );

    let threads = Tale {
        threads: 16.0,
        ..writes(DISKS)
    };
    let c = compare_two(&before, &recording("after", 9, WINDOWS, &threads));
    assert_eq!(warned(&c), ["threads"]);
}

#[test]
fn gaps_and_drift_of_a_recording_are_caveats() {
    let before = recording("before", 10, WINDOWS, &writes(DISKS));
    let mut holes = recording("after", 11, WINDOWS, &writes(DISKS));
    for w in &mut holes.windows[75..] {
        w.began_ms += 300_000;
    }
    let c = compare_two(&before, &holes);
    assert_eq!(warned(&c), ["gaps"]);
    assert!(
        c.caveats[0].text.contains("missing for 5m"),
        "{:?}",
        c.caveats
    );

    let slower = recording("late", 12, WINDOWS / 2, &writes(DISKS * 3.0));
    let mut drifts = recording("after", 13, WINDOWS / 2, &writes(DISKS));
    for mut w in slower.windows {
        w.began_ms += (WINDOWS / 2) as i64 * 10_000;
        drifts.windows.push(w);
    }
    assert_eq!(warned(&compare_two(&before, &drifts)), ["drift"]);
}

#[test]
fn too_few_windows_are_not_comparable() {
    let before = recording("before", 14, WINDOWS, &writes(DISKS));
    let short = recording("after", 15, 6, &writes(FLASH));
    let c = compare_two(&before, &short);
    assert!(c.rows.iter().all(|r| r.verdict == Verdict::NotComparable));
    assert_eq!(
        c.headline,
        "Not comparable: WRITE 3 (too few values after: at least 10 windows are needed, and ten values beyond a quantile)."
    );
    let none = Recording {
        windows: Vec::new(),
        ..short
    };
    let c = compare_two(&none, &none);
    assert_eq!(c.rows, []);
    assert!(
        c.headline.starts_with("There is nothing to compare"),
        "{}",
        c.headline
    );
    assert!(capacity(&series_set(&none)).is_none());
}

/// The table and the drawing have the same p99, and labels that differ are marked.
#[test]
fn table_and_drawing_have_the_same_p99() {
    let mut before = recording("before", 1, WINDOWS, &writes(DISKS));
    let mut after = recording("after", 2, WINDOWS, &writes(FLASH));
    let c = compare_two(&before, &after);
    let p99 = Quantity::Quantile { percent: 99 };
    let row = c.rows.iter().find(|r| r.quantity == p99).unwrap();
    for (side, value) in [row.before, row.after].into_iter().enumerate() {
        assert_eq!(c.curves[0].marks[side].unwrap()[1], value.unwrap().value);
    }
    let page = html::page(&c);
    let shown = seconds(row.before.unwrap().value);
    assert!(page.contains(&format!(", p99 {shown}")), "{shown}");
    assert!(!page.contains("class=\"differs\""));
    // Marked labels: only those that differ.
    let labels = |disks: &str| {
        [("disks", disks), ("season", "winter")].map(|(k, v)| (k.to_owned(), v.to_owned()))
    };
    before.metadata.labels = labels("hdd").into();
    after.metadata.labels = labels("ssd").into();
    let page = html::page(&compare_two(&before, &after));
    for disks in ["hdd", "ssd"] {
        let cell = format!("<td><b class=\"differs\">disks={disks}</b> season=winter</td>");
        assert!(page.contains(&cell), "{disks}");
    }
}

#[test]
fn capacity_follows_from_utilization() {
    let tale = Tale {
        idle: 0.9,
        ..writes(DISKS)
    };
    let c = series_set(&recording("friday", 16, WINDOWS, &tale));
    let found = capacity(&c).unwrap();
    // Utilization of threads: 50 requests a second hold one of 8 threads for about 12 ms each.
    let threads = found
        .resources
        .iter()
        .find(|r| r.name == "threads")
        .unwrap();
    let by_hand = found.rate * (found.residence - tale.queue) / tale.threads;
    assert!(
        (threads.utilization / by_hand - 1.0).abs() < 0.01,
        "{threads:?}"
    );
    assert!((threads.max_rate * threads.utilization / found.rate - 1.0).abs() < 1e-9);
    let [low, high] = threads.interval.unwrap();
    assert!(low < threads.utilization && threads.utilization < high && high < threads.peak);
    // Utilization of the log: a quarter as many commits as WRITEs make 15 %, more than the 10 % of the CPUs and the 8 % of the threads.
    assert_eq!(found.resources[0].name, "log of ext4 sda");
    assert_eq!(found.caveats, Vec::<String>::new());
    golden("capacity.txt", &render(&found, &c.metadata));
}

/// Change within a recording: the log becomes faster half way through the first one, and nothing changes in the second.
#[test]
fn changes_during_a_recording_are_drawn() {
    let mut before = recording("before", 1, 150, &writes(DISKS));
    let began = before.metadata.began_ms + 1_500_000;
    let faster = recording("faster", 1, 150, &writes(FLASH));
    for (mut window, n) in faster.windows.into_iter().zip(0..) {
        window.began_ms = began + n * 10_000;
        before.windows.push(window);
    }
    let after = recording("after", 2, 300, &writes(FLASH));
    let (b, a) = (series_set(&before), series_set(&after));
    let mut c = compare_two(&before, &after);
    assert!(!html::page(&c).contains("changed before"));
    mark_changes(&mut c.time_series, &b, &a);
    let mean = c.time_series.iter().find(|t| t.what == "write mean");
    let [of_before, of_after] = &mean.unwrap().changes;
    assert!(
        of_before.iter().any(|at| (at - 1500.0).abs() < 60.0),
        "{of_before:?}"
    );
    assert!(of_after.is_empty(), "{of_after:?}");
    let page = html::page(&c);
    assert!(page.contains("class=\"changed before\"") && page.contains(", changed at "));
    assert!(page.contains("Upright lines over time"));
}
