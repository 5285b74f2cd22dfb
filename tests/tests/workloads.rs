//! Operations that `nfscope workload` promises for each workload arrive at a server, as the agent there counts them.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use lab::reconcile::{by_last_label, operations, settled, window};
use lab::{Agent, Checks, Server};
use nfscope_model::family;

type Counts = BTreeMap<String, u64>;

/// Runs each workload as a check.
pub fn run_over_nfs(server: &Server, agent: &Agent, checks: &mut Checks) -> Result<()> {
    // The name of each workload begins a line, and its description is indented.
    let list = server
        .sh(&format!(
            "{} workload list",
            server.nfscope_path()?.display()
        ))?
        .stdout;
    let names: Vec<&str> = list.lines().filter(|l| !l.starts_with(' ')).collect();
    assert_eq!(names.len(), 9, "{list}");
    // Over version 3 the two that differ most are enough: their files are created, opened and made durable in another way.
    let of_3 = ["database", "metadata"];
    for (version, names) in [("3", of_3.as_slice()), ("4.2", &names)] {
        for name in names {
            checks.run(&format!("workload {name} over {version}"), || {
                runs_over(server, agent, name, version)
            });
        }
    }
    // The client decides when a request begins, whatever the version: one version is enough.
    checks.run("a workload with a rate", || open_loop(server, agent, "4.2"));
    server.client(0).unmount_all()
}

fn runs_over(server: &Server, agent: &Agent, name: &str, version: &str) -> Result<()> {
    let client = server.client(0);
    let mount = client.mount_version(version)?;
    let before = settled(server, &[agent])?;
    // Each step of a ramp is a run of its own, and two of them are a ramp.
    let more = if name == "ramp" {
        "--set STEPS=1,4"
    } else {
        ""
    };
    let output = client.sh(&format!(
        "{} workload run {name} --dir {mount} --size small --runtime 1s --repeats 1 --json {more}",
        server.nfscope_path()?.display()
    ))?;
    let after = settled(server, &[agent])?;
    let (_, seen) = window(&before, &after, 0);
    let result: serde_json::Value = serde_json::from_str(&output.stdout)
        .with_context(|| format!("{name}: {}", output.stdout))?;
    assert_eq!(result["filesystem"]["version"], version, "{result}");
    // The runs are so short that some jobs end within some ticks of fio's clock.
    let warnings = result["warnings"].as_array().context("no warnings")?;
    let of_clock = |w: &serde_json::Value| {
        (w.as_str()).is_some_and(|w| w.contains("fio counts whole milliseconds"))
    };
    assert!(warnings.iter().all(of_clock), "{result}");

    let (v3, v4) = operations(&seen);
    let stable = by_last_label(&seen, &family::WRITE.info, |_| true);
    let ops = if version == "3" { v3 } else { v4 };
    println!(
        "{name} over {version}: {ops:?} {stable:?}\n  {}",
        output.stdout
    );
    let stable = stable.get("file_sync").copied().unwrap_or(0.0);
    expect(name, version, &ops, stable as u64);
    let left = server.sh("ls -A /run/exp | grep -c nfscope-workload || true")?;
    assert_eq!(left.stdout.trim(), "0", "{name} leaves files behind");
    Ok(())
}

/// The number of requests of an open loop follows its rate, and the server gets those that the client recorded.
fn open_loop(server: &Server, agent: &Agent, version: &str) -> Result<()> {
    let nfscope = server.nfscope_path()?.display().to_string();
    let mount = server.client(0).mount_version(version)?;
    let store = format!("/run/open-{version}.db");
    let before = settled(server, &[agent])?;
    let run = format!(
        "{nfscope} workload run metadata --dir {mount} --size small --runtime 2s --repeats 1 --rate 100 --record open --store {store} --json"
    );
    let output = server.client(0).sh(&run)?;
    let after = settled(server, &[agent])?;
    let (_, seen) = window(&before, &after, 0);
    let result: serde_json::Value = serde_json::from_str(&output.stdout)?;
    assert_eq!(
        result["warnings"].as_array().map(Vec::len),
        Some(0),
        "{result}"
    );
    let show = format!("{nfscope} baseline show open --store {store} --json");
    let kept: serde_json::Value = serde_json::from_str(&server.client(0).sh(&show)?.stdout)?;
    let of = |job: &str| {
        let rows = kept["workload"].as_array();
        let row = rows.and_then(|rows| rows.iter().find(|r| r["job"] == job));
        row.and_then(|r| r["operations"].as_f64()).unwrap_or(0.0)
    };
    let all = of("create") + of("stat") + of("remove");
    // The number has a Poisson distribution: 200 with a standard deviation of 14.
    assert!((130.0..270.0).contains(&all), "{kept}");
    let (v3, v4) = operations(&seen);
    let ops = if version == "3" { v3 } else { v4 };
    println!("open loop over {version}: {ops:?}, {all} requests were recorded");
    let removed = ops.get("remove").copied().unwrap_or(0);
    // The server also got the requests of the warm-up, and of files that were removed at the end.
    assert!(
        removed as f64 >= of("remove") && of("remove") > 0.0,
        "{ops:?} {kept}"
    );
    Ok(())
}

/// Checks the operations of each workload that its job file determines.
#[track_caller]
fn expect(name: &str, version: &str, ops: &Counts, file_sync: u64) {
    let n = |op: &str| ops.get(op).copied().unwrap_or(0);
    let all: u64 = ops.values().sum();
    let read = n("read") + n("read_plus");
    // An NFSv3 client asks for attributes and names where an NFSv4 client opens.
    let opens = n("open") + n("create") + n("lookup");
    let asks = n("getattr") + n("lookup") + n("access") + n("open");
    match name {
        "webhosting" => {
            assert!(read > 0 && asks > n("write"), "{name} {version}: {ops:?}");
            assert!(2 * (read + asks) > all / 2, "{name} {version}: {ops:?}");
        }
        "database" => {
            assert!(file_sync + n("commit") > 0, "{name} {version}: {ops:?}");
            assert!(read > 0 && n("write") > 0, "{name} {version}: {ops:?}");
        }
        "metadata" => {
            // Twice 8 processes of 20 files: the warm-up and the repeat. NFSv4 has one more REMOVE for the directory, because it has
            // no RMDIR.
            let files = n("remove") - u64::from(version != "3");
            assert_eq!(files, 320, "{name} {version}: {ops:?}");
            assert!(opens >= 320, "{name} {version}: {ops:?}");
        }
        "mail" => {
            assert!(file_sync + n("commit") > 0, "{name} {version}: {ops:?}");
            assert!(n("remove") > 0 && read > 0, "{name} {version}: {ops:?}");
        }
        "fileserver" => {
            let each = [n("write"), read, n("remove"), opens];
            assert!(each.iter().all(|n| *n > 0), "{name} {version}: {ops:?}");
        }
        "streams" => {
            assert!(
                read > 0 && n("write") > 0 && n("commit") > 0,
                "{name} {version}: {ops:?}"
            );
        }
        "postmark" => {
            let each = [n("write"), read, n("remove"), opens];
            assert!(each.iter().all(|n| *n > 0), "{name} {version}: {ops:?}");
        }
        "iozone" | "ramp" => {
            assert!(read > 0 && n("write") > 0, "{name} {version}: {ops:?}");
            assert!(file_sync + n("commit") > 0, "{name} {version}: {ops:?}");
        }
        other => panic!("what does {other} send?"),
    }
}
