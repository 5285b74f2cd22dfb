//! Changes that may cure findings.

use nfscope_model::finding::Kind;
use nfscope_whatif::{MIN_GAIN, Part, Plausible};

/// Parts of the server whose change may cure a kind of finding.
pub fn cures(kind: Kind) -> &'static [Part] {
    match kind {
        // A faster log or disk also frees threads sooner, so requests wait for a thread for a shorter time.
        Kind::ThreadStarvation => &[Part::Threads, Part::Log, Part::Disk],
        // A log on the file system's own disks is as fast as these.
        Kind::SlowIntentLog => &[Part::Log, Part::Disk, Part::Threads],
        Kind::SmallSyncWrites => &[Part::Log, Part::Threads],
        Kind::SlowDisk => &[Part::Disk, Part::Threads],
        Kind::CpuSaturation => &[Part::Cpus],
        _ => &[],
    }
}

/// Value of the label `change` of `nfscope_change_gain_ratio`.
pub fn label(part: Part) -> &'static str {
    match part {
        Part::Threads => "threads",
        Part::Log => "log",
        Part::Disk => "disk",
        Part::Cpus => "cpus",
    }
}

/// Actions against a kind of finding whose gain is predicted, the most valuable one first.
pub fn actions(kind: Kind, changes: &[Plausible]) -> Vec<String> {
    let cures = cures(kind);
    let known = changes
        .iter()
        .filter(|p| p.gain >= MIN_GAIN && p.part().is_some_and(|part| cures.contains(&part)));
    known
        .map(|p| format!("{} (nfscope what-if)", p.sentence()))
        .collect()
}
