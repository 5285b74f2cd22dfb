use crate::workload::fio_report::*;
use crate::workload::summary::short;
use serde_json::{Value, json};

fn job(
    name: &str,
    group: u64,
    engine: &str,
    direction: &str,
    ios: u64,
    ms: u64,
    bins: Value,
) -> Value {
    let none = json!({"total_ios": 0, "io_bytes": 0, "runtime": 0, "clat_ns": {"mean": 0.0}});
    let done = json!({"total_ios": ios, "io_bytes": ios * 4096, "runtime": ms,
        "clat_ns": {"mean": 1e6, "bins": bins}});
    let mut job = json!({"jobname": name, "groupid": group, "error": 0,
        "job options": {"ioengine": engine}, "read": none, "write": none});
    job[direction] = done;
    job
}

#[test]
fn processes_of_a_job_are_one() {
    let report = json!({"jobs": [
        job("page", 0, "psync", "read", 100, 1000, json!({"1000": 99, "9000": 1})),
        job("page", 0, "psync", "read", 100, 2000, json!({"1000": 90, "5000": 10})),
        job("stat", 0, "filestat", "read", 400, 2000, json!({"2000": 400})),
    ]});
    let o = RunReport::parse(&report.to_string()).unwrap();
    let (job, operation, page) = &o.jobs[0];
    assert_eq!((&**job, &**operation), ("page", "read"));
    assert_eq!(page.iops, 100.0);
    assert_eq!(page.bytes_per_second, Some(409_600.0));
    assert_eq!(page.latency_seconds, Some(1e-3));
    assert_eq!(page.p99_seconds, Some(5e-6));
    // A stat moves no data, even if fio counts some.
    assert_eq!(
        (&*o.jobs[1].1, o.jobs[1].2.bytes_per_second),
        ("stat", None)
    );
    assert_eq!(o.total.iops, 300.0);
    assert_eq!(o.total.bytes_per_second, Some(409_600.0));
}

#[test]
fn phases_one_after_the_other_take_their_times_together() {
    let report = json!({"jobs": [
        job("create", 0, "filecreate", "write", 100, 900, json!({"1000": 100})),
        job("delete", 1, "filedelete", "write", 100, 100, json!({"1000": 100})),
    ]});
    let o = RunReport::parse(&report.to_string()).unwrap();
    assert_eq!(o.total.iops, 200.0);
    assert_eq!(o.jobs[1].1, "unlink");
    assert_eq!(o.jobs[1].2.iops, 1000.0);
}

#[test]
fn a_job_that_is_over_within_some_ticks_of_the_clock_is_told() {
    let report = |ms| {
        let report = json!({"jobs": [
            job("read", 0, "psync", "read", 128, ms, json!({"1000": 128})),
            job("write", 1, "psync", "write", 128, 100, json!({"1000": 128})),
        ]});
        RunReport::parse(&report.to_string()).unwrap()
    };
    let told = short(&[report(400), report(2)]).unwrap();
    assert!(
        told.starts_with("read: over in as little as 2 ms"),
        "{told}"
    );
    assert_eq!(short(&[report(400), report(100)]), None);
}

#[test]
fn what_is_no_result_says_why() {
    let why = |text: &str| format!("{:#}", RunReport::parse(text).unwrap_err());
    let mut failed = job("page", 0, "psync", "read", 1, 1, json!({}));
    failed["error"] = json!(28);
    let failed = json!({"jobs": [failed]}).to_string();
    assert!(why(&failed).contains("No space left"), "{}", why(&failed));
    assert!(why("{\"jobs\":[]}").contains("--runtime"));
    assert!(why("{nonsense").contains("cannot read fio's report"));
}
