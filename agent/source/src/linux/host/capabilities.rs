//! Capabilities: which are needed to start, and the few that are kept afterwards.
//!
//! Capabilities belong to a thread, not to a process. The thread that serves HTTP gives up its own before the probes' thread begins to
//! attach; the probes' thread gives up its own once it has attached. [`confine`] then looks at every thread of the process and reports a
//! thread that still holds more.

use anyhow::Context;
use caps::{CapSet, Capability, CapsHashSet};
use nfscope_model::host_report::Fact;

/// Capabilities for loading: programs and maps, tracing programs, the BTF of kernel modules.
pub const NEEDED: [Capability; 3] = [
    Capability::CAP_BPF,
    Capability::CAP_PERFMON,
    Capability::CAP_SYS_ADMIN,
];

/// Needed beside [`NEEDED`] to read files of root (paths of exports, threads of a pool), and to find files by their handles. Root needs it
/// too, for the directories of NFSv4 clients: their mode lets no user search them (0600, fs/nfsd/nfsctl.c, nfsd_client_mkdir).
const READS: Capability = Capability::CAP_DAC_READ_SEARCH;

/// Checks that this thread may load probes.
///
/// # Errors
/// Names the missing capabilities and the ways to give them.
pub fn require() -> anyhow::Result<()> {
    let held = caps::read(None, CapSet::Effective)
        .context("cannot read the capabilities of this process")?;
    let missing = missing(&held);
    if missing.is_empty() {
        return Ok(());
    }
    anyhow::bail!(
        "missing {} to load probes into the kernel; {GIVE}",
        names(&missing)
    )
}

/// Ways to give [`NEEDED`].
const GIVE: &str = "run as root, or give them to the program: \
    sudo setcap cap_bpf,cap_perfmon,cap_sys_admin+ep $(command -v nfscope), \
    or to its systemd service: AmbientCapabilities=CAP_BPF CAP_PERFMON CAP_SYS_ADMIN";

/// Capabilities of this thread, for `nfscope check`.
pub fn fact() -> Fact {
    let missing = match caps::read(None, CapSet::Effective) {
        Ok(held) => missing(&held),
        Err(_) => NEEDED.to_vec(),
    };
    let ok = missing.is_empty();
    Fact {
        name: "capabilities".to_owned(),
        value: if ok {
            "all that loading probes needs".to_owned()
        } else {
            format!("missing {}", names(&missing))
        },
        ok,
        fix: if ok { String::new() } else { GIVE.to_owned() },
    }
}

/// Capabilities that a thread lacks which holds these. CAP_SYS_ADMIN includes the other two, which kernels before 5.8 do not even have.
fn missing(held: &CapsHashSet) -> Vec<Capability> {
    if held.contains(&Capability::CAP_SYS_ADMIN) {
        return Vec::new();
    }
    NEEDED.into_iter().filter(|c| !held.contains(c)).collect()
}

/// Reduces this thread to the capabilities that running needs, and returns them as text.
///
/// With late attach these are [`NEEDED`] and [`READS`], as far as the thread has them. Without it there are none, except on kernels (before
/// 6.0, with `kernel.unprivileged_bpf_disabled` set) that want CAP_BPF even to read a map whose descriptor is open: `still_reads` tests
/// that after the effective set is gone.
///
/// # Errors
/// Fails if the kernel refuses to take capabilities away, which no sane one does.
pub fn confine(late_attach: bool, still_reads: impl FnOnce() -> bool) -> anyhow::Result<String> {
    forbid_more()?;
    let permitted = caps::read(None, CapSet::Permitted)?;
    let mut keep: CapsHashSet = (NEEDED.into_iter().chain([READS]))
        .filter(|c| permitted.contains(c))
        .collect();
    let mut why = "to attach to kernel modules that load later; --no-late-attach drops them";
    if !late_attach {
        caps::clear(None, CapSet::Effective)?;
        keep.retain(|c| *c == Capability::CAP_BPF);
        if still_reads() {
            keep.clear();
        } else {
            why = "because this kernel wants it to read maps; kernel.unprivileged_bpf_disabled=0 or Linux 6.0 would not";
        }
    }
    reduce(&keep)?;
    let mut said = if keep.is_empty() {
        "dropped all capabilities".to_owned()
    } else {
        let mut kept: Vec<_> = keep.iter().copied().collect();
        // Capabilities outside NEEDED come last.
        kept.sort_unstable_by_key(|c| NEEDED.iter().position(|n| n == c).unwrap_or(NEEDED.len()));
        format!("kept {} {why}", names(&kept))
    };
    let more = threads_with_more(&keep)?;
    if !more.is_empty() {
        said += &format!("; but more is held by thread {}", more.join(", "));
    }
    Ok(said)
}

/// Takes every capability from this thread.
///
/// # Errors
/// See [`confine`].
pub fn drop_all() -> anyhow::Result<()> {
    forbid_more()?;
    reduce(&CapsHashSet::new())
}

/// Leaves this thread the right to read, if it has it, and no other capability.
///
/// # Errors
/// See [`confine`].
pub fn keep_reading() -> anyhow::Result<()> {
    forbid_more()?;
    let mut keep = caps::read(None, CapSet::Permitted)?;
    keep.retain(|c| *c == READS);
    reduce(&keep)
}

/// Leaves this thread the capabilities `keep`.
fn reduce(keep: &CapsHashSet) -> anyhow::Result<()> {
    // The effective set may not exceed the permitted one at any moment.
    caps::set(None, CapSet::Effective, keep)?;
    caps::set(None, CapSet::Permitted, keep)?;
    Ok(())
}

/// Shuts the ways by which this thread could get capabilities back: all of them go through executing a program.
pub(super) fn forbid_more() -> anyhow::Result<()> {
    // Kernels before 4.3 have no ambient set.
    if caps::runtime::ambient_set_supported().is_ok() {
        caps::clear(None, CapSet::Ambient)?;
    }
    // Dropping needs CAP_SETPCAP, which a service with just its three capabilities lacks: then no_new_privs does it alone.
    if caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP)? {
        for c in caps::runtime::thread_all_supported() {
            caps::drop(None, CapSet::Bounding, c)?;
        }
    }
    caps::clear(None, CapSet::Inheritable)?;
    rustix::thread::set_no_new_privs(true).context("cannot set no_new_privs")
}

/// Names of the threads of this process that hold a capability outside `allowed`.
fn threads_with_more(allowed: &CapsHashSet) -> anyhow::Result<Vec<String>> {
    let allowed: u64 = allowed.iter().map(|c| c.bitmask()).sum();
    let mut out = Vec::new();
    for task in crate::host_table::entries("/proc/self/task", "/proc/self/task")
        .context("cannot list the threads in /proc/self/task")?
    {
        // A thread may end between the listing and the reading.
        let Ok(status) = crate::host_table::try_read_at(
            "/proc/self/task/TID/status",
            task.path().join("status"),
        ) else {
            continue;
        };
        let field = |name: &str| {
            status
                .lines()
                .find_map(|l| l.strip_prefix(name))
                .map(str::trim)
        };
        let held = |name: &str| {
            field(name)
                .and_then(|v| u64::from_str_radix(v, 16).ok())
                .unwrap_or(0)
        };
        if (held("CapPrm:") | held("CapEff:")) & !allowed != 0 {
            out.push(field("Name:").unwrap_or("?").to_owned());
        }
    }
    Ok(out)
}

fn names(capabilities: &[Capability]) -> String {
    let all: Vec<_> = capabilities.iter().map(Capability::to_string).collect();
    match all.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => all.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing_names(held: &[Capability]) -> String {
        names(&missing(&held.iter().copied().collect()))
    }

    #[test]
    fn the_missing_ones_are_named() {
        use Capability::*;
        assert_eq!(missing_names(&[]), "CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN");
        assert_eq!(missing_names(&[CAP_BPF, CAP_PERFMON]), "CAP_SYS_ADMIN");
        assert_eq!(
            missing_names(&[CAP_BPF, CAP_CHOWN]),
            "CAP_PERFMON and CAP_SYS_ADMIN"
        );
        assert_eq!(missing_names(&[CAP_SYS_ADMIN]), "");
    }
}
