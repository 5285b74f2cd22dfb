//! `nfscope fleet` and `nfscope baseline import --prometheus`, with a real Prometheus that has the history of simulated agents.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lab::monitoring::{Prometheus, Release, dashboards};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(60);
/// Operations a second of the simulated servers 0, 1 and 2: 20, 25 and 30 requests of either version, of 1 and 3.1 operations.
const OPERATIONS: [f64; 3] = [82.0, 102.5, 123.0];

/// Path of a program of this build.
fn program(name: &str, build: &str) -> PathBuf {
    let path = lab::lab_program().unwrap().with_file_name(name);
    assert!(
        path.is_file(),
        "{} is missing; build it: {build}",
        path.display()
    );
    path
}

fn simulated() -> PathBuf {
    program("examples/fleet", "cargo build -p nfscope --example fleet")
}

/// Output of nfscope: standard output with exit code 0, else standard error.
fn nfscope(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program("nfscope", "cargo build -p nfscope"))
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout) + &text(&output.stderr)),
        false => Err(text(&output.stderr)),
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    since.as_secs()
}

/// Time in the form of date(1).
fn date(seconds: u64) -> String {
    let output = Command::new("date")
        .args(["-u", "-d", &format!("@{seconds}"), "+%FT%TZ"])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A directory for the stores of a test.
fn store(name: &str) -> String {
    let dir = lab::target_dir().unwrap();
    let path = dir.join(format!("fleet-{name}-{}.db", std::process::id()));
    let _ = fs::remove_file(&path);
    path.display().to_string()
}

/// Writes the last 40 minutes of three servers, and half a minute more for a busy host that makes blocks of them. Prometheus
/// evaluates rules only after their end, and rates get smaller with the time since.
fn history(data: &Path, begin: u64) -> anyhow::Result<()> {
    let file = data.with_file_name("history.om");
    let status = Command::new(simulated())
        .args(["history", "3", "2430", "10", &begin.to_string()])
        .stdout(fs::File::create(&file)?)
        .status()?;
    anyhow::ensure!(status.success());
    let (made, said) = Release::Newer.promtool(
        &[
            "tsdb",
            "create-blocks-from",
            "openmetrics",
            &file.display().to_string(),
            &data.display().to_string(),
        ],
        None,
    )?;
    anyhow::ensure!(made, "{said}");
    Ok(())
}

#[test]
fn a_history_of_classic_histograms_is_listed_and_imported() {
    let begin = now() - 2400;
    let configuration = format!(
        "global: {{ evaluation_interval: 1s }}\nrule_files: [{}]\nstorage: {{ tsdb: {{ out_of_order_time_window: 1h }} }}\n",
        dashboards().join("rules/recording.yml").display()
    );
    let prometheus =
        Prometheus::start_on(Release::Newer, &configuration, |data| history(data, begin)).unwrap();
    let url = format!("http://{}", prometheus.address());

    // The list has all servers once the rules have been evaluated.
    let started = Instant::now();
    let servers: Vec<Value> = loop {
        let text = nfscope(&["fleet", &url, "--json"]).unwrap();
        let servers: Vec<Value> = serde_json::from_str(&text).unwrap();
        let known = |s: &Value| {
            let p99 = &s["worst_operation"]["p99_seconds"];
            let all = [p99, &s["operations_per_second"], &s["saturation"]];
            all.iter().all(|v| !v.is_null())
        };
        if servers.iter().all(known) {
            break servers;
        }
        assert!(started.elapsed() < PATIENCE, "{text}");
        thread::sleep(Duration::from_millis(300));
    };
    assert_eq!(servers.len(), 3);
    for server in &servers {
        let name = server["instance"].as_str().unwrap();
        let truth = OPERATIONS[name.strip_prefix("nfs").unwrap().parse::<usize>().unwrap()];
        let rate = server["operations_per_second"].as_f64().unwrap();
        assert!(
            (rate / truth - 1.0).abs() < 0.1,
            "{name}: {rate}, not {truth}"
        );
        // CPUs are in use for 5 %, and 3 % more for each server number; disks for less, but for server 0.
        let full = server["saturation"]["ratio"].as_f64().unwrap();
        let number = OPERATIONS.iter().position(|o| *o == truth).unwrap() as f64;
        assert!((full - 0.05 - 0.03 * number).abs() < 0.01, "{server}");
        assert_eq!(server["worst_operation"]["op"], "write", "{server}");
    }
    let table = nfscope(&["fleet", &url]).unwrap();
    assert!(
        table.starts_with("3 servers, 0 with findings, 0 that do not answer\n"),
        "{table}"
    );

    // Two parts of the history of one server, without any difference.
    let store = store("classic");
    let import = |name: &str, from: u64, to: u64, more: &[&str]| {
        let (from, to) = (date(from), date(to));
        let mut arguments = vec!["baseline", "import", "--prometheus", &url, "--name", name];
        arguments.extend(["--from", &from, "--to", &to, "--store", &store]);
        arguments.extend(more);
        nfscope(&arguments)
    };
    let several = import("all", begin, begin + 1200, &[]).unwrap_err();
    assert!(
        several.contains("--instance") && several.contains("nfs0, nfs1, nfs2"),
        "{several}"
    );
    let one = ["--instance", "nfs1"];
    let short = import("short", begin, begin + 60, &one).unwrap_err();
    assert!(short.contains("a comparison needs 10"), "{short}");
    let nobody = import("nobody", begin, begin + 60, &["--instance", "x"]).unwrap_err();
    assert!(
        nobody.contains("no history of the instance `x`"),
        "{nobody}"
    );
    let said = import("a", begin + 20, begin + 1020, &one).unwrap();
    assert!(
        said.contains("imported `a`: 100 windows of 10 s") && said.contains("0 gaps"),
        "{said}"
    );
    // This range begins before the history.
    import("b", begin + 1200, begin + 2200, &one).unwrap();

    let shown = nfscope(&["baseline", "show", "a", "--json", "--store", &store]).unwrap();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let operations = shown["operations"].as_f64().unwrap();
    let truth = OPERATIONS[1] * 1000.0;
    assert!(
        (operations / truth - 1.0).abs() < 0.001,
        "{operations}, not {truth}"
    );
    let page = nfscope(&["baseline", "show", "a", "--store", &store]).unwrap();
    assert!(page.contains("histograms=classic"), "{page}");

    let compared =
        nfscope(&["baseline", "compare", "a", "b", "--json", "--store", &store]).unwrap();
    let compared: Value = serde_json::from_str(&compared).unwrap();
    let caveats = compared["caveats"].as_array().unwrap();
    assert!(
        caveats.iter().any(|c| c["kind"] == "few_edges"),
        "{compared}"
    );
    for row in compared["rows"].as_array().unwrap() {
        let verdict = row["verdict"].as_str().unwrap();
        assert!(
            !["better", "worse", "more", "less"].contains(&verdict),
            "{row}"
        );
    }
    fs::remove_file(&store).unwrap();
}

/// Simulated agents; dropping them ends them.
struct Agents(Child, Vec<String>);

impl Agents {
    fn start(n: usize) -> Agents {
        let mut child = Command::new(simulated())
            .args(["serve", &n.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let first: Value = serde_json::from_str(&line).unwrap();
        let targets = first["targets"].as_array().unwrap();
        let targets = targets.iter().map(|t| t.as_str().unwrap().to_owned());
        Agents(child, targets.collect())
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[test]
fn a_history_of_native_histograms_is_imported_with_its_buckets() {
    let agents = Agents::start(2);
    let configuration = format!(
        "global: {{ scrape_interval: 1s, scrape_timeout: 1s }}\nscrape_configs:\n  - job_name: nfscope\n    \
         static_configs: [{{ targets: {:?} }}]\n",
        agents.1
    );
    let prometheus = Prometheus::start(Release::Newer, &configuration).unwrap();
    let url = format!("http://{}", prometheus.address());
    let begin = now();
    let instance = &agents.1[1];
    let enough = format!("sum_over_time(up{{instance=\"{instance}\"}}[1h]) >= 16");
    while prometheus.query(&enough).unwrap().is_empty() {
        assert!(now() < begin + PATIENCE.as_secs(), "too few scrapes");
        thread::sleep(Duration::from_millis(300));
    }
    let store = store("native");
    let from = date(begin);
    // A late scrape leaves a second without a sample, and import makes no window of it. The range grows until there are enough
    // windows.
    let said = loop {
        let to = date(now());
        let mut arguments = vec!["baseline", "import", "--prometheus", &url, "--name", "n"];
        arguments.extend([
            "--from", &from, "--to", &to, "--step", "1s", "--store", &store,
        ]);
        arguments.extend(["--instance", instance]);
        match nfscope(&arguments) {
            Ok(said) => break said,
            Err(why) => assert!(
                why.contains("a comparison needs 10") && now() < begin + PATIENCE.as_secs(),
                "{why}"
            ),
        }
        thread::sleep(Duration::from_secs(3));
    };
    assert!(said.contains("histograms are native"), "{said}");
    let shown = nfscope(&["baseline", "show", "n", "--json", "--store", &store]).unwrap();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let ops = shown["ops"].as_array().unwrap();
    let write = ops.iter().find(|o| o["op"] == "write").unwrap();
    // Server 1's WRITEs take 400 and 500 us on average; of 100 one takes twelve times the mean, and four take three times.
    let p99 = write["p99"]["value"].as_f64().unwrap();
    assert!((1.1e-3..7e-3).contains(&p99), "{write}");
    fs::remove_file(&store).unwrap();
}
