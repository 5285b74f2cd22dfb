//! NFS over RDMA, on the kernel's software device (drivers/infiniband/sw/rxe): operations, bytes, connections and clients are counted
//! as over TCP, and no request has a queue time.

use anyhow::{Result, ensure};
use lab::reconcile::{self, missed};
use lab::{Agent, Server};
use nfscope_model::{Snapshot, family as f};

/// Server's end of the link to its first client. The mount is made on the server, because the device knows no other network
/// namespace.
const LINK: &str = "s0";
const MOUNT: &str = "/run/rdma";
/// Bytes of the largest call.
const CALL: u64 = 256 << 10;

pub fn is_counted(server: &Server, agent: &Agent) -> Result<()> {
    server.clients().try_for_each(|c| c.unmount_all())?;
    let told = listens(server)
        .and_then(|()| told(server, agent, "3"))
        .and_then(|()| told(server, agent, "4.2"));
    // Clients of later checks need TCP, even after a failure here.
    let cleaned = [
        server.sh(&format!("! mountpoint -q {MOUNT} || umount -f {MOUNT}")),
        server.sh("rpc.nfsd 0"),
        server.sh("! rdma link show rxe0/1 2>/dev/null || rdma link delete rxe0"),
    ];
    let serves = server.nfsd_start();
    told.and(cleaned.into_iter().try_for_each(|step| step.map(drop)))
        .and(serves)
}

fn listens(server: &Server) -> Result<()> {
    server.sh(&format!(
        "set -e; modprobe rdma_rxe; modprobe rpcrdma; mkdir -p {MOUNT}
         rdma link add rxe0 type rxe netdev {LINK}
         echo 'rdma 20049' >/proc/fs/nfsd/portlist"
    ))?;
    Ok(())
}

/// Runs a load over RDMA and compares its counts. It must not panic, so that the caller can clean up.
fn told(server: &Server, agent: &Agent, version: &str) -> Result<()> {
    let address = server.sh(&format!("ip -4 -o addr show {LINK}"))?.stdout;
    let address = address.split(['/', ' ']).find(|word| word.contains('.'));
    let address = address.unwrap_or_default();
    let path = if version == "3" { "/run/exp" } else { "/" };
    let before = reconcile::settled(server, &[agent])?;
    server.sh(&format!(
        "mount -t nfs -o vers={version},nolock,proto=rdma,port=20049,hard {address}:{path} {MOUNT}"
    ))?;
    // WRITEs and READs that are larger than a message, and small ones.
    server.sh(&format!(
        "set -e; cd {MOUNT}
         for i in {{1..20}}; do echo $i >file-$i; done; sync .
         dd if=/dev/zero of=large bs=256k count=8 oflag=direct status=none
         dd if=large of=/dev/null bs=256k iflag=direct status=none"
    ))?;
    let open = reconcile::settled(server, &[agent])?;
    let (counted, seen) = reconcile::window(&before, &open, 0);
    let skipped = missed(agent, "nfsd")?;
    println!(
        "NFSv{version} over RDMA: {} operations, {skipped} programs skipped",
        counted.operations()
    );
    reconcile::same_operations(&counted, &seen, skipped)?;
    let late = skipped as f64;
    ensure!(counted.bytes_written > 2 << 20 && counted.bytes_read >= 2 << 20);
    for (op, bytes) in [
        ("write", counted.bytes_written),
        ("read", counted.bytes_read),
    ] {
        let told = reconcile::merged(&seen, &f::IO_SIZE.info, |l| {
            l.last().is_some_and(|l| l == op)
        });
        let told = told.map_or(0.0, |h| h.sum);
        ensure!(
            (told - bytes as f64).abs() <= late * CALL as f64,
            "{told} of {bytes} bytes of {op}"
        );
    }
    // Requests over RDMA have no time of arrival.
    let requests = reconcile::merged(&seen, &f::RPC_DURATION.info, |_| true);
    let requests = requests.map_or(0, |h| h.count()) as f64;
    let queued = reconcile::merged(&seen, &f::RPC_QUEUE.info, |_| true);
    ensure!(queued.is_none_or(|h| h.count() == 0), "queue times");
    let without = seen.value(&f::RPC_NO_CLOCK, []);
    ensure!(
        without.is_some_and(|n| (n - requests).abs() <= late),
        "{without:?} of {requests} requests without a clock"
    );
    let of_client = seen.value(&f::CLIENT_REQUESTS, [address]).unwrap_or(0.0);
    ensure!(
        of_client <= requests && of_client + late >= requests,
        "{address}: {of_client} of {requests} requests"
    );
    are(Ends::Open, &open.1[0], &seen, late)?;

    server.sh(&format!("umount {MOUNT}"))?;
    let closed = reconcile::settled(server, &[agent])?;
    let (counted, seen) = reconcile::window(&open, &closed, 0);
    let skipped = missed(agent, "nfsd")?;
    reconcile::same_operations(&counted, &seen, skipped)?;
    are(Ends::Closed, &closed.1[0], &seen, skipped as f64)
}

/// State of the mount's only connection at the end of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    Open,
    Closed,
}

fn are(ends: Ends, now: &Snapshot, seen: &Snapshot, skipped: f64) -> Result<()> {
    let open = now.value(&f::CONNECTIONS, ["rdma"]);
    let accepted = seen
        .value(&f::CONNECTIONS_ACCEPTED, ["rdma"])
        .unwrap_or(0.0);
    let tcp = seen.value(&f::CONNECTIONS_ACCEPTED, ["tcp"]);
    let closings: Vec<([&str; 2], f64)> = seen
        .numbers(&f::CONNECTIONS_CLOSED)
        .filter(|(_, n)| *n > 0.0)
        .collect();
    let (is_open, begun, ended) = match ends {
        Ends::Open => (1.0, 1.0, 0.0),
        Ends::Closed => (0.0, 0.0, 1.0),
    };
    let by_client: f64 = closings.iter().map(|(_, n)| n).sum();
    let others = closings.iter().any(|(l, _)| *l != ["rdma", "client"]);
    let is = |n: f64, truth: f64| n <= truth && n + skipped >= truth;
    ensure!(
        open == Some(is_open)
            && tcp == Some(0.0)
            && is(accepted, begun)
            && is(by_client, ended)
            && !others,
        "{ends:?}: {open:?} open, {accepted} and {tcp:?} over TCP accepted, {closings:?} closed"
    );
    Ok(())
}
