//! Page at `/` in a real browser: an agent with known figures, and `tests/browser/page.py`, which checks what the page shows.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../fixture/mod.rs"]
#[allow(dead_code)]
mod fixture;

use fixture::{histogram, root, serve, status};
use nfscope_baseline::recording::{Metadata, RecordedWindow, Recording, Sample, SeriesKey};
use nfscope_baseline::store::Store;
use nfscope_model::breakdown::{FilePath, Moved};
use nfscope_model::{
    BreakdownBatch, BreakdownRow, BreakdownWant, Dimension, Histogram, ProbeState, ProbeStatus,
    Scheme, SlowBatch, SlowFilter, SlowOp, Snapshot, Window, family as f,
};
use nfscope_serve::names::Names;
use nfscope_serve::service::archive::Archive;
use nfscope_serve::service::recordings::Recordings;
use nfscope_source::Source;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

/// Name with HTML markup, a right-to-left override and a terminal escape sequence.
const HOSTILE: &str = "<img src=x onerror=alert(1)>\u{202e}evil\u{1b}[2J";

/// Operations of each second: client, export, operation, version, user and file; then their latency in seconds, and their number.
const WHO_AND_WHAT: [([&str; 6], f64, u64); 5] = [
    (
        ["192.0.2.1", HOSTILE, "getattr", "3", "1000", "12"],
        20e-6,
        200,
    ),
    (
        ["192.0.2.2", HOSTILE, "write", "4.2", "1001", "131073"],
        0.04,
        19,
    ),
    (["192.0.2.2", "/b", "write", "4.2", "1002", "5"], 0.04, 1),
    (
        ["192.0.2.3", HOSTILE, "write", "4.2", "1000", "12"],
        0.001,
        100,
    ),
    (["192.0.2.3", "/b", "getattr", "3", "0", "/"], 20e-6, 100),
];

/// Source whose counters grow by the same operations with each reading: 100 WRITEs of 1 ms, 20 of 40 ms, and 300 GETATTRs of 20 µs. Client
/// 192.0.2.2 has all WRITEs of 40 ms.
struct Known {
    began: Instant,
    readings: u64,
    wanted: Option<BreakdownWant>,
}

impl Known {
    fn fill(&self) -> Snapshot {
        let n = self.readings;
        let mut s = Snapshot::new(Duration::from_secs(1) + self.began.elapsed());
        s.host = Some("nfs1".to_owned());
        s.kernel = Some("6.12".to_owned());
        s.probes = self.probes();
        let time = |values: &[(f64, u64)]| {
            let all: Vec<_> = values.iter().map(|(v, k)| (*v, k * n)).collect();
            histogram(Scheme::TIME, &all)
        };
        s.histogram(
            &f::OP_DURATION,
            ["4.2", "write"],
            time(&[(0.001, 100), (0.04, 20)]),
        );
        s.histogram(&f::OP_DURATION, ["3", "getattr"], time(&[(20e-6, 300)]));
        s.counter(&f::OP_ERRORS, ["4.2", "write", "nospc"], (2 * n) as f64);
        for (phase, seconds) in [
            ("cpu", 0.05),
            ("runqueue", 0.01),
            ("log", 0.8),
            ("disk", 0.04),
            ("lock", 0.0),
        ] {
            s.counter(&f::OP_PHASE, ["4.2", "write", phase], seconds * n as f64);
        }
        for (phase, seconds) in [
            ("queue", 0.3),
            ("receive", 0.01),
            ("upcall", 0.0),
            ("execute", 0.9),
            ("reply", 0.02),
        ] {
            s.counter(&f::RPC_PHASE, ["4.2", phase], seconds * n as f64);
        }
        s.histogram(&f::RPC_DURATION, ["4.2"], time(&[(0.001, 400), (0.04, 20)]));
        s.gauge(&f::THREADS, ["0"], 8.0);
        s.counter(&f::THREAD_BUSY, ["0"], 0.9 * n as f64);
        s.counter(&f::THREADS_SATURATED, ["0"], 0.1 * n as f64);
        s.histogram(&f::RPC_QUEUE, ["0"], time(&[(0.0007, 420)]));
        s.histogram(&f::LOG_WAIT, ["ext4", "vda"], time(&[(0.03, 20)]));
        s.histogram(&f::LOG_COMMIT, ["ext4", "vda"], time(&[(0.02, 10)]));
        s.histogram(&f::BLOCK_DEVICE, ["vda", "write"], time(&[(0.004, 60)]));
        for (client, ops, seconds) in [
            ("192.0.2.1", 200, 0.05),
            ("192.0.2.2", 20, 0.8),
            (HOSTILE, 200, 0.056),
        ] {
            s.counter(&f::CLIENT_OPS, [client], (ops * n) as f64);
            s.counter(&f::CLIENT_OP_SECONDS, [client], seconds * n as f64);
        }
        s.counter(&f::EXPORT_OPS, [HOSTILE], (420 * n) as f64);
        s.counter(&f::EXPORT_OP_SECONDS, [HOSTILE], 0.906 * n as f64);
        s.gauge(&f::COVERAGE, ["4.2"], 1.0);
        s
    }
}

impl Source for Known {
    fn snapshot(&mut self) -> Snapshot {
        self.fill()
    }

    fn peek(&mut self) -> Snapshot {
        self.readings += 1;
        self.fill()
    }

    fn probes(&self) -> Vec<ProbeStatus> {
        vec![
            status("nfsd_proc", true, ProbeState::Attached, ""),
            status("nfsd_old", false, ProbeState::Unsupported, HOSTILE),
        ]
    }

    fn poll(&mut self) {}

    fn watch_breakdown(&mut self, want: Option<&BreakdownWant>) -> anyhow::Result<BreakdownBatch> {
        self.wanted = want.cloned();
        Ok(BreakdownBatch {
            kernel_bytes: 9_961_472,
            ..BreakdownBatch::default()
        })
    }

    fn take_breakdown(&mut self) -> BreakdownBatch {
        let Some(want) = &self.wanted else {
            return BreakdownBatch::default();
        };
        let mut rows = BTreeMap::new();
        for (keys, latency, count) in WHO_AND_WHAT {
            let told = |(i, key): (usize, &&str)| match want.by.contains(&Dimension::ALL[i]) {
                true => (*key).to_owned(),
                false => String::new(),
            };
            let keys: Vec<String> = keys.iter().enumerate().map(told).collect();
            let times = rows
                .entry(keys)
                .or_insert_with(|| Histogram::new(Scheme::TIME));
            times.merge(&histogram(Scheme::TIME, &[(latency, count)]));
        }
        let row = |(keys, times): (Vec<String>, Histogram)| BreakdownRow {
            keys: keys.try_into().unwrap(),
            moved: Moved {
                read: 4096 * times.count(),
                written: 0,
            },
            times,
        };
        let named = |export: &str, file: &str, path| ((export.to_owned(), file.to_owned()), path);
        let paths = [
            named(HOSTILE, "12", FilePath::Unknown("it is gone".into())),
            named("/b", "5", FilePath::Is(format!("/b/{HOSTILE}").into())),
            named("/b", "/", FilePath::Is("/b".into())),
        ];
        BreakdownBatch {
            rows: rows.into_iter().map(row).collect(),
            paths: paths.into_iter().filter(|_| want.paths).collect(),
            cost: Duration::from_micros(12),
            ..BreakdownBatch::default()
        }
    }

    fn watch_slow(&mut self, _: Option<&SlowFilter>) -> anyhow::Result<()> {
        Ok(())
    }

    fn take_slow(&mut self) -> SlowBatch {
        SlowBatch {
            ops: vec![SlowOp {
                at: SystemTime::now(),
                client: "192.0.2.2".parse().ok(),
                version: "4.2".into(),
                op: "write".into(),
                export: Some(HOSTILE.into()),
                dataset: None,
                inode: Some(131_073),
                path: None,
                xid: None,
                bytes: Some(65_536),
                stability: Some("file_sync".into()),
                status: "ok".into(),
                duration: Duration::from_millis(40),
                phases: None,
            }],
            left_out: 0,
        }
    }
}

/// Archive that begins three hours ago: one minute of READs, half a minute without the agent, and one more minute of READs.
fn past(directory: &Path) -> Archive {
    let archive =
        Archive::open(directory, 1, Duration::from_secs(86_400), Names::default()).unwrap();
    let begun = SystemTime::now() - Duration::from_secs(3 * 3600);
    for at in (1..=6).chain(10..=15) {
        let mut delta = Snapshot::new(Duration::from_secs(10 * at));
        let reads = histogram(Scheme::TIME, &[(0.5, 10)]);
        delta.histogram(&f::OP_DURATION, ["4.1", "read"], reads);
        let window = Window {
            length: Duration::from_secs(10),
            delta,
        };
        // Retry while the queue of the archive is full: the disk may be slower than this loop.
        while archive
            .keep(&window, begun + Duration::from_secs(10 * at))
            .is_err()
        {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    archive
}

/// Store of three recordings: `before` has WRITEs of 40 ms; `after` is half as long, has WRITEs of 1 ms and a gap; `ticking` has windows of
/// one second.
fn recordings(file: &Path) {
    let mut store = Store::create(file).unwrap();
    for (name, began, latency, length, seconds) in [
        (
            "before",
            1_800_000_000_000,
            0.04,
            10,
            vec![0, 10, 20, 30, 40, 50],
        ),
        ("after", 1_800_100_000_000, 0.001, 10, vec![0, 20]),
        ("ticking", 1_700_000_000_000, 0.001, 1, (0..60).collect()),
    ] {
        let times = histogram(Scheme::TIME, &[(latency, 100)]);
        let window = |at: &i64| RecordedWindow {
            began_ms: began + 1000 * at,
            length: Duration::from_secs(length),
            samples: vec![
                (
                    0,
                    Sample::Histogram {
                        scheme: Scheme::TIME,
                        counts: times.sparse(),
                        sum: times.sum,
                    },
                ),
                (1, Sample::Counter(100.0)),
            ],
        };
        let key = |id, family: &str, labels: &[&str]| SeriesKey {
            id,
            family: family.to_owned(),
            labels: labels.iter().map(|l| (*l).to_owned()).collect(),
        };
        let recording = Recording {
            metadata: Metadata {
                name: name.to_owned(),
                began_ms: began,
                host: HOSTILE.to_owned(),
                kernel: Some("6.12".to_owned()),
                agent: String::new(),
                interval: Duration::from_secs(10),
                labels: BTreeMap::new(),
            },
            series: vec![
                key(0, f::OP_DURATION.info.name, &["4.2", "write"]),
                key(1, f::CLIENT_OPS.info.name, &["192.0.2.9"]),
            ],
            windows: seconds.iter().map(window).collect(),
        };
        store.put(&recording).unwrap();
    }
}

/// Path of the Python that drives a browser. Skips the test and returns `None` if set-up has not installed it.
fn browser_python() -> Option<String> {
    let python = std::env::var("NFSCOPE_BROWSER_PYTHON").unwrap_or_else(|_| {
        format!(
            "{}/.cache/nfscope/lab/browser/bin/python",
            std::env::var("HOME").unwrap_or_default()
        )
    });
    if Path::new(&python).exists() {
        return Some(python);
    }
    fixture::skip("there is no browser: tests/setup/setup.sh browser installs it");
    None
}

/// Runs a script of `tests/browser/`, which fails at its first failed check.
fn browser_sees(script: &mut Command) {
    let (code, text, errors) = fixture::said(&script.output().unwrap());
    assert_eq!(code, 0, "{text}\n{errors}");
}

#[test]
fn the_page_shows_the_figures_of_its_agent_in_a_real_browser() {
    let Some(python) = browser_python() else {
        return;
    };
    let known = Known {
        began: Instant::now(),
        readings: 0,
        wanted: None,
    };
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("baselines.db");
    recordings(&store);
    let kept = serve::Kept {
        names: Names::of_pairs(&[
            ("192.0.2.1", HOSTILE),
            ("192.0.2.3", HOSTILE),
            ("1002", "alice"),
        ]),
        history: Some(past(directory.path())),
        recordings: Some(Recordings::of(store.clone())),
    };
    let address = serve::attached_with(kept, known);
    browser_sees(
        Command::new(python)
            .arg(root().join("tests/browser/page.py"))
            .arg(format!("http://{address}/"))
            .args([Path::new(env!("CARGO_BIN_EXE_nfscope")), &store])
            // Folder for screenshots, if one is set: people see what no check covers.
            .args(std::env::var_os("NFSCOPE_SCREENSHOTS")),
    );
}

/// Process that is killed when the test ends.
struct Ends(std::process::Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_demonstration_and_its_reports_are_shown_in_a_real_browser() {
    use std::io::{BufRead, BufReader};
    let Some(python) = browser_python() else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let mut demo = Command::new(env!("CARGO_BIN_EXE_nfscope"));
    let demo = demo
        .arg("demo")
        .env("TMPDIR", directory.path())
        .env("RUNTIME_DIRECTORY", directory.path().join("run"))
        .stdout(std::process::Stdio::piped());
    let mut demo = Ends(demo.spawn().unwrap());
    let mut first = String::new();
    let mut said = BufReader::new(demo.0.stdout.take().unwrap());
    said.read_line(&mut first).unwrap();
    let url = first.trim();
    let agent = url.split("/#").next().unwrap();
    let report = |name: &str, more: &[&str]| {
        let file = directory.path().join(name);
        let begun = Instant::now();
        // Retry: the agent's first window takes ten seconds, and a report without windows is refused.
        loop {
            let mut report = Command::new(env!("CARGO_BIN_EXE_nfscope"));
            report.args(["report", "--last", "1d", "--url", agent]);
            let (code, text, errors) =
                fixture::said(&report.args(more).arg(&file).output().unwrap());
            if code == 0 {
                assert!(text.lines().count() <= 16, "{text}");
                return file;
            }
            assert!(begun.elapsed() < serve::HANG, "{errors}");
            std::thread::sleep(Duration::from_millis(500));
        }
    };
    let files = [
        report("report.html", &[]),
        report("anonymous.html", &["--anonymise"]),
    ];
    browser_sees(
        Command::new(&python)
            .arg(root().join("tests/browser/page_picture.py"))
            .arg(&files[0])
            .arg(directory.path()),
    );
    browser_sees(
        Command::new(python)
            .arg(root().join("tests/browser/report.py"))
            .arg(url)
            .args(files)
            .args(std::env::var_os("NFSCOPE_SCREENSHOTS")),
    );
}

#[test]
fn pictures_of_the_documentation_keep_their_columns_in_a_real_browser() {
    let Some(python) = browser_python() else {
        return;
    };
    let pictures: Vec<_> = std::fs::read_dir(root().join("docs/img"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "svg"))
        .collect();
    assert!(!pictures.is_empty());
    browser_sees(
        Command::new(python)
            .arg(root().join("tests/browser/picture.py"))
            .args(pictures),
    );
}

/// First page of a comparison fits on one sheet for a success, for no difference, for lost writes and for long texts.
#[test]
fn pages_to_sign_print_on_one_sheet_in_a_real_browser() {
    let Some(python) = browser_python() else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let store = at("baselines.db");
    fixture::signed::keep(&store);
    let side = fixture::signed::side;
    // Title and note of the largest lengths.
    let long = "a long note that somebody wrote about this change ".repeat(4);
    let title = "A title that takes more than a line, with W in it: ".to_owned() + &"W".repeat(69);
    let titled = [
        "--title",
        "Log device for tank",
        "--note",
        "Agreed on Monday",
    ];
    let mut files = Vec::new();
    for (name, before, after, more) in [
        ("better", side("hdd"), side("ssd"), &titled[..]),
        ("unchanged", side("hdd"), side("hdd-again"), &[]),
        ("unsafe", side("hdd"), side("async"), &[]),
        ("one", "hdd-0".into(), "ssd-0".into(), &[]),
        (
            "long",
            format!("{},{}", side("hdd"), side("hdd-again")),
            side("ssd"),
            &["--title", &title, "--note", &long],
        ),
    ] {
        let file = at(&format!("{name}.html"));
        fixture::signed::page(&store, &before, &after, more, &file);
        files.push(file);
    }
    let folder = std::env::var("NFSCOPE_SCREENSHOTS").unwrap_or_else(|_| "-".to_owned());
    browser_sees(
        Command::new(python)
            .arg(root().join("tests/browser/signed.py"))
            .arg(folder)
            .args(files),
    );
}
