//! Reads maps and kernel counters into a snapshot: one file for each probe's word, by the map types of `nfscope_probes::types`.
//!
//! [`nfsd`] reads the time that probe sched measures for its operations. [`jbd2`], [`xfs`] and [`btrfs`] describe their logs, and [`logs`]
//! reads all of them. [`client`] reads both probes of this host's own mounts. [`held`] reads nfsd's records of requests in hand. [`decode`]
//! has the functions that all readers need. [`top_k`], [`slow_ops`] and [`breakdown`] read nfsd's tables of clients, its ring of slow
//! operations and its tables of a break-down; [`file_paths`] finds the paths of these files. [`connections`] reads the server's own lists,
//! and [`unacknowledged`] the replies on them that clients do not take. [`client_answers`] has answers by client, [`lockd`] the locks of
//! NFSv3, and [`granted_state`] delegations and layouts. [`probe_runs`] reads the runs of the programs themselves.

pub mod block;
pub mod breakdown;
pub mod btrfs;
pub mod client;
pub mod client_answers;
mod client_totals;
pub mod connections;
pub mod coverage;
mod decode;
mod file_paths;
pub mod granted_state;
pub mod held;
pub mod jbd2;
pub mod lockd;
pub mod logs;
pub mod nfsd;
pub mod probe_runs;
pub mod slow_ops;
pub mod thread_io;
pub mod top_k;
mod transports;
pub mod unacknowledged;
pub mod unsafe_writes;
pub mod xfs;
pub mod zfs;

/// Logs with a probe of their own, without the intent log of ZFS.
pub static LOGS: [&logs::Log; 3] = [&jbd2::LOG, &xfs::LOG, &btrfs::LOG];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::host::log_device::Location;
    use nfscope_model::{ProbeState, ProbeStatus};

    #[test]
    fn what_is_measured_of_a_log_is_what_its_probe_tells() {
        let programs = |probe: &str, states: &[ProbeState]| -> Vec<_> {
            let program = |&state| ProbeStatus {
                probe: probe.into(),
                program: String::new(),
                hook: String::new(),
                gives: String::new(),
                required: false,
                state,
                reason: String::new(),
                fix: String::new(),
            };
            states.iter().map(program).collect()
        };
        use ProbeState::{Attached, Fallback, Unsupported};
        let says = |fs, log, probe, states: &[_]| {
            logs::measured(&LOGS, fs, &log, &programs(probe, states))
        };
        let all = "log waits, commits and bytes; the log's part of each operation";
        for (fs, probe) in [("ext4", "jbd2"), ("ext3", "jbd2"), ("zfs", "zfs")] {
            let up = says(fs, Location::Shared, probe, &[Attached, Fallback]);
            assert_eq!(up, (true, all.into()), "{fs}");
        }
        let (ok, btrfs) = says("btrfs", Location::Shared, "btrfs", &[Attached]);
        assert!(
            ok && btrfs.starts_with("log waits and commits; "),
            "{btrfs}"
        );
        let part = says("xfs", Location::Shared, "xfs", &[Attached, Unsupported]);
        assert_eq!(part, (false, "a part: see probe xfs below".into()));
        let none = says("xfs", Location::Shared, "xfs", &[Unsupported]);
        assert!(!none.0 && none.1.contains("not measured"), "{}", none.1);
        let (ok, _) = says("ext4", Location::None, "jbd2", &[]);
        assert!(ok, "without a log there is nothing to wait for");
    }

    #[test]
    fn every_program_that_a_figure_needs_is_in_the_plan() {
        use crate::linux::load::program_table::PROBES;
        for log in LOGS {
            let probe = PROBES.iter().find(|p| p.word == log.probe).unwrap();
            for name in [log.wait, log.commit, log.bytes.unwrap_or_default()].concat() {
                assert!(probe.programs.iter().any(|p| p.name == name), "{name}");
            }
        }
    }
}
