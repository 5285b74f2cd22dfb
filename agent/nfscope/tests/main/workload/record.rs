//! Results of workloads as baselines: recorded from this host's fio and from an open loop, shown and compared.

use super::work_dir::WorkDir;
use super::{nfscope, text};
use crate::fixture::recorder::{Place, agent, ask, good, show};
use crate::fixture::recordings::{compare_all, metadata};
use nfscope_baseline::compare::Options;
use nfscope_baseline::compare::result::{Comparison, Quantity, Subject, Verdict};
use nfscope_baseline::recording::{Metadata, RecordedWindow, Recording, Sample, SeriesKey};
use nfscope_baseline::series::SeriesSet;
use nfscope_baseline::{changes, workload};
use nfscope_model::{Histogram, Scheme};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::process::Output;
use std::time::Duration;

/// Runs a workload with `--record NAME`.
fn record(place: &Place, name: &str, more: &[&str]) -> (Output, WorkDir) {
    let work = WorkDir::new(&format!("record-{name}"));
    let (dir, store) = (work.path().display().to_string(), place.store());
    let store = store.display().to_string();
    let run = [
        "run",
        "mail",
        "--dir",
        &dir,
        "--size",
        "small",
        "--repeats",
        "1",
    ];
    let kept = ["--record", name, "--store", &store];
    let o = nfscope(&[&run[..], &kept, more].concat()).output().unwrap();
    (o, work)
}

#[test]
fn a_workload_is_recorded_beside_its_server() {
    let (place, agent) = (Place::new("workload-record"), agent());
    let store = place.store();
    let url = format!("http://{agent}");
    let more = ["--runtime", "3s", "--url", &url, "--label", "disks=hdd"];
    let (o, work) = record(&place, "both", &more);
    let err = text(&o.stderr);
    assert!(o.status.success(), "{err}");
    assert!(err.contains("recorded `both`: "), "{err}");
    let s = show(&store, "both");
    assert_eq!(
        (&s["state"], &s["host"]),
        (&"complete".into(), &"nfs7".into())
    );
    assert_eq!(s["labels"]["workload"], "mail");
    assert_eq!(s["labels"]["disks"], "hdd");
    let told = s["labels"]["parameters"].as_str().unwrap();
    assert!(
        told.contains("FILES=10") && told.contains("runtime=3s"),
        "{told}"
    );
    // Operations of the server and of the client, in the same windows.
    assert_eq!(s["ops"][0]["op"], "write");
    let jobs: Vec<_> = s["workload"].as_array().unwrap().iter().collect();
    let mut names: Vec<_> = jobs.iter().map(|j| j["job"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["append", "deliver", "read"]);
    for job in jobs {
        assert!(job["operations"].as_f64().unwrap() > 0.0, "{job}");
        assert!(job["rate"]["value"].as_f64().unwrap() > 0.0, "{job}");
        assert!(
            job["bytes_per_second"]["value"].as_f64().unwrap() > 0.0,
            "{job}"
        );
        assert_eq!(job["errors"], 0.0, "{job}");
    }
    assert_eq!(work.entries(), 0);
    let page = good(&store, &["show", "both"]);
    assert!(
        page.contains("deliver write") && page.contains("WORKLOAD"),
        "{page}"
    );
    // Commands for any baseline.
    let file = place.0.join("both.nfscope").display().to_string();
    good(&store, &["export", "both", &file]);
    good(&store, &["import", &file, "--name", "again"]);
    assert!(good(&store, &["check"]).contains(" as recorded"));
    let list = good(&store, &["list"]);
    assert!(
        list.contains("disks=hdd") && list.contains("again"),
        "{list}"
    );
    let c = good(&store, &["compare", "both", "again"]);
    assert!(c.contains("both sides are the same data"), "{c}");
    good(&store, &["rm", "again"]);
    let (o, _) = record(&place, "both", &more);
    assert!(text(&o.stderr).contains("both"), "{}", text(&o.stderr));
    assert_eq!(o.status.code(), Some(1));
}

#[test]
fn an_open_loop_is_recorded_without_a_server() {
    let place = Place::new("workload-open");
    let more = ["--runtime", "2s", "--rate", "200", "--depth", "8"];
    let (o, work) = record(&place, "open", &more);
    let (out, err) = (text(&o.stdout), text(&o.stderr));
    assert!(o.status.success(), "{err}");
    assert!(out.contains("open loop of nfscope"), "{out}");
    assert!(err.contains("the client's results alone"), "{err}");
    let s = show(&place.store(), "open");
    let told = s["labels"]["parameters"].as_str().unwrap();
    assert!(told.contains("rate=200 depth=8"), "{told}");
    let all: f64 = s["workload"]
        .as_array()
        .unwrap()
        .iter()
        .map(|j| j["operations"].as_f64().unwrap())
        .sum();
    // Poisson arrivals of two seconds: 400 with a standard deviation of 20.
    assert!((300.0..500.0).contains(&all), "{s}");
    assert_eq!(work.entries(), 0);
    let page = good(&place.store(), &["show", "open"]);
    assert!(
        !page.contains("\noperations"),
        "no server was recorded: {page}"
    );
    assert!(good(&place.store(), &["changes", "open"]).contains("Not searched"));
}

#[test]
fn a_workload_that_cannot_be_recorded_has_a_reason() {
    let place = Place::new("workload-refused");
    let (o, _) = record(&place, "no", &["--url", "http://127.0.0.1:1"]);
    assert!(text(&o.stderr).contains("no agent at http://127.0.0.1:1"));
    let (o, _) = record(&place, "no", &["--label", "workload=x"]);
    assert!(text(&o.stderr).contains("has that label already"));
    let (code, ..) = ask(&place.store(), &["show", "no"]);
    assert_eq!(code, 1);
    let o = nfscope(&["run", "streams", "--dir", "/tmp", "--rate", "5"])
        .output()
        .unwrap();
    let err = text(&o.stderr);
    assert!(
        err.contains("streams has no open loop: a stream is one file"),
        "{err}"
    );
}

/// Recording of a workload in 90 windows of a second: mean latency in seconds, share of failures, operations per window.
fn results(name: &str, seed: u64, mean: f64, failed: f64, rate: f64) -> Recording {
    let mut random = SmallRng::seed_from_u64(seed);
    let labels = ["deliver".to_owned(), "write".to_owned()];
    let key = |id: u32, family: &str, labels: &[String]| SeriesKey {
        id,
        family: family.into(),
        labels: labels.to_vec(),
    };
    let series = vec![
        key(0, workload::DURATION.info.name, &labels),
        key(1, workload::SECONDS.info.name, &labels),
        key(2, workload::ERRORS.info.name, &labels[..1]),
    ];
    let windows = (0..90).map(|n| {
        let mut h = Histogram::new(Scheme::TIME);
        let speed = mean * random.random_range(0.95..1.05);
        for _ in 0..(rate * random.random_range(0.95..1.05)) as u64 {
            let v = speed * -(1.0 - random.random::<f64>()).ln();
            h.counts[Scheme::TIME.bucket(v)] += 1;
            h.sum += v;
        }
        let all = h.count() as f64;
        RecordedWindow {
            began_ms: 1_795_254_420_000 + seed as i64 * 604_800_000 + n * 1000,
            length: Duration::from_secs(1),
            samples: vec![
                (0, Sample::from(&nfscope_model::Sample::Histogram(h))),
                // Half of each window without an operation: jobs of fio are at work for less than a window.
                (1, Sample::Counter(0.5)),
                (2, Sample::Counter((all * failed / (1.0 - failed)).round())),
            ],
        }
    });
    let labels = [("workload", "mail"), ("parameters", "size=small")];
    Recording {
        metadata: Metadata {
            labels: labels.map(|(k, v)| (k.into(), v.into())).into(),
            ..metadata(name, 1_795_254_420_000 + seed as i64 * 604_800_000, 1)
        },
        series,
        windows: windows.collect(),
    }
}

fn set(of: &Recording) -> SeriesSet {
    crate::fixture::recordings::series_set(of)
}

fn compared(before: &[Recording], after: &[Recording]) -> Comparison {
    let options = Options {
        between: (before.len() == 1).then_some(0.0),
        ..Options::default()
    };
    compare_all(before, after, &options)
}

fn verdict(c: &Comparison, errors: bool, quantity: &Quantity) -> (Verdict, f64) {
    let of = |s: &Subject| match s {
        Subject::Workload { .. } => !errors,
        Subject::WorkloadErrors { .. } => errors,
        _ => false,
    };
    let found = c
        .rows
        .iter()
        .find(|r| of(&r.subject) && r.quantity == *quantity);
    let row = found.unwrap();
    (row.verdict, row.before.map_or(0.0, |i| i.value))
}

#[test]
fn results_are_compared_with_the_statistics_of_all_rows() {
    let [p50, p99] = [50, 99].map(|percent| Quantity::Quantile { percent });
    let before = results("before", 1, 4e-3, 0.0, 200.0);
    let c = compared(
        std::slice::from_ref(&before),
        &[results("after", 2, 2e-3, 0.1, 150.0)],
    );
    // Rate over the time in which the job was at work.
    let (of_rate, rate) = verdict(&c, false, &Quantity::Rate);
    assert_eq!(of_rate, Verdict::Worse);
    assert!((390.0..410.0).contains(&rate), "{rate}");
    for quantity in [&p50, &p99, &Quantity::Mean] {
        assert_eq!(verdict(&c, false, quantity).0, Verdict::Better);
    }
    assert_eq!(verdict(&c, true, &Quantity::Share).0, Verdict::Worse);
    assert!(
        c.headline
            .contains("Failures of the workload: deliver rose"),
        "{}",
        c.headline
    );
    assert!(
        c.headline.contains("Workload: deliver write p99 fell"),
        "{}",
        c.headline
    );
    // Unchanged server.
    let same = compared(&[before], &[results("same", 3, 4e-3, 0.0, 200.0)]);
    assert!(
        same.rows.iter().all(|r| !r.verdict.is_change()),
        "{:?}",
        same.rows
    );
    assert!(
        same.rows
            .iter()
            .all(|r| !matches!(r.subject, Subject::WorkloadErrors { .. }))
    );
    // Replicates: the recording is the unit.
    let side = |seed: u64, mean| {
        [0u64, 1, 2].map(|i| results(&format!("r{seed}{i}"), seed + i, mean, 0.0, 200.0))
    };
    let c = compared(&side(10, 4e-3), &side(20, 3e-3));
    assert_eq!(verdict(&c, false, &p99).0, Verdict::Better);
    let row = c.rows.iter().find(|r| r.quantity == p99).unwrap();
    assert!(row.components.is_some());
}

#[test]
fn other_parameters_are_a_caveat_and_changes_are_found() {
    let before = results("before", 1, 4e-3, 0.0, 200.0);
    let mut after = results("after", 2, 4e-3, 0.0, 200.0);
    after
        .metadata
        .labels
        .insert("parameters".into(), "size=large".into());
    let c = compared(std::slice::from_ref(&before), &[after.clone()]);
    let told: Vec<_> = c.caveats.iter().filter(|w| w.kind == "workload").collect();
    assert_eq!(told.len(), 1);
    assert!(
        told[0]
            .text
            .contains("mail size=small before, mail size=large after")
    );
    // Slower second half of a recording.
    let mut both = before.clone();
    let slow = results("slow", 5, 8e-3, 0.0, 200.0);
    for (i, mut w) in slow.windows.into_iter().enumerate() {
        w.began_ms = both.metadata.began_ms + 90_000 + i as i64 * 1000;
        both.windows.push(w);
    }
    let found = changes::changes(&set(&both));
    let mean = found
        .changes
        .iter()
        .find(|c| c.what == "deliver write mean");
    let at = mean.unwrap().at_ms - both.metadata.began_ms;
    assert!((80_000..100_000).contains(&at), "{at}");
}
