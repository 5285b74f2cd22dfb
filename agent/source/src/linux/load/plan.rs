//! Decides which objects are loaded, and why others are not: a pure function of the host's facts.

use super::program::{Build, Probe, Program, Variant};
use crate::linux::host::facts::Facts;
use crate::linux::host::zfs_layout::{self, ZFS_FIX};
use nfscope_model::ProbeState;

/// Decision for a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Load this build.
    Load(Build),
    /// Wait: there is nothing to attach to yet.
    Wait(String),
    /// The host uses nothing that the probe could observe.
    Unused(String),
    /// The probe cannot run here.
    Impossible {
        /// Reason: the missing part.
        reason: String,
        /// Action that provides the missing part.
        fix: String,
    },
}

/// Decides by the kernel's facts, never by its version.
pub fn decide(probe: &Probe, facts: &Facts) -> Decision {
    if !facts.vmlinux_btf {
        return Decision::Impossible {
            reason: "this kernel has no BTF (/sys/kernel/btf/vmlinux), so the layout of its structures is unknown".into(),
            fix: "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y; every current distribution's is".into(),
        };
    }
    if let Some(m) = probe.modules.iter().find(|m| !facts.loaded(m)) {
        let kind = match *m {
            "sunrpc" | "nfsd" => {
                let why = format!("module {m} is not loaded: waits for the NFS server");
                return Decision::Wait(why);
            }
            "ext4" | "jbd2" => "ext4 file system with a journal",
            "xfs" => "XFS file system",
            "zfs" => "ZFS pool",
            "nfs" => "NFS mount",
            "nfsv4" => "NFSv4 mount",
            "lockd" => "NFS server or mount with locks of NFSv3",
            _ => "btrfs file system",
        };
        return Decision::Unused(format!("module {m} is not loaded: no {kind} here"));
    }
    if probe.modules.iter().all(|m| facts.btf_of(m)) {
        Decision::Load(Build::Btf)
    } else if probe.word == "zfs" && facts.zfs.is_empty() {
        Decision::Unused("module zfs is being loaded".into())
    } else if probe.word == "zfs" && zfs_layout::layout(&facts.zfs).is_none() {
        Decision::Impossible {
            reason: format!(
                "OpenZFS {} without BTF: its layout is not known; what kstats tell is there all the same",
                facts.zfs
            ),
            fix: ZFS_FIX.into(),
        }
    } else {
        Decision::Load(Build::Raw)
    }
}

/// State and reason of a program that attached in the chosen build.
pub fn attached(
    probe: &Probe,
    program: &Program,
    build: Build,
    facts: &Facts,
    on: Variant,
) -> (ProbeState, String) {
    if build == Build::Btf {
        if probe.word == "sched" && !facts.run_delay {
            let why = "this kernel keeps no account of waits for a CPU (CONFIG_SCHEDSTATS): phase runqueue is part of log, disk and lock";
            return (ProbeState::Fallback, why.into());
        }
        if probe.word == "sched" && !on.books {
            let why = "this kernel does not let its scheduler's account of each task be read: waits are noted at every context switch of the host";
            return (ProbeState::Fallback, why.into());
        }
        return (ProbeState::Attached, String::new());
    }
    let lost = match (probe.word, program.name) {
        ("nfsd", "nfsd_op_end" | "nfsd_ops_begin") => {
            "; the NFSv4 minor version, the stability of WRITEs and the file handle cannot be read: ops count under version 4 and for no export"
        }
        ("nfsd", "nfsd_run") => "; busy threads cannot be counted",
        _ => "",
    };
    (
        ProbeState::Fallback,
        format!(
            "no BTF of module {}: {}{lost}",
            probe.modules.last().unwrap_or(&"vmlinux"),
            program.hook(Build::Raw)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::load::program_table::PROBES;

    fn facts(loaded: &[&str], btf: &[&str]) -> Facts {
        Facts {
            vmlinux_btf: true,
            loaded: loaded.iter().map(|s| s.to_string()).collect(),
            module_btf: btf.iter().map(|s| s.to_string()).collect(),
            ..Default::default()
        }
    }

    fn probe(word: &str) -> &'static Probe {
        PROBES.iter().find(|p| p.word == word).unwrap()
    }

    #[test]
    fn a_probe_of_a_file_system_is_unused_without_one_of_its_kind() {
        for (word, module, kind) in [
            ("jbd2", "ext4", "ext4 file system with a journal"),
            ("xfs", "xfs", "XFS file system"),
            ("btrfs", "btrfs", "btrfs file system"),
            ("client", "nfs", "NFS mount"),
            ("recall", "nfsv4", "NFSv4 mount"),
            ("lockd", "lockd", "NFS server or mount with locks of NFSv3"),
        ] {
            let why = format!("module {module} is not loaded: no {kind} here");
            let decided = decide(probe(word), &facts(&["nfsd"], &["nfsd"]));
            assert_eq!(decided, Decision::Unused(why));
        }
    }

    #[test]
    fn a_module_that_is_not_loaded_is_waited_for() {
        let Decision::Wait(why) = decide(&PROBES[0], &facts(&["sunrpc"], &["sunrpc"])) else {
            panic!()
        };
        assert!(why.contains("module nfsd is not loaded"), "{why}");
    }

    #[test]
    fn module_btf_decides_between_the_two_builds() {
        let all = ["sunrpc", "nfsd", "jbd2"];
        assert_eq!(
            decide(&PROBES[0], &facts(&all, &all)),
            Decision::Load(Build::Btf)
        );
        assert_eq!(
            decide(&PROBES[0], &facts(&all, &["sunrpc"])),
            Decision::Load(Build::Raw)
        );
        assert_eq!(
            decide(probe("block"), &facts(&[], &[])),
            Decision::Load(Build::Btf)
        );
    }

    #[test]
    fn openzfs_without_btf_is_read_by_its_version() {
        let mut f = facts(&["zfs"], &[]);
        f.zfs = "2.1.11-1+deb12u1".into();
        assert_eq!(decide(probe("zfs"), &f), Decision::Load(Build::Raw));
        f.zfs = "2.2.9-1".into();
        let Decision::Impossible { reason, fix } = decide(probe("zfs"), &f) else {
            panic!()
        };
        assert!(
            reason.starts_with("OpenZFS 2.2.9-1 without BTF"),
            "{reason}"
        );
        assert_eq!(fix, ZFS_FIX);
        let btf = facts(&["zfs"], &["zfs"]);
        assert_eq!(decide(probe("zfs"), &btf), Decision::Load(Build::Btf));
        let unused = "module zfs is not loaded: no ZFS pool here";
        assert_eq!(
            decide(probe("zfs"), &facts(&[], &[])),
            Decision::Unused(unused.into())
        );
    }

    #[test]
    fn without_btf_nothing_can_be_read() {
        let f = Facts::default();
        assert!(matches!(
            decide(probe("block"), &f),
            Decision::Impossible { .. }
        ));
    }
}
