//! NFS over RDMA, on the kernel's software device (drivers/infiniband/sw/rxe): operations, bytes, connections and clients are counted
//! as over TCP, and no request has a queue time.

use anyhow::{Result, ensure};
use lab::reconcile::{self, assert_same_operations};
use lab::{Agent, Server};
use nfscope_model::{Snapshot, family as f};

/// The server's end of the link to its first client. Its programs mount over it, because the device knows no other network namespace.
const LINK: &str = "s0";
const MOUNT: &str = "/run/rdma";

pub fn is_counted(server: &Server, agent: &Agent) -> Result<()> {
    server.clients().try_for_each(|c| c.unmount_all())?;
    // The server's own sockets for another transport.
    server.sh(&format!(
        "set -e; modprobe rdma_rxe; modprobe rpcrdma; mkdir -p {MOUNT}
         rdma link add rxe0 type rxe netdev {LINK}
         echo 'rdma 20049' >/proc/fs/nfsd/portlist"
    ))?;
    let told = (["3", "4.2"].into_iter()).try_for_each(|version| told(server, agent, version));
    server.sh(&format!("! mountpoint -q {MOUNT} || umount -f {MOUNT}"))?;
    server.nfsd_stop()?;
    server.sh("rdma link delete rxe0")?;
    server.nfsd_start()?;
    told
}

fn told(server: &Server, agent: &Agent, version: &str) -> Result<()> {
    let address = server.sh(&format!("ip -4 -o addr show {LINK}"))?.stdout;
    let address = address.split(['/', ' ']).find(|word| word.contains('.'));
    let address = address.unwrap_or_default();
    let path = if version == "3" { "/run/exp" } else { "/" };
    let before = reconcile::settled(server, &[agent])?;
    server.sh(&format!(
        "mount -t nfs -o vers={version},nolock,proto=rdma,port=20049,hard {address}:{path} {MOUNT}"
    ))?;
    // WRITEs and READs that have more than a message's worth, and small ones.
    server.sh(&format!(
        "set -e; cd {MOUNT}
         for i in {{1..20}}; do echo $i >file-$i; done; sync .
         dd if=/dev/zero of=large bs=256k count=8 oflag=direct status=none
         dd if=large of=/dev/null bs=256k iflag=direct status=none"
    ))?;
    let open = reconcile::settled(server, &[agent])?;
    let (counted, seen) = reconcile::window(&before, &open, 0);
    println!(
        "NFSv{version} over RDMA: {} operations",
        counted.operations()
    );
    let connections = |now: &Snapshot, seen: &Snapshot| {
        [
            now.value(&f::CONNECTIONS, ["rdma"]),
            seen.value(&f::CONNECTIONS_ACCEPTED, ["rdma"]),
            seen.value(&f::CONNECTIONS_CLOSED, ["rdma", "client"]),
            seen.value(&f::CONNECTIONS_ACCEPTED, ["tcp"]),
        ]
    };
    let skipped = reconcile::lost(&seen).into_iter();
    let skipped: f64 = (skipped.filter(|(why, _)| why == "nfsd recursion"))
        .map(|(_, n)| n)
        .sum();
    let is = connections(&open.1[0], &seen);
    ensure!(
        is == [1.0, 1.0, 0.0, 0.0].map(Some) || skipped > 0.0,
        "one connection is open: {is:?}"
    );
    assert_same_operations("over RDMA", &counted, &seen);
    ensure!(counted.bytes_written > 2 << 20 && counted.bytes_read >= 2 << 20);
    for (op, bytes) in [
        ("write", counted.bytes_written),
        ("read", counted.bytes_read),
    ] {
        let told = reconcile::merged(&seen, &f::IO_SIZE.info, |l| {
            l.last().is_some_and(|l| l == op)
        });
        let told = told.map_or(0.0, |h| h.sum);
        ensure!(told == bytes as f64, "{told} of {bytes} bytes of {op}");
    }
    // No clock tells when a request arrived.
    let requests = reconcile::merged(&seen, &f::RPC_DURATION.info, |_| true);
    let requests = requests.map_or(0, |h| h.count());
    let queued = reconcile::merged(&seen, &f::RPC_QUEUE.info, |_| true);
    ensure!(queued.is_none_or(|h| h.count() == 0), "queue times");
    let without = seen.value(&f::RPC_NO_CLOCK, []);
    ensure!(
        without == Some(requests as f64),
        "{without:?} of {requests} requests without a clock"
    );
    let of_client = seen.value(&f::CLIENT_REQUESTS, [address]);
    ensure!(
        of_client == Some(requests as f64) || skipped > 0.0,
        "{address}: {of_client:?} of {requests} requests"
    );

    server.sh(&format!("umount {MOUNT}"))?;
    let closed = reconcile::settled(server, &[agent])?;
    let (counted, seen) = reconcile::window(&open, &closed, 0);
    assert_same_operations("at the end of the mount", &counted, &seen);
    let is = connections(&closed.1[0], &seen);
    ensure!(
        is == [0.0, 0.0, 1.0, 0.0].map(Some) || skipped > 0.0,
        "the connection is closed: {is:?}, {:?}",
        seen.numbers(&f::CONNECTIONS_CLOSED)
            .filter(|(_, n)| *n > 0.0)
            .collect::<Vec<([&str; 2], f64)>>()
    );
    Ok(())
}
