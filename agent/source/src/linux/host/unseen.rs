//! Parts of this host's NFS that neither probes nor the kernel's counters show, for `nfscope check`: only those that apply here.

use crate::host_table;
use nfscope_model::host_report::Unseen;
use std::path::Path;

/// Facts that decide the list, as the host has them now.
#[derive(Debug, Default)]
struct Readings {
    /// /proc/fs/nfsd/versions: `-2 +3 +4 +4.1 +4.2`.
    versions: String,
    /// /proc/fs/nfsd/portlist: `tcp 2049`, a line each.
    ports: String,
    /// /proc/net/tls_stat: `TlsCurrRxSw 0`, a line each.
    tls: String,
    /// Module nfs_localio is there (fs/nfs_common/nfslocalio.c, from 6.12 on).
    localio: bool,
    /// /sys/module/nfs/parameters/localio_enabled, of the NFS client.
    client: String,
}

/// Reason for transports other than TCP.
const NO_CLOCK: &str =
    "no clock tells when such a request arrived: nfscope_rpc_no_clock_total counts them";

/// Asks the host.
pub fn list() -> Vec<Unseen> {
    let read = |path| host_table::read(path).unwrap_or_default();
    of(&Readings {
        versions: host_table::read_soon("/proc/fs/nfsd/versions").unwrap_or_default(),
        ports: host_table::read_soon("/proc/fs/nfsd/portlist").unwrap_or_default(),
        tls: read("/proc/net/tls_stat"),
        localio: Path::new("/sys/module/nfs_localio").exists(),
        client: read("/sys/module/nfs/parameters/localio_enabled"),
    })
}

fn of(host: &Readings) -> Vec<Unseen> {
    let serves = |version: &str| {
        let mut all = host.versions.split_whitespace();
        all.any(|v| v.strip_prefix('+') == Some(version))
    };
    let listens = |transport: &str| {
        let mut lines = host.ports.lines();
        lines.any(|l| l.split_whitespace().next() == Some(transport))
    };
    let encrypted = host.tls.lines().any(|line| {
        let mut words = line.split_whitespace();
        let (name, n) = (words.next(), words.next());
        matches!(name, Some("TlsCurrRxSw" | "TlsCurrRxDevice")) && n.is_some_and(|n| n != "0")
    });
    let all = [
        (
            host.localio && host.client.trim() == "Y",
            "LOCALIO",
            "the NFS client of this host can read and write what this server exports without a request; neither the kernel's NFS server nor nfscope counts that, the client's /proc/self/mountstats does (parameter localio_enabled of module nfs turns it off)",
        ),
        (
            serves("4.2"),
            "asynchronous COPY",
            "where the kernel copies asynchronously (some releases never do), a COPY ends when it has begun, and the copy itself is not timed",
        ),
        (
            serves("2"),
            "NFSv2",
            "its operations are not timed; the kernel counts them (line proc2 of /proc/net/rpc/nfsd)",
        ),
        (listens("udp"), "queue time over UDP", NO_CLOCK),
        (listens("rdma"), "queue time over RDMA", NO_CLOCK),
        (
            encrypted,
            "queue time over TLS",
            "this host has TLS sockets. Over one that is NFS's a request counts as arrived when the TLS record that ends it is complete and those before it have been read",
        ),
    ];
    let here = all.into_iter().filter(|(applies, ..)| *applies);
    here.map(|(_, what, why)| Unseen {
        what: what.into(),
        why: why.into(),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(host: &Readings) -> Vec<String> {
        of(host).into_iter().map(|u| u.what).collect()
    }

    #[test]
    fn only_what_applies_is_said() {
        assert!(names(&Readings::default()).is_empty());
        let usual = Readings {
            versions: "-2 +3 +4 -4.0 +4.1 +4.2\n".into(),
            ports: "tcp 2049\ntcp 2049\n".into(),
            tls: "TlsCurrTxSw                     \t0\nTlsCurrRxSw                     \t0\n"
                .into(),
            localio: true,
            client: String::new(),
        };
        assert_eq!(names(&usual), ["asynchronous COPY"]);
        let all = Readings {
            versions: "+2 +3 +4 +4.1 +4.2\n".into(),
            ports: "rdma 20049\nudp 2049\ntcp 2049\n".into(),
            tls: "TlsCurrRxSw                     \t3\n".into(),
            client: "Y\n".into(),
            ..usual
        };
        assert_eq!(
            names(&all),
            [
                "LOCALIO",
                "asynchronous COPY",
                "NFSv2",
                "queue time over UDP",
                "queue time over RDMA",
                "queue time over TLS"
            ]
        );
    }
}
