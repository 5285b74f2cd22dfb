//! Names as `bpftool` shows them on a host: each says which probe it belongs to.
#![allow(clippy::unwrap_used)]

use libbpf_rs::ObjectBuilder;
use std::collections::BTreeSet;

/// Longest name that the kernel keeps: `BPF_OBJ_NAME_LEN` less the NUL.
const MOST: usize = 15;

/// Maps of the records of threads, which the loader makes once and hands to every object that adds to them.
const SHARED: [&str; 2] = ["nfsd_request", "nfsd_more"];

/// Programs and maps of both builds of an object.
fn names(object: &nfscope_probes::Object) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut programs, mut maps) = (BTreeSet::new(), BTreeSet::new());
    for image in [Some(object.btf), object.raw].into_iter().flatten() {
        let mut builder = ObjectBuilder::default();
        let open = builder.name(object.word).unwrap().open_memory(image);
        let open = open.unwrap();
        programs.extend(open.progs().map(|p| p.name().to_str().unwrap().to_owned()));
        maps.extend(open.maps().map(|m| m.name().to_str().unwrap().to_owned()));
    }
    (programs, maps)
}

#[test]
fn programs_and_maps_carry_their_probes_word() {
    let mut seen = BTreeSet::new();
    for object in nfscope_probes::OBJECTS {
        let word = object.word;
        let prefix = format!("{word}_");
        let (programs, maps) = names(object);
        assert!(!programs.is_empty() && !maps.is_empty(), "{word}");
        for name in programs {
            assert!(name.starts_with(&prefix), "program {name} of {word}");
            assert!(name.len() <= MOST, "program {name} of {word}");
            assert!(seen.insert(name.clone()), "two programs are called {name}");
        }
        for name in maps {
            // Maps of data sections have names from libbpf: `nfsd.bss`, and for named sections the section's name, cut to the kernel's
            // limit: `.data.nfsd_slow_want`.
            let section = [".data.", ".rodata.", ".bss."]
                .iter()
                .find_map(|s| name.strip_prefix(s));
            if let Some(variable) = section {
                assert!(variable.starts_with(&prefix), "section {name} of {word}");
                continue;
            }
            let own = name.starts_with(&prefix) || name.starts_with(&format!("{word}."));
            assert!(
                own || SHARED.contains(&name.as_str()),
                "map {name} of {word}"
            );
            assert!(name.len() <= MOST, "map {name} of {word}");
            assert!(
                seen.insert(name.clone()) || SHARED.contains(&name.as_str()),
                "{name} stands for two things"
            );
        }
    }
}
