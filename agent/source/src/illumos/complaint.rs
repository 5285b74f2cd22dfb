//! Messages of `dtrace` on its standard error: events that it lost, and why it cannot run a script.

/// Meaning of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Complaint {
    /// This number of events is missing, for this reason.
    Lost(&'static str, u64),
    /// This process lacks the privilege to trace the kernel.
    Privileges,
    /// A probe of the script does not exist here (yet).
    NoProbe,
    /// The kernel of this release has no export in the arguments of operations.
    NoExports,
    /// The kernel of this release has no such member of a structure.
    NoMember,
    /// The kernel ended all tracing, because it was not read for too long or the system did not respond.
    Aborted,
    /// Any other message.
    Other,
}

/// Reads a line. Its beginning (the name of the program) and its exact words differ between systems and releases.
pub fn read(line: &str) -> Complaint {
    let has = |text: &str| line.contains(text);
    if has("requires additional privileges") {
        return Complaint::Privileges;
    }
    if has("does not match any probes") || has("failed to grab process") {
        return Complaint::NoProbe;
    }
    if has("noi_shrpath") {
        return Complaint::NoExports;
    }
    if has("is not a member of") {
        return Complaint::NoMember;
    }
    if has("systemic unresponsiveness") {
        return Complaint::Aborted;
    }
    if has(": error on enabled probe") || has(": error in ") {
        return Complaint::Lost("script_error", 1);
    }
    let words: Vec<_> = line.split_whitespace().collect();
    let at = words.iter().position(|w| *w == "drops" || *w == "drop");
    let lost = at.and_then(|at| words[..at].iter().find_map(|w| w.parse().ok()));
    match lost {
        Some(n) if has("aggregation") => Complaint::Lost("aggregation_drops", n),
        Some(n) if has("dynamic variable") => Complaint::Lost("dynamic_variable_drops", n),
        Some(n) => Complaint::Lost("drops", n),
        None => Complaint::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_systems_are_known() {
        for (line, meaning) in [
            ("dtrace: 12 drops on CPU 3", Complaint::Lost("drops", 12)),
            (
                "dtrace: [DTRACEDROP_AGGREGATION] 7 aggregation drops on CPU 0",
                Complaint::Lost("aggregation_drops", 7),
            ),
            (
                "dtrace: 40 dynamic variable drops with non-empty dirty list",
                Complaint::Lost("dynamic_variable_drops", 40),
            ),
            (
                "dtrace: error on enabled probe ID 4 (ID 91: fbt:zfs:zil_commit:entry): invalid address (0x0) in action #1 at DIF offset 12",
                Complaint::Lost("script_error", 1),
            ),
            (
                "dtrace: error in dt_clause_3 for probe ID 9 (profile:::tick-1s): invalid address (0x0) at BPF pc 7",
                Complaint::Lost("script_error", 1),
            ),
            (
                "dtrace: failed to initialize dtrace: DTrace requires additional privileges",
                Complaint::Privileges,
            ),
            (
                "dtrace: invalid probe specifier BEGIN {...}: probe description nfsv3*:::op-read-done does not match any probes",
                Complaint::NoProbe,
            ),
            (
                "dtrace: failed to compile script: line 9: noi_shrpath is not a member of nfsv3opinfo_t",
                Complaint::NoExports,
            ),
            (
                "dtrace: failed to compile script /dev/stdin: line 70: p_walkers is not a member of struct __svcpool",
                Complaint::NoMember,
            ),
            (
                "dtrace: processing aborted: Abort due to systemic unresponsiveness",
                Complaint::Aborted,
            ),
            ("dtrace: script 'x' matched 90 probes", Complaint::Other),
        ] {
            assert_eq!(read(line), meaning, "{line}");
        }
    }
}
