//! Connections: the agent's number equals the kernel's list of sockets, and its closed ones equal those that their client saw closed.

use anyhow::{Context, Result, ensure};
use lab::raw::hold::Held;
use lab::reconcile;
use lab::{Agent, Kernel, Server};
use nfscope_diagnose::evaluate;
use nfscope_model::finding::Kind;
use nfscope_model::{Snapshot, family};

use crate::lifecycle::eventually;
use crate::stuck::asleep;

const REPORT: &str = "/run/held.json";

/// Connections with and without a limit. No client may have the server mounted.
pub fn are_counted(server: &Server, agent: &Agent) -> Result<()> {
    let (which, limit, threads) = match server.kernel() {
        // svc_check_conn_limits(): 20 for each thread and 60 more.
        Kernel::V5_10 | Kernel::V6_1 => ("all", 100.0, 2),
        _ => ("unproven", 64.0, 8),
    };
    server.set_threads(threads)?;
    let before = quiet(server, agent)?;
    assert_eq!(
        before.value(&family::CONNECTION_LIMIT, [which]),
        Some(limit)
    );
    assert_eq!(
        before.value(&family::LIMITED_CONNECTIONS, [which]),
        Some(0.0)
    );
    for (transport, listed) in listeners(server)? {
        let told = before.value(&family::LISTENERS, [transport]);
        assert_eq!(told, Some(listed), "listeners over {transport}");
    }

    // More connections than the limit, one after the other: each closes the oldest.
    let more = limit as u32 + 20;
    let holder = hold(server, &more.to_string())?;
    let (held, full) = settled(server, agent, u64::from(more))?;
    let seen = full.since(&before);
    println!("{held:?}; limit {limit} of {which}");
    // More connections than the limit may stay, on a busy host several: the kernel may choose one that is already being closed. Also
    // one fewer may stay: the kernel reads the number of open connections before it takes the lock, and another one may be closed in
    // between.
    let over = (held.opened - held.closed) as f64 - limit;
    ensure!(held.closed > 0 && over >= -1.0, "{held:?}");
    counted(&seen.delta, accepted(&seen.delta), held.opened, "accepted")?;
    let by_limit = closed(&seen.delta, "limit");
    counted(&seen.delta, by_limit, held.closed, "closed by the limit")?;
    let still_open = (held.opened - held.closed) as f64;
    assert_eq!(full.value(&family::CONNECTIONS, ["tcp"]), Some(still_open));
    assert_eq!(
        full.value(&family::LIMITED_CONNECTIONS, [which]),
        Some(still_open)
    );
    let diagnosis = evaluate(&seen, &[]);
    let finding = diagnosis.finding(Kind::ConnectionLimit);
    let text = format!("{:#?}", finding);
    let says = format!("the kernel closed {by_limit} for being the oldest");
    ensure!(text.contains(&says), "{says}: {text}");
    println!("{text}");

    // The client closes the other connections.
    holder.kill()?;
    let after = quiet(server, agent)?;
    let seen = after.since(&full).delta;
    let by_client = closed(&seen, "client");
    counted(
        &seen,
        by_client,
        held.opened - held.closed,
        "closed by the client",
    )?;
    assert_eq!(closed(&seen, "limit"), 0);

    // The server gives up connections whose data is no RPC, and those to an address that goes away.
    let garbage = hold(server, "5 --garbage")?;
    let (_, given_up) = settled(server, agent, 5)?;
    garbage.kill()?;
    server.sh("ip address add 10.77.0.1/32 dev lo")?;
    let away = hold(server, "7 --to 10.77.0.1")?;
    settled(server, agent, 7)?;
    server.sh("ip address del 10.77.0.1/32 dev lo")?;
    let gone = quiet(server, agent)?;
    away.kill()?;
    let seen = given_up.since(&after).delta;
    counted(&seen, closed(&seen, "error"), 5, "given up")?;
    let seen = gone.since(&given_up).delta;
    counted(&seen, closed(&seen, "idle"), 7, "without an address")?;

    // More working clients than the limit, with enough threads: no connection is closed, and the diagnosis has no finding.
    server.set_threads(16)?;
    // If the limit is for connections without a handle, few may be without one at a time.
    let together = match which {
        "all" => "--threads 8",
        _ => "--at-once 8",
    };
    let load = format!("getattr --from 127.9.0.1 --clients 150 {together} --times 4");
    let clients = server.run_clients(&load)?;
    let seen = quiet(server, agent)?.since(&gone);
    let all = clients.len() as u64;
    counted(&seen.delta, accepted(&seen.delta), all, "accepted")?;
    let by_client = closed(&seen.delta, "client");
    counted(&seen.delta, by_client, all, "closed by the client")?;
    assert_eq!(closed(&seen.delta, "limit"), 0);
    let diagnosis = evaluate(&seen, &[]);
    ensure!(
        diagnosis.finding(Kind::ConnectionLimit).is_none(),
        "{diagnosis:#?}"
    );
    what_is_open_ends_with_the_server(server, agent)?;
    dropped_packets_are_counted(server, agent)?;
    server.set_threads(8)
}

fn what_is_open_ends_with_the_server(server: &Server, agent: &Agent) -> Result<()> {
    const OPEN: u64 = 6;
    let holder = hold(server, &OPEN.to_string())?;
    let (_, open) = settled(server, agent, OPEN)?;
    server.nfsd_stop()?;
    let seen = agent.snapshot()?.since(&open).delta;
    holder.kill()?;
    counted(
        &seen,
        closed(&seen, "shutdown"),
        OPEN,
        "closed by the end of the server",
    )?;
    for other in ["client", "limit", "idle", "error"] {
        assert_eq!(closed(&seen, other), 0, "{other}");
    }
    server.nfsd_start()
}

/// The only thread waits for a frozen file system. More clients connect than the queue holds until a thread accepts them: TCP drops a
/// packet that would begin another connection, and its client sends it again.
fn dropped_packets_are_counted(server: &Server, agent: &Agent) -> Result<()> {
    server.set_threads(1)?;
    let before = quiet(server, agent)?;
    assert_eq!(dropped(server)?, 0, "listeners that are new");
    assert_eq!(before.value(&family::LISTENER_DROPS, []), Some(0.0));
    let lab = server.lab_path().display();
    server.sh("fsfreeze -f /run/exp")?;
    let seen = (|| {
        let writer = server.spawn(&format!("exec {lab} clients write --clients 1 --times 1"))?;
        eventually(|| Ok((!asleep(server)?.is_empty()).then_some(())))
            .context("no thread waits for the file system")?;
        // 64 connections fit, and one more.
        let holder = hold(server, "70")?;
        let (dropped, seen) = eventually(|| {
            let before = dropped(server)?;
            let seen = agent.snapshot()?;
            // The count is valid if no packet was dropped between both readings.
            Ok((before > 0 && dropped(server)? == before).then_some((before, seen)))
        })
        .context("no packet was dropped")?;
        anyhow::Ok((writer, holder, dropped, seen))
    })();
    server.sh("fsfreeze -u /run/exp")?;
    let (mut writer, holder, dropped, seen) = seen?;
    println!("{dropped} packets were dropped");
    let told = seen.value(&family::LISTENER_DROPS, []);
    assert_eq!(told, Some(dropped as f64), "dropped packets");
    writer
        .wait(std::time::Duration::from_secs(120))?
        .ok("a client")?;
    holder.kill()?;
    quiet(server, agent).map(drop)
}

/// Packets that TCP dropped at the server's listeners, from the kernel over netlink.
fn dropped(server: &Server) -> Result<u64> {
    let listed = server.sh("ss -Htlnm '( sport = :2049 )'")?.stdout;
    // skmem:(r0,rb131072,...,d0)
    let counts = listed.split("skmem:(").skip(1).map(|memory| {
        let memory = memory.split(')').next().unwrap_or_default();
        let drops = memory.split(',').find_map(|n| n.strip_prefix('d'));
        let drops = drops.with_context(|| listed.clone())?;
        drops.parse::<u64>().with_context(|| listed.clone())
    });
    counts.sum()
}

fn hold(server: &Server, arguments: &str) -> Result<lab::Running> {
    server.sh(&format!("rm -f {REPORT}"))?;
    let lab = server.lab_path().display();
    server.spawn(&format!("exec {lab} hold {arguments} --report {REPORT}"))
}

/// Number of sockets of the server's port that the kernel lists, without those of its clients.
fn sockets(server: &Server) -> Result<u64> {
    let list = "ss -Htn state established state close-wait '( sport = :2049 )' | wc -l";
    Ok(server.sh(list)?.stdout.trim().parse()?)
}

/// Listeners by transport, of both address families.
fn listeners(server: &Server) -> Result<Vec<(&'static str, f64)>> {
    let list = server.sh("cat /proc/fs/nfsd/portlist")?.stdout;
    Ok(["tcp", "udp", "rdma"]
        .into_iter()
        .map(|transport| {
            let of = |line: &&str| line.starts_with(&format!("{transport} "));
            (transport, list.lines().filter(of).count() as f64)
        })
        .collect())
}

/// Snapshot after `opened` connections were opened, and some of them closed, once no more are closed.
fn settled(server: &Server, agent: &Agent, opened: u64) -> Result<(Held, Snapshot)> {
    let mut last = None;
    for _ in 0..40 {
        server.sh("sleep 0.5")?;
        let text = server
            .sh(&format!("cat {REPORT} 2>/dev/null || true"))?
            .stdout;
        let held: Option<Held> = serde_json::from_str(text.trim()).ok();
        let now = (held, sockets(server)?);
        let snapshot = agent.snapshot()?;
        if let (Some(held), sockets) = now
            && last == Some(now)
            && held.opened == opened
            && held.opened - held.closed == sockets
            && snapshot.value(&family::CONNECTIONS, ["tcp"]) == Some(sockets as f64)
        {
            return Ok((held, snapshot));
        }
        last = Some(now);
    }
    anyhow::bail!(
        "connections do not settle: {last:?}, {:#?}",
        agent.snapshot()?
    )
}

/// Snapshot without any connection.
fn quiet(server: &Server, agent: &Agent) -> Result<Snapshot> {
    for _ in 0..40 {
        let sockets = sockets(server)?;
        let snapshot = agent.snapshot()?;
        if sockets == 0 && snapshot.value(&family::CONNECTIONS, ["tcp"]) == Some(0.0) {
            return Ok(snapshot);
        }
        server.sh("sleep 0.5")?;
    }
    anyhow::bail!(
        "{} connections stay: {}",
        sockets(server)?,
        server.sh("ss -tn '( sport = :2049 )'")?.stdout
    )
}

pub fn accepted(seen: &Snapshot) -> u64 {
    let all = seen.numbers(&family::CONNECTIONS_ACCEPTED);
    all.map(|(_, n)| n).sum::<f64>() as u64
}

fn closed(seen: &Snapshot, why: &str) -> u64 {
    let all = seen.numbers(&family::CONNECTIONS_CLOSED);
    all.filter(|([_, reason], _)| *reason == why)
        .map(|(_, n)| n)
        .sum::<f64>() as u64
}

/// Checks that all events of a kind are counted. Each program that the kernel skipped may have been at such an event.
pub fn counted(seen: &Snapshot, n: u64, all: u64, what: &str) -> Result<()> {
    let skipped = skipped(seen);
    println!("{what}: {n} of {all}; {skipped} programs were skipped");
    let closings: Vec<_> = seen.numbers(&family::CONNECTIONS_CLOSED).collect();
    ensure!(
        n <= all && n + skipped >= all,
        "{what}: {n} of {all}, and {skipped} programs were skipped: {closings:?}"
    );
    Ok(())
}

/// Runs of the probe's programs that the kernel skipped in a window.
pub fn skipped(seen: &Snapshot) -> u64 {
    let lost = reconcile::lost(seen).get("nfsd recursion").copied();
    lost.unwrap_or(0.0) as u64
}
