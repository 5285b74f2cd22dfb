//! `nfscope trace`: a load that was recorded is replayed, and is the same.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::reconcile::{operations, settled, window};
use lab::{Kernel, Server, control};
use serde_json::Value;

/// Time for a recording to begin and to end.
const PATIENCE: Duration = Duration::from_secs(120);

/// Load of NFSv3: files that exist, are read, made, written with each stability, made shorter, renamed and removed. A directory from which
/// a file is removed has no other: a trace does not say which one it was.
const LOAD_V3: &str = "
    dd if=$m/old of=/dev/null bs=8k iflag=direct
    mkdir $m/three $m/three/gone $m/three/moved
    for i in 1 2 3; do dd if=/dev/zero of=$m/three/f$i bs=12k count=$i conv=fsync; done
    dd if=/dev/zero of=$m/three/direct bs=4k count=3 seek=5 oflag=direct
    truncate -s 5000 $m/three/f3
    ls -l $m/three
    dd if=/dev/zero of=$m/three/gone/f bs=7k count=1 conv=fsync
    rm $m/three/gone/f
    dd if=/dev/zero of=$m/three/moved/f bs=9k count=1 conv=fsync
    mv $m/three/moved/f $m/three/moved/renamed
";

/// Load of NFSv4.2.
const LOAD_V4: &str = "
    dd if=$m/older of=/dev/null bs=16k skip=1 iflag=direct
    mkdir $m/four $m/four/gone
    for i in 1 2 3 4; do dd if=/dev/zero of=$m/four/g$i bs=20k count=$i conv=fsync; done
    ls -l $m/four
    dd if=/dev/zero of=$m/four/gone/g bs=5k count=1 conv=fsync
    rm $m/four/gone/g
    cat $m/four/absent || true
";

/// Lengths of files, and how many there are of each.
type Lengths = BTreeMap<u64, usize>;

/// An icount machine: the host's load delays no operation.
#[test]
fn vm_a_recorded_load_is_replayed() -> Result<()> {
    let server = Server::boot(Kernel::V6_12)
        .export("tmpfs")
        .also_export("fresh")
        .clients(2)
        .icount()
        .start()?;
    let agent = server.agent(&[])?;
    let nfscope = server.nfscope_path()?.display().to_string();
    server
        .sh("cd /run/exp; head -c 100000 /dev/urandom >old; head -c 70000 /dev/urandom >older")?;
    let mounts = [server.client(0).mount_v3()?, server.client(1).mount_v4_2()?];
    let before = settled(&server, &[&agent])?;
    let mut recording = server.spawn(&format!(
        "echo $$ >/run/recorder; exec {nfscope} trace record --url http://127.0.0.1:{} /run/load.trace",
        agent.port()
    ))?;
    while !recording.output_so_far().1.contains("recording into") {
        ensure!(!recording.has_ended(), "{:?}", recording.output_so_far());
        control::pass(Duration::from_millis(50));
    }
    let loads = [LOAD_V3, LOAD_V4].iter().enumerate().map(|(n, load)| {
        let script = format!("m={}; set -e; {{ {load} }} 2>&1", mounts[n]);
        server.client(n).spawn(&script)
    });
    for mut load in loads.collect::<Result<Vec<_>>>()? {
        load.wait(PATIENCE)?.ok("a load")?;
    }
    let after = settled(&server, &[&agent])?;
    server.sh("kill -INT $(cat /run/recorder)")?;
    let said = recording.wait(PATIENCE)?.ok("nfscope trace record")?.stderr;
    ensure!(said.contains(" 0 lost"), "{said}");

    refuses(&server, &nfscope)?;
    let made = lengths(&server, "/run/exp/three /run/exp/four")?;
    let (_, seen) = window(&before, &after, 0);
    for pace in ["", "--closed-loop", "--times 2 --speed 4"] {
        let report = replay(&server, &nfscope, pace)?;
        recorded_as_counted(&report, &operations(&seen))?;
        replayed_as_recorded(&report)?;
        let copies = report["times"].as_u64().context("times")? as usize;
        let mut again = lengths(&server, "/run/exp/fresh/nfscope-replay-*")?;
        // Files that were there before, as long as they were read.
        for length in [100_000, 70_000] {
            let n = again.get_mut(&length).context("a file that was read")?;
            *n -= copies;
        }
        again.retain(|length, n| *n > 0 && *length > 0);
        let made: Lengths = made.iter().map(|(l, n)| (*l, n * copies)).collect();
        assert_eq!(again, made, "lengths of files, {pace}");
        server.sh("rm -r /run/exp/fresh/nfscope-replay-*")?;
    }
    removes_what_it_made(&server, &nfscope)?;
    server.clients().try_for_each(|c| c.unmount_all())?;
    agent.stop().map(drop)
}

fn command(nfscope: &str, trace: &str, arguments: &str) -> String {
    format!("{nfscope} trace replay {trace} 10.9.0.1:/run/exp/fresh {arguments}")
}

fn replay(server: &Server, nfscope: &str, pace: &str) -> Result<Value> {
    let arguments = format!("--yes --json --keep --allow-recorded-server {pace}");
    let script = command(nfscope, "/run/load.trace", &arguments);
    let output = server.client(0).sh(&script)?;
    println!("{pace}: {}\n{}", output.stderr, output.stdout);
    Ok(serde_json::from_str(&output.stdout)?)
}

/// A replay that must not begin writes nothing, and says why.
fn refuses(server: &Server, nfscope: &str) -> Result<()> {
    server.sh("head -c 1000 /run/load.trace >/run/short.trace; echo no >/run/no.trace")?;
    for (trace, arguments, why) in [
        (
            "/run/load.trace",
            "--yes",
            "is the server that was recorded",
        ),
        (
            "/run/load.trace",
            "--allow-recorded-server </dev/null",
            "give --yes",
        ),
        ("/run/short.trace", "--yes --allow-recorded-server", "trace"),
        ("/run/no.trace", "--yes --allow-recorded-server", "no trace"),
    ] {
        let script = command(nfscope, trace, arguments);
        let output = server.client(0).sh(&format!("! {script} 2>&1"))?.stdout;
        ensure!(output.contains(why), "{script}: {output}");
    }
    let left = server.sh("ls -A /run/exp/fresh")?.stdout;
    ensure!(left.is_empty(), "a refused replay wrote {left}");
    Ok(())
}

/// The trace has each operation as often as the agent counted it.
fn recorded_as_counted(
    report: &Value,
    (v3, v4): &(BTreeMap<String, u64>, BTreeMap<String, u64>),
) -> Result<()> {
    let mut recorded = [BTreeMap::new(), BTreeMap::new()];
    for o in report["operations"].as_array().context("operations")? {
        let op = o["op"].as_str().context("op")?.to_owned();
        if op != "null" {
            let n = o["recorded"].as_u64().context("recorded")?;
            *recorded[usize::from(o["version"] != "3")]
                .entry(op)
                .or_default() += n;
        }
    }
    assert_eq!(
        [v3, v4],
        [&recorded[0], &recorded[1]],
        "operations in the trace"
    );
    Ok(())
}

/// Each operation was issued as often as it was recorded, unless the report lists it, and moved as many bytes.
fn replayed_as_recorded(report: &Value) -> Result<()> {
    let times = report["times"].as_u64().context("times")?;
    let left_out = report["left_out"].as_array().context("left_out")?;
    for o in report["operations"].as_array().context("operations")? {
        let same = |l: &&Value| l["op"] == o["op"] && l["version"] == o["version"];
        let missing: u64 = (left_out.iter().filter(same))
            .filter_map(|l| l["operations"].as_u64())
            .sum();
        let n = |key: &str| o[key].as_u64().unwrap_or(0);
        ensure!(n("issued") + missing == n("recorded") * times, "{o}");
        ensure!(n("bytes") == n("recorded_bytes") * times, "{o}");
        ensure!(o["procedure"].is_null() == (missing > 0), "{o}");
    }
    Ok(())
}

fn lengths(server: &Server, directories: &str) -> Result<Lengths> {
    let list = server.sh(&format!(
        "find {directories} -type f -size +0 -printf '%s\\n'"
    ))?;
    let mut lengths = Lengths::new();
    for line in list.stdout.lines() {
        *lengths.entry(line.parse()?).or_default() += 1;
    }
    Ok(lengths)
}

/// Without --keep, nothing of a replay remains.
fn removes_what_it_made(server: &Server, nfscope: &str) -> Result<()> {
    let arguments = "--yes --closed-loop --allow-recorded-server";
    let text = (server.client(0)).sh(&command(nfscope, "/run/load.trace", arguments))?;
    ensure!(text.stdout.contains("not replayed:"), "{}", text.stdout);
    let left = server.sh("ls -A /run/exp/fresh")?.stdout;
    ensure!(left.is_empty(), "the replay left {left}");
    Ok(())
}
