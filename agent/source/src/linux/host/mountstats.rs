//! Sums that the kernel keeps for each NFS mount of this mount namespace: `/proc/self/mountstats` (nfs_show_stats() in fs/nfs/super.c,
//! rpc_clnt_show_stats() in net/sunrpc/stats.c).

use crate::host_table;
use crate::mounts::unescape;

/// The client's own counters.
pub const PATH: &str = "/proc/self/mountstats";

/// An NFS mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountStats {
    /// Source of the mount: `server:/export`.
    pub source: String,
    /// Mount point.
    pub point: String,
    /// Version of NFS: `3`, `4.2`.
    pub version: String,
    /// Procedures of the mount that had an RPC.
    pub ops: Vec<OpStats>,
}

/// A procedure of a mount. Times are milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpStats {
    /// Name of the procedure in lower case.
    pub name: String,
    /// RPCs that ended.
    pub ops: u64,
    /// Requests sent.
    pub transmissions: u64,
    /// Major timeouts.
    pub timeouts: u64,
    /// Bytes sent.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
    /// Time until the request was sent.
    pub backlog: u64,
    /// Time until the reply came.
    pub round_trip: u64,
    /// Time from begin to end.
    pub execute: u64,
    /// RPCs that ended with an error; 0 before Linux 5.3.
    pub errors: u64,
}

/// Reads the file. The reading also makes probe `client` note what is mounted. Empty if the file cannot be read.
pub fn read() -> Vec<MountStats> {
    parse(&host_table::read(PATH).unwrap_or_default())
}

/// Parses the file's text. Leaves out other file systems, and lines of another form.
pub fn parse(text: &str) -> Vec<MountStats> {
    let mut all: Vec<MountStats> = Vec::new();
    let (mut of_nfs, mut in_ops) = (false, false);
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("device ") {
            let mount = mount(rest);
            (of_nfs, in_ops) = (mount.is_some(), false);
            all.extend(mount);
            continue;
        }
        let Some(mount) = all.last_mut().filter(|_| of_nfs) else {
            continue;
        };
        let line = line.trim_start();
        if let Some(options) = line.strip_prefix("opts:") {
            let version = options.split(',').find_map(|o| o.strip_prefix("vers="));
            version.unwrap_or_default().clone_into(&mut mount.version);
        } else if line.starts_with("per-op statistics") {
            in_ops = true;
        } else if in_ops {
            mount.ops.extend(op(line).filter(|op| op.ops > 0));
        }
    }
    all
}

/// `server:/export mounted on /mnt with fstype nfs4 statvers=1.1`
fn mount(line: &str) -> Option<MountStats> {
    let (source, rest) = line.split_once(" mounted on ")?;
    let (point, kind) = rest.rsplit_once(" with fstype ")?;
    let kind = kind.split(' ').next()?;
    ["nfs", "nfs4"].contains(&kind).then(|| MountStats {
        source: unescape(source),
        point: unescape(point),
        version: String::new(),
        ops: Vec::new(),
    })
}

/// `READ: 5 5 0 1000 5000 0 3 3 0`
fn op(line: &str) -> Option<OpStats> {
    let (name, numbers) = line.split_once(':')?;
    let numbers = numbers.split_ascii_whitespace().map(str::parse);
    let numbers: Vec<u64> = numbers.collect::<Result<_, _>>().ok()?;
    let [
        ops,
        transmissions,
        timeouts,
        sent,
        received,
        backlog,
        round_trip,
        execute,
        ref rest @ ..,
    ] = numbers[..]
    else {
        return None;
    };
    Some(OpStats {
        name: name.to_ascii_lowercase(),
        ops,
        transmissions,
        timeouts,
        sent,
        received,
        backlog,
        round_trip,
        execute,
        errors: rest.first().copied().unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text of Linux 6.1, shortened.
    const TEXT: &str = "\
device proc mounted on /proc with fstype proc
device 10.9.0.1:/my\\040exp mounted on /run/c0/v4.2 with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.2,rsize=262144,addr=10.9.0.1
\tage:\t12
\tbytes:\t0 4096 0 0 0 4096 0 1
\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)
\txprt:\ttcp 0 0 1 0 9 14 14 0 14 0 2 0 0
\tper-op statistics
\t        NULL: 1 1 0 44 24 8 0 8 0
\t        READ: 0 0 0 0 0 0 0 0 0
\t       WRITE: 3 4 1 12792 528 2 61 65 0
\t        OPEN: 2 2 0 640 704 0 5 6 1

device tmpfs mounted on /run with fstype tmpfs
device nfs1:/exp mounted on /mnt with fstype nfs statvers=1.1
\topts:\trw,vers=3,rsize=262144
\tper-op statistics
\t     GETATTR: 7 7 0 700 784 1 2 3
\t       bogus: x
";

    #[test]
    fn mounts_and_their_procedures_are_read() {
        let all = parse(TEXT);
        assert_eq!(all.len(), 2);
        let names = |m: &MountStats| (m.source.clone(), m.point.clone(), m.version.clone());
        let first = ("10.9.0.1:/my exp", "/run/c0/v4.2", "4.2");
        assert_eq!(
            names(&all[0]),
            (first.0.into(), first.1.into(), first.2.into())
        );
        let ops: Vec<_> = all[0].ops.iter().map(|op| op.name.as_str()).collect();
        assert_eq!(ops, ["null", "write", "open"]);
        let write = OpStats {
            name: "write".into(),
            ops: 3,
            transmissions: 4,
            timeouts: 1,
            sent: 12_792,
            received: 528,
            backlog: 2,
            round_trip: 61,
            execute: 65,
            errors: 0,
        };
        assert_eq!(all[0].ops[1], write);
        assert_eq!(all[0].ops[2].errors, 1);
        assert_eq!((all[1].version.as_str(), all[1].ops.len()), ("3", 1));
        assert_eq!((all[1].ops[0].ops, all[1].ops[0].errors), (7, 0));
        assert!(parse("").is_empty() && parse("nonsense\ndevice x").is_empty());
    }
}
