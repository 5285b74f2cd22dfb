//! Counters of one mount in the kernel's client: `/proc/self/mountstats`.

use anyhow::Context;
use nfscope_source::mounts::unescape;
use nfscope_source::{host_table, lossless};
use std::collections::BTreeMap;
use std::path::Path;

const PATH: &str = "/proc/self/mountstats";

/// RPCs of a mount since it was made.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MountStats {
    /// Completed RPCs, by procedure.
    pub rpcs: BTreeMap<String, u64>,
    /// Retransmitted RPCs.
    pub retransmissions: u64,
    /// Sum of the RPCs' times from sending to reply.
    pub round_trip_seconds: f64,
    /// The kind of pNFS layouts that the mount asks for, as the kernel names it: `LAYOUT_SCSI`. (fs/nfs/super.c, show_pnfs())
    pub pnfs: Option<String>,
}

impl MountStats {
    /// Reads the counters of the mount at this directory.
    ///
    /// # Errors
    /// When the kernel has no counters of an NFS mount there.
    pub fn read(at: &Path) -> anyhow::Result<MountStats> {
        let text =
            host_table::try_read_at(PATH, PATH).with_context(|| format!("cannot read {PATH}"))?;
        let at = lossless::of_path(at);
        MountStats::parse(&text, &at)
            .with_context(|| format!("{PATH} has nothing of an NFS mount at {at}"))
    }

    fn parse(text: &str, at: &str) -> Option<MountStats> {
        let mut found = None;
        let mut lines = text.lines();
        for line in lines.by_ref() {
            if mounted_on(line).is_some_and(|point| point == at) {
                found = Some(MountStats::default());
                break;
            }
        }
        let mut stats: MountStats = found?;
        let section = lines.take_while(|line| mounted_on(line).is_none());
        let mut in_operations = false;
        for line in section {
            if !in_operations {
                in_operations = line.trim() == "per-op statistics";
                stats.pnfs = stats.pnfs.or_else(|| layouts(line));
                continue;
            }
            // Numbers of a line such as READ: completed, transmissions, timeouts, bytes sent and received, then milliseconds: queued, round
            // trip, executed.
            let Some((name, numbers)) = line.trim().split_once(": ") else {
                continue;
            };
            let numbers: Vec<u64> = numbers.split(' ').map_while(|n| n.parse().ok()).collect();
            if let [completed, sent, _, _, _, _, round_trip, ..] = numbers[..] {
                stats.rpcs.insert(name.to_owned(), completed);
                stats.retransmissions += sent.saturating_sub(completed);
                stats.round_trip_seconds += round_trip as f64 / 1e3;
            }
        }
        Some(stats)
    }

    /// Sentence about the use of pNFS by a mount over this version; `None` for a mount that may not use it.
    pub fn pnfs_told(&self, version: &str) -> Option<String> {
        let kind = self.pnfs.as_ref()?;
        let answered = |name: &str| self.rpcs.get(name).copied().unwrap_or(0);
        Some(format!(
            "The mount over NFS {version} may use pNFS ({kind}). Since it was made the server answered {} LAYOUTGETs, \
             {} READs and {} WRITEs of it. What it reads and writes at the storage is no RPC of this mount.",
            answered("LAYOUTGET"),
            answered("READ"),
            answered("WRITE"),
        ))
    }

    /// Difference from the `earlier` counters of this mount.
    pub fn since(&self, earlier: &MountStats) -> MountStats {
        let before = |name: &str| earlier.rpcs.get(name).copied().unwrap_or(0);
        let rpcs = self.rpcs.iter();
        MountStats {
            rpcs: rpcs
                .map(|(name, n)| (name.clone(), n.saturating_sub(before(name))))
                .filter(|(_, n)| *n > 0)
                .collect(),
            retransmissions: self.retransmissions.saturating_sub(earlier.retransmissions),
            round_trip_seconds: self.round_trip_seconds - earlier.round_trip_seconds,
            pnfs: self.pnfs.clone(),
        }
    }
}

/// Layout type that a line names: `nfsv4: bm0=0x1,...,sessions,pnfs=LAYOUT_SCSI,lease_time=90`.
fn layouts(line: &str) -> Option<String> {
    let facts = line.trim().strip_prefix("nfsv4:")?;
    let name = facts.split(',').find_map(|f| f.strip_prefix("pnfs="))?;
    // Text that comes from the server unescaped stands before this line, and may look like it.
    let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    (name.starts_with("LAYOUT_") && name.chars().all(is_name)).then(|| name.to_owned())
}

/// Mount point of the file system that a section is about: `device SOURCE mounted on POINT with fstype ...`.
fn mounted_on(line: &str) -> Option<String> {
    let rest = line.strip_prefix("device ")?;
    let (_, rest) = rest.split_once(" mounted on ")?;
    let (point, _) = rest.split_once(" with fstype ")?;
    Some(unescape(point))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
device proc mounted on /proc with fstype proc
device 10.9.0.1:/ mounted on /run/a\\040b with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.2
\tage:\t3
\tnfsv4:\tbm0=0xfdffbfff,bm1=0xf9be3e,acl=0x3,sessions,pnfs=LAYOUT_SCSI,lease_time=90
\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)
\txprt:\ttcp 0 0 1 0 0 53 53 0 53 0 2 0 0
\tper-op statistics
\t        NULL: 1 1 0 44 24 0 0 0 0
\t        READ: 500 502 2 88000 2100000 3 1250 1300 0
\t       WRITE: 0 0 0 0 0 0 0 0 0

device 10.9.0.1:/ mounted on /run/c with fstype nfs4 statvers=1.1
\tnfsv4:\tbm0=0xfdffbfff,acl=0x3,sessions,pnfs=not configured,lease_time=90
\tper-op statistics
\t        READ: 7 7 0 1 1 0 1 1 0
";

    #[test]
    fn each_mount_has_its_own() {
        let of = |at| MountStats::parse(TEXT, at);
        let first = of("/run/a b").unwrap();
        assert_eq!(first.rpcs["READ"], 500);
        assert_eq!(first.pnfs.as_deref(), Some("LAYOUT_SCSI"));
        assert_eq!(of("/run/c").unwrap().pnfs, None);
        assert_eq!(of("/run/c").unwrap().pnfs_told("4.1"), None);
        let told = first.pnfs_told("4.1").unwrap();
        let says = "(LAYOUT_SCSI). Since it was made the server answered 0 LAYOUTGETs, 500 READs and 0 WRITEs";
        assert!(told.contains(says), "{told}");
        assert_eq!(layouts("nfsv4: pnfs=LAYOUT_\x1b[2J,sessions"), None);
        assert_eq!((first.retransmissions, first.round_trip_seconds), (2, 1.25));
        assert_eq!(of("/run/c").unwrap().rpcs, [("READ".to_owned(), 7)].into());
        assert_eq!(of("/run"), None);
        // The section of another file system has no operations.
        assert_eq!(of("/proc"), Some(MountStats::default()));
    }

    #[test]
    fn what_came_between_two_readings() {
        let first = MountStats::parse(TEXT, "/run/a b").unwrap();
        let second = MountStats::parse(&TEXT.replace("READ: 500 502", "READ: 503 505"), "/run/a b");
        let between = second.unwrap().since(&first);
        assert_eq!(between.rpcs, [("READ".to_owned(), 3)].into());
        assert_eq!(
            (between.retransmissions, between.round_trip_seconds),
            (0, 0.0)
        );
    }
}
