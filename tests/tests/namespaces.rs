//! Servers of two network namespaces, with the same addresses and the same export: each agent measures the server of its own.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use lab::raw::clients::ClientReport;
use lab::reconcile::{agree, agree_each, missed_of, settled};
use lab::{Agent, Running, Server, finally};
use nfscope_model::{Snapshot, family};

use crate::client_view::stats::settled_by;
use crate::client_view::trace::Trace;
use crate::lifecycle::eventually;
use crate::phases::{Watch, who};
use crate::recalls::{self, Traced};
use crate::{connections, nfs4_state, sessions};

/// Script that starts a second server with two threads, in a network namespace `other` and a mount namespace of its own.
const OTHER: &str = r"
ip netns add other
ip -n other link set lo up
exec ip netns exec other unshare -m --propagation private bash -ec '
  mount -t tmpfs run /mnt
  mkdir -p /mnt/exp /mnt/rpcbind
  mount --bind /run/exp /mnt/exp
  mount --rbind /mnt /run
  mount -t tmpfs state /var/lib/nfs
  mkdir -p /var/lib/nfs/{v4recovery,rpc_pipefs,sm,sm.bak,v4root}
  touch /var/lib/nfs/{etab,rmtab,xtab,state}
  mount -t rpc_pipefs rpc_pipefs /var/lib/nfs/rpc_pipefs
  rpcbind -w
  mount -t nfsd nfsd /proc/fs/nfsd
  exportfs -o rw,sync,no_root_squash,insecure,no_subtree_check,fsid=0 \*:/run/exp
  rpc.mountd
  rpc.nfsd --grace-time 10 2
  echo Y >/proc/fs/nfsd/v4_end_grace || true
  echo $$ >/tmp/other
  exec sleep 1000000'
";
const PORT: u16 = 9950;

struct Other<'a> {
    server: &'a Server,
    process: String,
    _running: Running,
}

impl Other<'_> {
    fn enter(&self) -> String {
        format!("nsenter -t {} -m -n", self.process)
    }

    /// Runs a program in the other namespaces.
    fn sh(&self, program: &str) -> Result<String> {
        let line = format!("{} {program}", self.enter());
        Ok(self.server.sh(&line)?.stdout)
    }

    /// Runs a script without apostrophes.
    fn bash(&self, script: &str) -> Result<String> {
        self.sh(&format!("bash -ec '{script}'"))
    }

    fn raw(&self, scenario: &str) -> Result<lab::raw::Sent> {
        let said = self.sh(&format!(
            "{} raw {scenario}",
            self.server.lab_path().display()
        ))?;
        serde_json::from_str(&said).with_context(|| said.clone())
    }

    fn run_clients(&self, arguments: &str) -> Result<Vec<ClientReport>> {
        let program = self.server.lab_path();
        let said = self.sh(&format!("{} clients {arguments}", program.display()))?;
        serde_json::from_str(&said).with_context(|| said.clone())
    }

    fn snapshot(&self) -> Result<Snapshot> {
        let ask = format!(
            "bash -c 'exec 3<>/dev/tcp/127.0.0.1/{PORT}; printf \"GET /snapshot HTTP/1.0\\r\\n\\r\\n\" >&3; cat <&3'"
        );
        let answer = self.sh(&ask)?;
        let (_, body) = answer
            .split_once("\r\n\r\n")
            .with_context(|| answer.clone())?;
        serde_json::from_str(body).context("/snapshot is no snapshot")
    }
}

pub fn are_told_apart(server: &Server, agent: &Agent) -> Result<()> {
    let running = server.spawn(OTHER)?;
    server.sh("for n in $(seq 300); do [ -s /tmp/other ] && exit; sleep 0.1; done; exit 1")?;
    let process = server.sh("cat /tmp/other")?.stdout.trim().to_owned();
    let other = Other {
        server,
        process,
        _running: running,
    };
    // The second server must end, because other checks count the threads of one server.
    finally(
        || each_agent_measures_its_own(&other, agent),
        || {
            other.sh("rpc.nfsd 0")?;
            let end = format!("kill {}; ip netns del other", other.process);
            server.sh(&end).map(drop)
        },
    )
}

fn each_agent_measures_its_own(other: &Other, agent: &Agent) -> Result<()> {
    let server = other.server;
    let program = server.nfscope_path()?;
    let there = server.spawn(&format!(
        "exec nsenter -t {} -m -n {} agent --client --web.listen-address 127.0.0.1:{PORT}",
        other.process,
        program.display()
    ))?;
    server.sh(&format!(
        "for n in $(seq 120); do nsenter -t {} -n bash -c 'exec 3<>/dev/tcp/127.0.0.1/{PORT}; printf \"GET /healthz HTTP/1.0\\r\\n\\r\\n\" >&3; head -n 1 <&3' 2>/dev/null | grep -q ' 200 ' && exit; sleep 1; done; exit 1",
        other.process
    ))?;

    let load =
        |version: &str, times: u32| format!("getattr --clients 4 --times {times} --nfs {version}");
    let mut watch = Watch::begin(server, agent)?;
    let before = other.snapshot()?;
    let (mut here, mut elsewhere) = (Sent::default(), Sent::default());
    let (_, seen) = watch.during(|| {
        for version in ["3", "4.2"] {
            here.add(&server.run_clients(&load(version, 30))?);
            elsewhere.add(&other.run_clients(&load(version, 50))?);
        }
        Ok(())
    })?;
    let now = other.snapshot()?;
    let seen_there = now.since(&before).delta;
    let all_here = agent.snapshot()?;
    for (what, all, seen, sent, threads) in [
        ("here", &all_here, &seen, &here, 8.0),
        ("in the other namespace", &now, &seen_there, &elsewhere, 2.0),
    ] {
        let missed = missed_of(all, "nfsd");
        for (family, sent) in [
            (&family::CLIENT_OPS, &sent.operations),
            (&family::CLIENT_REQUESTS, &sent.requests),
        ] {
            let told = who::by_name(seen, &family.info);
            agree_each(
                &format!("{} {what}", family.info.name),
                &told,
                sent,
                2 * missed,
            )?;
        }
        let exports = who::by_name(seen, &family::EXPORT_OPS.info);
        ensure!(!exports.contains_key("unknown"), "{what}: {exports:?}");
        for version in ["3", "4"] {
            let [kernel, timed] =
                [&family::KERNEL_OPS, &family::TIMED_OPS].map(|f| seen.value(f, [version]));
            let (Some(kernel), Some(timed)) = (kernel, timed) else {
                bail!("{what}, version {version}: {kernel:?} and {timed:?}");
            };
            ensure!(timed > 0.0, "{what}, version {version}: nothing");
            let name = format!("{what}, version {version}");
            agree(&name, timed as u64, kernel as u64, missed)?;
        }
        let lost = seen.value(&family::EVENTS_LOST, ["nfsd", "other_netns"]);
        ensure!(lost > Some(100.0), "{what}: {lost:?} requests elsewhere");
        assert_eq!(all.value(&family::THREADS, ["0"]), Some(threads), "{what}");
    }
    sessions_are_told_apart(other, agent)?;
    finally(
        || state_is_told_apart(other, agent),
        || server.sh("sysctl -q fs.leases-enable=1").map(drop),
    )?;
    there.kill().map(drop)
}

/// Slots and connections of raw clients, compared with each agent's.
fn sessions_are_told_apart(other: &Other, agent: &Agent) -> Result<()> {
    let server = other.server;
    for (here, elsewhere) in [("v4-slots", "v4-session"), ("v4-session", "v4-errors")] {
        let before = [agent.snapshot()?, other.snapshot()?];
        let sent = [server.raw(here)?, other.raw(elsewhere)?];
        let (_, mut seen) = settled(server, &[agent])?;
        let after = [seen.remove(0), other.snapshot()?];
        for (n, place) in ["here", "in the other namespace"].into_iter().enumerate() {
            let seen = after[n].since(&before[n]).delta;
            let missed = missed_of(&after[n], "nfsd");
            sessions::are_those_sent(place, &seen, &sent[n], missed)?;
            let accepted = connections::accepted(&seen);
            connections::counted(&seen, accepted, sent[n].connections, place)?;
        }
    }
    Ok(())
}

/// States, recalls and calls of a client of the other server, compared with each agent's.
fn state_is_told_apart(other: &Other, agent: &Agent) -> Result<()> {
    let server = other.server;
    server.sh("modprobe -a nfs nfsv4; mkdir -p /run/exp/apart; cd /run/exp/apart; for n in 1 2 3; do echo hello >$n; done; sleep 2")?;
    eventually(|| {
        Ok(other
            .snapshot()?
            .value(&family::VIEW_SOURCE_INFO, ["tracepoints"]))
    })
    .context("the agent of the other namespace does not see mounts")?;
    let before = [agent.snapshot()?, other.snapshot()?];
    let trace = Trace::begin(server, &recalls::events(server.kernel()), "")?;
    other.bash(
        "mkdir -p /run/inside; mount -t nfs -o vers=4.2,proto=tcp,hard 127.0.0.1:/ /run/inside",
    )?;
    let held = |kind: &str| -> Result<Option<()>> {
        let list = other.bash(nfs4_state::LIST)?;
        Ok(list.contains(&format!("type: {kind}")).then_some(()))
    };
    eventually(|| {
        other.bash("cat /run/inside/apart/2 >/dev/null")?;
        held("deleg")
    })
    .context("the other server gives no delegation")?;
    // With a delegation the client would keep the lock to itself.
    server.sh("sysctl -q fs.leases-enable=0")?;
    let holder = server.spawn(&format!(
        "exec {} bash -c 'exec 3<>/run/inside/apart/1; flock -x 3; exec sleep 600'",
        other.enter()
    ))?;
    eventually(|| held("lock")).context("the client does not hold its lock")?;
    let both = || {
        Ok([
            server.sh(nfs4_state::LIST)?.stdout,
            other.bash(nfs4_state::LIST)?,
        ])
    };
    let ([listed, _], seen) = nfs4_state::still(both, PartialEq::eq, || {
        Ok([agent.snapshot()?, other.snapshot()?])
    })?;
    for (listed, seen) in listed.iter().zip(&seen) {
        nfs4_state::is_as_listed(listed, seen);
    }
    ensure!(
        listed[1].contains("type: lock") && listed[1].contains("type: deleg"),
        "{listed:?}"
    );
    server.sh("sysctl -q fs.leases-enable=1; echo again >>/run/exp/apart/2; sleep 1")?;
    let traced = Traced::of(&trace.text()?)?;
    println!("{traced:?}");
    ensure!(traced.recalled >= 1, "{traced:?}");
    let now = [agent.snapshot()?, other.snapshot()?];
    for (n, traced) in [Traced::default(), traced].iter().enumerate() {
        recalls::are_as_many(&now[n].since(&before[n]).delta, traced, server.kernel());
    }
    trace.end()?;
    holder.kill()?;

    other.bash("dd if=/dev/zero of=/run/inside/apart/3 bs=4k count=20 oflag=direct status=none; cat /run/inside/apart/*")?;
    let mountstats = || other.sh("cat /proc/self/mountstats");
    let (stats, seen) = settled_by(mountstats, || other.snapshot())?;
    let (mut rpcs, mut missing) = (0.0, 0.0);
    for ((_, op), row) in &stats {
        // RPCs of the mount itself, and of the client that its server's mounts share.
        let told = ["127.0.0.1:/", "127.0.0.1"].map(|mount| {
            seen.value(&family::VIEW_RPCS, [mount, "4.2", op])
                .unwrap_or(0.0)
        });
        let (counted, told) = (row[0] as f64, told.iter().sum::<f64>());
        ensure!(told <= counted, "{op}: {told} RPCs of {counted}");
        missing += counted - told;
        rpcs += counted;
    }
    let skipped = seen
        .value(&family::EVENTS_LOST, ["client", "recursion"])
        .unwrap_or(0.0);
    println!("{rpcs} RPCs by mountstats, {missing} missing, {skipped} runs skipped");
    ensure!(rpcs > 50.0 && missing <= skipped, "{stats:?}");
    other.bash("umount /run/inside").map(drop)
}

/// Counts of raw clients, by address.
#[derive(Debug, Default)]
struct Sent {
    operations: BTreeMap<String, u64>,
    requests: BTreeMap<String, u64>,
}

impl Sent {
    fn add(&mut self, clients: &[ClientReport]) {
        for client in clients {
            for (all, n) in [
                (&mut self.operations, client.operations),
                (&mut self.requests, client.requests),
            ] {
                *all.entry(client.address.to_string()).or_default() += n;
            }
        }
    }
}
