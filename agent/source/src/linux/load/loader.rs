//! Loads an object in the chosen build, attaches what the kernel accepts, and keeps file
//! descriptors of maps and programs. The objects themselves are let go, and with them the copies of the kernel's BTF.

use crate::linux::host::facts::Facts;
use crate::linux::host::procfs::KernelCounts;
use crate::linux::load::kretprobe as retprobe;
use crate::linux::load::kretprobe::Attached;
use crate::linux::load::maps;
use crate::linux::load::maps::Shared;
use crate::linux::load::plan;
use crate::linux::load::plan::Decision;
use crate::linux::load::pod;
use crate::linux::load::program::{Build, Probe, Program};
use crate::linux::load::program_table::PROBES;
use crate::linux::read::zfs;
use libbpf_rs::libbpf_sys;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, ObjectBuilder, PrintLevel};
use nfscope_model::{ProbeState, ProbeStatus, op};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::Mutex;

/// A probe's programs and maps in the kernel.
pub struct Loaded {
    /// Which build runs.
    pub build: Build,
    maps: BTreeMap<String, MapHandle>,
    programs: Vec<(&'static str, OwnedFd)>,
    /// What the kernel had counted when the last of them attached.
    pub counted: Option<KernelCounts>,
    /// Dropping a link detaches its program.
    _links: Vec<Attached>,
}

/// What a program has run, by the kernel's count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Runs {
    /// Runs; 0 unless statistics are on.
    pub count: u64,
    /// Time in the program; 0 unless statistics are on.
    pub nanoseconds: u64,
    /// Runs that the kernel skipped because the program was already running on that CPU. Always counted.
    pub skipped: u64,
}

impl Loaded {
    /// A map by its name; `None` where this build has none.
    pub fn map(&self, name: &str) -> Option<&MapHandle> {
        self.maps.get(name)
    }

    /// Names of the attached programs.
    pub fn programs(&self) -> impl Iterator<Item = (&'static str, &OwnedFd)> {
        self.programs.iter().map(|(n, fd)| (*n, fd))
    }
}

/// Entries of a hash that must be allocated in full, on every CPU.
const SMALL: u32 = 128;

/// libbpf's and the verifier's words while an object loads, to name what was refused and why.
static LOG: Mutex<String> = Mutex::new(String::new());

fn keep_log(_: PrintLevel, message: String) {
    if let Ok(mut log) = LOG.lock() {
        log.push_str(&message);
    }
}

fn take_log() -> String {
    LOG.lock()
        .map(|mut l| std::mem::take(&mut *l))
        .unwrap_or_default()
}

/// Loads and attaches what the plan says of a probe. What does not load is left out and reported; it never stops the rest.
pub fn load(
    probe: &'static Probe,
    facts: &Facts,
    shared: &Shared,
) -> (Option<Loaded>, Vec<ProbeStatus>) {
    let nothing = |state, reason: &str, fix: &str, build| {
        let states = probe
            .programs_of(build, facts.preemptible)
            .map(|p| status(probe, p, state, reason, fix, build));
        (None, states.collect())
    };
    let build = match plan::decide(probe, facts) {
        Decision::Load(build) => build,
        Decision::Wait(reason) => {
            let fix = "nothing to do: it attaches when that appears";
            return nothing(ProbeState::Waiting, &reason, fix, Build::Btf);
        }
        Decision::Unused(reason) => {
            let fix = "nothing to do: it attaches when there is one";
            return nothing(ProbeState::Unused, &reason, fix, Build::Btf);
        }
        Decision::Impossible { reason, fix } => {
            return nothing(ProbeState::Unsupported, &reason, &fix, Build::Btf);
        }
    };
    libbpf_rs::set_print(Some((PrintLevel::Info, keep_log)));
    let mut refused: BTreeMap<String, (String, String)> = BTreeMap::new();
    if build == Build::Raw {
        for p in probe.programs_of(build, facts.preemptible) {
            if let Err(why) = p.raw {
                refused.insert(
                    p.name.into(),
                    (
                        format!(
                            "no BTF of module {}: {why}",
                            probe.modules.last().unwrap_or(&"")
                        ),
                        "a kernel of 5.11 or later built with CONFIG_DEBUG_INFO_BTF_MODULES=y"
                            .into(),
                    ),
                );
            }
        }
    }
    if refused.len() == probe.programs_of(build, facts.preemptible).count() {
        return (None, statuses(probe, facts, build, &refused));
    }
    loop {
        take_log();
        match attempt(probe, build, facts, shared, &mut refused) {
            Ok(loaded) => {
                let states = statuses(probe, facts, build, &refused);
                return (Some(loaded), states);
            }
            Err(error) => {
                let log = take_log();
                let refusal = (explain(&log, &error), fix_for(&log));
                match refused_program(&log) {
                    Some(name)
                        if !refused.contains_key(&name)
                            && probe.programs.iter().any(|p| p.name == name) =>
                    {
                        refused.insert(name, refusal);
                    }
                    // Not one program's fault: the object as such does not load here.
                    _ => {
                        return nothing(ProbeState::Unsupported, &refusal.0, &refusal.1, build);
                    }
                }
                if refused.len() == probe.programs_of(build, facts.preemptible).count() {
                    return (None, statuses(probe, facts, build, &refused));
                }
            }
        }
    }
}

fn attempt(
    probe: &'static Probe,
    build: Build,
    facts: &Facts,
    shared: &Shared,
    refused: &mut BTreeMap<String, (String, String)>,
) -> libbpf_rs::Result<Loaded> {
    let image = match build {
        Build::Btf => probe.object.btf,
        Build::Raw => probe.object.raw.unwrap_or(probe.object.btf),
    };
    // libbpf names the maps of data sections after the object, and an object without a name after its address.
    let mut open = ObjectBuilder::default()
        .name(probe.word)?
        .open_memory(image)?;
    for mut p in open.progs_mut() {
        let name = p.name().to_string_lossy().into_owned();
        let wanted = probe
            .programs_of(build, facts.preemptible)
            .any(|x| x.name == name);
        if !wanted || refused.contains_key(&name) {
            p.set_autoload(false);
        }
    }
    for mut m in open.maps_mut() {
        if matches!(m.name().to_str(), Some("nfsd_pool" | "nfsd_pool_now")) {
            m.set_max_entries(facts.pools())?;
        }
        if let (Some("nfsd_request"), Some(requests)) = (m.name().to_str(), &shared.requests) {
            m.reuse_fd(requests.as_fd())?;
            continue;
        }
        if m.name() == ".rodata.zfs_layout"
            && let Some(layout) = zfs::layout(&facts.zfs)
        {
            m.set_initial_value(pod::bytes_of(&layout))?;
        }
        if !facts.on_demand && m.map_type() == MapType::PercpuHash {
            let entries = m.max_entries().min(SMALL);
            m.set_map_flags(0)?;
            m.set_max_entries(entries)?;
        }
    }
    let loaded = open.load()?;
    let mut maps = BTreeMap::new();
    for m in loaded.maps() {
        // Maps of a build that the kernel did not create have no descriptor.
        if let Ok(handle) = MapHandle::try_from(&m) {
            maps.insert(m.name().to_string_lossy().into_owned(), handle);
        }
    }
    if let Some(m) = maps.get("nfsd_op_number") {
        fill_op_numbers(m)?;
    }
    if let (Some(rows), Some(free)) = (maps.get("nfsd_client_row"), maps.get("nfsd_free_rows")) {
        maps::queue_rows(rows, free);
    }
    let (mut links, mut programs, mut counted) = (Vec::new(), Vec::new(), None);
    let wanted = probe.programs_of(build, facts.preemptible);
    let last = wanted.filter(|p| !refused.contains_key(p.name)).last();
    let last = last.map(|p| p.name);
    for p in probe.programs_of(build, facts.preemptible) {
        if refused.contains_key(p.name) {
            continue;
        }
        let Some(found) = loaded.progs_mut().find(|x| x.name() == p.name) else {
            continue;
        };
        // Operations are timed from the last program on.
        if Some(p.name) == last {
            counted = KernelCounts::read();
        }
        let attached = match p.hook(build).strip_prefix("kretprobe/") {
            Some(function) => retprobe::attach(&found, function),
            None => found.attach().map(Attached::from).map_err(|e| {
                let log = take_log();
                (explain(&log, &e), fix_for(&log))
            }),
        };
        match attached {
            Ok(link) => {
                links.push(link);
                programs.push((p.name, found.as_fd().try_clone_to_owned()?));
            }
            Err(why) => {
                refused.insert(p.name.into(), why);
            }
        }
    }
    Ok(Loaded {
        build,
        maps,
        programs,
        counted,
        _links: links,
    })
}

/// Without BTF of nfsd an operation is known by the name that the tracepoint carries (`OP_WRITE`).
fn fill_op_numbers(map: &MapHandle) -> libbpf_rs::Result<()> {
    for (i, name) in op::V4_OPS.iter().enumerate() {
        let mut key = [0u8; 32];
        let text = format!("OP_{}", name.to_ascii_uppercase());
        key[..text.len()].copy_from_slice(text.as_bytes());
        let number = (op::FIRST_V4_OP + i) as u32;
        map.update(&key, &number.to_ne_bytes(), MapFlags::ANY)?;
    }
    Ok(())
}

fn statuses(
    probe: &'static Probe,
    facts: &Facts,
    build: Build,
    refused: &BTreeMap<String, (String, String)>,
) -> Vec<ProbeStatus> {
    probe
        .programs_of(build, facts.preemptible)
        .map(|p| {
            let (state, reason, fix) = match refused.get(p.name) {
                Some((why, fix)) => (ProbeState::Unsupported, why.clone(), fix.clone()),
                None => {
                    let (state, reason) = plan::attached(probe, p, build, facts);
                    (state, reason, String::new())
                }
            };
            status(probe, p, state, &reason, &fix, build)
        })
        .collect()
}

fn status(
    probe: &Probe,
    p: &Program,
    state: ProbeState,
    reason: &str,
    fix: &str,
    build: Build,
) -> ProbeStatus {
    ProbeStatus {
        probe: probe.word.into(),
        program: p.name.into(),
        hook: p.hook(build),
        gives: p.gives.into(),
        required: p.required,
        state,
        reason: reason.into(),
        fix: fix.into(),
    }
}

/// The program that the log blames.
fn refused_program(log: &str) -> Option<String> {
    log.lines()
        .filter(|l| l.contains("fail") || l.contains("not found"))
        .find_map(|l| {
            let (_, rest) = l.split_once("prog '")?;
            Some(rest.split_once('\'')?.0.to_owned())
        })
}

/// One line of why: libbpf's first complaint, or the last of the verifier's.
fn explain(log: &str, error: &libbpf_rs::Error) -> String {
    let complaint = log
        .lines()
        .find(|l| l.contains("prog '") && (l.contains("fail") || l.contains("not found")))
        // Without the program's name, which the status has: the same reason then reads the same.
        .and_then(|l| Some(l.split_once("prog '")?.1.split_once("': ")?.1.trim()));
    let verifier = log
        .split_once("BEGIN PROG LOAD LOG")
        .and_then(|(_, r)| r.split_once("END PROG LOAD LOG"))
        .and_then(|(body, _)| {
            body.lines()
                .rfind(|l| {
                    let l = l.trim();
                    !l.is_empty() && !l.starts_with("processed ") && !l.starts_with("--")
                })
                .map(|l| l.trim().to_owned())
        });
    match (complaint, verifier) {
        (Some(c), Some(v)) => format!("{c}: {v}"),
        (Some(c), None) => c.to_owned(),
        _ => format!("{error:#}"),
    }
}

/// What helps against a refusal: capabilities where they are missing, nothing where the kernel's word is final.
fn fix_for(log: &str) -> String {
    if !log.contains("-EPERM") {
        return String::new();
    }
    if crate::linux::host::facts::may_load() {
        "nothing here: this kernel refuses this kind of program to everybody (lockdown=confidentiality, or a sandbox)"
            .into()
    } else {
        "run as root or with CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN".into()
    }
}

/// All probes but those left out: what loaded, and the status of every program.
pub fn load_all(
    facts: &Facts,
    shared: &Shared,
    without: &[&str],
) -> (BTreeMap<&'static str, Loaded>, Vec<ProbeStatus>) {
    let (mut loaded, mut states) = (BTreeMap::new(), Vec::new());
    // The first comes last: operations are timed when all that tells what they wait for is there.
    for probe in PROBES.iter().filter(|p| !without.contains(&p.word)).rev() {
        let (l, mut s) = load(probe, facts, shared);
        if let Some(l) = l {
            loaded.insert(probe.word, l);
        }
        s.append(&mut states);
        states = s;
    }
    give_back();
    (loaded, states)
}

/// Returns to the kernel what copies of its BTF took, which the allocator would keep.
pub fn give_back() {
    // SAFETY: malloc_trim touches free memory only.
    unsafe { libc::malloc_trim(0) };
}

/// What the kernel says of a program's runs.
pub fn runs(program: &OwnedFd) -> io::Result<Runs> {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut len = size_of_val(&info) as u32;
    // SAFETY: `info` is a plain structure of `len` bytes, and the descriptor is a program's and open.
    let rc = unsafe {
        libbpf_sys::bpf_prog_get_info_by_fd(program.as_raw_fd(), &raw mut info, &raw mut len)
    };
    if rc < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Runs {
        count: info.run_cnt,
        nanoseconds: info.run_time_ns,
        skipped: info.recursion_misses,
    })
}

/// Turns the kernel's run-time statistics on for as long as the descriptor lives.
pub fn enable_statistics() -> io::Result<OwnedFd> {
    // SAFETY: a system call without pointers.
    let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(-fd));
    }
    // SAFETY: a descriptor that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_probes::types as t;

    #[test]
    fn the_log_names_the_program_and_the_verifiers_last_word() {
        let log = "libbpf: prog 'nfsd_arrive': BPF program load failed: -EPERM\n\
                   libbpf: prog 'nfsd_arrive': -- BEGIN PROG LOAD LOG --\n0: (85) call 1\nunknown func bpf_x#1\nprocessed 3 insns\n\
                   -- END PROG LOAD LOG --\nlibbpf: prog 'nfsd_arrive': failed to load: -1\n";
        assert_eq!(refused_program(log).as_deref(), Some("nfsd_arrive"));
        let e = libbpf_rs::Error::from_raw_os_error(libc::EPERM);
        let why = explain(log, &e);
        assert_eq!(why, "BPF program load failed: -EPERM: unknown func bpf_x#1");
    }

    #[test]
    fn every_program_of_the_plan_is_in_its_objects_and_none_is_missing() {
        for probe in &PROBES {
            let object = probe.object;
            assert_eq!(probe.word, object.word);
            let raw = object.raw.map(|image| (Build::Raw, image));
            assert!(raw.is_some() || probe.programs.iter().all(|p| p.raw.is_err()));
            for (build, image) in [(Build::Btf, object.btf)].into_iter().chain(raw) {
                let open = ObjectBuilder::default().open_memory(image).unwrap();
                let mut have: Vec<_> = open
                    .progs()
                    .map(|p| {
                        (
                            p.name().to_string_lossy().into_owned(),
                            p.section().to_string_lossy().into_owned(),
                        )
                    })
                    .collect();
                let mut want: Vec<_> = probe
                    .programs_of(build, true)
                    .filter(|p| build == Build::Btf || p.raw.is_ok())
                    .map(|p| (p.name.to_owned(), p.hook(build)))
                    .collect();
                have.sort();
                want.sort();
                assert_eq!(have, want);
                for m in open.maps().filter(|m| m.name() == "nfsd_request") {
                    assert_eq!(m.max_entries(), maps::REQUESTS);
                    assert_eq!(m.value_size() as usize, size_of::<t::request_record>());
                }
            }
        }
    }
}
