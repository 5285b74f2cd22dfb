//! Loads an object in the chosen build, attaches what the kernel accepts, and keeps file
//! descriptors of maps and programs. The objects themselves are freed, and with them the copies of the kernel's BTF.

use super::kretprobe::{self, Attached};
use super::maps::{Map, Shared};
use super::object::Loaded;
use super::plan::{self, Decision};
use super::pod;
use super::program::{Build, Probe, Program};
use super::program_table::PROBES;
use super::refusal::{Refusal, keep_log, refused_program, take_log};
use crate::linux::host::facts::Facts;
use crate::linux::host::procfs::KernelCounts;
use crate::linux::host::zfs_layout;
use libbpf_rs::{MapCore, MapHandle, MapType, ObjectBuilder};
use nfscope_model::{ProbeState, ProbeStatus, op};
use std::collections::BTreeMap;
use std::os::fd::AsFd;

/// Entries of a hash that must be allocated in full, on every CPU.
const SMALL: u32 = 128;

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
    keep_log();
    let mut refused: BTreeMap<String, Refusal> = BTreeMap::new();
    if build == Build::Raw {
        for p in probe.programs_of(build, facts.preemptible) {
            if let Err(why) = p.raw {
                refused.insert(
                    p.name.into(),
                    Refusal {
                        reason: format!(
                            "no BTF of module {}: {why}",
                            probe.modules.last().unwrap_or(&"")
                        ),
                        fix: "a kernel of 5.11 or later built with CONFIG_DEBUG_INFO_BTF_MODULES=y"
                            .into(),
                    },
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
                let refusal = Refusal::explain(&log, &error);
                match refused_program(&log) {
                    Some(name)
                        if !refused.contains_key(&name)
                            && probe.programs.iter().any(|p| p.name == name) =>
                    {
                        refused.insert(name, refusal);
                    }
                    // Not one program's fault: the object as such does not load here.
                    _ => {
                        let Refusal { reason, fix } = refusal;
                        return nothing(ProbeState::Unsupported, &reason, &fix, build);
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
    refused: &mut BTreeMap<String, Refusal>,
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
            && let Some(layout) = zfs_layout::layout(&facts.zfs)
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
            let name = m.name().to_string_lossy().into_owned();
            maps.insert(name, Map::from(handle));
        }
    }
    if let Some(m) = maps.get("nfsd_op_number") {
        fill_op_numbers(m)?;
    }
    if let (Some(rows), Some(free)) = (maps.get("nfsd_client_row"), maps.get("nfsd_free_rows")) {
        free.queue_rows_of(rows);
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
            Some(function) => kretprobe::attach(&found, function),
            None => found
                .attach()
                .map(Attached::from)
                .map_err(|e| Refusal::from_log(&e)),
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
fn fill_op_numbers(map: &Map) -> libbpf_rs::Result<()> {
    for (i, name) in op::V4_OPS.iter().enumerate() {
        let mut key = [0u8; 32];
        let text = format!("OP_{}", name.to_ascii_uppercase());
        key[..text.len()].copy_from_slice(text.as_bytes());
        let number = (op::FIRST_V4_OP + i) as u32;
        map.update(&key, &number)?;
    }
    Ok(())
}

fn statuses(
    probe: &'static Probe,
    facts: &Facts,
    build: Build,
    refused: &BTreeMap<String, Refusal>,
) -> Vec<ProbeStatus> {
    probe
        .programs_of(build, facts.preemptible)
        .map(|p| {
            let (state, reason, fix) = match refused.get(p.name) {
                Some(Refusal { reason, fix }) => {
                    (ProbeState::Unsupported, reason.clone(), fix.clone())
                }
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
    release_free_memory();
    (loaded, states)
}

/// Returns to the kernel what copies of its BTF took, which the allocator would keep.
pub fn release_free_memory() {
    // SAFETY: malloc_trim touches free memory only.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::load::maps::REQUESTS;
    use nfscope_probes::types as t;

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
                    assert_eq!(m.max_entries(), REQUESTS);
                    assert_eq!(m.value_size() as usize, size_of::<t::request_record>());
                }
            }
        }
    }
}
