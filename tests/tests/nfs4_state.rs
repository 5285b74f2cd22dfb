//! States of NFSv4 clients: the agent's counts equal those that programs opened and locked, and the kernel's lists.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use lab::reconcile::operations;
use lab::{Agent, Kernel, Server, finally};
use nfscope_model::{Snapshot, family};

use crate::client_view::trace::Trace;
use crate::lifecycle::eventually;
use crate::recalls::{self, Traced};

/// Files that a client holds open, and the number of these that it has locked.
const OPEN: u32 = 6;
const LOCKED: u32 = 3;
/// Time until the agent has read states again: it reads them every ten seconds.
const LOOKS_EVERY: Duration = Duration::from_secs(11);

pub fn is_as_the_kernel_lists_it(server: &Server, agent: &Agent) -> Result<()> {
    let client = server.client(0);
    let mount = client.mount_v4_2()?;
    server.sh("mkdir -p /run/exp/state; cd /run/exp/state; for n in 1 2 3 4 5 6 7; do echo hello >$n; done; sleep 2")?;
    // This client may get a delegation. A program that gets one itself would keep its locks in the client.
    let reader = client.spawn(&format!("exec 3<{mount}/state/7; cat <&3; exec sleep 600"))?;
    server.sh("sleep 2; sysctl -q fs.leases-enable=0")?;
    let hold = format!(
        "cd {mount}/state; for n in $(seq {OPEN}); do eval \"exec $((n+2))<>$n\"; done
         for n in $(seq {LOCKED}); do flock -x $((n+2)); done; exec sleep 600"
    );
    let holder = client.spawn(&hold)?;
    let locks = "cat /proc/fs/nfsd/clients/*/states | grep -c 'type: lock' || true";
    let mut tries = 0;
    while server.sh(locks)?.stdout.trim() != LOCKED.to_string() {
        tries += 1;
        ensure!(tries < 40, "the client does not hold its locks");
        server.sh("sleep 0.5")?;
    }
    // A client of NFSv4.0 that cannot be called back.
    server.raw("v4.0")?;
    let (listed, seen) = look(server, agent)?;
    is_as_listed(&listed[0], &seen);
    // Clients of earlier loads may hold some more, and the client with a delegation may have no open state beside it (Linux 6.13).
    ensure!(states(&seen, "open") >= Some(f64::from(OPEN)));
    ensure!(states(&seen, "lock") >= Some(f64::from(LOCKED)));
    let up = seen.value(&family::NFS4_CALLBACKS, ["up"]);
    ensure!(up >= Some(1.0), "callback paths that are up: {up:?}");
    let others = ["unknown", "down", "fault"];
    let others = others.map(|s| seen.value(&family::NFS4_CALLBACKS, [s]).unwrap_or(0.0));
    ensure!(others.iter().sum::<f64>() >= 1.0, "{others:?}");
    assert_eq!(seen.value(&family::NFS4_PARTIAL, []), Some(0.0));
    server.sh("sysctl -q fs.leases-enable=1")?;
    holder.kill()?;
    reader.kill()?;
    client.unmount_all()
}

/// Script that prints the kernel's lists of the server in this mount namespace.
pub const LIST: &str = "cd /proc/fs/nfsd/clients; grep -hs ^clientid: */info || true; cat */states 2>/dev/null || true";

/// Lists of the kernel before and after a snapshot of the agent, which are the same, and the snapshot. Clients of earlier loads go
/// when their lease ends, so that the first lists may differ.
pub fn still<L, S>(
    list: impl Fn() -> Result<L>,
    are_same: impl Fn(&L, &L) -> bool,
    snapshot: impl Fn() -> Result<S>,
) -> Result<([L; 2], S)> {
    for _ in 0..5 {
        let before = list()?;
        lab::pass(LOOKS_EVERY);
        let seen = snapshot()?;
        let after = list()?;
        if are_same(&before, &after) {
            return Ok(([before, after], seen));
        }
    }
    bail!("clients come and go");
}

/// Checks that the agent counts every listed state and client.
pub fn is_as_listed(listed: &str, seen: &Snapshot) {
    let counted = |pattern: &str| listed.lines().filter(|l| l.contains(pattern)).count() as f64;
    for (kind, pattern) in [
        ("open", "type: open"),
        ("lock", "type: lock"),
        ("delegation_read", "type: deleg, access: r"),
        ("delegation_write", "type: deleg, access: w"),
        ("layout", "type: layout"),
    ] {
        let (told, listed) = (states(seen, kind), counted(pattern));
        println!("{kind}: {told:?}, the kernel lists {listed}");
        assert_eq!(told, Some(listed), "{kind}");
    }
    assert_eq!(states(seen, "other"), Some(0.0));
    let all: f64 = seen.numbers(&family::NFS4_CLIENTS).map(|(_, n)| n).sum();
    assert_eq!(all, counted("clientid: "), "clients");
}

/// Pattern of the delegation of one file. A revoked state is listed without its file.
const DELEGATED: &str = "type: deleg.*silent/delegated";

/// States that an administrator revokes, and a client that loses its network and with it its lease.
pub fn of_clients_without_a_lease_is_told(server: &Server, agent: &Agent) -> Result<()> {
    finally(
        || a_lease_ends(server, agent),
        || server.sh("ip link set s0 up").map(drop),
    )
}

fn a_lease_ends(server: &Server, agent: &Agent) -> Result<()> {
    let client = server.client(0);
    let mount = client.mount_v4_2()?;
    server.sh("mkdir -p /run/exp/silent; cd /run/exp/silent; echo hello >open; echo hello >delegated; sleep 2")?;
    let read = format!("cat {mount}/silent/delegated >/dev/null");
    let holder = client.spawn(&format!("exec 3<>{mount}/silent/open; exec sleep 600"))?;
    eventually(|| {
        client.sh(&read)?;
        Ok((listed(server, "states", DELEGATED)? > 0).then_some(()))
    })
    .context("the server gives no delegation")?;
    let before = agent.snapshot()?;
    let trace = Trace::begin(server, &recalls::events(server.kernel()), "")?;
    server.sh("ip link set s0 down")?;
    // 6.1 gives up the locks of NFSv3 alone.
    let revokes = server.kernel() != Kernel::V6_1;
    if revokes {
        server.sh("echo /run/exp >/proc/fs/nfsd/unlock_filesystem")?;
    }
    eventually(|| Ok((listed(server, "info", "status: courtesy")? > 0).then_some(())))
        .context("the server keeps no silent client")?;
    let ([before_it, after_it], seen) = look(server, agent)?;
    ensure!(
        !revokes || seen.value(&family::NFS4_REVOKED, []) >= Some(2.0),
        "{after_it}"
    );
    let oldest = |text: &str| {
        let renewals = lines(text, "seconds from last renew: ").map(|n| n.parse().unwrap_or(0.0));
        renewals.fold(0.0, f64::max)
    };
    let (early, late) = (oldest(&before_it), oldest(&after_it));
    let told = seen.value(&family::NFS4_OLDEST_RENEWAL, []);
    let told = told.context("no renewal is told")?;
    println!("the oldest renewal is told as {told} s old, and was {early} to {late} s old");
    ensure!(late > recalls::LEASE as f64, "{after_it}");
    ensure!((early..=late).contains(&told), "{early} {told} {late}");
    if !revokes {
        // The server revokes a silent client's state once another one wants the file.
        let mut writer = server.spawn("echo again >>/run/exp/silent/delegated")?;
        writer
            .wait(Duration::from_secs(120))?
            .ok("a program on the server")?;
        eventually(|| Ok((listed(server, "states", DELEGATED)? == 0).then_some(())))?;
    }
    // The client learns that its states were revoked, and frees them.
    server.sh("ip link set s0 up")?;
    client.sh(&read)?;
    let (_, back) = look(server, agent)?;
    let traced = Traced::of(&trace.text()?)?;
    println!("{traced:?}");
    let lost = if revokes {
        traced.revoked
    } else {
        traced.recalled
    };
    ensure!(lost >= 1, "{traced:?}");
    let seen = back.since(&before).delta;
    recalls::are_as_many(&seen, &traced, server.kernel());
    trace.end()?;
    let (_, ops) = operations(&seen);
    println!("{ops:?}");
    if revokes {
        ensure!(ops.contains_key("free_stateid"), "{ops:?}");
        assert_eq!(back.value(&family::NFS4_REVOKED, []), Some(0.0));
    }
    holder.kill()?;
    client.unmount_all()
}

/// Lists of the kernel before and after a snapshot of the agent, which differ in nothing but time, and the snapshot. Its leases,
/// callback paths and revoked states equal the lists.
fn look(server: &Server, agent: &Agent) -> Result<([String; 2], Snapshot)> {
    const ALL: &str = "cd /proc/fs/nfsd/clients; cat */info */states 2>/dev/null || true";
    let moves = |line: &&str| !line.starts_with("seconds from last renew");
    let (listed, seen) = still(
        || Ok(server.sh(ALL)?.stdout),
        |a, b| a.lines().filter(moves).eq(b.lines().filter(moves)),
        || agent.snapshot(),
    )?;
    let text = &listed[0];
    println!("{text}");
    for (family, name, labels) in [
        (
            &family::NFS4_CLIENTS,
            "status: ",
            ["confirmed", "unconfirmed", "courtesy", "expirable"],
        ),
        (
            &family::NFS4_CALLBACKS,
            "callback state: ",
            ["up", "unknown", "down", "fault"],
        ),
    ] {
        for label in labels {
            let listed = lines(text, name).filter(|l| l.eq_ignore_ascii_case(label));
            let (told, listed) = (seen.value(family, [label]), listed.count());
            assert_eq!(told, Some(listed as f64), "{name}{label}");
        }
    }
    // The count is of states that are listed as revoked, and not the client's own sum.
    let revoked = text.lines().filter(|l| l.ends_with("admin-revoked }"));
    let revoked = revoked.count() as f64;
    let told = seen.value(&family::NFS4_REVOKED, []);
    let lists = server.kernel() != Kernel::V6_1;
    assert_eq!(
        told,
        lists.then_some(revoked),
        "states that were taken away"
    );
    Ok((listed, seen))
}

/// Rest of the lines that begin with `name`.
fn lines<'a>(text: &'a str, name: &'static str) -> impl Iterator<Item = &'a str> {
    text.lines().filter_map(move |l| l.strip_prefix(name))
}

/// Number of matching lines in the kernel's lists of clients.
fn listed(server: &Server, files: &str, pattern: &str) -> Result<u32> {
    let count = format!("cat /proc/fs/nfsd/clients/*/{files} | grep -c '{pattern}' || true");
    Ok(server.sh(&count)?.stdout.trim().parse()?)
}

fn states(seen: &Snapshot, kind: &str) -> Option<f64> {
    seen.value(&family::NFS4_STATES, [kind])
}
