//! An agent with --client beside the server that its host has mounted: every RPC is counted, by mount, version and procedure.
//! References are the kernel's own sums for each mount, and the calls of the test.

mod path;
pub mod stats;
pub mod trace;

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use lab::{Agent, Checks, Kernel, Server};
use nfscope_model::{Snapshot, family as f};

use stats::{Stats, settled};
use trace::{Trace, recalls, sleeps};

/// I/Os of each kind over each version.
const IOS: u32 = 60;
const VERSIONS: [&str; 4] = ["3", "4.0", "4.1", "4.2"];

/// All checks, in a machine with one client and an agent with `--client`.
///
/// Each kernel has its own tracepoints: slots, RPCs and recalls pass through all of them. The path and what a lost server adds are sums
/// that the same code makes on every kernel, and are checked on one.
pub fn is_exact(server: &Server, agent: &Agent, checks: &mut Checks) {
    let sums = server.kernel() == Kernel::V6_12;
    checks.run("the client's view: slots", || {
        slots_are_waited_for(server, agent)
    });
    checks.run("the client's view: RPCs", || {
        rpcs_are_counted(server, agent)
    });
    if sums {
        checks.run("the client's view: path", || path::adds_up(server, agent));
    }
    checks.run("the client's view: recalls", || {
        recalls_are_counted(server, agent)
    });
    if sums {
        checks.run("the client's view: a lost server", || {
            retransmissions_are_counted(server, agent)
        });
    }
    // The limit of slots stays with a mount: later checks need other mounts.
    let _ = server.client(0).unmount_all();
}

/// A host that is only a client, and has no NFS server: the agent is healthy, and observes its mounts. This test must be the first in
/// its machine.
pub fn needs_no_server(server: &Server) -> Result<()> {
    let loaded = server.sh("modprobe -a nfs nfsv4; grep -c ^nfsd /proc/modules || true")?;
    ensure!(loaded.stdout == "0\n", "nfsd is there");
    let agent = server.agent_start(&["--client"])?;
    reads(&agent, "tracepoints")?;
    // No server answers at this address.
    let client = server.client(0);
    client.sh("mkdir -p /run/c0/none; ! timeout 60 mount -t nfs -o vers=4.2,soft,timeo=10,retrans=1,retry=0 10.9.0.1:/ /run/c0/none")?;
    let health = agent.get_raw("/healthz", &[])?;
    let seen = agent.snapshot()?;
    ensure!(health.status == 200, "{}", health.text());
    // The kernel's client tests by NULL whether the server is there.
    let null = |info| of_op(&seen, info, "10.9.0.1", "4", "null");
    let failed = seen.value(&f::VIEW_ERRORS, ["10.9.0.1", "4"]);
    ensure!(
        null(&f::VIEW_RPCS.info) >= 1.0,
        "{:?}",
        seen.series(&f::VIEW_RPCS.info)
    );
    ensure!(failed == Some(null(&f::VIEW_RPCS.info)), "{failed:?}");
    let log = agent.log();
    ensure!(
        log.contains("RPCs of this host's NFS mounts are being timed"),
        "{log}"
    );
    agent.stop().map(drop)
}

/// Compares the sums of a kernel without BTF of its modules with mountstats.
pub fn is_read_from_mountstats(server: &Server, agent: &Agent) -> Result<()> {
    let client = server.client(0);
    let mount = client.mount_v3()?;
    client.sh(&format!("stat {mount} >/dev/null; touch {mount}/one"))?;
    reads(agent, "mountstats")?;
    let (stats, seen) = settled(server, agent)?;
    let (mut rpcs, mut errors) = (0, 0);
    for ((_, op), row) in &stats {
        let labels = ["10.9.0.1:/run/exp", "3", op];
        ensure!(
            seen.value(&f::VIEW_RPCS, labels) == Some(row[0] as f64),
            "{op}: {row:?}"
        );
        let round_trip = seen.value(&f::VIEW_STAGE, [labels[0], "3", op, "round_trip"]);
        ensure!(
            round_trip == Some(row[6] as f64 / 1e3),
            "{op}: {row:?}, {round_trip:?}"
        );
        rpcs += row[0];
        errors += row[8];
    }
    ensure!(rpcs > 5, "{stats:?}");
    let told = seen.value(&f::VIEW_ERRORS, ["10.9.0.1:/run/exp", "3"]);
    ensure!(told == Some(errors as f64), "{told:?}, {errors}");
    client.unmount_all()
}

/// A known number of reads and writes, over each version.
fn rpcs_are_counted(server: &Server, agent: &Agent) -> Result<()> {
    let client = server.client(0);
    client.unmount_all()?;
    for version in VERSIONS {
        client.mount_version(version)?;
    }
    reads(agent, "tracepoints")?;
    let before = settled(server, agent)?;
    for version in VERSIONS {
        let file = format!("{}/view{version}", client.mount_version(version)?);
        client.sh(&format!(
            "set -e
             dd if=/dev/zero of={file} bs=4k count={IOS} oflag=direct 2>/dev/null
             dd if={file} of=/dev/null bs=4k count={IOS} iflag=direct 2>/dev/null
             for n in 1 2 3 4 5; do mkdir {file}.$n; rmdir {file}.$n; done
             ! stat {file}.none 2>/dev/null"
        ))?;
    }
    let after = settled(server, agent)?;
    let seen = after.1.since(&before.1).delta;
    let skipped = skipped(&seen);
    for version in VERSIONS {
        let mount = mount_of(version);
        let count = |op: &str| of_op(&seen, &f::VIEW_RPCS.info, &mount, version, op);
        // A 4.2 client may read with READ_PLUS.
        let [reads, writes] = [count("read") + count("read_plus"), count("write")];
        println!("{version}: {reads} reads, {writes} writes of {IOS}, {skipped} runs skipped");
        for n in [reads, writes] {
            ensure!(
                n <= f64::from(IOS) && n + skipped >= f64::from(IOS),
                "{version}: {n}"
            );
        }
    }
    agrees(&before, &after, &VERSIONS, skipped)?;
    // Counters outlive their mounts, and continue with the next mount of the same export.
    client.unmount_all()?;
    let gone = settled(server, agent)?.1;
    let point = client.mount_v3()?;
    client.sh(&format!(
        "dd if={point}/view3 of=/dev/null bs=4k count=7 iflag=direct 2>/dev/null"
    ))?;
    let again = settled(server, agent)?.1;
    let read = |s: &Snapshot| of_op(s, &f::VIEW_RPCS.info, &mount_of("3"), "3", "read");
    let more = read(&again) - read(&gone);
    ensure!(
        read(&gone) == read(&after.1),
        "{} after {}",
        read(&gone),
        read(&after.1)
    );
    ensure!(
        more <= 7.0 && more + lost(&again) - lost(&gone) >= 7.0,
        "{more} reads more"
    );
    Ok(())
}

/// Checks that the agent counted everything that mountstats counted between two moments: RPCs exactly, times within 1 %.
fn agrees(
    before: &(Stats, Snapshot),
    after: &(Stats, Snapshot),
    versions: &[&str],
    skipped: f64,
) -> Result<()> {
    let seen = after.1.since(&before.1).delta;
    let (mut times, mut rpcs) = ([0.0; 2], 0.0);
    let mut missing = 0.0;
    for ((point, op), now) in &after.0 {
        let version = point.rsplit('v').next().unwrap_or_default();
        if !versions.contains(&version) {
            continue;
        }
        // The client of NFSACL sends a NULL of its own, which mountstats does not have.
        if (version, op.as_str()) == ("3", "null") {
            continue;
        }
        let old = before
            .0
            .get(&(point.clone(), op.clone()))
            .copied()
            .unwrap_or_default();
        // RPCs that mounts share are counted for each of them in mountstats, and for their server in the agent.
        let of = |info| {
            let own = of_op(&seen, info, &mount_of(version), version, op);
            own + of_op(&seen, info, "10.9.0.1", version, op)
        };
        let (counted, known) = ((now[0] - old[0]) as f64, of(&f::VIEW_RPCS.info));
        ensure!(
            known <= counted,
            "{point} {op}: {counted} by mountstats, {known}"
        );
        missing += counted - known;
        rpcs += counted;
        let stage = |name: &str| {
            let [own, shared] = [mount_of(version).as_str(), "10.9.0.1"].map(|mount| {
                seen.value(&f::VIEW_STAGE, [mount, version, op, name])
                    .unwrap_or(0.0)
            });
            own + shared
        };
        let parts = ["backlog", "round_trip", "completion"].map(stage);
        let whole = (now[7] - old[7]) as f64 / 1e3;
        let sum: f64 = parts.iter().sum();
        println!("{version} {op}: {counted} RPCs, {parts:?} s, {whole} s by mountstats");
        if counted == known {
            // mountstats has whole milliseconds.
            for (part, column) in parts.iter().zip([5, 6]) {
                let told = (now[column] - old[column]) as f64 / 1e3;
                ensure!(
                    (part - told).abs() <= 0.01 * told + 0.0011,
                    "{point} {op}: {part} s, {told} s"
                );
            }
            ensure!(
                (sum - whole).abs() <= 0.01 * whole + 0.0011,
                "{point} {op}: {sum} s, {whole} s"
            );
            // A sum below 100 ms is left out: a millisecond is more than 1 % of it.
            if whole >= 0.1 {
                times[0] += sum;
                times[1] += whole;
            }
        }
    }
    println!("{rpcs} RPCs, {missing} missing, {skipped} runs skipped; {times:?} s");
    ensure!(
        missing <= skipped && rpcs > 0.0,
        "{missing} of {rpcs} RPCs are missing, {skipped} skipped"
    );
    ensure!(
        (times[0] - times[1]).abs() <= 0.01 * times[1],
        "{times:?} s"
    );
    for version in versions {
        let point = format!("v{version}");
        let sum = |column: usize| {
            let all = after.0.iter().filter(|((p, _), _)| p.ends_with(&point));
            all.map(|(key, now)| now[column] - before.0.get(key).map_or(0, |old| old[column]))
                .sum::<u64>() as f64
        };
        let of = |family| {
            let value = |mount: &str| seen.value(family, [mount, version]).unwrap_or(0.0);
            value(&mount_of(version)) + value("10.9.0.1")
        };
        let bytes = |direction| {
            let value = |mount: &str| {
                seen.value(&f::VIEW_BYTES, [mount, version, direction])
                    .unwrap_or(0.0)
            };
            value(&mount_of(version)) + value("10.9.0.1")
        };
        let told = [
            of(&f::VIEW_RETRANSMITS),
            of(&f::VIEW_TIMEOUTS),
            of(&f::VIEW_ERRORS),
        ];
        let counted = [sum(1) - sum(0), sum(2), sum(8)];
        println!(
            "{version}: {told:?} retransmissions, timeouts and errors, {counted:?} by mountstats"
        );
        if missing == 0.0 && *version != "3" {
            ensure!(told == counted, "{version}: {told:?} {counted:?}");
            ensure!(
                [bytes("sent"), bytes("received")] == [sum(3), sum(4)],
                "{version}: bytes"
            );
        } else if missing == 0.0 {
            // RPCs of NFSACL are counted for the mount, and are not in mountstats.
            ensure!(
                told.iter()
                    .zip(counted)
                    .all(|(told, counted)| *told >= counted),
                "{told:?} {counted:?}"
            );
        }
    }
    Ok(())
}

/// Eight writers wait for a session with one slot.
fn slots_are_waited_for(server: &Server, agent: &Agent) -> Result<()> {
    let client = server.client(0);
    client.unmount_all()?;
    client.sh("modprobe -a nfs nfsv4; echo 1 >/sys/module/nfs/parameters/max_session_slots")?;
    let point = client.mount_v4_1()?;
    reads(agent, "tracepoints")?;
    let before = settled(server, agent)?.1;
    let of_slots = "q_name ~ \"ForeChannel*\"";
    let events = ["sunrpc/rpc_task_sleep", "sunrpc/rpc_task_wakeup"];
    let trace = Trace::begin(server, &events, of_slots)?;
    client.sh(&format!(
        "for n in 1 2 3 4 5 6 7 8; do
           dd if=/dev/zero of={point}/slots.$n bs=4k count=10 oflag=direct 2>/dev/null &
         done
         wait"
    ))?;
    let after = settled(server, agent)?.1;
    let (traced, traced_seconds) = sleeps(&trace.text()?)?;
    trace.end()?;
    let seen = after.since(&before).delta;
    let mount = mount_of("4.1");
    let mut waits = 0;
    let mut seconds = 0.0;
    for mount in [mount.as_str(), "10.9.0.1"] {
        let h = seen.hist(&f::VIEW_SLOT_WAIT, [mount, "4.1"]);
        waits += h.map_or(0, |h| h.count());
        seconds += h.map_or(0.0, |h| h.sum);
    }
    let backlog =
        of_stage(&seen, &mount, "4.1", "backlog") + of_stage(&seen, "10.9.0.1", "4.1", "backlog");
    println!(
        "{waits} waits for a slot, {traced} as traced; {seconds} s, {traced_seconds} s as traced, of a backlog of {backlog} s"
    );
    ensure!(traced > 4, "nobody waited for a slot");
    let skipped = skipped(&seen) as u64;
    ensure!(
        waits <= traced && waits + skipped >= traced,
        "{waits} waits, {traced} as traced, {skipped} skipped"
    );
    ensure!(seconds <= backlog, "{seconds} s of {backlog} s");
    // The trace takes its time before the program does; this is the most by which the two differ at either end.
    let slack = 0.02 * traced_seconds + 50e-6 * traced as f64;
    ensure!(
        skipped > 0 || (seconds - traced_seconds).abs() <= slack,
        "{seconds} s, {traced_seconds} s as traced"
    );
    client.unmount_all()?;
    client
        .sh("echo 64 >/sys/module/nfs/parameters/max_session_slots")
        .map(drop)
}

/// Programs on the server change files that the client holds delegations of.
fn recalls_are_counted(server: &Server, agent: &Agent) -> Result<()> {
    let client = server.client(0);
    let point = client.mount_v4_2()?;
    // The server grants delegations only of files that have not been written to for a moment.
    server.sh("for n in 1 2 3; do echo hello >/run/exp/held$n; done; sleep 2")?;
    let files = [1, 2, 3].map(|n| format!("{point}/held{n}")).join(" ");
    let before = settled(server, agent)?.1;
    let trace = Trace::begin(server, &["nfs4/nfs4_cb_recall"], "")?;
    for _ in 0..10 {
        client.sh(&format!("cat {files} >/dev/null"))?;
        server.sh("for n in 1 2 3; do echo again >>/run/exp/held$n; done; sleep 1")?;
        if recalls(&trace.text()?) >= 3 {
            break;
        }
    }
    let traced = recalls(&trace.text()?);
    trace.end()?;
    let seen = settled(server, agent)?.1.since(&before).delta;
    let all: f64 = seen.numbers(&f::VIEW_RECALLS).map(|(_, n)| n).sum();
    let own = seen
        .value(&f::VIEW_RECALLS, [&mount_of("4.2"), "4.2"])
        .unwrap_or(0.0);
    println!("{all} recalls, {own} of the mount, {traced} as traced");
    ensure!(traced >= 3, "the server has recalled {traced} delegations");
    ensure!(
        all == traced as f64 && own > 0.0,
        "{all} recalls, {own} of the mount, {traced} as traced"
    );
    Ok(())
}

/// The server is out of reach for some seconds.
fn retransmissions_are_counted(server: &Server, agent: &Agent) -> Result<()> {
    let client = server.client(0);
    client.unmount_all()?;
    let point = client.mount_v3()?;
    client.unmount_all()?;
    client.sh(&format!(
        "timeout 300 mount -t nfs -o vers=3,nolock,proto=tcp,soft,noac,noacl,timeo=10,retrans=2 10.9.0.1:/run/exp {point}"
    ))?;
    client.sh(&format!("stat {point} >/dev/null"))?;
    let before = settled(server, agent)?;
    server.sh("ip link set s0 down")?;
    let _ = client.sh(&format!("! stat {point}/gone 2>/dev/null"));
    server.sh("ip link set s0 up")?;
    let after = settled(server, agent)?;
    let seen = after.1.since(&before.1).delta;
    let labels = ["10.9.0.1:/run/exp", "3"];
    let timeouts = seen.value(&f::VIEW_TIMEOUTS, labels).unwrap_or(0.0);
    let errors = seen.value(&f::VIEW_ERRORS, labels).unwrap_or(0.0);
    ensure!(
        timeouts > 0.0 && errors > 0.0,
        "{timeouts} timeouts, {errors} errors"
    );
    agrees(&before, &after, &["3"], skipped(&seen))?;
    client.unmount_all()
}

fn mount_of(version: &str) -> String {
    let path = if version == "3" { "/run/exp" } else { "/" };
    format!("10.9.0.1:{path}")
}

/// Runs of the probe that the kernel has skipped since the agent began.
fn lost(s: &Snapshot) -> f64 {
    s.value(&f::EVENTS_LOST, ["client", "recursion"])
        .unwrap_or(0.0)
}

/// Runs of the probe that the kernel has skipped in a window.
fn skipped(seen: &Snapshot) -> f64 {
    lost(seen)
}

fn of_op(s: &Snapshot, info: &nfscope_model::Info, mount: &str, version: &str, op: &str) -> f64 {
    let series = s
        .series(info)
        .iter()
        .filter(|x| *x.labels == [mount, version, op]);
    series
        .map(|x| match &x.sample {
            nfscope_model::Sample::Counter(n) | nfscope_model::Sample::Gauge(n) => *n,
            nfscope_model::Sample::Histogram(h) => h.count() as f64,
        })
        .sum()
}

fn of_stage(s: &Snapshot, mount: &str, version: &str, stage: &str) -> f64 {
    let all = s.numbers(&f::VIEW_STAGE);
    let own = all.filter(|([m, v, _, x], _)| *m == mount && *v == version && *x == stage);
    own.map(|(_, n)| n).sum()
}

/// Waits until the agent reads from this source, which it does soon after the module was loaded.
fn reads(agent: &Agent, source: &str) -> Result<()> {
    for _ in 0..120 {
        let up = agent.snapshot()?.value(&f::VIEW_SOURCE_INFO, [source]);
        if up.is_some() {
            return Ok(());
        }
        lab::pass(Duration::from_millis(500));
    }
    bail!("the source is not {source}: {:?}", agent.snapshot()?.probes)
}
