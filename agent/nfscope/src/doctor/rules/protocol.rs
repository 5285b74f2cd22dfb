//! Protocol versions, transports, block size, and lease and grace times.

use crate::doctor::answer::Answer;
use crate::doctor::host::Missing;
use crate::doctor::rule::Rule;

const MIB: u64 = 1 << 20;

/// Maximum size of READ and WRITE.
pub const BLOCK_SIZE: Rule = Rule {
    name: "block size",
    why: "It is the most that one READ or WRITE carries, whatever rsize and wsize a client asks for. The kernel takes less than \
          1 MiB on hosts with less than 4 GiB of memory.",
    source: "fs/nfsd/nfssvc.c, nfsd_get_default_max_blksize()",
    look: |host| match host.number("/proc/fs/nfsd/max_block_size") {
        Err(e) => vec![e.answer()],
        Ok(0) => vec![Answer::unknown(
            "not set before the server starts",
            "start the server, and run `nfscope doctor` again",
        )],
        Ok(n) if n < MIB => vec![Answer::consider(
            format!("READ and WRITE carry at most {} KiB", n >> 10),
            "write 1048576 to /proc/fs/nfsd/max_block_size before the server starts; each thread then takes that much memory",
        )],
        Ok(n) => vec![Answer::good(format!(
            "READ and WRITE carry up to {} KiB",
            n >> 10
        ))],
    },
};

/// NFS versions that are served.
pub const VERSIONS: Rule = Rule {
    name: "versions",
    why: "NFSv4.1 and 4.2 have sessions: a request that is sent again is never executed twice. NFSv2 has file sizes of 32 bits.",
    source: "RFC 8881, section 2.10; RFC 1094; /proc/fs/nfsd/versions",
    look: |host| {
        let text = match host.text("/proc/fs/nfsd/versions") {
            Ok(text) => text,
            Err(e) => return vec![e.answer()],
        };
        let words: Vec<_> = text.split_ascii_whitespace().collect();
        let has = |word: &str| words.contains(&word);
        let mut answers = Vec::new();
        if has("+2") {
            answers.push(Answer::change(
                "NFSv2 is served",
                "set vers2=n in section [nfsd] of /etc/nfs.conf",
            ));
        }
        // Kernels without NFSv4 do not list it.
        if !words.is_empty() && !has("+4.1") && !has("+4.2") {
            answers.push(Answer::consider(
                "neither NFSv4.1 nor 4.2 is served",
                "set vers4=y, vers4.1=y and vers4.2=y in section [nfsd] of /etc/nfs.conf",
            ));
        }
        if answers.is_empty() {
            let on = words.iter().filter_map(|w| w.strip_prefix('+'));
            answers.push(match on.clone().next() {
                Some(_) => Answer::good(on.collect::<Vec<_>>().join(", ")),
                None => Answer::unknown(
                    "no version is served while the server does not run",
                    "start the server, and run `nfscope doctor` again",
                ),
            });
        }
        answers
    },
};

/// Server that listens on UDP.
pub const UDP: Rule = Rule {
    name: "udp",
    why: "At a gigabit and more, fragments of different datagrams can be joined to one: data can be corrupted without an error.",
    source: "nfs(5), \"Using NFS over UDP on high-speed links\"",
    look: |host| match host.text("/proc/fs/nfsd/portlist") {
        Err(e) => vec![e.answer()],
        Ok(list) if list.trim().is_empty() => Vec::new(),
        Ok(list) if list.lines().any(|l| l.starts_with("udp ")) => vec![Answer::change(
            "the server listens on UDP",
            "set udp=n in section [nfsd] of /etc/nfs.conf; clients that mount with proto=udp must change first",
        )],
        Ok(_) => vec![Answer::good("the server does not listen on UDP")],
    },
};

/// Grace period shorter than a lease.
pub const GRACE: Rule = Rule {
    name: "grace",
    why: "After a restart clients claim their locks again. One that noticed the restart at the end of its lease is too late where \
          the grace period is shorter, and loses its locks.",
    source: "RFC 8881, section 8.4.2",
    look: |host| {
        let file = |name: &str| host.number(&format!("/proc/fs/nfsd/{name}"));
        let (lease, grace) = match (file("nfsv4leasetime"), file("nfsv4gracetime")) {
            (Ok(lease), Ok(grace)) => (lease, grace),
            // Kernels without NFSv4 have no such files.
            (Err(Missing::Absent(_)), _) => return Vec::new(),
            (Err(e), _) | (_, Err(e)) => return vec![e.answer()],
        };
        let says = format!("lease {lease} s, grace period {grace} s");
        match grace < lease {
            true => vec![Answer::change(
                says,
                format!("set grace-time={lease} or more in section [nfsd] of /etc/nfs.conf"),
            )],
            false => vec![Answer::good(says)],
        }
    },
};
