//! What NFSv4 clients hold: as much as programs have opened and locked, and as the kernel lists.

use anyhow::{Result, bail, ensure};
use lab::{Agent, Server};
use nfscope_model::{Snapshot, family};

/// Files that a client holds open, and of them those that it has locked.
const OPEN: u32 = 6;
const LOCKED: u32 = 3;

pub fn is_as_the_kernel_lists_it(server: &Server, agent: &Agent) -> Result<()> {
    let client = server.client(0);
    let mount = client.mount_v4_2()?;
    server.sh("mkdir -p /run/exp/state; cd /run/exp/state; for n in 1 2 3 4 5 6 7; do echo hello >$n; done; sleep 2")?;
    // One that may get a delegation. With one of its own, the next program's locks would stay in the client.
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
    let (listed, seen) = still(server, agent)?;
    let counted = |pattern: &str| listed.lines().filter(|l| l.contains(pattern)).count() as f64;
    for (kind, pattern) in [
        ("open", "type: open"),
        ("lock", "type: lock"),
        ("delegation_read", "type: deleg, access: r"),
        ("delegation_write", "type: deleg, access: w"),
        ("layout", "type: layout"),
    ] {
        let (told, listed) = (states(&seen, kind), counted(pattern));
        println!("{kind}: {told:?}, the kernel lists {listed}");
        assert_eq!(told, Some(listed), "{kind}");
    }
    // Clients of earlier loads may hold some more, and the one with a delegation may have no open state beside it (Linux 6.13).
    ensure!(states(&seen, "open") >= Some(f64::from(OPEN)));
    ensure!(states(&seen, "lock") >= Some(f64::from(LOCKED)));
    assert_eq!(states(&seen, "other"), Some(0.0));
    let all: f64 = seen.numbers(&family::NFS4_CLIENTS).map(|(_, n)| n).sum();
    assert_eq!(all, counted("clientid: "), "clients");
    let up = seen.value(&family::NFS4_CALLBACKS, ["up"]);
    ensure!(up >= Some(1.0), "callback paths that are up: {up:?}");
    assert_eq!(seen.value(&family::NFS4_PARTIAL, []), Some(0.0));
    server.sh("sysctl -q fs.leases-enable=1")?;
    holder.kill()?;
    reader.kill()?;
    client.unmount_all()
}

/// What the kernel lists, and a snapshot of the same: clients of earlier loads go when their lease ends.
fn still(server: &Server, agent: &Agent) -> Result<(String, Snapshot)> {
    let list =
        "cd /proc/fs/nfsd/clients; grep -hs ^clientid: */info; cat */states 2>/dev/null || true";
    for _ in 0..5 {
        let before = server.sh(list)?.stdout;
        // The agent looks every ten seconds.
        server.sh("sleep 11")?;
        let seen = agent.snapshot()?;
        if server.sh(list)?.stdout == before {
            return Ok((before, seen));
        }
    }
    bail!("clients come and go");
}

fn states(seen: &Snapshot, kind: &str) -> Option<f64> {
    seen.value(&family::NFS4_STATES, [kind])
}
