//! Loads an object in the chosen build, attaches what the kernel accepts, and keeps file
//! descriptors of maps and programs. The objects themselves are freed.

use super::kretprobe::{self, Attached};
use super::maps::{Map, Shared};
use super::module_of_hook;
use super::object::Loaded;
use super::plan::{self, Decision};
use super::pod;
use super::program::{Build, Kind, ON_DEMAND, Probe, Variant, Way, When};
use super::refusal::{Refusal, keep_log, refused_program, take_log};
use super::shape;
use super::standing::{Refused, chosen, status, statuses};
use crate::clock::monotonic_ns;
use crate::linux::host::facts::Facts;
use crate::linux::host::procfs::KernelCounts;
use crate::linux::host::zfs_layout;
use libbpf_rs::{MapCore, MapHandle, MapType, ObjectBuilder};
use nfscope_model::{ProbeState, ProbeStatus, op};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;

/// Kinds of programs that this kernel refuses to this process without a look at the program. Every attempt loads an object, which parses
/// the kernel's BTF again: a refusal that one probe has met holds for those that are loaded after it.
#[derive(Debug, Default)]
pub struct Kinds(Vec<(Build, Kind, Refusal)>);

impl Kinds {
    fn add(&mut self, build: Build, kind: Kind, why: &Refusal) {
        if self.of(build, kind).is_none() {
            self.0.push((build, kind, why.clone()));
        }
    }

    fn of(&self, build: Build, kind: Kind) -> Option<&Refusal> {
        let known = self.0.iter().find(|(b, k, _)| (*b, *k) == (build, kind));
        known.map(|(.., why)| why)
    }
}

/// Loads and attaches a probe as the plan says. Programs that do not load are left out and reported; they never stop the others.
///
/// If the kernel refuses the programs that read the scheduler's books, the probe that notes waits is loaded once more, without the books;
/// so are all that are loaded after it.
pub fn load(
    probe: &'static Probe,
    facts: &Facts,
    shared: &Shared,
    kinds: &mut Kinds,
) -> (Option<Loaded>, Vec<ProbeStatus>) {
    let (loaded, states) = load_variant(probe, facts, shared, kinds);
    // A missing program for a rare wait does not matter: the books give the other waits.
    let of_books = |s: &ProbeStatus| {
        let program = probe.programs.iter().find(|p| p.name == s.program);
        program.is_some_and(|p| p.when == When::Books)
    };
    let refused = |s: &ProbeStatus| s.state == ProbeState::Unsupported && of_books(s);
    let by_books = plan::decide(probe, facts) == Decision::Load(Build::Btf)
        && variant(facts, shared).books
        // Programs that already measure operations by the books would count waits twice.
        && !shared.is_settled();
    if probe.word != "sched" || !by_books || !states.iter().any(refused) {
        return (loaded, states);
    }
    drop(loaded);
    shared.without_books();
    load_variant(probe, facts, shared, kinds)
}

/// Status of every program of a probe that could not be loaded.
pub fn failed(
    probe: &'static Probe,
    facts: &Facts,
    shared: &Shared,
    why: &Refusal,
) -> Vec<ProbeStatus> {
    let build = match plan::decide(probe, facts) {
        Decision::Load(build) => build,
        _ => Build::Btf,
    };
    let programs = probe.programs_of(build, variant(facts, shared));
    let state = ProbeState::Unsupported;
    programs
        .map(|p| status(probe, p, state, &why.reason, &why.fix, p.hook(build)))
        .collect()
}

fn variant(facts: &Facts, shared: &Shared) -> Variant {
    Variant {
        preemptible: facts.preemptible,
        books: facts.books && shared.books(),
        write_delegations: facts.write_delegations,
        directory_delegations: facts.directory_delegations,
        casts: facts.casts,
    }
}

fn load_variant(
    probe: &'static Probe,
    facts: &Facts,
    shared: &Shared,
    kinds: &mut Kinds,
) -> (Option<Loaded>, Vec<ProbeStatus>) {
    let on = variant(facts, shared);
    let nothing = |state, reason: &str, fix: &str, build| {
        let states = probe
            .programs_of(build, on)
            .map(|p| status(probe, p, state, reason, fix, p.hook(build)));
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
    let mut refused = Refused::new();
    if build == Build::Raw {
        for p in probe.programs_of(build, on) {
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
    let ways = || probe.programs_of(build, on).flat_map(|p| p.ways(build, on));
    for way in ways() {
        if let Some(why) = kinds.of(build, way.kind()) {
            refused.entry(way.name.into()).or_insert(why.clone());
        }
    }
    loop {
        let choice = |refused: &Refused| -> Vec<Way> {
            let programs = probe.programs_of(build, on);
            programs
                .filter_map(|p| chosen(p, build, on, refused))
                .collect()
        };
        let wanted = choice(&refused);
        if wanted.is_empty() {
            return (None, statuses(probe, facts, on, build, &refused));
        }
        take_log();
        match attempt(probe, build, facts, shared, &mut refused) {
            // A program that loaded and did not attach has an alternative, which must be in the object from the beginning.
            Ok(detached) if choice(&refused).iter().any(|way| !wanted.contains(way)) => {
                drop(detached);
                if probe.word == "nfsd" {
                    // Its programs have seen beginnings of requests whose ends no program saw.
                    shared.clear();
                }
            }
            Ok(loaded) => {
                let states = statuses(probe, facts, on, build, &refused);
                return (Some(loaded), states);
            }
            Err(error) => {
                let log = take_log();
                let refusal = Refusal::explain(&log, &error);
                match refused_program(&log) {
                    Some(name)
                        if !refused.contains_key(&name) && ways().any(|way| way.name == name) =>
                    {
                        let kind = ways().find(|way| way.name == name).map(|way| way.kind());
                        if let Some(kind) = kind.filter(|_| refusal.is_of_the_kind()) {
                            kinds.add(build, kind, &refusal);
                            for way in ways().filter(|way| way.kind() == kind) {
                                refused.entry(way.name.into()).or_insert(refusal.clone());
                            }
                        }
                        refused.insert(name, refusal);
                    }
                    // The refusal names no program: the object as such does not load here.
                    _ => {
                        let Refusal { reason, fix } = refusal;
                        return nothing(ProbeState::Unsupported, &reason, &fix, build);
                    }
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
    refused: &mut Refused,
) -> libbpf_rs::Result<Loaded> {
    let on = variant(facts, shared);
    let wanted = probe.programs_of(build, on);
    let wanted: Vec<_> = wanted
        .filter_map(|p| Some((p, chosen(p, build, on, refused)?)))
        .collect();
    let image = match (build, shared.nfsd_object()) {
        (Build::Btf, Some(object)) if probe.word == "nfsd" => object,
        (Build::Raw, Some(_)) if probe.word == "nfsd" => {
            return Err(io::Error::other("no other object of this build can be had").into());
        }
        (Build::Btf, _) => probe.object.btf,
        (Build::Raw, _) => probe.object.raw.unwrap_or(probe.object.btf),
    };
    let ways: Vec<_> = wanted.iter().map(|(_, way)| way.clone()).collect();
    let targets = module_of_hook::targets(probe, &ways);
    // libbpf names the maps of data sections after the object, and an object without a name after its address.
    let mut open = ObjectBuilder::default()
        .name(probe.word)?
        .open_memory(image)?;
    for mut p in open.progs_mut() {
        let name = p.name().to_string_lossy().into_owned();
        match wanted.iter().find(|(_, way)| way.name == name) {
            None => p.set_autoload(false),
            // If that fails, libbpf looks for the target itself and reports why it finds none.
            Some((_, way)) => {
                if let Some(target) = targets.get(&way.hook) {
                    let _ = p.set_attach_target(0, Some(target.clone()));
                }
            }
        }
    }
    let tables = shape::table_shape(facts, shared.client_rows(), on.books);
    for mut m in open.maps_mut() {
        let name = m.name().to_string_lossy().into_owned();
        if let Some(entries) = shape::entries(&tables, &name, m.max_entries()) {
            m.set_max_entries(entries)?;
        }
        if let Some(shared) = shared.get(&name) {
            m.reuse_fd(shared)?;
            continue;
        }
        if name == format!(".rodata.{}_shape", probe.word) {
            m.set_initial_value(pod::bytes_of(&tables))?;
        }
        if name == ".rodata.zfs_layout"
            && let Some(layout) = zfs_layout::layout(&facts.zfs)
        {
            m.set_initial_value(pod::bytes_of(&layout))?;
        }
        if !facts.on_demand && m.map_type() == MapType::Hash {
            m.set_map_flags(0)?;
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
    for free in [
        "nfsd_free_rows",
        "block_free",
        "client_free",
        "client_free_row",
    ] {
        if let Some(free) = maps.get(free) {
            free.queue_rows();
        }
    }
    let (mut links, mut programs, mut counted) = (Vec::new(), Vec::new(), None);
    let mut on_demand = Vec::new();
    let last = wanted.last().map(|(_, way)| way.name);
    for (p, way) in &wanted {
        let Some(found) = loaded.progs_mut().find(|x| x.name() == way.name) else {
            continue;
        };
        if p.btf == ON_DEMAND {
            on_demand.push((p.name, found.as_fd().try_clone_to_owned()?));
            continue;
        }
        let attached = match way.hook.strip_prefix("kretprobe/") {
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
                refused.insert(way.name.into(), why);
            }
        }
        // Operations are timed once the last program is attached. Attaching takes milliseconds, in which the kernel counts on.
        if Some(way.name) == last {
            tell_attached(&maps)?;
            counted = KernelCounts::read();
        }
    }
    programs.append(&mut on_demand);
    Ok(Loaded {
        build,
        maps,
        programs,
        counted,
        links,
        fixed_memory: Default::default(),
    })
}

/// The nfsd probe counts a request of which it sees the end alone if the request was read after this moment: `ATTACHED` in
/// nfsd/connection.h. In another time namespace than the kernel's, such a first request of a thread may not be counted.
fn tell_attached(maps: &BTreeMap<String, Map>) -> libbpf_rs::Result<()> {
    let Some(numbers) = maps.get("nfsd_number") else {
        return Ok(());
    };
    numbers.update_everywhere(&(numbers.capacity() - 1), &monotonic_ns())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::load::maps::{REQUESTS, REQUESTS_MORE};
    use crate::linux::load::program::When;
    use crate::linux::load::program_table::PROBES;
    use crate::linux::load::standing::tests::ON;
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
                    .programs
                    .iter()
                    .filter(|p| match build {
                        Build::Btf => p.when != When::Raw,
                        Build::Raw => p.raw.is_ok(),
                    })
                    .flat_map(|p| p.ways(build, ON))
                    .map(|way| (way.name.to_owned(), way.hook))
                    .collect();
                have.sort();
                want.sort();
                assert_eq!(have, want);
                for m in open.maps() {
                    let most = match m.name().to_str() {
                        Some("nfsd_request") => REQUESTS,
                        Some("nfsd_more") => REQUESTS_MORE,
                        _ => continue,
                    };
                    assert_eq!(m.max_entries(), most);
                    assert_eq!(m.value_size() as usize, size_of::<t::request_record>());
                }
            }
        }
    }
}
