//! Servers of two network namespaces, with the same addresses and the same export: each agent measures that of its own.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use lab::raw::clients::ClientReport;
use lab::{Agent, Running, Server};
use nfscope_model::{Snapshot, family};

use crate::phases::Watch;

/// A second server with two threads, in a namespace `other` and a mount namespace of its own.
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
    fn sh(&self, script: &str) -> Result<String> {
        let line = format!("nsenter -t {} -m -n {script}", self.process);
        Ok(self.server.sh(&line)?.stdout)
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
    let program = server.nfscope_path()?;
    let there = server.spawn(&format!(
        "exec nsenter -t {} -m -n {} agent --web.listen-address 127.0.0.1:{PORT}",
        other.process,
        program.display()
    ))?;
    server.sh(&format!(
        "for n in $(seq 600); do nsenter -t {} -n bash -c 'exec 3<>/dev/tcp/127.0.0.1/{PORT}; printf \"GET /healthz HTTP/1.0\\r\\n\\r\\n\" >&3; head -n 1 <&3' 2>/dev/null | grep -q ' 200 ' && exit; sleep 0.2; done; exit 1",
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
    for (what, seen, sent, threads) in [
        ("here", &seen, &here, 8.0),
        ("in the other namespace", &seen_there, &elsewhere, 2.0),
    ] {
        for (family, sent) in [
            (&family::CLIENT_OPS, &sent.operations),
            (&family::CLIENT_REQUESTS, &sent.requests),
        ] {
            let told = crate::phases::who::by_name(seen, &family.info);
            assert_eq!(&told, sent, "{} {what}", family.info.name);
        }
        let exports = crate::phases::who::by_name(seen, &family::EXPORT_OPS.info);
        ensure!(!exports.contains_key("unknown"), "{what}: {exports:?}");
        for version in ["3", "4"] {
            let [kernel, timed] =
                [&family::KERNEL_OPS, &family::TIMED_OPS].map(|f| seen.value(f, [version]));
            ensure!(
                kernel == timed && timed > Some(0.0),
                "{what}, version {version}: {kernel:?} and {timed:?}"
            );
        }
        let lost = seen.value(&family::EVENTS_LOST, ["nfsd", "other_netns"]);
        ensure!(lost > Some(100.0), "{what}: {lost:?} requests elsewhere");
        let running = match what {
            "here" => agent.snapshot()?.value(&family::THREADS, ["0"]),
            _ => now.value(&family::THREADS, ["0"]),
        };
        assert_eq!(running, Some(threads), "{what}");
    }
    there.kill()?;
    other.sh("rpc.nfsd 0")?;
    server
        .sh(&format!("kill {}; ip netns del other", other.process))
        .map(drop)
}

/// By client.
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
