//! Counts of `nfscope versions`, compared with the kernels' own counters for the same calls in machines without nfscope.

use anyhow::{Context, Result, ensure};
use lab::{Agent, Checks, Kernel, Output, Server, finally};
use serde_json::Value;

use crate::client_view::stats::stats;
use crate::lifecycle::eventually;

/// RPCs and component operations of one call over each version.
type Expected = [(&'static str, f64, f64); 4];

/// Expected counts by load, if the server grants no delegation. With one, WRITE and CLOSE of 4.1 and later ask for no attributes: one
/// operation fewer. Each level of directories is a LOOKUP and an ACCESS.
const TABLE: [(&str, Expected); 5] = [
    (
        "reads",
        [
            ("3", 1., 1.),
            ("4.0", 1., 2.),
            ("4.1", 1., 3.),
            ("4.2", 1., 3.),
        ],
    ),
    (
        "writes",
        [
            ("3", 1., 1.),
            ("4.0", 1., 3.),
            ("4.1", 1., 4.),
            ("4.2", 1., 4.),
        ],
    ),
    (
        "open-0",
        [
            ("3", 2., 2.),
            ("4.0", 3., 10.),
            ("4.1", 2., 9.),
            ("4.2", 2., 9.),
        ],
    ),
    (
        "open-4",
        [
            ("3", 9., 9.),
            ("4.0", 10., 34.),
            ("4.1", 9., 41.),
            ("4.2", 9., 41.),
        ],
    ),
    (
        "open-8",
        [
            ("3", 17., 17.),
            ("4.0", 18., 62.),
            ("4.1", 17., 77.),
            ("4.2", 17., 77.),
        ],
    ),
];

/// Arguments for one round of one thread.
const BRIEF: &str = "--rounds 1 --runtime 1s --threads 1";

/// Checks RPCs and component operations of each call, in one round over each version.
pub fn are_counted(server: &Server, agent: &Agent, checks: &mut Checks) {
    checks.run("versions without delegations", || {
        finally(
            || {
                server.sh("echo 0 >/proc/sys/fs/leases-enable")?;
                without_delegations(server, agent)
            },
            || server.sh("echo 1 >/proc/sys/fs/leases-enable").map(drop),
        )
    });
    are_counted_with_delegations(server, agent, checks);
    checks.run("versions without a cache", || {
        without_a_cache(server, agent)
    });
}

/// Checks counts that depend on the server's kernel.
pub fn are_counted_with_delegations(server: &Server, agent: &Agent, checks: &mut Checks) {
    checks.run("versions with delegations", || {
        with_delegations(server, agent)
    });
    checks.run("opens that are delegated", || {
        an_open_that_is_delegated_needs_no_close(server)
    });
}

fn without_delegations(server: &Server, agent: &Agent) -> Result<()> {
    let report = run(server, agent, "--loads reads,writes,metadata,opens")?;
    let mut wrong = Vec::new();
    for (load, expected) in TABLE {
        for (version, rpcs, ops) in expected {
            let seen = counted(&report, load, version)?;
            println!("{load} over {version}: {seen:?}");
            if seen != (rpcs, ops) {
                wrong.push(format!(
                    "{load} over {version}: {seen:?}, not {rpcs} and {ops}"
                ));
            }
        }
    }
    // Eleven calls each; attributes that have expired are read again now and then.
    let procedures = |version: &str| rpcs_of(&report, "metadata", version);
    for (version, made, removed, closed) in [("3", "MKDIR", 1.0, 0.0), ("4.1", "OPEN", 2.0, 2.0)] {
        let by = procedures(version)?;
        let of = |name: &str| by[name].as_f64().unwrap_or(0.0) * 11.0;
        for (name, each) in [
            (made, 1.0),
            ("REMOVE", removed),
            ("RENAME", 1.0),
            ("WRITE", 1.0),
            ("CLOSE", closed),
        ] {
            let more = of(name) - each;
            // A client does not wait for CLOSE. A CLOSE that the next OPEN of the file overtakes is not sent, or is refused and sent
            // again (fs/nfs/nfs4proc.c, nfs4_close_prepare and nfs4_close_done). A file whose CLOSE is still under way counts as
            // open; over NFSv3, a file that another process still holds does. unlink() then looks another name up, renames the file
            // to it, and removes it afterwards (fs/nfs/unlink.c, nfs_sillyrename).
            let (fewer, further) = match name {
                "CLOSE" => (0.05 * each, 0.05 * each),
                "RENAME" => (0.0, of("LOOKUP").min(0.05)),
                _ => (0.0, 0.0),
            };
            if more < -fewer - 1e-9 || more > further + 1e-9 {
                wrong.push(format!("metadata over {version}: {name} {}", of(name)));
            }
        }
    }
    ensure!(wrong.is_empty(), "{wrong:#?}\n{report}");
    Ok(())
}

/// Opens without a cache of attributes: each begins and ends with GETATTR.
fn without_a_cache(server: &Server, agent: &Agent) -> Result<()> {
    let noac = run(
        server,
        agent,
        "--versions 3 --mount-options noac --loads opens,metadata",
    )?;
    for (load, rpcs) in [("open-0", 4.0), ("open-4", 11.0), ("open-8", 19.0)] {
        let seen = counted(&noac, load, "3")?;
        ensure!(seen == (rpcs, rpcs), "{load} with noac: {seen:?}");
    }
    // Eleven calls, counted by hand: 38 RPCs in the root of a mount, and 16 more for each of the four directories on the way.
    let (rpcs, ops) = counted(&noac, "metadata", "3")?;
    let eleven = rpcs * 11.0;
    ensure!(
        (eleven / 102.0 - 1.0).abs() < 0.05 && (ops / rpcs - 1.0).abs() < 0.05,
        "metadata with noac: {eleven} RPCs of eleven calls, {ops} operations of one"
    );
    Ok(())
}

/// The server of 7.2 grants a read delegation in place of an open state, on request of the 4.2 client (RFC 9754): there is nothing to
/// CLOSE.
fn an_open_that_is_delegated_needs_no_close(server: &Server) -> Result<()> {
    let client = server.client(0);
    finally(
        || {
            closes_once(server, "4.1", true)?;
            closes_once(server, "4.2", server.kernel() != Kernel::V7_2)
        },
        || {
            client.unmount_all()?;
            server.sh("rm -f /run/exp/delegated-*").map(drop)
        },
    )
}

/// Reads a file when the server's callback path to the client is up, and checks whether the client sends a CLOSE.
fn closes_once(server: &Server, version: &str, expected: bool) -> Result<()> {
    let client = server.client(0);
    let mount = client.mount_version(version)?;
    let minor = &version[2..];
    server.sh(&format!(
        "echo x >/run/exp/delegated-{version}
         for try in $(seq 100); do
           ours=$(grep -l '\"{}:' /proc/fs/nfsd/clients/*/info)
           grep -q 'callback state: UP' $(grep -l 'minor version: {minor}' $ours) && exit
           sleep 0.1
         done
         cat /proc/fs/nfsd/clients/*/info; exit 1",
        client.address()
    ))?;
    let closes = || -> Result<u64> {
        let all = stats(&client.sh("cat /proc/self/mountstats")?.stdout)?;
        ensure!(all.keys().any(|(at, _)| *at == mount), "{mount}: {all:?}");
        let close = all.get(&(mount.clone(), "close".to_owned()));
        Ok(close.map_or(0, |row| row[0]))
    };
    let before = closes()?;
    client.sh(&format!("cat {mount}/delegated-{version}"))?;
    if expected {
        // The client does not wait for its CLOSE.
        return eventually(|| Ok((closes()? > before).then_some(())));
    }
    client.sh("sleep 1")?;
    ensure!(closes()? == before, "{version}: there was a CLOSE");
    Ok(())
}

/// Savings of a delegation: component operations of a CLOSE, and OPENs of a file that the client has just made.
fn with_delegations(server: &Server, agent: &Agent) -> Result<()> {
    let opens = format!("{BRIEF} --versions 4.1,4.2 --loads opens");
    let opens = report(server, agent, &opens)?;
    // 6.12 grants a read delegation here, and the CLOSE then asks for no attributes.
    let close = match server.kernel() {
        Kernel::V6_12 => 1.0,
        _ => 0.0,
    };
    for (load, rpcs, ops) in [
        ("open-0", 2.0, 9.0),
        ("open-4", 9.0, 41.0),
        ("open-8", 17.0, 77.0),
    ] {
        assert_eq!(counted(&opens, load, "4.1")?, (rpcs, ops - close), "{load}");
        let closes = rpcs_of(&opens, load, "4.2")?["CLOSE"].as_f64();
        let closes = closes.unwrap_or(0.0);
        // The server of 7.2 may grant no delegation of a new file, and then opens as others do.
        let expected = match server.kernel() {
            Kernel::V7_2 => (rpcs - 1.0 + closes, ops - 4.0 + 4.0 * closes),
            _ => (rpcs, ops - close),
        };
        let seen = counted(&opens, load, "4.2")?;
        println!("{load} over 4.2 with delegations: {seen:?}, {closes} CLOSE");
        ensure!(
            (seen.0 - expected.0).abs() < 1e-6 && (seen.1 - expected.1).abs() < 1e-6,
            "{load} over 4.2: {seen:?}, not {expected:?}"
        );
    }
    // A block is long enough to make its overhead negligible.
    let long = "--rounds 1 --runtime 3s --threads 1 --versions 4.0,4.1 --loads metadata";
    let report = report(server, agent, long)?;
    // The numbers are of eleven calls. Expired attributes are read again now and then, and the last operations may come after the
    // block.
    for (version, rpcs, ops) in [("4.0", 1.0, 3.28), ("4.1", 0.91, 3.55)] {
        let seen = counted(&report, "metadata", version)?;
        println!("metadata over {version} with delegations: {seen:?}");
        let near = |seen: f64, expected: f64| (seen / expected - 1.0).abs() < 0.05;
        ensure!(
            near(seen.0, rpcs) && near(seen.1, ops),
            "{version}: {seen:?}, not {rpcs} and {ops}"
        );
    }
    Ok(())
}

/// Throughput with one thread and with two, and a run whose intervals do not become narrow enough in time.
pub fn the_scale_and_the_precision_are_told(server: &Server, agent: &Agent) -> Result<()> {
    let brief = "--loads reads --runtime 1s --v3-export 10.9.0.1:/run/exp";
    let report = report(server, agent, &format!("{brief} --scale 1,2 --rounds 2"))?;
    let scale = &report["scale"];
    println!("{scale}");
    let mean = |list: &str, is: &dyn Fn(&Value) -> bool, what: &str| -> Result<f64> {
        let all = scale[list].as_array().context("no scale")?;
        let found = all.iter().find(|x| is(x)).context("a point is missing")?;
        found[what]["mean"]
            .as_f64()
            .with_context(|| found.to_string())
    };
    let mut slopes = Vec::new();
    for version in ["4.0", "4.1"] {
        let [one, two] = [1, 2].map(|n| {
            mean(
                "points",
                &|p| p["version"] == version && p["threads"] == n,
                "throughput",
            )
        });
        let (one, two) = (one?, two?);
        let slope = mean("slopes", &|s| s["version"] == version, "per_thread")?;
        ensure!(
            one > 0.0 && (slope - (two - one)).abs() < 1e-6 * one,
            "{scale}"
        );
        slopes.push(slope);
    }
    let difference = mean("slopes", &|s| s["version"] == "4.1", "difference")?;
    ensure!(
        (difference - (slopes[1] - slopes[0])).abs() < 1e-6 * difference.abs().max(1.0),
        "{scale}"
    );

    // Two tests of the interval have to agree, the first after 13 rounds.
    let said = started(
        server,
        agent,
        &format!("{brief} --versions 4.1,4.2 --threads 1 --until-ci 50% --max-duration 12s"),
    )?;
    ensure!(said.status == 3, "{said:?}");
    let report: Value = serde_json::from_str(&said.stdout)?;
    let rounds = report["rounds"].as_u64();
    println!("{rounds:?} rounds in 12 s");
    ensure!(
        report["reached"] == false && rounds >= Some(1) && rounds < Some(13),
        "{report}"
    );
    ensure!(report["until_ci"] == 0.5, "{report}");
    Ok(())
}

/// An export with the option pnfs: the mount over 4.1 has a layout driver, and that over 4.0 has none. `reaches_storage`: whether the
/// client can read at the storage.
pub fn pnfs_is_told(server: &Server, agent: &Agent, reaches_storage: bool) -> Result<()> {
    let scale = "--loads reads --runtime 1s --rounds 1 --scale 1 --versions 4.0,4.1";
    let report = report(server, agent, scale)?;
    let warnings = report["warnings"].as_array().context("no warnings")?;
    println!("{warnings:?}");
    let of = |version: &str| {
        let says = format!("The mount over NFS {version} may use pNFS (LAYOUT_BLOCK_VOLUME).");
        let texts = || warnings.iter().filter_map(Value::as_str);
        texts().find(|w| w.starts_with(&says)).map(str::to_owned)
    };
    ensure!(of("4.0").is_none(), "{report}");
    let told = of("4.1").with_context(|| report.to_string())?;
    ensure!(!told.contains(" 0 LAYOUTGETs"), "{told}");
    if reaches_storage {
        ensure!(told.contains(" 0 READs and 0 WRITEs"), "{told}");
    } else {
        ensure!(!told.contains(" 0 READs "), "{told}");
    }
    Ok(())
}

/// A version that the server refuses is left out, with the reason.
pub fn a_refused_version_is_told(server: &Server, agent: &Agent) -> Result<()> {
    let report = report(
        server,
        agent,
        &format!("{BRIEF} --versions 4.2,3 --v3-export 10.9.0.1:/run/none --loads reads"),
    )?;
    let left = &report["left_out"];
    ensure!(
        left[0]["what"] == "3" && left[0]["why"].as_str().is_some_and(|w| w.contains("mount")),
        "{left}"
    );
    ensure!(report["versions"] == serde_json::json!(["4.2"]), "{report}");
    Ok(())
}

/// Ctrl-C in the middle of a block leaves no mount and no file.
pub fn a_signal_leaves_nothing_behind(server: &Server) -> Result<()> {
    let said = server.client(0).sh(&format!(
        "{} versions 10.9.0.1:/ --v3-export 10.9.0.1:/run/exp --versions 3,4.2 --loads writes --runtime 60s --threads 2 &
         for try in $(seq 300); do ls -d /run/exp/nfscope-versions-*/4.2/writes/t1/file 2>/dev/null && break; sleep 0.1; done
         kill -INT $!; wait $!; echo ended with $?
         grep nfscope-versions /proc/self/mountinfo; ls -d /run/exp/nfscope-versions-* /tmp/nfscope-versions-* 2>/dev/null
         echo",
        server.nfscope_path()?.display()
    ))?;
    let mut lines = said.stdout.trim().lines();
    ensure!(
        lines.next().is_some_and(|l| l.ends_with("/file")),
        "{said:?}"
    );
    let rest: Vec<_> = lines.collect();
    ensure!(rest == ["ended with 130"], "{said:?}");
    Ok(())
}

/// Through a delay of 13.9 ms an open takes as long as its round trips, and the diagnosis finds no fault with the server.
pub fn an_open_is_its_round_trips(server: &Server, agent: &Agent) -> Result<()> {
    server.sh("modprobe sch_netem && tc qdisc add dev s0 root netem delay 13900us")?;
    let report = run(server, agent, "--versions 3,4.0,4.1,4.2 --loads opens");
    let findings = agent.get("/findings");
    server.sh("tc qdisc del dev s0 root")?;
    let report = report?;
    let findings: Value = serde_json::from_str(&findings?)?;
    println!("{report}");
    for load in report["loads"].as_array().context("no loads")? {
        let distances = load["distance"].as_array().context("no distance")?;
        ensure!(distances.len() == 4, "{load}");
        for d in distances {
            let of = |name: &str| {
                d[name]
                    .as_f64()
                    .with_context(|| format!("no {name} in {d}"))
            };
            let (predicted, measured) = (of("predicted_seconds")?, of("measured_seconds")?);
            ensure!(
                (predicted / measured - 1.0).abs() < 0.1,
                "{} over {}: predicted {predicted} s, measured {measured} s",
                load["load"],
                d["version"]
            );
            ensure!(
                (of("round_trip_seconds")? / 13.9e-3 - 1.0).abs() < 0.1,
                "{d}"
            );
        }
    }
    ensure!(
        findings["active"].as_array().is_some_and(Vec::is_empty),
        "{findings}"
    );
    Ok(())
}

/// Number of files of each depth, each in directories of its own.
const OPENED: u32 = 12;

/// The server's figures for a distant client's opens equal the client's measurement: the round trips of each open, and their time.
/// Files lie 0, 4 and 8 directories deep.
pub fn the_server_tells_the_distance(server: &Server, agent: &Agent) -> Result<()> {
    let client = server.client(0);
    let below = |depth: usize, n: u32| match depth {
        0 => format!("far-{n}"),
        _ => format!("far/{depth}-{n}{}/file", "/below".repeat(depth - 2)),
    };
    for depth in [0, 4, 8] {
        let files = (0..OPENED).map(|n| format!("/run/exp/{}", below(depth, n)));
        let make = |file: String| format!("mkdir -p $(dirname {file}); echo hello >{file}\n");
        server.sh(&files.map(make).collect::<String>())?;
    }
    server.sh("echo hello >/run/exp/far/first; modprobe sch_netem; tc qdisc add dev s0 root netem delay 13900us")?;
    // A connection remembers its lowest round-trip time for five minutes: this one has never had a shorter one.
    let mount = client.mount_v4_2()?;
    let told = [0, 4, 8].map(|depth| -> Result<(usize, f64, f64)> {
        // The directories above the files are in the client's cache already.
        client.sh(&format!("cat {mount}/far/first"))?;
        let before = agent.snapshot()?;
        let files: Vec<_> = (0..OPENED).map(|n| format!("{mount}/{}", below(depth, n))).collect();
        let open = format!(
            "python3 -c 'import os, sys, time
total = 0
for name in sys.argv[1:]:
    begin = time.monotonic(); file = os.open(name, os.O_RDONLY); total += time.monotonic() - begin; os.close(file)
print(total)' {}",
            files.join(" ")
        );
        let seconds: f64 = client.sh(&open)?.stdout.trim().parse()?;
        let seen = agent.snapshot()?.since(&before);
        let diagnosis = nfscope_diagnose::evaluate(&seen, &[]);
        println!("{depth}: {:?}", diagnosis.outside);
        ensure!(diagnosis.findings.is_empty(), "{diagnosis:#?}");
        let breakdown = nfscope_diagnose::breakdown::Breakdown::of(&seen);
        let far = breakdown.clients.iter().find(|c| c.opens > 0.0).context("no opens")?;
        assert_eq!(far.opens, f64::from(OPENED), "opens");
        if depth > 0 {
            let said = diagnosis.outside.first().context("nothing is said")?;
            ensure!(said.starts_with("each open of 10.9.0.2 costs"), "{said}");
        }
        // The page reports nothing on few requests, but the figures are right.
        let trips = (far.walks + far.opens) / far.opens;
        let each = trips * far.min_rtt.context("no round-trip time")? + far.open_seconds.context("no time of opens")? / far.opens;
        println!("{trips} round trips, predicted {each} s, measured {}", seconds / f64::from(OPENED));
        Ok((depth, trips, each / (seconds / f64::from(OPENED)) - 1.0))
    });
    server.sh("tc qdisc del dev s0 root")?;
    client.unmount_all()?;
    let mut trips = [0.0; 3];
    for (told, trips) in told.into_iter().zip(&mut trips) {
        let (depth, round_trips, off) = told?;
        ensure!(off.abs() < 0.1, "{depth} deep: {off} off");
        *trips = round_trips;
    }
    // An open takes a LOOKUP and an ACCESS for each level but the first, and the OPEN. The mount has just revalidated the root.
    let opened = f64::from(OPENED);
    assert_eq!(
        trips.map(|t| (t * opened).round()),
        [opened, 7.0 * opened, 15.0 * opened]
    );
    Ok(())
}

/// Runs `nfscope versions` on the first client, one round of the given arguments.
fn run(server: &Server, agent: &Agent, arguments: &str) -> Result<Value> {
    let report = report(
        server,
        agent,
        &format!("{BRIEF} {arguments} --v3-export 10.9.0.1:/run/exp"),
    )?;
    ensure!(
        report["left_out"].as_array().is_some_and(Vec::is_empty),
        "{report}"
    );
    Ok(report)
}

fn report(server: &Server, agent: &Agent, arguments: &str) -> Result<Value> {
    let output = started(server, agent, arguments)?.ok("nfscope versions")?;
    serde_json::from_str(&output.stdout).context("versions --json")
}

/// Runs `nfscope versions`, and returns its output.
fn started(server: &Server, agent: &Agent, arguments: &str) -> Result<Output> {
    let mut running = server.client(0).spawn(&format!(
        "modprobe -a nfs nfsv3 nfsv4
         {} versions 10.9.0.1:/ --url http://10.9.0.1:{} --json {arguments}",
        server.nfscope_path()?.display(),
        agent.port()
    ))?;
    running.wait(std::time::Duration::from_secs(900))
}

/// RPCs and component operations of one call.
fn counted(report: &Value, load: &str, version: &str) -> Result<(f64, f64)> {
    let rows = find(report, load)?["rows"].as_array().context("no rows")?;
    let mean = |metric: &str| {
        let row = rows
            .iter()
            .find(|r| r["metric"] == metric && r["version"] == version);
        row.and_then(|r| r["mean"]["mean"].as_f64())
            .with_context(|| format!("{load} over {version} has no {metric}"))
    };
    Ok((mean("rpcs")?, mean("component_ops")?))
}

fn rpcs_of<'a>(report: &'a Value, load: &str, version: &str) -> Result<&'a Value> {
    Ok(&find(report, load)?["rpcs"][version])
}

fn find<'a>(report: &'a Value, load: &str) -> Result<&'a Value> {
    let loads = report["loads"].as_array().context("no loads")?;
    loads.iter().find(|l| l["load"] == load).context("no load")
}
