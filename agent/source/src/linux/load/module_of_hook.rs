//! Finds the module of a program's hook.
//!
//! libbpf looks for a hook in the kernel's BTF, and then in that of each module, and each of those begins with the kernel's once more
//! (`find_kernel_btf_id` and `btf__find_by_name_kind`). With a hundred modules and a hundred programs that is most of the time that
//! attaching takes. With a given module libbpf looks in that module alone.

use super::program::{Probe, Way};
use crate::linux::host::btf_names;
use std::collections::{BTreeMap, BTreeSet};

/// Targets for libbpf (`module:name`), by hook. A hook whose name is in none of the probe's modules is left to libbpf.
pub(super) fn targets(probe: &Probe, ways: &[Way]) -> BTreeMap<String, String> {
    let types: BTreeMap<String, &Way> = ways
        .iter()
        .filter_map(|way| Some((type_of(&way.hook)?, way)))
        .collect();
    let mut targets = BTreeMap::new();
    let mut sought: BTreeSet<&str> = types.keys().map(String::as_str).collect();
    for module in probe.modules {
        let before = sought.clone();
        btf_names::remove(module, &mut sought);
        for found in before.difference(&sought) {
            let hook = &types[*found].hook;
            if let Some((_, name)) = hook.split_once('/') {
                targets.insert(hook.clone(), format!("{module}:{name}"));
            }
        }
    }
    targets
}

/// Name of the type by which a hook is found: a function's own, or the one that the kernel makes for a tracepoint
/// (`find_btf_by_prefix_kind` in libbpf.c).
fn type_of(hook: &str) -> Option<String> {
    match hook.split_once('/')? {
        ("fentry" | "fexit", function) => Some(function.to_owned()),
        ("tp_btf", tracepoint) => Some(format!("btf_trace_{tracepoint}")),
        _ => None,
    }
}
