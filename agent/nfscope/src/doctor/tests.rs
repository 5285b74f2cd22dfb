//! Rules on synthetic hosts.

use super::answer::{Finding, State};
use super::{Host, examine, exit_code, render};
use nfscope_model::host_report::Exported;
use std::fs;
use std::path::PathBuf;

/// Temporary directory with the files of a host.
pub(super) struct Files(tempfile::TempDir);

impl Files {
    fn of(files: &[(&str, &str)]) -> Files {
        let folder = Files(tempfile::tempdir().unwrap());
        for (path, text) in files {
            folder.add(path, text);
        }
        folder
    }

    pub(super) fn add(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path.trim_start_matches('/'))
    }

    pub(super) fn host(&self) -> Host {
        Host::below(self.0.path())
    }

    pub(super) fn examine(&self) -> Vec<Finding> {
        examine(&self.host())
    }
}

/// State and text of the answers of a rule.
pub(super) fn said(findings: &[Finding], rule: &str) -> Vec<(State, String)> {
    let of = findings.iter().filter(|f| f.rule == rule);
    of.map(|f| (f.state, f.says.clone())).collect()
}

/// Host without findings, with one client.
pub(super) fn good() -> Files {
    let files = Files::of(&[
        ("/proc/fs/nfsd/threads", "16\n"),
        ("/proc/fs/nfsd/pool_threads", "16\n"),
        ("/proc/fs/nfsd/max_connections", "0\n"),
        ("/proc/fs/nfsd/max_block_size", "1048576\n"),
        ("/proc/fs/nfsd/versions", "-2 +3 +4 +4.1 +4.2\n"),
        ("/proc/fs/nfsd/portlist", "rdma 20049\ntcp 2049\n"),
        ("/proc/fs/nfsd/nfsv4leasetime", "90\n"),
        ("/proc/fs/nfsd/nfsv4gracetime", "90\n"),
        (
            "/proc/fs/nfsd/clients/7/info",
            "clientid: 0x1\naddress: \"10.9.1.2:800\"\nstatus: confirmed\nname: \"Linux NFSv4.2 web03\"\n\
             minor version: 2\ncallback state: UP\nsession slots: 64\n",
        ),
        ("/sys/devices/system/node/node0/cpulist", "0-3\n"),
        ("/sys/module/sunrpc/parameters/pool_mode", "global\n"),
        (
            "/proc/net/tcp",
            "  sl  local_address rem_address   st\n   0: 00000000:0801 00000000:0000 0A\n\
             \u{20}  1: 0100090A:0801 0201090A:0320 01\n   2: 0100090A:0016 0201090A:0321 01\n",
        ),
        ("/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
        ("/proc/sys/net/ipv4/tcp_wmem", "4096\t16384\t4194304\n"),
        ("/proc/sys/net/ipv4/tcp_window_scaling", "1\n"),
        ("/proc/sys/net/ipv4/tcp_sack", "1\n"),
        ("/proc/sys/net/ipv4/tcp_moderate_rcvbuf", "1\n"),
        ("/proc/sys/vm/zone_reclaim_mode", "0\n"),
        ("/proc/sys/vm/vfs_cache_pressure", "100\n"),
        (
            "/proc/version",
            "Linux version 7.2.13+deb14-amd64 (a@b) (gcc) #1 SMP Debian 7.2.13-1 (2026-11-01)\n",
        ),
        ("/var/lib/nfs/etab", "/srv\t*(rw,sync,no_subtree_check)\n"),
        (
            "/proc/self/mountinfo",
            "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
             39 27 253:1 / /srv rw,noatime - xfs /dev/sdb rw,logdev=/dev/nvme0n1\n",
        ),
        ("/sys/class/block/nvme0n1/queue/rotational", "0\n"),
        ("/sys/class/net/eth0/speed", "10000\n"),
        ("/sys/class/net/eth0/operstate", "up\n"),
        ("/sys/class/net/eth0/device/vendor", "0x8086\n"),
        ("/sys/class/net/veth0/speed", "40000\n"),
        ("/sys/class/net/veth0/operstate", "up\n"),
        (
            "/sys/devices/system/cpu/cpufreq/policy0/scaling_driver",
            "intel_pstate\n",
        ),
        (
            "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor",
            "powersave\n",
        ),
    ]);
    files.add("/sys/devices/system/node/online", "0\n");
    files
}

pub(super) fn exported(fs: &str, volume: &str, separate: Option<bool>, log: &str) -> Exported {
    Exported {
        path: "/srv".into(),
        fs: fs.into(),
        volume: volume.into(),
        separate,
        log: log.into(),
        ok: true,
        ..Exported::default()
    }
}

#[test]
fn a_server_as_it_should_be_has_nothing_to_change() {
    let files = good();
    let mut host = files.host();
    host.exported = vec![exported("xfs", "sdb", Some(true), "on nvme0n1")];
    host.sockets = Ok("0 0 10.9.0.1:2049 10.9.1.2:800\n\t cubic rtt:0.3/0.1 minrtt:0.2\n".into());
    let findings = examine(&host);
    let pressing = findings.iter().filter(|f| f.state < State::Unknown);
    assert_eq!(pressing.collect::<Vec<_>>(), Vec::<&Finding>::new());
    let unknown: Vec<_> = (findings.iter())
        .filter(|f| f.state == State::Unknown)
        .map(|f| f.rule)
        .collect();
    assert_eq!(unknown, ["mounts"], "clients do not tell their options");
    assert_eq!(exit_code(&findings), 0);
    let page = render::render("nfs1", &findings, false);
    assert!(
        page.starts_with("nfs1: 0 to change, 0 to consider, 1 not known, "),
        "{page}"
    );
    let log = said(&findings, "log");
    assert_eq!(
        log,
        [(
            State::Good,
            "/srv: xfs on sdb, log on nvme0n1, which is no rotating disk".into()
        )]
    );
}

/// Each row replaces one file of the good host.
#[test]
fn each_rule_finds_what_it_is_for() {
    use State::{Change, Consider, Unknown};
    let nfsd = |file: &str| format!("/proc/fs/nfsd/{file}");
    for (file, text, rule, state, part) in [
        (nfsd("threads"), "1\n", "threads", Change, "one thread"),
        (
            nfsd("threads"),
            "0\n",
            "threads",
            Unknown,
            "no NFS server runs",
        ),
        (
            nfsd("pool_threads"),
            "8 0 8 0\n",
            "pools",
            Change,
            "2 of 4 pools",
        ),
        (
            nfsd("max_connections"),
            "1\n",
            "connections",
            Change,
            "1 of at most 1",
        ),
        (
            nfsd("max_block_size"),
            "262144\n",
            "block size",
            Consider,
            "256 KiB",
        ),
        (
            nfsd("versions"),
            "+2 +3 +4 +4.1\n",
            "versions",
            Change,
            "NFSv2",
        ),
        (nfsd("versions"), "+3 -4\n", "versions", Consider, "neither"),
        (
            nfsd("portlist"),
            "udp 2049\ntcp 2049\n",
            "udp",
            Change,
            "listens on UDP",
        ),
        (
            nfsd("nfsv4gracetime"),
            "10\n",
            "grace",
            Change,
            "grace period 10 s",
        ),
        (
            nfsd("clients/7/info"),
            "address: \"10.9.1.2:800\"\nminor version: 0\ncallback state: DOWN\n",
            "callbacks",
            Change,
            "10.9.1.2:800 (DOWN, NFSv4.0)",
        ),
        (
            nfsd("clients/7/info"),
            "minor version: 0\n",
            "mounts",
            Consider,
            "1 client of NFSv4.0",
        ),
        (
            nfsd("clients/7/info"),
            "minor version: 2\nsession slots: 1 64\n",
            "slots",
            Consider,
            "1 session of 2",
        ),
        (
            nfsd("clients/7/info"),
            "minor version: 2\n",
            "slots",
            Unknown,
            "does not list",
        ),
        (
            "/var/lib/nfs/etab".into(),
            "/srv\t10.0.0.0/8(rw,async,subtree_check)\n",
            "async",
            Change,
            "/srv to 10.0.0.0/8",
        ),
        (
            "/var/lib/nfs/etab".into(),
            "/srv\t*(rw,sync,subtree_check)\n",
            "subtree check",
            Consider,
            "/srv to *",
        ),
        (
            "/proc/self/mountinfo".into(),
            "39 27 253:1 / /srv rw - ext4 /dev/sdb rw,nobarrier\n",
            "barrier",
            Consider,
            "/srv (ext4)",
        ),
        (
            "/proc/self/mountinfo".into(),
            "39 27 253:1 / /srv rw - ext4 /dev/sdb rw\n",
            "atime",
            Consider,
            "/srv (ext4)",
        ),
        (
            "/proc/sys/net/ipv4/tcp_window_scaling".into(),
            "0\n",
            "tcp",
            Change,
            "net.ipv4.tcp_window_scaling=0",
        ),
        (
            "/proc/sys/vm/zone_reclaim_mode".into(),
            "1\n",
            "zone reclaim",
            Change,
            "=1",
        ),
        (
            "/proc/sys/vm/vfs_cache_pressure".into(),
            "0\n",
            "inode cache",
            Change,
            "=0",
        ),
        (
            "/sys/devices/system/cpu/cpufreq/policy0/scaling_driver".into(),
            "acpi-cpufreq\n",
            "cpu frequency",
            Change,
            "1 of 1",
        ),
        (
            "/proc/version".into(),
            "Linux version 6.12.10 (a@b) #1\n",
            "kernel bugs",
            Consider,
            "may have CVE-2026-31402",
        ),
        (
            "/proc/version".into(),
            "Linux version 5.14.0-503.el9 (a@b) #1\n",
            "kernel bugs",
            Unknown,
            "not known",
        ),
        (
            "/proc/version".into(),
            "Linux version 5.4.300 (a@b) #1\n",
            "kernel bugs",
            Unknown,
            "it is not known whether Linux 5.4.300 has CVE-2025-21795",
        ),
    ] {
        let files = good();
        files.add(&file, text);
        let found = said(&files.examine(), rule);
        assert!(
            found
                .iter()
                .any(|(s, says)| *s == state && says.contains(part)),
            "{file} with {text:?}: {found:?}"
        );
    }
}

/// Async is harmless on a read-only export, and a bug of NFSv4.0 is harmless on a server without it.
#[test]
fn what_does_no_harm_is_not_told() {
    let files = good();
    files.add("/var/lib/nfs/etab", "/iso\t*(ro,async,no_subtree_check)\n");
    assert_eq!(said(&files.examine(), "async")[0].0, State::Good);
    files.add("/proc/version", "Linux version 6.12.50 (a@b) #1\n");
    let fixed = "Linux 6.12.50 has the fixes of CVE-2025-21795, CVE-2024-53217";
    let bugs = said(&files.examine(), "kernel bugs");
    assert_eq!(bugs[0].0, State::Consider);
    assert_eq!(bugs[1..], [(State::Good, fixed.to_owned())]);
    // A bug of a version that is not served is not reported as fixed.
    files.add("/proc/fs/nfsd/versions", "+3 +4 -4.0 +4.1 +4.2\n");
    let not_served = "CVE-2026-31402 needs NFSv4.0, which is not served";
    assert_eq!(
        said(&files.examine(), "kernel bugs"),
        [fixed, not_served].map(|text| (State::Good, text.to_owned()))
    );
    // Pool mode `global` matters only with several NUMA nodes.
    files.add("/sys/devices/system/node/node1/cpulist", "4-7\n");
    assert_eq!(said(&files.examine(), "pool mode")[0].0, State::Consider);
}

#[test]
fn buffers_are_held_against_bandwidth_and_delay() {
    let files = good();
    let with = |trip: &str| {
        let mut host = files.host();
        host.sockets = Ok(format!(
            "0 0 10.9.0.1:2049 10.9.1.3:801\n\t cubic minrtt:0.1\n\
             0 0 10.9.0.1:2049 10.9.1.2:800\n\t cubic rtt:50/1 minrtt:{trip}\n"
        ));
        examine(&host)
    };
    // 4 MiB per 40 ms are 105 MB/s; the link has 1.25 GB/s.
    let far = with("40");
    let (state, says) = &said(&far, "tcp buffers")[0];
    assert_eq!(*state, State::Consider);
    assert!(
        says.contains(
            "40.0 ms to 10.9.1.2 one connection carries at most 105 MB/s; eth0 has 1.25 GB/s"
        ),
        "{says}"
    );
    let how = &far.iter().find(|f| f.rule == "tcp buffers").unwrap().how;
    assert!(how.contains("to 96 MiB"), "{how}");
    assert_eq!(said(&with("0.3"), "tcp buffers")[0].0, State::Good);
    assert_eq!(
        said(&with("nonsense"), "tcp buffers")[0].0,
        State::Good,
        "the other client is near"
    );
    files.add("/sys/class/net/eth0/speed", "-1\n");
    assert_eq!(said(&with("40"), "tcp buffers")[0].0, State::Unknown);
    assert_eq!(
        said(&files.examine(), "tcp buffers")[0].0,
        State::Unknown,
        "no `ss`"
    );
}

/// No advice for a host without a server, or with unreadable files.
#[test]
fn nothing_is_advised_where_nothing_is_known() {
    let findings = Files::of(&[]).examine();
    assert!(
        findings.iter().all(|f| f.state == State::Unknown),
        "{findings:?}"
    );
    assert_eq!(exit_code(&findings), 1);
    let page = render::render("nfs1", &findings, false);
    assert!(
        page.contains("?        threads        /proc/fs/nfsd/threads is not there"),
        "{page}"
    );
    // Text that is no number is not read as 0.
    let files = good();
    files.add("/proc/fs/nfsd/threads", "many\n");
    assert_eq!(said(&files.examine(), "threads")[0].0, State::Unknown);
}

#[test]
fn every_rule_has_a_name_a_reason_and_a_source() {
    let mut names = std::collections::BTreeSet::new();
    for rule in super::rules::ALL {
        assert!(names.insert(rule.name), "{}", rule.name);
        for text in [rule.why, rule.source] {
            assert!(
                text.len() > 10 && !text.contains("  "),
                "{}: {text:?}",
                rule.name
            );
        }
    }
}
